"""Elements of a tensor in logical order, and in the dim order of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def to_memory_order(
    data: bytes,
    *,
    sizes: Sequence[int],
    dim_order: Sequence[int],
    item_bytes: int,
) -> bytes:
    """Elements in C order, laid out anew in a dim order.

    Args:
        data: `prod(sizes)` elements in C order.
        sizes: Of the tensor, outermost dimension first.
        dim_order: Dimensions from outermost to innermost in memory.
        item_bytes: 1, 2, 4 or 8.
    """
    import numpy as np  # noqa: PLC0415  # only for tensors

    elements = np.frombuffer(data, f"u{item_bytes}").reshape(sizes)
    return elements.transpose(dim_order).tobytes()


def to_logical_order(
    data: bytes,
    *,
    sizes: Sequence[int],
    dim_order: Sequence[int],
    item_bytes: int,
) -> bytes:
    """Elements laid out in a dim order, in C order; undoes `to_memory_order`."""
    return to_memory_order(
        data,
        sizes=[sizes[dim] for dim in dim_order],
        dim_order=[list(dim_order).index(dim) for dim in range(len(sizes))],
        item_bytes=item_bytes,
    )
