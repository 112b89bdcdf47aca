"""The function that loads a method from another program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.program.interface import TENSOR_LISTS
from orchestrator.program.values import VALUE_KINDS, NoneValue, TensorValue, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from orchestrator.emit.generate.ports import ApiMethod


def load_function(entry: str, method: ApiMethod) -> Iterator[str]:
    """The function that loads another program, with the interface it must have."""
    m = method.method
    yield f"orch_status {method.base}_load(const void* program, uint32_t size) {{"
    yield f"  const orch::ModelMethod& method = {entry};"
    yield "  if (program == nullptr) {"
    yield "    orch::unload(method);"
    yield "    return status(orch::prepare(method));"
    yield "  }"
    spans = []
    checks = []
    for side, indices in (("inputs", m.inputs), ("outputs", m.outputs)):
        promised = []
        for place, index in enumerate(indices):
            value = m.values[index]
            name = f"{side}{place}"
            is_given = method.is_given(place, is_input=side == "inputs")
            promised.append(_port(value, name, is_given=is_given))
            yield from _arrays(value, name)
            if not isinstance(value, TENSOR_LISTS) or not value.items:
                continue
            items = [m.values[i] if i >= 0 else NoneValue() for i in value.items]
            for number, item in enumerate(items):
                yield from _arrays(item, f"{name}_item{number}")
            ports = [_port(x, f"{name}_item{n}") for n, x in enumerate(items)]
            yield f"  static constexpr orch::Port {name}_items[] = {{"
            yield ",\n".join(ports) + "};"
            writable = "true" if side == "inputs" else "false"
            checks.append(
                f"orch::items_fit(method, orch::{side[:-1]}(method, {place}),\n"
                f"                       {name}_items, {writable})"
            )
        if promised:
            yield f"  static constexpr orch::Port {side}[] = {{"
            yield ",\n".join(promised) + "};"
        spans.append(side if promised else "{}")
    replaced = (
        "orch::replace(",
        "      method, {static_cast<const uint8_t*>(program), size},",
        f"      {spans[0]}, {spans[1]})",
    )
    if not checks:
        yield f"  return status({replaced[0]}"
        yield from (replaced[1], f"{replaced[2]});", "}")
        return
    yield f"  orch::Error error = {replaced[0]}"
    yield from (replaced[1], f"{replaced[2]};")
    for check in checks:
        yield f"  if (error == orch::Error::Ok &&\n      !{check}) {{"
        yield "    error = orch::Error::InvalidArgument;\n  }"
    yield "  if (error != orch::Error::Ok) orch::unload(method);"
    yield "  return status(error);"
    yield "}"


def _arrays(value: Value, name: str) -> Iterator[str]:
    """Sizes and dim order of a tensor that has dimensions."""
    if isinstance(value, TensorValue) and value.sizes:
        sizes, order = _items(value.sizes), _items(value.dim_order)
        yield f"  static constexpr int32_t {name}_sizes[] = {{{sizes}}};"
        yield f"  static constexpr uint8_t {name}_order[] = {{{order}}};"


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


def _items(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
