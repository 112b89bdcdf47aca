"""Calls of several packed convolutions, as transposed ones are with vectors, by rows.

Each of them fills lines of the output that are some lines apart, and some pixels or
channels of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeGuard

from orchestrator.method.access import Access
from orchestrator.method.linked import LinkedCall, LinkedInstruction, LinkedMethod
from orchestrator.method.passes.images import Axis
from orchestrator.method.passes.joining import with_slots
from orchestrator.method.passes.packing.headers import kernel_of
from orchestrator.method.passes.packing.turned import is_turned, rows_at
from orchestrator.method.passes.packing.words import WORD, bytes_of
from orchestrator.method.rows.network import RowTable
from orchestrator.method.steps import header_of

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
