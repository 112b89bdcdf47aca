"""Multiply-accumulate operations of a call, from its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.program.values import BoolValue, TensorValue, Value

if TYPE_CHECKING:
    from orchestrator.core.operator import OpSchema

_Named = dict[str, "Value"]


def macs_of(schema: OpSchema, args: Sequence[int], values: Sequence[Value]) -> int | None:
    """Multiply-accumulates of one call; of dynamic tensors the upper bound.

    Returns:
        None for operators that are no sums of products.
    """
    count = _COUNTS.get(schema.name.base)
    if count is None:
        return None
    named = {
        argument.name: values[index]
        for argument, index in zip(schema.arguments, args, strict=False)
    }
    try:
        return count(named)
    except (KeyError, IndexError, ZeroDivisionError):
        return None  # another overload, or no item


def _tensor(named: _Named, name: str) -> TensorValue:
    value = named[name]
    if not isinstance(value, TensorValue):
        raise KeyError(name)
    return value


def _convolution(named: _Named, *, channels: int = 1) -> int:
    """Each output sums as many products as a filter has weights.

    A transposed convolution does the same from its inputs.
    """
    weight = _tensor(named, "weight")
    transposed = named.get("transposed")
    is_transposed = isinstance(transposed, BoolValue) and transposed.value
    ends = _tensor(named, "input" if is_transposed else "out")
    return ends.numel * weight.numel // ends.sizes[channels]


def _convolution_nhwc(named: _Named) -> int:
    return _convolution(named, channels=-1)


def _transposed(named: _Named, *, channels: int = 1) -> int:
    source = _tensor(named, "input")
    return source.numel * _tensor(named, "weight").numel // source.sizes[channels]


def _transposed_nhwc(named: _Named) -> int:
    return _transposed(named, channels=-1)


def _product(name: str) -> Callable[[_Named], int]:
    """A matrix product: each output sums over the last dimension of an argument."""
    return lambda named: prod(_tensor(named, "out").sizes) * _tensor(named, name).sizes[-1]


_COUNTS: Final[Mapping[str, Callable[[_Named], int]]] = MappingProxyType(
    {
        "convolution": _convolution,
        "quantized_conv2d": _convolution,
        "quantized_conv2d_nhwc": _convolution_nhwc,
        "quantized_depthwise_conv2d": _convolution,
        "quantized_depthwise_conv2d_nhwc": _convolution_nhwc,
        "quantized_transpose_conv2d": _transposed,
        "quantized_transpose_conv2d_nhwc": _transposed_nhwc,
        "quantized_linear": _product("input"),
        "quantized_batch_matmul": _product("lhs"),
        "linear": _product("input"),
        "mixed_linear": _product("input"),
        "mixed_mm": _product("input"),
        "addmm": _product("mat1"),
        "mm": _product("self"),
        "bmm": _product("self"),
    }
)
"""By base name of the operator."""
