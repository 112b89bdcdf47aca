"""Packed calls as bands are made of them: with strips along the rows of an image.

Along columns a strip may be faster for a whole image. In a band such lines are short,
and as many strips are filled as for all rows; of a single row, kernels that compute
several pixels below each other at once drop all but one. Where memory is short, blocks
of weights of 4 bits that are int8 at a time are shorter, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.core.lazy_bytes import settled
from orchestrator.method.linked import LinkedCall, LinkedInstruction, LinkedMethod
from orchestrator.method.passes.joining import with_slots
from orchestrator.method.passes.packing.headers import kernel_of
from orchestrator.method.passes.packing.int4 import BLOCK_HEAD, Blocks
from orchestrator.method.passes.packing.strips import along_rows
from orchestrator.method.passes.packing.turned import INT4_TILE, Turned, turned_lines, turned_pixels
from orchestrator.method.passes.packing.words import bytes_of
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
