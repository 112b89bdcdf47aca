"""Packed calls as bands are made of them.

Along columns a strip may be faster for a whole image. In a band such lines are short,
and as many strips are filled as for all rows; of a single row, kernels that compute
several pixels below each other at once drop all but one. Where memory is short, blocks
of weights of 4 bits that are int8 at a time are shorter, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from orchestrator.core.lazy_bytes import settled
from orchestrator.method.linked import LinkedCall, LinkedInstruction, LinkedMethod
from orchestrator.method.passes.joining import with_slots
from orchestrator.method.passes.packing.convolution import WORD
from orchestrator.method.passes.packing.header import Packed, bytes_of
from orchestrator.method.passes.packing.kernels import KERNELS, packed_header
from orchestrator.method.passes.packing.pixels import Pixels
from orchestrator.method.places import Access
from orchestrator.method.steps import HEADER


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
        if isinstance(call, LinkedCall) and call.prepared is not None:
            method, made = _fitted(method, call, rooms.get(number, 0))
        instructions.append(made)
    return replace(method, instructions=tuple(instructions))


def _fitted(
    method: LinkedMethod, call: LinkedCall, room_bytes: int
) -> tuple[LinkedMethod, LinkedCall]:
    header = packed_header(method, call)
    # Several convolutions have all structs in one constant; `with_phases_apart` has split those
    # that can be.
    if header is None or header.is_several:
        return method, call
    at = {name: place for name, place in call.form.memory if place is not None}
    before = {name: method.tensor(call.args[place]) for name, place in at.items()}
    weights, scratch = before["weights"], before["scratch"]
    data = bytes(method.contents[call.args[at["weights"]]])
    found = header.for_bands(Packed(header, data, scratch.size_bytes), room_bytes)
    if found is None:
        return method, call
    method, slots = with_slots(
        method,
        (before["header"], bytes_of(found.header.words())),
        (weights, settled(found.weights)),
        (replace(scratch, sizes=(found.scratch_bytes,)), None),
    )
    args = list(call.args)
    for name, slot in zip(("header", "weights", "scratch"), slots, strict=True):
        args[at[name]] = slot
    return method, replace(call, args=tuple(args))


def with_phases_apart(method: LinkedMethod) -> LinkedMethod:
    """The method with a call for each of several packed convolutions.

    Each fills lines of the output that are some lines apart, and some pixels or channels
    of these. Those with limits stay: a kernel limits what its calls write together.
    """
    instructions: list[LinkedInstruction] = []
    origins: list[int] = []
    for call, origin in zip(method.instructions, method.origins, strict=True):
        made: list[LinkedCall] = []
        header = of_several(method, call)
        if header and isinstance(call, LinkedCall) and not KERNELS[call.function].is_limited:
            data = bytes(method.contents[call.args[header_position(call)]])
            for part, weights in header.each(data[WORD * len(header.words()) :]):
                method, one = _part(method, call, part, weights, begins=not made)
                made.append(one)
        instructions += made or [call]
        origins += [origin] * max(len(made), 1)
    return replace(method, instructions=tuple(instructions), origins=tuple(origins))


def of_several(method: LinkedMethod, call: LinkedInstruction) -> Pixels | None:
    """The first of several packed convolutions, if a call is that."""
    header = packed_header(method, call) if isinstance(call, LinkedCall) else None
    return header if isinstance(header, Pixels) and header.is_several else None


def header_position(call: LinkedCall) -> int:
    """Which argument is the header."""
    position = dict(call.form.memory)[HEADER]
    assert position is not None  # noqa: S101  # packed calls have one
    return position


def _part(
    method: LinkedMethod, call: LinkedCall, header: Pixels, weights: bytes, *, begins: bool
) -> tuple[LinkedMethod, LinkedCall]:
    """A call for one of several convolutions."""
    place = header_position(call)
    like = method.tensor(call.args[place])
    parts = (bytes_of(header.words()), settled(weights))
    added = [(replace(like, sizes=(len(part) // WORD,)), part) for part in parts]
    method, (at, slot) = with_slots(method, *added)
    args, accesses = [*call.args, slot], [*call.accesses, Access.READS]
    args[place] = at
    # What others have written of the output has to stay.
    if not begins:
        accesses = [Access.UPDATES if a is Access.FILLS else a for a in accesses]
    memory = tuple(
        (name, len(args) - 1 if name == "weights" else at) for name, at in call.form.memory
    )
    return method, replace(
        call, args=tuple(args), accesses=tuple(accesses), prepared=replace(call.form, memory=memory)
    )
