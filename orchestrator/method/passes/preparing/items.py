"""How the items of tensors lie to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.method.passes.arguments import strides_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.method.linked import Numbers
    from orchestrator.program.values import TensorValue

Loop = list[tuple[int, tuple[int, ...]]]
"""Dimensions, outermost first: how many indices, and for each tensor how many items
there are from one to the next."""


def lie_alike(*tensors: TensorValue) -> bool:
    """Whether tensors have the same sizes, and their items the same order in memory."""
    if len({tensor.sizes for tensor in tensors}) != 1:
        return False
    used = [d for d, size in enumerate(tensors[0].sizes) if size != 1]
    steps = {tuple(strides_of(tensor)[d] for d in used) for tensor in tensors}
    return len(steps) == 1


def loop_over(out: TensorValue, *steps: Sequence[int]) -> Loop:
    """A loop over a tensor in the order of its memory, and others beside it.

    Neighbours through which all tensors step evenly become one, as in `StridedLoop` of
    kernels/util/strided_loop.h.

    Args:
        out: The tensor.
        steps: Of each of the others, by dimension of `out`: items from one index to
            the next, 0 where one item is for all.
    """
    own = strides_of(out)
    loop: Loop = []
    for dim in out.dim_order:
        size = out.sizes[dim]
        if size == 1:
            continue
        inner = (own[dim], *(s[dim] for s in steps))
        if loop and all(o == i * size for o, i in zip(loop[-1][1], inner, strict=True)):
            loop[-1] = (loop[-1][0] * size, inner)
        else:
            loop.append((size, inner))
    return loop


def broadcast_steps(tensor: TensorValue, out: TensorValue) -> tuple[int, ...]:
    """Steps of a tensor that is broadcast, by dimension of the result."""
    added = len(out.sizes) - len(tensor.sizes)
    steps = strides_of(tensor)
    own = (
        0 if size == 1 else step for size, step in zip(tensor.sizes, steps, strict=True)
    )
    return (*[0] * added, *own)


def array(items: Sequence[int]) -> Numbers:
    """A C++ array."""
    return tuple((str(index), item) for index, item in enumerate(items))
