"""Let calls write their output over an input that is dead afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, TypeAlias

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.dataflow import Dataflow
from orchestrator.method.passes.proof import is_same
from orchestrator.method.places import Place, Space, placed
from orchestrator.method.sets import Sets
from orchestrator.planner.blocks import ALIGNMENT
from orchestrator.program.values import TensorValue, Value

Share: TypeAlias = tuple[int, int, int]
"""(call, output, input)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Tensors of one arena that move together, as they share bytes.

    Args:
        members: (tensor, offset), sorted; offsets of the method, or shifted with the
            web they were merged into.
        sizes: Sizes of the members in bytes.
        space: The arena.
        first: First instruction that touches a member; -1 is before the run.
        last: Last such instruction; the number of instructions is after the run.
        is_fixed: The members cannot be moved.
        has_input: An input of the method is among them.
        has_output: An output of the method is among them.
    """

    members: tuple[tuple[int, int], ...]
    sizes: tuple[int, ...]
    space: Space
    first: int
    last: int
    is_fixed: bool
    has_input: bool
    has_output: bool

    @property
    def begin(self) -> int:
        """Lowest offset, rounded down to the alignment."""
        low = min(offset for _, offset in self.members)
        return low - low % ALIGNMENT

    @property
    def size_bytes(self) -> int:
        """Bytes from `begin` to the end of the last member."""
        pairs = zip(self.members, self.sizes, strict=True)
        return max(offset + size for (_, offset), size in pairs) - self.begin

    def merged(self, other: Web, distance: int) -> Web:
        """Both webs as one, with the other's members shifted by a distance."""
        moved = tuple((v, offset + distance) for v, offset in other.members)
        return replace(
            self,
            members=(*self.members, *moved),
            sizes=(*self.sizes, *other.sizes),
            first=min(self.first, other.first),
            last=max(self.last, other.last),
            has_output=self.has_output or other.has_output,
        )

    def excludes(self, other: Web) -> bool:
        """Whether both cannot share bytes.

        They are live at the same time; or the caller may write one and read the other.
        """
        ends = (self.has_input and other.has_output) or (self.has_output and other.has_input)
        meet = self.first <= other.last and other.first <= self.last
        return self.space == other.space and (ends or meet)


def may_be_in_place(call: LinkedCall) -> bool:
    """Whether the kernel of a call may write over one of its inputs."""
    return bool(call.in_place)


def in_place(method: LinkedMethod) -> LinkedMethod:
    """Let outputs take the place of inputs that die at the call, if kernels allow it.

    Only if that lowers the peak of live bytes. The arenas are then laid out
    again, and do not grow. Methods with jumps or moves do not change.
    """
    flow, places = Dataflow(method), method.places
    shares = [*_shares(method, places)]
    straight = all(isinstance(i, LinkedCall) for i in method.instructions)
    if not shares or not straight or flow.is_open:
        return method
    webs = _Webs(method, flow, places).webs()
    found = _chosen(webs, shares, method.ends)
    if found is None:
        return method
    offsets, taken = found
    changed: dict[int, Value] = {}
    for index, offset in offsets.items():
        place = places[index]
        if offset != place.begin:
            changed[index] = placed(method.values[index], place.space[1], offset)
    if not is_same(method, flow, changed, {}, taken):
        return method
    return method.with_values(changed)


def _shares(method: LinkedMethod, places: Mapping[int, Place]) -> Iterator[Share]:
    """(call, output, input) where the output could take the input's place."""
    for index, call in enumerate(method.instructions):
        if not isinstance(call, LinkedCall) or len(call.outs) != 1:
            continue
        (out,) = call.outs
        for given in dict.fromkeys(call.args[i] for i in call.in_place):
            every = all(i in call.in_place or a != given for i, a in enumerate(call.args))
            if every and _alike(method.values[given], method.values[out]):
                here, to = places.get(given), places.get(out)
                if here and to and here.space == to.space and not here.overlaps(to):
                    yield index, out, given


def _alike(one: Value, other: Value) -> bool:
    return (
        isinstance(one, TensorValue)
        and isinstance(other, TensorValue)
        and (one.dtype, one.sizes, one.dim_order) == (other.dtype, other.sizes, other.dim_order)
        and not one.is_dynamic
        and not other.is_dynamic
    )


def _chosen(
    webs: Sequence[Web], shares: Sequence[Share], ends: Mapping[Space, int]
) -> tuple[dict[int, int], tuple[Share, ...]] | None:
    """Offsets of all tensors, and the shares: all if they fit, else one by one."""
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
    """Peak of live bytes of all webs."""
    steps: dict[int, int] = {}
    for web in webs:
        size_bytes = web.size_bytes
        steps[web.first] = steps.get(web.first, 0) + size_bytes
        steps[web.last + 1] = steps.get(web.last + 1, 0) - size_bytes
    return max(accumulate(steps[moment] for moment in sorted(steps)))


