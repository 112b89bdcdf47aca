"""The prepared form of a call."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.method.linked import Numbers, Prepared
from orchestrator.method.passes.arguments import need, strides_of
from orchestrator.method.passes.inventory import OTHERS
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments

MOST_COPIES: Final = 4
"""That a call becomes: each has a struct of 24 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Prepared):
    """How a prepared kernel computes a call: with a struct whose pointers may be null.

    Args:
        function: Qualified C++ name of the kernel.
    """

    function: str


Members: TypeAlias = "tuple[tuple[str, Numbers], ...]"
"""A struct, see `Prepared`."""
Memory: TypeAlias = "tuple[tuple[str, int | None], ...]"
"""Its pointers."""
Preparer: TypeAlias = "Callable[[Arguments, str], Form]"
"""From the arguments of a call, and the instruction set of the core; raises
UnknownCallError if the call has no prepared form."""


def members(**numbers: Numbers) -> Members:
    """A struct: names of its members, and what they are."""
    return tuple(numbers.items())


def int8_form(name: str, memory: Memory, **numbers: Numbers) -> Form:
    """The form of a kernel of the library cortex_m, which has to be in the inventory."""
    row = OTHERS[name]
    struct = f"orch::cortex_m::{row.of}"
    return Form(function=row.function(), struct=struct, memory=memory, numbers=members(**numbers))


def float_bits(number: float) -> int:
    """The bits of a float of 32 bits, as a signed integer."""
    (bits,) = struct.unpack("<i", struct.pack("<f", number))
    return int(bits)


# How the items of tensors lie to each other.

Loop = list[tuple[int, tuple[int, ...]]]
"""Dimensions, outermost first: how many indices, and for each tensor how many items
there are from one to the next."""
_MOST_DIMS: Final = 2
"""Most dimensions of a loop over two tensors: rows and items."""


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
    own = (0 if size == 1 else step for size, step in zip(tensor.sizes, steps, strict=True))
    return (*[0] * added, *own)


def pair_rows(arguments: Arguments, a: str = "self", b: str = "other") -> tuple[Members, bool]:
    """`PairRows`, and whether the items of a row lie side by side in all tensors."""
    y = arguments.tensor("out")
    steps = [broadcast_steps(arguments.tensor(name), y) for name in (a, b)]
    loop = [(1, (0, 0, 0))] * _MOST_DIMS + loop_over(y, *steps)
    need(len(loop) <= 2 * _MOST_DIMS)
    (rows, (_, a_row, b_row)), (count, (_, a_step, b_step)) = loop[-_MOST_DIMS:]
    # One item beside another: any step is right, and kernels for items side by side are faster.
    if (count, a_step, b_step) == (1, 0, 0):
        a_step = b_step = 1  # a single item
    steps_of_both = {"a_row": a_row, "b_row": b_row, "a_step": a_step, "b_step": b_step}
    return members(rows=rows, count=count, **steps_of_both), a_step == b_step == 1


def scale_of_output(arguments: Arguments) -> Members:
    """`Scale` of a call with one for all outputs."""
    names = ("multiplier", "shift")
    return tuple((name, arguments.number(f"output_{name}")) for name in names)


def array(items: Sequence[int]) -> Numbers:
    """A C++ array."""
    return tuple((str(index), item) for index, item in enumerate(items))
