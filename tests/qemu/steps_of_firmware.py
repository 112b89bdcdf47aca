"""The steps of a method by rows as they stand in firmware, against a plan."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING, Final

from orchestrator.measure.elf import FUNCTION, ElfFile
from orchestrator.method.rows.plan import Call, Slide
from orchestrator.method.windows import Axis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestrator.method.rows.network import Network
    from orchestrator.method.rows.plan import RowPlan

_TEMPLATE: Final = struct.Struct("<3I6B2x")
"""StepTemplate of runtime/include/orch/steps.h."""
_OUT_CHANNELS: Final = 14
"""Word of a PackedConvolution."""
_MATRIX_WORDS: Final = 4
"""Of a PackedMatrix: pixels, items, depth and output channels."""
_LINE: Final = (1, 1, 1, 1, 0, 1)
"""Rows of an image whose pixels lie in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundStep:
    """What a device makes of a step.

    Args:
        function: The kernel, as a symbol.
        addresses: Offsets in the arena; those beside it are negative.
        words: Of the header if the kernel has one, else of the struct.
    """

    function: str
    addresses: tuple[int, ...]
    words: tuple[int, ...]


class _Firmware:
    def __init__(self, data: bytes) -> None:
        self._elf = ElfFile(data)
        (self._arena,) = (s for s in self._elf.symbols if "_arena1E" in s.name)
        self._functions = {s.value & ~1: s.name for s in self._elf.symbols if s.kind == FUNCTION}

    def steps(self) -> Iterator[FoundStep]:
        (table,) = (s for s in self._elf.symbols if "_step_tableE" in s.name)
        steps, size, templates, _ = self._words(table.value, 4)
        rest = iter(self._bytes(steps, size))

        def item() -> int:
            byte = next(rest)
            return byte if byte < 128 else byte - 128 + 128 * item()

        for first in rest:
            which = first if first < 128 else first - 128 + 128 * item()
            yield self._step(templates + which * _TEMPLATE.size, item)

    def _step(self, template: int, item: Callable[[], int]) -> FoundStep:
        call, layout, shapes, *counts = _TEMPLATE.unpack(self._bytes(template, _TEMPLATE.size))
        changed, words, places, numbers, header, header_words = counts
        function, *addresses = self._words(call, 1 + places)
        layouts = struct.unpack(
            f"<{2 * changed + words}H", self._bytes(layout, 2 * (2 * changed + words))
        )
        for at in range(changed):
            addresses[layouts[2 * at]] += item() * layouts[2 * at + 1]
        name = self._functions[function & ~1]
        found = [*self._words(call + 4 + 4 * places, numbers)]
        if "packed_" in name:
            assert header in (0, 2)  # behind the input
            least = _MATRIX_WORDS if "packed_matrix" in name else _OUT_CHANNELS + 1
            found = [*self._words(addresses[1], max(header_words, least))]
        number = item() if words else 0
        if number:
            shape = shapes + 4 * words * (number - 1)
            pairs = zip(layouts[2 * changed :], self._words(shape, words), strict=True)
            for word, value in pairs:
                found[word] = value
        return FoundStep(
            function=name,
            addresses=tuple(
                a - self._arena.value
                if self._arena.value <= a < self._arena.value + self._arena.size_bytes
                else -1
                for a in addresses
            ),
            words=tuple(found),
        )

    def _bytes(self, address: int, size: int) -> bytes:
        for section in self._elf.sections:
            at = address - section.address
            if section.address and at >= 0 and at + size <= section.size_bytes:
                return self._elf.contents(section)[at : at + size]
        assert size == 0
        return b""

    def _words(self, address: int, count: int) -> tuple[int, ...]:
        # Addresses are below 2^31.
        return struct.unpack(f"<{count}i", self._bytes(address, 4 * count))


def differences(data: bytes, network: Network, plan: RowPlan) -> list[str]:
    """Steps that are not those of a plan: kernels, places, and rows of convolutions.

    Args:
        data: An ELF file with one method by rows.
        network: Its network.
        plan: Of which each step is one call.
    """
    found = [*_Firmware(data).steps()]
    if len(found) != len(plan.moves):
        return [f"{len(found)} steps for {len(plan.moves)}"]
    wrong, begun = [], set[int]()
    for number, (step, move) in enumerate(zip(found, plan.moves, strict=True)):
        if isinstance(move, Slide):
            same = _is_slide(step, move)
        else:
            begins = move.step.layer not in begun
            room = plan.rooms.get(move.step.layer, inf)
            same = _is_call(step, move, network, room, begins=begins)
            begun.add(move.step.layer)
        if not same:
            wrong.append(f"step {number}: {step} for {move}")
    return wrong


def _is_slide(step: FoundStep, slide: Slide) -> bool:
    moved = "move_bytes" in step.function and step.words == (slide.size_bytes,)
    return moved and step.addresses == (slide.source, slide.target)


def _is_call(
    step: FoundStep, call: Call, network: Network, room_bytes: float, *, begins: bool
) -> bool:
    layer = network.layers[call.step.layer]
    sources, others = step.addresses[: len(layer.reads)], step.addresses[1:]
    if sources != call.reads or step.addresses[-1] != call.out:
        return False
    (image, window), (low, high) = layer.reads[0], call.step.reads[0]
    count = call.step.last - call.step.first + 1
    if layer.accumulates:
        items = (high - low + 1) * network.images[image].row_bytes
        return step.words[0] == begins and prod(step.words[1:]) == items
    if "packed_" not in step.function:  # all but sums of a whole image have rows
        return len(step.addresses) == len(layer.reads) + 1
    scratch_bytes = network.scratch_of(call.step.layer, count, room_bytes)
    few = network.scratch_saving_of(call.step.layer, count, room_bytes)
    is_matrix = "packed_matrix" in step.function
    name = "packed_matrix" if is_matrix else "packed_conv2d"
    is_few = step.function.rpartition(name)[2].startswith("_few")
    is_there = others[2] == call.scratch or not scratch_bytes
    if others[:2] != (-1, -1) or not is_there or is_few != bool(few):
        return False
    if is_matrix:
        pixels, _, _, channels = step.words[:_MATRIX_WORDS]
        return pixels * channels == count * network.images[layer.out].row_bytes
    assert isinstance(window, Axis)
    return _is_band(step, call, network, window)


def _is_band(step: FoundStep, call: Call, network: Network, window: Axis) -> bool:
    """Whether a header with axes is that of the rows of a call."""
    layer, (low, high) = network.layers[call.step.layer], call.step.reads[0]
    first, count = call.step.first, call.step.last - call.step.first + 1
    band = Axis(
        size=high - low + 1,
        out=count,
        kernel=window.kernel,
        stride=window.stride,
        padding=low - (first * window.stride - window.padding),
        dilation=window.dilation,
    )
    rows, columns = (Axis.of(step.words[at : at + 6]) for at in (0, 6))
    if band.kernel == 1 and _LINE in (rows.words(), columns.words()):
        items = rows.out * columns.out * step.words[_OUT_CHANNELS]
        return items == count * network.images[layer.out].row_bytes
    return band in (rows, columns)
