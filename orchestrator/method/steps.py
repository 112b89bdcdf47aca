"""The calls of a method by rows as a table of steps.

Calls of a layer differ in few numbers and addresses. One of them is the template; a
step is a few bytes that say which template, and what differs.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Final

from orchestrator.method.linked import LinkedCall, LinkedInstruction, LinkedMethod, Numbers
from orchestrator.program.values import TensorValue

HEADER: Final = "header"
"""Member of a struct that points to more numbers."""
GIVEN_ROWS: Final = (("input", None), ("out", 0))
"""Addresses of a move of rows that the caller gives."""
# Steps have units of 16 bits (`StepTemplate::layout` in runtime/include/orch/steps.h).
_MOST_UNIT: Final = 0xFFFF
_WORD: Final = 4
# As LEB128 has them: most items are below 128, and then one byte.
_BITS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAddress:
    """An address that changes from step to step.

    Args:
        pointer: Which of the addresses of the struct.
        base: Offset in the arena at index 0.
        unit: Bytes from an index to the next one.
    """

    pointer: int
    base: int
    unit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTemplate:
    """What the steps of a layer share.

    Args:
        instruction: The call that the template is made of.
        addresses: Those that change.
        words: Those that change, of the header if there is one, else of the numbers.
        shapes: What these words become where they change: all choices, one after the
            other.
        header_words: Of the header that is changed; 0 if none is.
    """

    instruction: int
    addresses: tuple[StepAddress, ...]
    words: tuple[int, ...]
    shapes: tuple[int, ...]
    header_words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTable:
    """All steps of a method.

    Args:
        templates: One for each layer, about.
        steps: By instruction: number of its template, index of each address that
            changes, and, if the template has words, number of a shape, from 1, or 0 if
            words stay as they are. Each has 7 bits in a byte, the lowest first, and
            128 more if others follow.
        given: Number of the template for rows that the caller gives, if it does.
    """

    templates: tuple[StepTemplate, ...]
    steps: tuple[bytes, ...]
    given: int | None = None


def step_table(method: LinkedMethod) -> StepTable:
    """The steps of a method by rows, whose instructions are all prepared calls."""
    groups: dict[Hashable, list[int]] = {}
    for number in range(len(method.instructions)):
        groups.setdefault(_kind(method, number), []).append(number)
    templates: list[StepTemplate] = []
    steps: dict[int, bytes] = {}
    given = None
    for which, numbers in enumerate(groups.values()):
        template, choices = _template(method, numbers)
        templates.append(template)
        if is_given(method.instructions[numbers[0]]):
            given = which
        for number, choice in zip(numbers, choices, strict=True):
            items = [which]
            for address in template.addresses:
                offset = _offset(method, number, address.pointer)
                # The lowest offset is index 0, so that no index is negative.
                items.append((offset - address.base) // address.unit)
            items += [choice] if template.words else []
            steps[number] = b"".join(map(_packed, items))
    return StepTable(
        templates=tuple(templates),
        steps=tuple(steps[number] for number in range(len(steps))),
        given=given,
    )


def is_given(instruction: LinkedInstruction) -> bool:
    """Whether an instruction stands for rows that the caller gives."""
    prepared = instruction.prepared if isinstance(instruction, LinkedCall) else None
    return prepared is not None and prepared.memory == GIVEN_ROWS


def header_of(method: LinkedMethod, call: LinkedCall) -> tuple[int, ...] | None:
    """The words of the header of a call with packed weights; None for others."""
    position = dict(call.prepared.memory).get(HEADER) if call.prepared else None
    if position is None:
        return None
    data = bytes(method.contents[call.args[position]])
    return struct.unpack(f"<{len(data) // _WORD}i", data)


def _template(method: LinkedMethod, numbers: Sequence[int]) -> tuple[StepTemplate, list[int]]:
    """The template of some calls, and which shape each of them has."""
    header = header_of(method, method.call(numbers[0]))
    calls = [method.call(number).form for number in numbers]
    if header is not None:
        # A header stands in flash as `with_common_headers` chose it, with the words of most bands.
        of, all_words = 0, [one.header or header for one in calls]
        own = header
    else:
        all_words = [tuple(_words(one.numbers)) for one in calls]
        # The call that most others are like is the template: their steps change no words.
        of = all_words.index(Counter(all_words).most_common(1)[0][0])
        own = all_words[of]
    words = tuple(i for i, word in enumerate(own) if any(one[i] != word for one in all_words))
    shapes = [tuple(one[i] for i in words) for one in all_words]
    # Shape 0 is what the template has; each other one is stored once.
    known = [*dict.fromkeys((tuple(own[i] for i in words), *shapes))]
    template = StepTemplate(
        instruction=numbers[of],
        addresses=tuple(_addresses(method, numbers)),
        words=words,
        shapes=tuple(word for shape in known[1:] for word in shape),
        header_words=len(header) if header and words else 0,
    )
    return template, [known.index(shape) for shape in shapes]


def _addresses(method: LinkedMethod, numbers: Sequence[int]) -> Iterator[StepAddress]:
    for pointer in range(len(method.call(numbers[0]).form.memory)):
        offsets = {_offset(method, number, pointer) for number in numbers}
        if len(offsets) == 1:
            continue
        base = min(offsets)
        unit = gcd(*(offset - base for offset in offsets))
        # A unit that is too large becomes a divisor of it, and indices larger.
        part = next(n for n in range(1, unit + 1) if unit % n == 0 and unit // n <= _MOST_UNIT)
        yield StepAddress(pointer=pointer, base=base, unit=unit // part)


def _kind(method: LinkedMethod, number: int) -> Hashable:
    """What calls have to have in common to share a template."""
    call = method.call(number)
    prepared = call.form
    pointers = tuple(
        (name, None if at is None else _space(method, call.args[at]))
        for name, at in prepared.memory
    )
    members = tuple(name for name, _ in prepared.numbers)
    origin, shape = method.origins[number], prepared.shape
    return origin, call.function, prepared.struct, pointers, shape, members


def _space(method: LinkedMethod, index: int) -> Hashable:
    """The arena of a value; the value itself if it is a constant."""
    allocation = method.tensor(index).allocation
    return allocation.memory_id if allocation else (index,)


def _offset(method: LinkedMethod, number: int, pointer: int) -> int:
    """Where in its arena an address points to; 0 for constants and null."""
    call = method.call(number)
    at = call.form.memory[pointer][1]
    value = None if at is None else method.values[call.args[at]]
    if not isinstance(value, TensorValue) or value.allocation is None:
        return 0
    return value.allocation.offset_bytes


def _words(members: Sequence[tuple[str, Numbers]]) -> Iterator[int]:
    """Numbers of a struct as words, those of structs in it as well."""
    for _, value in members:
        if isinstance(value, tuple):
            yield from _words(value)
        else:
            kind = "<f" if isinstance(value, float) else "<i"
            yield from struct.unpack("<i", struct.pack(kind, value))


def _packed(item: int) -> bytes:
    """An item of a step."""
    found = bytearray()
    while item >> _BITS:
        found.append(item & (1 << _BITS) - 1 | 1 << _BITS)
        item >>= _BITS
    return bytes((*found, item))
