"""Calls for vectors as bands are made of them: with strips along the rows of an image.

Along columns a strip may be faster for a whole image. In a band such lines are short,
and as many strips are filled as for all rows; of a single row, kernels that compute
several pixels below each other at once drop all but one.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.core.lazy_bytes import settled
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.joining import with_slots
from orchestrator.method.passes.packing import turned
from orchestrator.method.passes.packing.strips import along_rows
from orchestrator.method.steps import header_of
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.method.linked import LinkedInstruction, LinkedMethod

    Turn = Callable[[tuple[int, ...], bytes, int], turned.Turned | None]


def is_strips(function: str) -> bool:
    """Whether a depthwise kernel goes over an image in strips."""
    return function.endswith("packed_depthwise_strips")


def _turn_of(function: str) -> Turn | None:
    """What turns the header, weights and scratch memory of calls of a kernel."""
    name = function.rpartition("::")[2].removeprefix("limited_")
    if name.startswith("packed_pixels"):
        return turned.turned_pixels
    turns = {
        "packed_lines": turned.turned_lines,
        "packed_depthwise_strips": along_rows,
    }
    return turns.get(name)


def with_strips_along_rows(
    method: LinkedMethod, rooms: Mapping[int, int] = MappingProxyType({})
) -> LinkedMethod:
    """The method with such calls wherever these can be; the slots before stay.

    Args:
        method: With prepared calls.
        rooms: By instruction: bytes of scratch memory that there are; others get
            little.
    """
    instructions: list[LinkedInstruction] = []
    for number, call in enumerate(method.instructions):
        made = call
        if isinstance(call, LinkedCall) and (turn := _turn_of(call.function)):
            method, made = _along_rows(method, call, turn, rooms.get(number, 0))
        instructions.append(made)
    return replace(method, instructions=tuple(instructions))


def _along_rows(
    method: LinkedMethod, call: LinkedCall, turn: Turn, room_bytes: int
) -> tuple[LinkedMethod, LinkedCall]:
    header = header_of(method, call)
    assert header is not None  # noqa: S101  # packed calls have one
    assert call.prepared is not None  # noqa: S101  # they are prepared
    at = {name: place for name, place in call.prepared.memory if place is not None}
    if "weights" not in at:  # of several phases
        return method, call
    before = {name: method.values[call.args[place]] for name, place in at.items()}
    weights, scratch = before["weights"], before["scratch"]
    assert isinstance(weights, TensorValue)  # noqa: S101  # as all arguments
    assert isinstance(scratch, TensorValue)  # noqa: S101  # the same
    data = bytes(dict(method.data)[call.args[at["weights"]]])
    found = turn(header, data, room_bytes)
    if found is None:
        return method, call
    words, data, scratch_bytes = found
    method, slots = with_slots(
        method,
        (before["header"], settled(struct.pack(f"<{len(words)}i", *words))),
        (weights, settled(data)),
        (replace(scratch, sizes=(scratch_bytes,)), None),
    )
    args = list(call.args)
    for name, slot in zip(("header", "weights", "scratch"), slots, strict=True):
        args[at[name]] = slot
    return method, replace(call, args=tuple(args))
