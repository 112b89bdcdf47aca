"""Checks of linked methods: no call writes constants, and conditions of kernels hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.condition import holds
from orchestrator.core.kernel import Kernel
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.places import written_positions
from orchestrator.program.caller import caller_outputs, caller_values
from orchestrator.program.interface import with_items
from orchestrator.program.program import KernelCall, Method, MoveCall, Program
from orchestrator.program.values import TensorValue
from orchestrator.selection.call import MethodFacts, argument_facts

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Resolution


# Check that no kernel call writes into a constant.
#
# The device rejects such programs at load; the build finds them first.


def check_writes(
    programs: Mapping[str, Program], resolution: Resolution, spans: Mapping[str, SourceSpan]
) -> None:
    """Reject programs that write into constants.

    A value that a move replaces counts as a constant: it may share the memory of a
    constant. runtime/src/find_kernel.cpp has the same rule.

    Args:
        programs: By model name.
        resolution: Has the op schema of every operator that is called.
        spans: By model name, the profile line that names it.

    Raises:
        ModelError: With every such call (`write-to-constant`).
    """
    schemas = {operator.name: operator.schema for operator in resolution.operators}
    problems = [
        Diagnostic.of(
            "write-to-constant",
            f'model "{model}" writes into memory that must not change',
            where=spans.get(model),
            found=f"method {method.name}, {what}",
            hint="export the model again; if it was exported just now, report it to ExecuTorch",
        )
        for model, program in programs.items()
        for method in program.methods
        for what in _writes(method, schemas)
    ]
    if problems:
        raise ModelError(problems)


def _writes(method: Method, schemas: Mapping[OperatorName, OpSchema]) -> Iterator[str]:
    moved = {i.target for i in method.instructions if isinstance(i, MoveCall)}
    given = caller_outputs(method)

    def fixed(indices: Iterable[int]) -> Iterator[int]:
        for index in with_items(method, indices):
            value = method.values[index]
            if isinstance(value, TensorValue) and (
                index in moved or not (value.is_planned or index in given)
            ):
                yield index

    yield from _fixed_inputs(method, moved)
    for number, call in enumerate(method.instructions):
        if not isinstance(call, KernelCall):
            continue
        schema = schemas.get(method.operators[call.operator])
        if schema is None:
            continue
        for position in written_positions(schema):
            what = "the result"
            if position < len(schema.arguments):
                what = f'argument "{schema.arguments[position].name}"'
            for index in fixed([call.args[position]]):
                yield f"instruction {number}, {what} (value {index})"


def _fixed_inputs(method: Method, moved: set[int]) -> Iterator[str]:
    """Inputs that callers cannot write."""
    given = caller_values(method)
    for position, index in enumerate(method.inputs):
        for item in with_items(method, [index]):
            value = method.values[item]
            if isinstance(value, TensorValue) and (
                (item in moved and item not in given) or value.is_constant
            ):
                yield f"input {position} (value {item})"


# Whether the build has proved all calls of a product.


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
    # Sizes that a run changes decide conditions on them in each run anew.
    if method.dynamic_words:
        return False
    calls = [i for i in method.instructions if isinstance(i, LinkedCall)]
    if len(calls) != len(method.instructions):
        return False  # A move or jump: values are those of another path.
    # Items of these are known in a run alone: a condition on them is undecided.
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
