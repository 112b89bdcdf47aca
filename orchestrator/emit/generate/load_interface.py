"""The interface that another program must have to be loaded in place of a linked one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.emit.generate.ports import ApiMethod
from orchestrator.program.interface import TENSOR_LISTS
from orchestrator.program.values import VALUE_KINDS, NoneValue, TensorValue, Value


@dataclass(slots=True)
class LoadInterface:
    """Inputs and outputs of a method as tables in C++.

    Args:
        inputs: Name of the table of inputs; `{}` if there are none.
        outputs: The same of outputs.
        tables: Definitions of all tables.
        checks: Ports that are lists of tensors: the port, the table of its items, and
            whether they are written to.
    """

    inputs: str = "{}"
    outputs: str = "{}"
    tables: list[str] = field(default_factory=list)
    checks: list[tuple[str, str, str]] = field(default_factory=list)


def load_interface(method: ApiMethod) -> LoadInterface:
    """What the function that loads another program checks it against."""
    made, m = LoadInterface(), method.method
    for side, indices in (("input", m.inputs), ("output", m.outputs)):
        promised = []
        for place, index in enumerate(indices):
            value, name = m.values[index], f"{side}s{place}"
            is_given = method.is_given(place, is_input=side == "input")
            promised.append(_port(value, name, is_given=is_given))
            made.tables += _arrays(value, name)
            if not isinstance(value, TENSOR_LISTS) or not value.items:
                continue
            items = [m.values[i] if i >= 0 else NoneValue() for i in value.items]
            for number, item in enumerate(items):
                made.tables += _arrays(item, f"{name}_item{number}")
            # Lists are compared item by item: the generated functions give each tensor
            # by its place.
            ports = [_port(x, f"{name}_item{n}") for n, x in enumerate(items)]
            made.tables.append(_table(f"{name}_items", ports))
            writable = "true" if side == "input" else "false"
            made.checks.append((f"orch::{side}(method, {place})", f"{name}_items", writable))
        if promised:
            made.tables.append(_table(f"{side}s", promised))
    made.inputs = "inputs" if m.inputs else "{}"
    made.outputs = "outputs" if m.outputs else "{}"
    return made


def _table(name: str, ports: list[str]) -> str:
    rows = ",\n".join(ports)
    return f"  static constexpr orch::Port {name}[] = {{\n{rows}}};"


def _arrays(value: Value, name: str) -> Iterator[str]:
    """Sizes and dim order of a tensor that has dimensions."""
    if isinstance(value, TensorValue) and value.sizes:
        for c_type, end, numbers in (
            ("int32_t", "sizes", value.sizes),
            ("uint8_t", "order", value.dim_order),
        ):
            items = ", ".join(map(str, numbers))
            yield f"  static constexpr {c_type} {name}_{end}[] = {{{items}}};"


def _port(value: Value, name: str, *, is_given: bool = False) -> str:
    """The interface of a value; its arrays have this name."""
    if not isinstance(value, TensorValue):
        return f"      {{{VALUE_KINDS[type(value)].tag}, {', '.join(['{}'] * 5)}}}"
    arrays = f"{name}_sizes, {name}_order" if value.sizes else "nullptr, nullptr"
    flags = ["orch::Tensor::kDynamic"] if value.is_dynamic else []
    flags += ["orch::Tensor::kCaller"] if is_given else []
    return (
        f"      {{orch::Tag::Tensor, orch::ScalarType::{value.dtype.name},"
        f" {' | '.join(flags) or 0}, {len(value.sizes)}, {arrays}}}"
    )
