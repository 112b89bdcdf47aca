"""Elements of a tensor in logical order, and in the dim order of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.core.layout import logical_items, stored_items

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
    elements = logical_items(data, f"u{item_bytes}", sizes, range(len(sizes)))
    return stored_items(elements, dim_order)


def to_logical_order(
    data: bytes,
    *,
    sizes: Sequence[int],
    dim_order: Sequence[int],
    item_bytes: int,
) -> bytes:
    """Elements laid out in a dim order, in C order; undoes `to_memory_order`."""
    elements = logical_items(data, f"u{item_bytes}", sizes, dim_order)
    return stored_items(elements, range(len(sizes)))
