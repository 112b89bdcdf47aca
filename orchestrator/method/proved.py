"""Whether the build has proved all calls of a product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.condition import holds
from orchestrator.core.kernel import Kernel
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.program.values import TensorValue
from orchestrator.selection.call_facts import MethodFacts, argument_facts

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Resolution


def are_proved(
    methods: Iterable[LinkedMethod],
    resolution: Resolution,
    *,
    unknown: frozenset[str] = frozenset(),
) -> bool:
    """Whether each call certainly meets every condition of its kernel.

    Then no check of an argument can fail when the calls run. A condition whose answer
    only a run shows, such as one on the items of an input, is not proved.

    Args:
        methods: After all passes: these are the calls that run.
        resolution: Their kernels. Kernels that passes put in their places, and
            prepared calls, have no conditions: passes make what they get.
        unknown: Kernel libraries whose conditions may lack what the kernels check.
    """
    kernels = {
        binding.kernel.function: binding.kernel
        for operator in resolution.operators
        for binding in operator.bindings
    }
    return unknown.isdisjoint(k.library for k in kernels.values()) and all(
        _meets(method, kernels) for method in methods
    )


def _meets(method: LinkedMethod, kernels: dict[str, Kernel]) -> bool:
    """Whether each call of a method does."""
    if method.dynamic_words:
        return False
    calls = [i for i in method.instructions if isinstance(i, LinkedCall)]
    if len(calls) != len(method.instructions):
        return False  # A move or jump: values are those of another path.
    changing = {*method.inputs, *(out for call in calls for out in call.outs)}
    facts = MethodFacts(uses=Counter(), changing=frozenset(changing), moved=frozenset())
    data = {id(method.values[index]): bytes_ for index, bytes_ in method.data}

    def constant(tensor: TensorValue) -> Bytes:
        return data[id(tensor)]

    for call in calls:
        kernel = kernels.get(call.function)
        if call.prepared is not None or kernel is None:
            continue
        arguments = argument_facts(method.values, call.args, kernel.schema, facts, constant)
        if not holds(kernel.requires, kernel.schema, arguments):
            return False
    return True
