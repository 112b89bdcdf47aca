"""Steps of passes that let one call do the work of two, each with its proof.

A pass knows what two calls compute together, and which call computes the same alone.
What is decided here is whether it may: whether the bytes that it then reads are there,
nothing else needed what is no longer written, and memory can be as the new call needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.effects import Effect
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.aliases import shared_places
from orchestrator.method.passes.arguments import UnknownCallError
from orchestrator.method.passes.dataflow import Dataflow, without
from orchestrator.method.passes.proof import Dropped, is_same
from orchestrator.method.places import Place, placed
from orchestrator.method.sets import Spans, cut, join, touches
from orchestrator.planner.blocks import aligned
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import Dynamism, TensorValue, Value

if TYPE_CHECKING:
    from orchestrator.method.passes.views import View

_MOST_PLACES: Final = 64
"""Places that are tried for a tensor."""

_MOST_CHANGED: Final = 80_000
"""Changes of a pass times instructions: each takes time for all of them. ResNet-152 has
150 at 500. What is left then stays as it is.
"""

Changed: TypeAlias = "tuple[LinkedMethod, Dataflow]"
"""A method with its dataflow, which says what calls are dropped."""
Change: TypeAlias = "Callable[[LinkedMethod, Dataflow, int, LinkedCall], Changed | None]"
"""Takes a method, its dataflow and a call with its number; None changes nothing."""
_Writers: TypeAlias = "set[tuple[int, int]] | None"
"""Instructions, and tensors that they wrote; None if that was before the run."""


def at_each_call(method: LinkedMethod, change: Change) -> LinkedMethod:
    """The method after a change wherever there is one; what it leaves may change again.

    Args:
        method: The method.
        change: Raises UnknownCallError as well where nothing changes.
    """
    number, flow, spent = 0, Dataflow(method), 0
    while number < len(method.instructions) and spent < _MOST_CHANGED:
        call, changed = method.instructions[number], None
        if isinstance(call, LinkedCall) and number not in flow.dropped:
            with suppress(UnknownCallError):
                changed = change(method, flow, number, call)
        if changed is None:
            number += 1
        else:
            method, flow = changed
            spent += len(method.instructions)
            while number and number in flow.dropped:
                number -= 1
    return without(method, flow.dropped)


def with_call(method: LinkedMethod, number: int, call: LinkedCall) -> LinkedMethod:
    """The method with another call in place of one."""
    instructions = [*method.instructions]
    instructions[number] = call
    return method.with_instructions(tuple(instructions))


def constant_of(dtype: ScalarType, size: int) -> TensorValue:
    """A constant tensor of one dimension."""
    return TensorValue(
        dtype=dtype,
        sizes=(size,),
        dim_order=(0,),
        dynamism=Dynamism.STATIC,
        data_buffer_index=1,
        allocation=None,
        extra=None,
        requires_grad=False,
    )


def with_slots(
    method: LinkedMethod, *added: tuple[Value, Bytes | None]
) -> tuple[LinkedMethod, tuple[int, ...]]:
    """The method with more values, constants with their bytes; and their indices."""
    first = len(method.values)
    indices = tuple(range(first, first + len(added)))
    values = {first + i: value for i, (value, _) in enumerate(added)}
    data = {first + i: items for i, (_, items) in enumerate(added) if items is not None}
    return method.with_values(values, data), indices


def producer_of(
    method: LinkedMethod, flow: Dataflow, number: int, tensor: int
) -> tuple[int, LinkedCall] | None:
    """The one call that wrote all of what an instruction reads from a tensor.

    Args:
        method: The method.
        flow: Its dataflow.
        number: Index of the instruction.
        tensor: One of its arguments.
    """
    places = method.places
    where = places.get(tensor)
    if where is None or where.space[0] != "arena" or tensor in flow.moved:
        return None
    writers = flow.writers(number, where, places)
    if writers is None or len(writers) != 1:
        return None
    ((index, written),) = writers
    call = method.instructions[index]
    is_whole = places[written] == where and written in flow.at[index].fills
    if (
        not isinstance(call, LinkedCall)
        or not is_whole
        or written in flow.moved
        or getattr(method.values[written], "is_dynamic", True)
    ):
        return None
    return index, call


def reads_earlier(
    method: LinkedMethod,
    firsts: tuple[int, ...],
    last: int,
    call: LinkedCall,
    tensor: int,
    *,
    flow: Dataflow,
    grows: bool,
) -> Changed | None:
    """The method without some calls, where a later one reads what the first one reads.

    Args:
        method: The method.
        firsts: Calls, in order. Each but the first one reads what others wrote.
        last: A later call, which computes the same from what they wrote as `call`.
        call: Reads `tensor`; it may write over that where `in_place` says so.
        tensor: A tensor that the first call reads.
        flow: The method's dataflow.
        grows: Whether arenas may grow, as memory is planned afterwards.

    Returns:
        None unless all paths to `last` lead through the calls, `tensor` has the same
        items all the time, and nothing else reads what the calls wrote. The tensor
        may get another place in the arena.
    """
    end, first = dict(method.ends), firsts[0]
    if flow.is_open or tensor in flow.moved or not _is_block(flow, first, last):
        return None
    aside = None
    if not _is_kept(method, flow, (first, last), call, tensor):
        aside = _aside(method, flow, first, tensor)
        if aside is None and grows:
            aside = _results_aside(method, flow, last, tensor)
        if aside is None:
            return None
        method, flow = aside
        if not _is_kept(method, flow, (first, last), call, tensor):
            return None
    changed = method, flow = _with_call(method, flow, last, call)
    places = method.places
    for number in reversed(firsts):
        outs = tuple(places[out] for out in flow.at[number].writes if out in places)
        if not is_same(method, flow, {}, {number: Dropped(outs=outs)}):
            return None
        flow.drop(number)
    inside = _within(method, flow, last, tensor, end) if aside else changed
    return changed if inside is None and grows else inside


def writes_later(
    method: LinkedMethod,
    first: int,
    last: int,
    call: LinkedCall,
    view: View,
    *,
    flow: Dataflow,
    grows: bool,
) -> Changed | None:
    """The method without call `last`, where `first` writes what `last` wrote.

    Args:
        method: The method.
        first: A call that wrote all that `last` reads.
        last: A call that computes its output from that alone.
        call: Takes the place of `first`, and writes the same tensors. What it writes to
            the tensor that `last` read is what `last` would have written.
        view: How items of that tensor and of the output of `last` correspond.
        flow: As above.
        grows: As above.

    Returns:
        None if anything else reads what `first` wrote, or if the output of `last`
        cannot lie where `first` writes.
    """
    if flow.is_open or not _is_only_reader(method, flow, first, last, view.source):
        return None
    method, flow = _with_call(method, flow, first, call)
    return without_copy(method, last, view, flow=flow, grows=grows)


def without_copy(
    method: LinkedMethod, number: int, view: View, *, flow: Dataflow, grows: bool
) -> Changed | None:
    """The method without a call that only copies; None if it cannot do without.

    Args:
        method: The method.
        number: Of the call.
        view: What it copies.
        flow: The method's dataflow.
        grows: Whether arenas may grow.
    """
    places = shared_places(method, flow, number, (view,), grows=grows)
    if places is None:
        return None
    method, flow = _at_places(method, flow, places)
    flow.drop(number)
    return method, flow


def _with_call(method: LinkedMethod, flow: Dataflow, number: int, call: LinkedCall) -> Changed:
    """A method with another call, and a dataflow of its own."""
    method, flow = with_call(method, number, call), flow.copy()
    flow.replace(method, number)
    return method, flow


def _at_places(method: LinkedMethod, flow: Dataflow, changed: Mapping[int, Value]) -> Changed:
    """A method with tensors at other places, and a dataflow of its own."""
    method, flow = method.with_values(changed), flow.copy()
    flow.move({tensor: method.places[tensor] for tensor in changed})
    return method, flow


def _is_block(flow: Dataflow, first: int, last: int) -> bool:
    """Whether `last` always follows `first`, through all instructions in between."""
    if not first < last:
        return False
    inside = range(first, last)
    return all(flow.at[i].next == (i + 1,) for i in inside) and not any(
        first < following <= last and following != index + 1
        for index, effect in enumerate(flow.at)
        for following in effect.next
    )


def _is_kept(
    method: LinkedMethod, flow: Dataflow, block: tuple[int, int], call: LinkedCall, tensor: int
) -> bool:
    """Whether nothing overwrites a tensor before a call has read it."""
    places = method.places
    where = places[tensor]
    written = {w for i in range(*block) for w in flow.at[i].writes}
    if all(call.args[at] == tensor for at in call.in_place) and call.in_place:
        outs = [w for w in call.outs if w in places and places[w] != where]
    else:
        outs = [*call.outs]
    return not any(_is_at(places, w, where) for w in (*written, *outs))


def _is_only_reader(
    method: LinkedMethod, flow: Dataflow, first: int, last: int, tensor: int
) -> bool:
    """Whether `last` reads what `first` writes to a tensor, and nothing else does."""
    places = method.places
    where = places[tensor]
    effect = flow.at[last]
    own = tuple(r for r in effect.reads if not _is_at(places, r, where))
    at = [*flow.at]
    at[last] = replace(effect, reads=own)
    if _is_read(method, (at, flow.outputs), first, where):
        return False
    return not any(_is_at(places, index, where) for index in method.state)


def _is_read(
    method: LinkedMethod, effects: tuple[list[Effect], tuple[int, ...]], first: int, where: Place
) -> bool:
    """Whether anything reads a byte that an instruction wrote, in this run or later.

    A run may stop anywhere, and the next one begins with what it left, but for inputs.
    """
    at, outputs = effects
    places = method.places

    def without_written(left: Spans, tensors: Iterable[int]) -> Spans:
        for tensor in tensors:
            value, place = method.values[tensor], places.get(tensor)
            if (
                place is not None
                and place.space == where.space
                and isinstance(value, TensorValue)
                and not value.is_dynamic
            ):
                left = cut(left, place.begin, place.end)
        return left

    def reads(left: Spans, tensors: Iterable[int]) -> bool:
        return any(
            place.space == where.space and touches(left, place.begin, place.end)
            for place in (places[t] for t in tensors if t in places)
        )

    states: dict[int, Spans] = {}
    all_of_it: Spans = ((where.begin, where.end),)
    ahead = [(following, all_of_it) for following in at[first].next]
    while ahead:
        index, left = ahead.pop()
        known = states.get(index, ())
        left = join(known, left)
        if left == known:
            continue
        states[index] = left
        ahead.append((0, without_written(left, method.received)))
        if index == len(at):
            if reads(left, outputs):
                return True
            continue
        effect = at[index]
        if reads(left, (*effect.reads, *effect.updates, *effect.moved)):
            return True
        left = without_written(left, effect.fills)
        ahead += [(following, left) for following in effect.next if left]
    return False


def _is_at(places: dict[int, Place], tensor: int, where: Place) -> bool:
    return tensor in places and places[tensor].overlaps(where)


def _aside(method: LinkedMethod, flow: Dataflow, number: int, tensor: int) -> Changed | None:
    """The method with what an instruction reads behind everything else."""
    where = method.places[tensor]
    if where.space[0] != "arena":
        return None
    writers = flow.writers(number, where, method.places)
    begin = method.behind(where.space, where.begin)
    return _moved(method, flow, writers, tensor, begin)


def _results_aside(
    method: LinkedMethod, flow: Dataflow, number: int, tensor: int
) -> Changed | None:
    """The method with what an instruction writes behind everything else.

    Args:
        method: The method.
        flow: Its dataflow.
        number: Index of the instruction.
        tensor: What it must not write over; an input, for one, cannot be moved.
    """
    places = method.places
    outs = [o for o in flow.at[number].writes if _is_at(places, o, places[tensor])]
    if len(outs) != 1 or places[outs[0]].space[0] != "arena":
        return None
    begin = method.behind(places[outs[0]].space)
    return _moved(method, flow, {(number, outs[0])}, outs[0], begin)


def _within(
    method: LinkedMethod, flow: Dataflow, number: int, tensor: int, ends: dict[tuple[str, int], int]
) -> Changed | None:
    """The method with what an instruction reads inside the arena as it was."""
    places = method.places
    where = places[tensor]
    size = where.end - where.begin
    found = {0, *(p.end for p in places.values() if p.space == where.space)}
    begins = sorted({*map(aligned, found)})
    fitting = [at for at in begins if at + size <= ends[where.space]]
    writers = flow.writers(number, where, places)
    for at in fitting[:_MOST_PLACES]:
        moved = _moved(method, flow, writers, tensor, at)
        if moved is not None:
            return moved
    return None


def _moved(
    method: LinkedMethod, flow: Dataflow, writers: _Writers, tensor: int, begin: int
) -> Changed | None:
    """The method with a tensor, as calls wrote it, at another offset, if proved."""
    changed = dict(_places_at(method, flow, writers, tensor, begin))
    if not changed or not is_same(method, flow, changed, {}):
        return None
    return _at_places(method, flow, changed)


def _places_at(
    method: LinkedMethod, flow: Dataflow, writers: _Writers, tensor: int, begin: int
) -> Iterator[tuple[int, Value]]:
    """Tensors that share the bytes of one, with places that move along."""
    places = method.places
    where = places[tensor]
    if writers is None or where.space[1] == SHARED_ID:
        return
    tensors = {tensor}
    for index, written in writers:
        tensors |= {written, *flow.followers(index, places[written], places)}
    for index in sorted(tensors):
        offset = places[index].begin - where.begin + begin
        yield index, placed(method.values[index], where.space[1], offset)