def _merged(webs: Sequence[Web], shares: Iterable[Share]) -> tuple[tuple[Share, ...], list[Web]]:
    """The shares that are possible, and the webs merged for them."""
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
    # Fixed webs often lie at the bottom, so filling from the top may find more room.
    return _filled(webs, ends, from_top=True) if low is None else low


def _filled(
    webs: Sequence[Web], ends: Mapping[Space, int], *, from_top: bool
) -> dict[int, int] | None:
    """By tensor: the first free offset, placing the largest webs first."""
    placed = _Placed()
    for web in webs:
        if web.is_fixed:
            placed.add(web, web.begin)
    loose = sorted(
        (web for web in webs if not web.is_fixed),
        key=lambda web: (-web.size_bytes, web.first, web.members),
    )
    offsets: dict[int, int] = {}
    for web in loose:
        top = ends[web.space] - web.size_bytes
        near = [
            (begin, begin + other.size_bytes)
            for other, begin in placed.beside(web)
            if web.excludes(other)
        ]
        free = [0, *(end + -end % ALIGNMENT for _, end in near)]
        if from_top:
            below = [top, *(begin - web.size_bytes for begin, _ in near)]
            free = [offset - offset % ALIGNMENT for offset in below]
        fitting = [
            at
            for at in sorted(free, reverse=from_top)
            if 0 <= at <= top and all(at + web.size_bytes <= b or e <= at for b, e in near)
        ]
        if not fitting:
            return None
        at = fitting[0]
        placed.add(web, at)
        offsets |= {v: offset + at - web.begin for v, offset in web.members}
    return offsets


class _Placed:
    """Webs that have their place, by when they are live.

    A method may have thousands; few of them are live at the same time.
    """

    def __init__(self) -> None:
        self._at: dict[int, list[tuple[Web, int]]] = {}
        self._ends: list[tuple[Web, int]] = []

    def add(self, web: Web, begin: int) -> None:
        """Place a web."""
        for time in range(web.first // _MOMENTS, web.last // _MOMENTS + 1):
            self._at.setdefault(time, []).append((web, begin))
        if web.has_input or web.has_output:
            self._ends.append((web, begin))

    def beside(self, web: Web) -> Iterator[tuple[Web, int]]:
        """Webs that it may exclude; some of them several times."""
        for time in range(web.first // _MOMENTS, web.last // _MOMENTS + 1):
            yield from self._at.get(time, ())
        if web.has_input or web.has_output:
            yield from self._ends


_MOMENTS: Final = 32
"""Instructions that `_Placed` looks at together."""


class _Webs:
    """The webs of a method without jumps and moves; unused tensors are in none.

    Args:
        method: The method.
        flow: Its dataflow.
        places: Places of its tensors.
    """

    def __init__(self, method: LinkedMethod, flow: Dataflow, places: Mapping[int, Place]) -> None:
        self._method = method
        self._flow = flow
        self._places = {i: p for i, p in places.items() if p.space[0] == "arena"}
        self._sets = Sets(self._places)
        self._times: dict[int, list[int]] = {}
        self._fixed: set[int] = set()

    def webs(self) -> list[Web]:
        end = len(self._flow.at)
        self._touch(-1, self._method.received)
        self._fixed |= self._method.received
        for index, effect in enumerate(self._flow.at):
            self._touch(index, effect.touches)
            self._join(index, (*effect.reads, *effect.updates, *effect.moved))
        self._touch(end, self._flow.outputs)
        self._join(end, self._flow.outputs)
        return [*map(self._web, self._sets.groups(self._times))]

    def _touch(self, time: int, tensors: Iterable[int]) -> None:
        """Join tensors that one instruction touches and that overlap."""
        here = {t for t in tensors if t in self._places}
        for one in here:
            self._times.setdefault(one, []).append(time)
        self._sets.join_overlapping((*self._places[t].ends, t) for t in here)

    def _join(self, time: int, reads: Iterable[int]) -> None:
        """Join readers with the writers of their bytes."""
        for tensor in reads:
            if tensor not in self._places:
                continue
            where = self._places[tensor]
            writers = self._flow.writers(time, where, self._places)
            if writers is None:
                self._fixed.add(tensor)
            for _, writer in writers or ():
                self._sets.join(tensor, writer)

    def _web(self, members: Sequence[int]) -> Web:
        method, times = self._method, [t for m in members for t in self._times[m]]
        values = [method.values[m] for m in members]
        kept = any(isinstance(v, TensorValue) and (v.is_dynamic or v.is_state) for v in values)
        known = set(members) <= method.received
        fixed = kept or not self._fixed.isdisjoint(members)
        # Before the run, only inputs are certain to be written.
        whole = fixed and not known
        return Web(
            members=tuple((m, self._places[m].begin) for m in members),
            sizes=tuple(self._places[m].end - self._places[m].begin for m in members),
            space=self._places[members[0]].space,
            first=-1 if whole else min(times),
            last=len(self._flow.at) if whole else max(times),
            is_fixed=fixed,
            has_input=not method.received.isdisjoint(members),
            has_output=not method.returned.isdisjoint(members),
        )
