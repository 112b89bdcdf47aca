"""Places in the code of a firmware for Cortex-M: functions, and where calls return."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

from elftools.elf.elffile import ELFFile

from benchmarks.table import NotMeasuredError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.product import Built

# Source: Armv7-M Architecture Reference Manual, A7.7.18 (BL, encoding T1) and A7.7.19
# (BLX, encoding T1): mask and fixed bits of each halfword.
_BL_FIRST = (0xF800, 0xF000)
_BL_SECOND = (0xD000, 0xD000)
_BLX = (0xFF87, 0x4780)


def _has(halfword: int, form: tuple[int, int]) -> bool:
    mask, bits = form
    return halfword & mask == bits


class Image:
    """Code of a firmware for Cortex-M."""

    def __init__(self, built: Built) -> None:
        """Read firmware.elf and report.json of a build."""
        elf = ELFFile(io.BytesIO((built.folder / "firmware.elf").read_bytes()))
        self._code = [
            (s["sh_addr"], s.data()) for s in elf.iter_sections("SHT_PROGBITS")
        ]
        self._functions = {
            s["name"]: (s["address"], s["size_bytes"])
            for s in built.report["symbols"]
            if s["is_function"]
        }

    def function(self, name: str) -> tuple[int, int]:
        """Address, without the bit for Thumb, and size in bytes."""
        if name not in self._functions:
            raise NotMeasuredError(f"{name} is not in the firmware")
        address, size_bytes = self._functions[name]
        return address & ~1, size_bytes

    def returns_of_calls(self, caller: str, callee: str) -> list[int]:
        """Where direct calls of `callee` in `caller` return to."""
        target, _ = self.function(callee)
        found = [
            at + 4
            for at, first, second in self._halfwords(caller)
            if _call_target(at, first, second) == target
        ]
        return self._some(found, f"{callee} in {caller}")

    def returns_of_pointer_calls(self, caller: str) -> list[int]:
        """Where calls through pointers in `caller` return to."""
        found = [
            at + 2 for at, first, _ in self._halfwords(caller) if _has(first, _BLX)
        ]
        return self._some(found, f"a pointer in {caller}")

    def _some(self, places: list[int], what: str) -> list[int]:
        if not places:
            raise NotMeasuredError(f"no call of {what} in the code")
        return places

    def _halfwords(self, name: str) -> Iterator[tuple[int, int, int]]:
        """(address, halfword there, the next one) for all of a function's code."""
        start, size_bytes = self.function(name)
        for origin, data in self._code:
            if origin <= start < origin + len(data):
                code = data[start - origin : start - origin + size_bytes]
                words = struct.unpack(f"<{len(code) // 2}H", code[: len(code) // 2 * 2])
                for index in range(len(words) - 1):
                    yield start + 2 * index, words[index], words[index + 1]


def _call_target(at: int, first: int, second: int) -> int | None:
    """Target of a BL instruction; None if it is something else."""
    if not (_has(first, _BL_FIRST) and _has(second, _BL_SECOND)):
        return None
    sign = first >> 10 & 1
    bits = [1 - (second >> shift & 1 ^ sign) for shift in (13, 11)]
    offset = (
        -(sign << 24)
        | bits[0] << 23
        | bits[1] << 22
        | (first & 0x3FF) << 12
        | (second & 0x7FF) << 1
    )
    return at + 4 + offset
