"""Calls that only move items: blocks of bytes from one place to another.

A call with several inputs or outputs, such as a concatenation, becomes several calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from orchestrator.method.linked import LinkedCall, Prepared, Shape
from orchestrator.method.passes.preparing.form import MOST_COPIES
from orchestrator.method.passes.views import moves_items, views_of
from orchestrator.method.places import Access

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod, Numbers
from orchestrator.method.passes.views import View

# `BlockShape`: three loops around a block serve all four dimensions of an image.
_LOOPS: Final = ("outer", "middle", "inner")
_MEMORY: Final = (("input", 0), ("out", 1))
# `copy_items` of the runtime has loads of one, two and four bytes.
_MOST_ITEM: Final = 4
"""Bytes of an item that a core reads at once."""


def may_be_copies(call: LinkedCall) -> bool:
    """Whether a call is of a kernel of ours that only moves items."""
    return call.function.startswith("orch::") and moves_items(call.operator)


def prepared_copies(
    method: LinkedMethod, call: LinkedCall, written: frozenset[int]
) -> tuple[LinkedCall, ...]:
    """The calls that move what a call moves, one for each view; none if it computes.

    Args:
        method: The method, with planned memory.
        call: One of its calls.
        written: `method.written`.
    """
    found: list[LinkedCall] = []
    begun: set[int] = set()
    views = views_of(method, call, written) if may_be_copies(call) else ()
    for view in [part for whole in views or () for part in _parts(whole)]:
        blocks = _blocks(method, view)
        if blocks is None:
            return ()
        function, shape, offsets = blocks
        # Each view fills a part of what it writes.
        access = Access.UPDATES if view.target in begun else Access.FILLS
        begun.add(view.target)
        found.append(
            replace(
                call,
                function=function,
                args=(view.source, view.target),
                accesses=(Access.READS, access),
                outs=(view.target,),
                in_place=(),
                prepared=Prepared(
                    struct="orch::CopyCall", memory=_MEMORY, shape=shape, numbers=offsets
                ),
            )
        )
    return tuple(found)


def _parts(view: View) -> tuple[View, ...]:
    """A view as several, if it has more loops than a call; itself if these are many."""
    axes = _merged(view)
    is_block = axes[-1:] and axes[-1][1:] == (1, 1)
    few = [i for i, size in enumerate(view.sizes) if 1 < size <= MOST_COPIES]
    if len(axes) - bool(is_block) <= len(_LOOPS) or not few:
        return (view,)
    # Repeated rows first: what is left moves one row for another.
    axis = min(few, key=lambda i: (view.read[i] and view.sizes[i], -view.written[i]))
    count = view.sizes[axis]
    return tuple(part for at in range(count) for part in _parts(view.along(axis, at, 1)))


def _blocks(
    method: LinkedMethod, view: View
) -> tuple[str, Shape, tuple[tuple[str, Numbers], ...]] | None:
    """The kernel that moves the blocks of a view, their shape, and where they begin."""
    here, there = (method.places.get(i) for i in (view.source, view.target))
    # Blocks go one after the other: an overlap would destroy what comes later.
    if not (here and there) or here.overlaps(there) or not all(view.sizes):
        return None
    item = method.tensor(view.source).dtype.item_bytes
    axes = _merged(view)
    block = 1
    if axes and axes[-1][1] == axes[-1][2] == 1:
        block = axes.pop()[0]
    if len(axes) > len(_LOOPS):
        return None
    loops = [(1, 0, 0)] * (len(_LOOPS) - len(axes)) + [
        (count, read * item, to * item) for count, read, to in axes
    ]
    is_item = block == 1 and item <= _MOST_ITEM
    numbers: list[tuple[str, Numbers]] = [("block_bytes", block * item)]
    for name, (count, read, to) in zip(_LOOPS, loops, strict=True):
        members = (("count", count), ("read", read), ("written", to))
        numbers.append((name, members))
    return (
        f"orch::copy_{'items' if is_item else 'blocks'}",
        Shape(struct="orch::BlockShape", numbers=tuple(numbers)),
        (("input_offset", view.first_read * item), ("out_offset", view.first_written * item)),
    )


def _merged(view: View) -> list[tuple[int, int, int]]:
    """Size and strides of each axis, in the order of the target's memory.

    Two axes that are one step after another on both sides are one.
    """
    axes = sorted(
        (a for a in zip(view.sizes, view.read, view.written, strict=True) if a[0] > 1),
        key=lambda axis: axis[2],
        reverse=True,
    )
    merged: list[tuple[int, int, int]] = []
    for count, read, to in axes:
        if merged and merged[-1][1:] == (count * read, count * to):
            count *= merged.pop()[0]  # noqa: PLW2901
        merged.append((count, read, to))
    return merged
