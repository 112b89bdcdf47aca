"""Headers as most steps have them: a step then changes none of their words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import replace

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.joining import with_slots
from orchestrator.method.passes.packing.words import bytes_of
from orchestrator.method.steps import HEADER, header_of


def with_common_headers(method: LinkedMethod) -> LinkedMethod:
    """The method with the header in memory that most bands of a call have.

    Args:
        method: By rows.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    words: dict[int, tuple[int, ...]] = {}
    for number, call in enumerate(method.instructions):
        if not isinstance(call, LinkedCall) or call.prepared is None:
            continue
        header = header_of(method, call)
        if header is not None:
            words[number] = call.prepared.header or header
            slot = call.args[_position(call)]
            groups[method.origins[number], call.function, slot].append(number)
    instructions = [*method.instructions]
    slots: dict[tuple[int, ...], int] = {}
    for numbers in groups.values():
        ((common, _),) = Counter(words[number] for number in numbers).most_common(1)
        for number in numbers:
            call = method.call(number)
            at = _position(call)
            if common not in slots:
                like = method.values[call.args[at]]
                method, (slots[common],) = with_slots(method, (like, bytes_of(common)))
            own = words[number]
            instructions[number] = replace(
                call,
                args=(*call.args[:at], slots[common], *call.args[at + 1 :]),
                prepared=replace(call.form, header=() if own == common else own),
            )
    return replace(method, instructions=tuple(instructions))


def _position(call: LinkedCall) -> int:
    """Which argument is the header."""
    position = dict(call.form.memory)[HEADER]
    assert position is not None  # noqa: S101  # there is a header
    return position
