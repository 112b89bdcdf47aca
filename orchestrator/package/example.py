"""An example application: statements in C that call the methods of a product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from orchestrator.emit.generate.ports import ApiMethod, Port, accessor, api_methods, c_scalar
from orchestrator.errors import UsageError
from orchestrator.package.self_test import Case
from orchestrator.program.interface import NUMBER_LISTS
from orchestrator.program.program import Program
from orchestrator.program.values import StringValue, TensorValue
from orchestrator.running.new_scenario import random_input
from orchestrator.running.product import Product, ProductMethod
from orchestrator.running.protocol import encode_request, untraced
from orchestrator.running.values import Call

_VALUES = {"int": "1", "double": "0.5", "bool": "1"}


def example_calls(profile: str, programs: Mapping[str, Program]) -> dict[str, str]:
    """A function `run_NAME` for each method whose arguments are arrays and numbers.

    Each returns the status, and leaves inputs zero: the place for what sensors give.

    Returns:
        Their texts, by name.
    """
    methods = api_methods(profile, programs)
    found = {f"run_{method.base}": _example(method) for method in methods}
    return {name: text for name, text in found.items() if text}


def _example(method: ApiMethod) -> str:
    ports = [list(_arguments(port)) for port in method.ports]
    if not all(ports):
        return ""
    lines = "".join(f"  {line};\n" for port in ports for line, _ in port if line)
    arguments = ", ".join(name for port in ports for _, name in port)
    return (
        f"static orch_status run_{method.base}(void) {{\n{lines}"
        f"  return {method.base}({arguments});\n}}\n"
    )


def _arguments(port: Port) -> Iterator[tuple[str, str]]:
    """Declaration and argument of each parameter of a port; none if it has others."""
    value, name = port.value, port.name
    if isinstance(value, TensorValue):
        aligned = "__attribute__((aligned(16))) " if port.is_given else ""
        yield f"{aligned}static {port.c_type} {name}[{max(value.numel, 1)}]", name
        if value.is_dynamic:
            sizes = ", ".join(map(str, value.sizes)) or "0"
            count = max(len(value.sizes), 1)
            yield f"static int32_t {name}_sizes[{count}] = {{{sizes}}}", f"{name}_sizes"
    elif isinstance(value, (StringValue, *NUMBER_LISTS)):
        return
    elif port.is_input:
        yield "", _VALUES[accessor(value)]
    else:
        yield f"{c_scalar(value)} {name}", f"&{name}"


# The case of the self test: inputs, and what the product makes of them.

_SEED: Final = 20


def random_calls(product: Product) -> tuple[Call, ...]:
    """One call of each method, with the same random inputs every time.

    Raises:
        UsageError: A method has an input that no file can hold (`case-needed`).
    """
    import numpy as np  # noqa: PLC0415  # only for arrays

    random = np.random.default_rng(_SEED)
    calls: list[Call] = []
    for method in product.methods:
        inputs = [random_input(port, random) for port in method.inputs]
        known = tuple(value for value in inputs if value is not None)
        if len(known) != len(inputs):
            raise _case_needed(method)
        calls.append(Call(method=method, inputs=known))
    return tuple(calls)


def first_is_fresh(calls: Sequence[Call]) -> tuple[Call, ...]:
    """The calls, so that the first one begins with methods as they were linked."""
    return (replace(calls[0], fresh=True), *calls[1:]) if calls else ()


def case_of(calls: Sequence[Call], response: bytes) -> Case:
    """The case of calls and of what the firmware answered."""
    data, ends = untraced(response, calls)
    names = (f"{call.method.model}.{call.method.name}" for call in calls)
    return Case(
        request=encode_request(calls), response=data, calls=tuple(zip(names, ends, strict=True))
    )


def _case_needed(method: ProductMethod) -> UsageError:
    return UsageError.of(
        "case-needed",
        f"method {method} has an input that cannot be made up",
        found=", ".join(map(str, method.inputs)),
        hint="give the calls of the self test with --scenario",
    )
