"""Let calls write their output over an input that is dead afterwards.

The groups of tensors that share bytes, and their lifetimes, are those that arenas are planned
with (`replan/flow.py`). Two groups that a call may join become one, behind all others: the
planner finds the room again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from orchestrator.method.effects import effects_of_linked
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.dataflow import Dataflow
from orchestrator.method.passes.proof import is_same
from orchestrator.method.places import Place, placed
from orchestrator.method.replan.flow import flow_of
from orchestrator.planner.blocks import ALIGNMENT, Block, aligned
from orchestrator.planner.bounds import peak_live_bytes
from orchestrator.program.values import TensorValue, Value

Share: TypeAlias = tuple[int, int, int]
"""(call, output, input)"""


class Web(NamedTuple):
    """Tensors of one arena that keep their distances.

    Args:
        offsets: By tensor, those of the method, or shifted with the web they were merged into.
        end: The highest end of one of them.
        first: First instruction at which the bytes are needed; -1 is before the run.
        last: Last such instruction; the number of instructions is after the run.
    """

    offsets: Mapping[int, int]
    end: int
    first: int
    last: int

    @property
    def block(self) -> Block:
        """It as a block; the first bytes keep their alignment."""
        low = min(self.offsets.values())
        size_bytes = self.end - low + low % ALIGNMENT
        return Block(name="", first=self.first, last=self.last, size_bytes=size_bytes)

    def merged(self, other: Web, distance: int) -> Web:
        """Both webs as one, with the other's members shifted by a distance."""
        return Web(
            offsets={**self.offsets, **{v: at + distance for v, at in other.offsets.items()}},
            end=max(self.end, other.end + distance),
            first=min(self.first, other.first),
            last=max(self.last, other.last),
        )


def may_be_in_place(call: LinkedCall) -> bool:
    """Whether the kernel of a call may write over one of its inputs."""
    return bool(call.in_place)


def in_place(method: LinkedMethod) -> LinkedMethod:
    """Let outputs take the place of inputs that die at the call, if kernels allow it.

    Only if that lowers the peak of live bytes; memory is planned afterwards. Methods with
    jumps or moves do not change.
    """
    effects, places = effects_of_linked(method), method.places
    shares = [*_shares(method, places)]
    straight = all(isinstance(i, LinkedCall) for i in method.instructions)
    if not shares or not straight or not effects.is_known:
        return method
    webs = [
        Web(
            offsets={v: places[v].begin for v in group.members},
            end=group.end,
            first=group.first,
            last=group.last,
        )
        for memory_id in sorted(method.arenas)
        for group in flow_of(effects, memory_id).groups
    ]
    taken, merged = _merged(method, webs, shares)
    before, after = (peak_live_bytes(web.block for web in found) for found in (webs, merged))
    # Sharing places that are live at other times gains nothing, and ties lifetimes together: the
    # fp32 autoencoder took 3,584 bytes in place of 3,072 when outputs went over all inputs that
    # they could.
    if after >= before:
        return method
    changed: dict[int, Value] = {}
    ends = dict(method.ends)
    for web in merged:
        if web in webs:
            continue
        space, low = places[next(iter(web.offsets))].space, min(web.offsets.values())
        begin = aligned(ends[space], like=low)
        ends[space] = begin + web.end - low
        for index, offset in web.offsets.items():
            changed[index] = placed(method.values[index], space[1], begin + offset - low)
    if not is_same(method, Dataflow(method), changed, {}, taken):
        return method
    return method.with_values(changed)


def _shares(method: LinkedMethod, places: Mapping[int, Place]) -> Iterator[Share]:
    """(call, output, input) where the output could take the input's place."""
    for index, call in enumerate(method.instructions):
        if not isinstance(call, LinkedCall) or len(call.outs) != 1:
            continue
        (out,) = call.outs
        for given in dict.fromkeys(call.args[i] for i in call.in_place):
            # An input that the call also gets as another argument may be read after the output is
            # written.
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


def _merged(
    method: LinkedMethod, webs: Sequence[Web], shares: Sequence[Share]
) -> tuple[tuple[Share, ...], list[Web]]:
    """The shares that are possible, and the webs merged for them."""
    left = dict(enumerate(webs))
    of = {v: number for number, web in left.items() for v in web.offsets}
    taken = []
    for call, out, given in shares:
        one, other = of[given], of[out]
        here, to = left[one], left[other]
        distance = here.offsets[given] - to.offsets[out]
        if (
            one == other
            or here.first < 0  # an input, or bytes that outlive runs
            # The input dies at the call, and the output is born there: other members of their
            # groups, too.
            or here.last != call
            or to.first != call
            # Each tensor keeps its offset modulo 16.
            or distance % ALIGNMENT
            or any(method.tensor(v).is_dynamic for v in (*here.offsets, *to.offsets))
        ):
            continue
        left[one] = here.merged(left.pop(other), distance)
        of |= dict.fromkeys(to.offsets, one)
        taken.append((call, out, given))
    return tuple(taken), [*left.values()]
