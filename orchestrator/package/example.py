"""An example application: statements in C that call the methods of a product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.emit.generate.ports import ApiMethod, Port, accessor, api_methods, c_scalar
from orchestrator.program.interface import NUMBER_LISTS
from orchestrator.program.program import Program
from orchestrator.program.values import StringValue, TensorValue

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
        # Memory of the caller has to begin as arenas do; Misaligned otherwise.
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
