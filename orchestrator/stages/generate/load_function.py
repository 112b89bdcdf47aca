"""The function of a method that takes another program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.pte.values import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from orchestrator.stages.generate.ports import ApiMethod

_TAGS: Final[dict[type[Value], str]] = {
    NoneValue: "None",
    TensorValue: "Tensor",
    IntValue: "Int",
    DoubleValue: "Double",
    BoolValue: "Bool",
    StringValue: "String",
    IntListValue: "IntList",
    DoubleListValue: "DoubleList",
    BoolListValue: "BoolList",
    TensorListValue: "TensorList",
    OptionalTensorListValue: "TensorList",
}


def load_function(entry: str, method: ApiMethod) -> Iterator[str]:
    """The function that takes another program, with what it must look like."""
    m = method.method
    yield f"orch_status {method.base}_load(const void* program, uint32_t size) {{"
    yield f"  const orch::ModelMethod& method = {entry};"
    yield "  if (program == nullptr) {"
    yield "    orch::unload(method);"
    yield "    return status(orch::prepare(method));"
    yield "  }"
    spans = []
    for side, indices in (("inputs", m.inputs), ("outputs", m.outputs)):
        items = []
        for place, index in enumerate(indices):
            value = m.values[index]
            name = f"{side}{place}"
            if isinstance(value, TensorValue):
                arrays = ("nullptr", "nullptr")
                if value.sizes:
                    arrays = (f"{name}_sizes", f"{name}_order")
                    sizes, order = _items(value.sizes), _items(value.dim_order)
                    yield f"  static constexpr int32_t {arrays[0]}[] = {{{sizes}}};"
                    yield f"  static constexpr uint8_t {arrays[1]}[] = {{{order}}};"
                flags = ["orch::Tensor::kDynamic"] if value.is_dynamic else []
                if method.is_given(place, is_input=side == "inputs"):
                    flags.append("orch::Tensor::kCaller")
                items.append(
                    f"      {{orch::Tag::Tensor, orch::ScalarType::{value.dtype.name},"
                    f" {' | '.join(flags) or 0}, {len(value.sizes)},"
                    f" {', '.join(arrays)}}}"
                )
            else:
                tag = f"orch::Tag::{_TAGS[type(value)]}"
                items.append(f"      {{{tag}, {', '.join(['{}'] * 5)}}}")
        if items:
            yield f"  static constexpr orch::Port {side}[] = {{"
            yield ",\n".join(items) + "};"
        spans.append(side if items else "{}")
    yield "  return status(orch::replace("
    yield "      method, {static_cast<const uint8_t*>(program), size},"
    yield f"      {spans[0]}, {spans[1]}));"
    yield "}"


def _items(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
