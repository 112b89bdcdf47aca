"""Packed calls as bands are made of them: with strips along the rows of an image.

Along columns a strip may be faster for a whole image. In a band such lines are short,
and as many strips are filled as for all rows; of a single row, kernels that compute
several pixels below each other at once drop all but one. Where memory is short, blocks
of weights of 4 bits that are int8 at a time are shorter, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeGuard

from orchestrator.core.lazy_bytes import settled
from orchestrator.method.linked import LinkedCall, LinkedInstruction, LinkedMethod
from orchestrator.method.passes.joining import with_slots
from orchestrator.method.passes.packing.convolution import WORD, bytes_of, kernel_of
from orchestrator.method.passes.packing.int4 import BLOCK_HEAD, Blocks
from orchestrator.method.passes.packing.strips import along_rows
from orchestrator.method.passes.packing.turned import (
    INT4_TILE,
    Turned,
    is_turned,
    rows_at,
    turned_lines,
    turned_pixels,
)
from orchestrator.method.passes.tables import Axis
from orchestrator.method.places import Access
from orchestrator.method.rows.network import RowTable
from orchestrator.method.steps import header_of

if TYPE_CHECKING:
    Fit = Callable[[Turned, int], Turned | None]


def is_strips(function: str) -> bool:
    """Whether a depthwise kernel goes over an image in strips."""
    return function.endswith("packed_depthwise_strips")


def _fit_of(function: str) -> Fit | None:
    """What makes calls of a kernel fit for bands."""
    name = kernel_of(function)
    if name.startswith("packed_pixels"):
        return _with(turned_pixels)
    if name.startswith("int4_packed_pixels"):
        return _int4_pixels
    fits = {
        "packed_lines": _with(turned_lines),
        "packed_depthwise_strips": _with(along_rows),
        "int4_packed_conv2d": _int4_pairs,
    }
    return fits.get(name)


def _with(turn: Callable[[tuple[int, ...], bytes, int], Turned | None]) -> Fit:
    return lambda call, room_bytes: turn(call.header, call.weights, room_bytes)


def _int4_pixels(call: Turned, room_bytes: int) -> Turned:
    """With strips along rows, and with smaller blocks of weights."""
    blocks = Blocks.of_pixels(call.header)
    head, tiles = call.weights[:BLOCK_HEAD], call.weights[BLOCK_HEAD:]
    before = blocks.bytes_in(head)
    made = turned_pixels(call.header, tiles, 0, INT4_TILE)
    if made is not None:
        call = Turned(made.header, head + made.weights, before + made.scratch_bytes)
    return _in_blocks(call, blocks, room_bytes)


def _int4_pairs(call: Turned, room_bytes: int) -> Turned:
    return _in_blocks(call, Blocks.of_pairs(call.header), room_bytes)


def _in_blocks(call: Turned, blocks: Blocks, room_bytes: int) -> Turned:
    """With as many weights as int8 at a time as there is room for."""
    beside = call.scratch_bytes - blocks.bytes_in(call.weights)
    weights = blocks.resized(call.weights, room_bytes - beside)
    return Turned(call.header, weights, blocks.bytes_in(weights) + beside)


def fitted_for_bands(
    method: LinkedMethod, rooms: Mapping[int, int] = MappingProxyType({})
) -> LinkedMethod:
    """The method with calls fit for bands; the slots before stay.

    Args:
        method: With prepared calls.
        rooms: By instruction: bytes of scratch memory that there are; others get
            little.
    """
    instructions: list[LinkedInstruction] = []
    for number, call in enumerate(method.instructions):
        made = call
        if isinstance(call, LinkedCall) and (fit := _fit_of(call.function)):
            method, made = _fitted(method, call, fit, rooms.get(number, 0))
        instructions.append(made)
    return replace(method, instructions=tuple(instructions))


def _fitted(
    method: LinkedMethod, call: LinkedCall, fit: Fit, room_bytes: int
) -> tuple[LinkedMethod, LinkedCall]:
    header = header_of(method, call)
    at = {name: place for name, place in call.form.memory if place is not None}
    if header is None or "weights" not in at:  # of several phases
        return method, call
    before = {name: method.tensor(call.args[place]) for name, place in at.items()}
    weights, scratch = before["weights"], before["scratch"]
    data = bytes(method.contents[call.args[at["weights"]]])
    found = fit(Turned(header, data, scratch.size_bytes), room_bytes)
    if found is None:
        return method, call
    words, data, scratch_bytes = found
    method, slots = with_slots(
        method,
        (before["header"], bytes_of(words)),
        (weights, settled(data)),
        (replace(scratch, sizes=(scratch_bytes,)), None),
    )
    args = list(call.args)
    for name, slot in zip(("header", "weights", "scratch"), slots, strict=True):
        args[at[name]] = slot
    return method, replace(call, args=tuple(args))


# Calls of several packed convolutions, as transposed ones are with vectors, by rows.
#
# Each of them fills lines of the output that are some lines apart, and some pixels or channels of
# these.

_HEADER: Final = 28
"""Words of a PackedPixels."""
_AXIS = 6
_LINE, _PIXEL, _FIRST, _NEXT = 22, 23, 25, 27


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePhase:
    """Rows of the output that a packed convolution fills.

    Args:
        axis: Of its rows.
        first: The first of the output that is one of them.
        step: From each to the next one.
    """

    axis: Axis
    first: int
    step: int

    def window(self, out: int) -> RowTable:
        """What each row of the output needs."""
        needed = {self.first + i * self.step: self.axis.inputs(i, i) for i in range(self.axis.out)}
        return RowTable.of(needed, size=self.axis.size, out=out)

    def among(self, first: int, last: int) -> tuple[int, int]:
        """First and last of its rows among some of the output; the last may be less."""
        begin = max(-((self.first - first) // self.step), 0)
        return begin, min((last - self.first) // self.step, self.axis.out - 1)


def is_phased(function: str, header: tuple[int, ...]) -> bool:
    """Whether a kernel with such a header may fill lines that lie apart."""
    return _is_pixels(function) and len(header) == _HEADER


def _is_pixels(function: str) -> bool:
    """Whether a kernel has such headers; int4 ones have another."""
    return kernel_of(function).startswith("packed_pixels")


def phase_of(header: tuple[int, ...], row_bytes: int) -> LinePhase | None:
    """The rows that a call fills, if each is a part of a row of the output."""
    at = rows_at(header)
    step = header[_PIXEL if is_turned(header) else _LINE]
    if step % row_bytes or not step:
        return None
    return LinePhase(
        axis=Axis.of(header[at : at + _AXIS]),
        first=header[_FIRST] // row_bytes,
        step=step // row_bytes,
    )


def moved_phase(header: tuple[int, ...], lines: int, row_bytes: int) -> tuple[int, ...]:
    """The header with the first output some lines further on."""
    first = header[_FIRST] + lines * row_bytes
    return (*header[:_FIRST], first, *header[_FIRST + 1 :])


def with_phases_apart(method: LinkedMethod) -> LinkedMethod:
    """The method with a call for each of several convolutions.

    Those with limits stay: a kernel limits what its calls write together.
    """
    instructions: list[LinkedInstruction] = []
    origins: list[int] = []
    for call, origin in zip(method.instructions, method.origins, strict=True):
        made: list[LinkedCall] = []
        if has_phases(call) and "limited" not in call.function:
            for words in _each(header_of(method, call) or ()):
                method, part = _part(method, call, words, begins=not made)
                made.append(part)
        instructions += made or [call]
        origins += [origin] * max(len(made), 1)
    return replace(method, instructions=tuple(instructions), origins=tuple(origins))


def has_phases(call: LinkedInstruction) -> TypeGuard[LinkedCall]:
    """Whether a call is one of several packed convolutions."""
    return (
        isinstance(call, LinkedCall)
        and _is_pixels(call.function)
        and dict(call.form.memory).get("weights") is None
    )


def _each(words: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The words of each of several convolutions."""
    size = len(words)
    while size:
        size = words[_NEXT] // WORD
        yield words[:size] if size else words
        words = words[size:]


def _part(
    method: LinkedMethod, call: LinkedCall, words: tuple[int, ...], *, begins: bool
) -> tuple[LinkedMethod, LinkedCall]:
    """A call for one of several convolutions."""
    places = dict(call.form.memory)
    like = method.tensor(call.args[places["header"] or 0])
    header = (*words[:_NEXT], 0)
    added = [
        (replace(like, sizes=(len(part),)), bytes_of(part)) for part in (header, words[_HEADER:])
    ]
    method, (at, weights) = with_slots(method, *added)
    args, accesses = list(call.args), list(call.accesses)
    args[places["header"] or 0] = at
    args.append(weights)
    accesses.append(Access.READS)
    if not begins:
        accesses = [Access.UPDATES if a is Access.FILLS else a for a in accesses]
    memory = tuple(
        (name, len(args) - 1 if name == "weights" else place) for name, place in call.form.memory
    )
    return method, replace(
        call, args=tuple(args), accesses=tuple(accesses), prepared=replace(call.form, memory=memory)
    )
