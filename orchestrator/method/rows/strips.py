"""Depthwise calls as bands are made of them: with strips along the rows of an image.

Along columns a strip may be faster for a whole image. In a band such lines are short,
and as many strips are filled as for all rows.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.core.lazy_bytes import settled
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.joining import with_slots
from orchestrator.method.passes.packing.strips import along_rows
from orchestrator.method.steps import header_of
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedInstruction, LinkedMethod


def is_strips(function: str) -> bool:
    """Whether a kernel goes over an image in strips."""
    return function.endswith("packed_depthwise_strips")


def with_strips_along_rows(method: LinkedMethod) -> LinkedMethod:
    """The method with such calls wherever these can be; the slots before stay."""
    instructions: list[LinkedInstruction] = []
    for call in method.instructions:
        made = call
        if isinstance(call, LinkedCall) and is_strips(call.function):
            method, made = _along_rows(method, call)
        instructions.append(made)
    return replace(method, instructions=tuple(instructions))


def _along_rows(
    method: LinkedMethod, call: LinkedCall
) -> tuple[LinkedMethod, LinkedCall]:
    header = header_of(method, call)
    assert header is not None  # noqa: S101  # packed calls have one
    assert call.prepared is not None  # noqa: S101  # they are prepared
    at = {name: place for name, place in call.prepared.memory if place is not None}
    before = {name: method.values[call.args[place]] for name, place in at.items()}
    weights, scratch = before["weights"], before["scratch"]
    assert isinstance(weights, TensorValue)  # noqa: S101  # as all arguments
    assert isinstance(scratch, TensorValue)  # noqa: S101  # the same
    data = bytes(dict(method.data)[call.args[at["weights"]]])
    found = along_rows(header, data, scratch.size_bytes)
    if found is None:
        return method, call
    words, data, strips = found
    method, slots = with_slots(
        method,
        (before["header"], settled(struct.pack(f"<{len(words)}i", *words))),
        (weights, settled(data)),
        (replace(scratch, sizes=(strips.scratch_bytes,)), None),
    )
    args = list(call.args)
    for name, slot in zip(("header", "weights", "scratch"), slots, strict=True):
        args[at[name]] = slot
    return method, replace(call, args=tuple(args))
