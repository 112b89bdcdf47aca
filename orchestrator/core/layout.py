"""Where the items of a tensor lie in memory, and the arrays that they are.

Memory has the dimensions of a tensor in its dim order, outermost first. Where sizes are
1, several dim orders name the same memory: nothing may depend on which of them it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from orchestrator.core.dtype import ScalarType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.core.lazy_bytes import Bytes

_S = ScalarType
# ExecuTorch plans tensors at multiples of 16 (`ALIGNMENT` of exir/tensor.py, 1.5.1),
# vector loads and stores of MVE have 16 bytes, and the loader refuses an arena that
# begins elsewhere: `kArenaAlignment` of runtime/include/orch/loader.h.
ALIGNMENT: Final = 16
"""Bytes of which the places of tensors, constants and segments are a multiple."""

FORMATS: Final[Mapping[ScalarType, str]] = MappingProxyType(
    {
        _S.Bool: "|u1",
        _S.Byte: "|u1",
        _S.Char: "|i1",
        _S.Short: "<i2",
        _S.Int: "<i4",
        _S.Long: "<i8",
        _S.Half: "<f2",
        _S.Float: "<f4",
        _S.Double: "<f8",
        # NumPy has no bfloat16. As integers its items can be moved and compared, and
        # nothing computes with them by mistake.
        _S.BFloat16: "<u2",
        _S.UInt16: "<u2",
        _S.UInt32: "<u4",
        _S.UInt64: "<u8",
    }
)
"""NumPy's names for the items of dtypes; BFloat16 is the upper half of a Float."""


def logical_items(
    data: Bytes, form: str, sizes: Sequence[int], dim_order: Sequence[int]
) -> NDArray[Any]:
    """The memory of a tensor as an array that has its sizes.

    Args:
        data: All items of the tensor.
        form: NumPy's name of an item.
        sizes: Sizes of the tensor.
        dim_order: Dimensions from outermost to innermost in memory.
    """
    import numpy as np  # noqa: PLC0415  # only where items are looked at

    # The one place that turns bytes into arrays. Packers once took sizes in dim order
    # for the shape: wrong outputs on M4 and M55 wherever a size of 1 left the dim order
    # open (tests/unit/core/test_layout.py).
    in_memory = np.frombuffer(bytes(data), form).reshape(memory_sizes(sizes, dim_order))
    return in_memory.transpose([list(dim_order).index(d) for d in range(len(sizes))])


def stored_items(items: NDArray[Any], dim_order: Sequence[int]) -> bytes:
    """The memory of a tensor with the items of an array; undoes `logical_items`."""
    return items.transpose(dim_order).tobytes()


def memory_sizes(sizes: Sequence[int], dim_order: Sequence[int]) -> tuple[int, ...]:
    """Sizes from outermost to innermost in memory."""
    return tuple(sizes[dim] for dim in dim_order)


def strides_of(sizes: Sequence[int], dim_order: Sequence[int]) -> tuple[int, ...]:
    """Strides in items, by dimension."""
    strides = [0] * len(sizes)
    step = 1
    for dim in reversed(dim_order):
        strides[dim] = step
        step *= sizes[dim]
    return tuple(strides)


def lies_in_order(sizes: Sequence[int], dim_order: Sequence[int], order: Sequence[int]) -> bool:
    """Whether memory has an order. Strides of dimensions of size 1 do not matter."""
    strides, wanted = strides_of(sizes, dim_order), strides_of(sizes, order)
    return all(
        size <= 1 or stride == step
        for size, stride, step in zip(sizes, strides, wanted, strict=True)
    )


def layout_of(sizes: Sequence[int], dim_order: Sequence[int]) -> list[tuple[int, int]]:
    """(size, stride) by dimension, with neighbours merged that lie side by side.

    Equal for two tensors if the items, counted row by row, lie in the same places.
    """
    merged: list[tuple[int, int]] = []
    for size, stride in zip(sizes, strides_of(sizes, dim_order), strict=True):
        # A dimension of one item moves nothing, wherever the dim order has it.
        if size == 1:
            continue
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return merged
