"""Calls that may write their output over an input that nobody needs any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.edit import with_values
from orchestrator.method.passes.effects import Effects
from orchestrator.method.passes.proof import is_same
from orchestrator.method.passes.spans import places_of
from orchestrator.method.passes.webs import ALIGNMENT, webs_of
from orchestrator.program.values import Allocation, TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.passes.spans import Place, Space
    from orchestrator.method.passes.webs import Web
    from orchestrator.program.values import Value

Share = tuple[int, int, int]
"""(call, output, input)"""


def may_be_in_place(call: LinkedCall) -> bool:
    """Whether the kernel of a call may write over one of its inputs."""
    return bool(call.in_place)


def in_place(method: LinkedMethod) -> LinkedMethod:
    """Let outputs take the place of inputs that die there, where kernels allow it.

    Only if fewer bytes are needed at the worst moment then. The arenas are laid out
    again for it, and get no larger. Methods with jumps or moves stay as they are.
    """
    effects, places = Effects(method), places_of(method)
    shares = [*_shares(method, places)]
    straight = all(isinstance(i, LinkedCall) for i in method.instructions)
    if not shares or not straight or effects.is_open:
        return method
    ends: dict[Space, int] = {}
    for place in places.values():
        ends[place.space] = max(ends.get(place.space, 0), place.end)
    webs = webs_of(method, effects, places)
    found = _chosen(webs, shares, ends)
    if found is None:
        return method
    offsets, taken = found
    changed: dict[int, Value] = {}
    for index, offset in offsets.items():
        tensor = method.values[index]
        assert isinstance(tensor, TensorValue)  # noqa: S101  # it has a place
        assert tensor.allocation is not None  # noqa: S101  # in an arena
        if offset != tensor.allocation.offset_bytes:
            memory_id = tensor.allocation.memory_id
            allocation = Allocation(memory_id=memory_id, offset_bytes=offset)
            changed[index] = replace(tensor, allocation=allocation)
    if not is_same(method, effects, changed, {}, taken):
        return method
    return with_values(method, changed)


def _shares(method: LinkedMethod, places: Mapping[int, Place]) -> Iterator[Share]:
    """Where an output could take an input's place, if the input is not needed."""
    for index, call in enumerate(method.instructions):
        if not isinstance(call, LinkedCall) or len(call.outs) != 1:
            continue
        (out,) = call.outs
        for given in dict.fromkeys(call.args[i] for i in call.in_place):
            every = all(
                i in call.in_place or a != given for i, a in enumerate(call.args)
            )
            if every and _alike(method.values[given], method.values[out]):
                here, to = places.get(given), places.get(out)
                if here and to and here.space == to.space and not here.overlaps(to):
                    yield index, out, given


def _alike(one: Value, other: Value) -> bool:
    return (
        isinstance(one, TensorValue)
        and isinstance(other, TensorValue)
        and (one.dtype, one.sizes, one.dim_order)
        == (other.dtype, other.sizes, other.dim_order)
        and not one.is_dynamic
        and not other.is_dynamic
    )


def _chosen(
    webs: Sequence[Web],
    shares: Sequence[Share],
    ends: Mapping[Space, int],
) -> tuple[dict[int, int], tuple[Share, ...]] | None:
    """Offsets of all tensors and what is shared: all if that fits, else one by one."""
    taken, merged = _merged(webs, shares)
    if _peak(merged) >= _peak(webs):
        return None
    offsets = _layout(merged, ends)
    if offsets is not None:
        return offsets, taken
    best: tuple[dict[int, int], tuple[Share, ...]] | None = None
    kept: tuple[Share, ...] = ()
    for share in taken:
        more, merged = _merged(webs, (*kept, share))
        offsets = _layout(merged, ends)
        if offsets is not None:
            kept, best = more, (offsets, more)
    return best


def _peak(webs: Sequence[Web]) -> int:
    """Bytes of all webs that are needed at the worst moment."""
    return max(
        sum(w.size_bytes for w in webs if w.first <= moment <= w.last)
        for moment in {web.first for web in webs}
    )


def _merged(
    webs: Sequence[Web], shares: Iterable[Share]
) -> tuple[tuple[Share, ...], list[Web]]:
    """The shares that are possible, and the webs with them."""
    left = dict(enumerate(webs))
    of = {v: number for number, web in left.items() for v, _ in web.members}
    taken = []
    for call, out, given in shares:
        one, other = of[given], of[out]
        here, to = left[one], left[other]
        distance = dict(here.members)[given] - dict(to.members)[out]
        if (
            one == other
            or here.is_fixed
            or to.is_fixed
            or here.last != call
            or to.first != call
            or distance % ALIGNMENT
        ):
            continue
        left[one] = here.merged(left.pop(other), distance)
        of |= {v: one for v, _ in to.members}
        taken.append((call, out, given))
    return tuple(taken), [*left.values()]


def _layout(webs: Sequence[Web], ends: Mapping[Space, int]) -> dict[int, int] | None:
    """By tensor: an offset; None if an arena is too small."""
    low = _filled(webs, ends, from_top=False)
    # Where what cannot be moved lies at the bottom, the top may have more room.
    return _filled(webs, ends, from_top=True) if low is None else low


def _filled(
    webs: Sequence[Web], ends: Mapping[Space, int], *, from_top: bool
) -> dict[int, int] | None:
    """By tensor: the first offset that is free, the largest webs first."""
    placed = [(web, web.begin) for web in webs if web.is_fixed]
    loose = sorted(
        (web for web in webs if not web.is_fixed),
        key=lambda web: (-web.size_bytes, web.first, web.members),
    )
    offsets: dict[int, int] = {}
    for web in loose:
        top = ends[web.space] - web.size_bytes
        near = [
            (begin, begin + other.size_bytes)
            for other, begin in placed
            if web.excludes(other)
        ]
        free = [0, *(end + -end % ALIGNMENT for _, end in near)]
        if from_top:
            below = [top, *(begin - web.size_bytes for begin, _ in near)]
            free = [offset - offset % ALIGNMENT for offset in below]
        fitting = [
            at
            for at in sorted(free, reverse=from_top)
            if 0 <= at <= top
            and all(at + web.size_bytes <= b or e <= at for b, e in near)
        ]
        if not fitting:
            return None
        at = fitting[0]
        placed.append((web, at))
        offsets |= {v: offset + at - web.begin for v, offset in web.members}
    return offsets
