"""Readers of Intel HEX and UF2, written from their specifications alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def read_hex(data: bytes) -> dict[int, int]:
    """The byte at each address, from records with data, linear addresses and an end.

    A start address, which binutils write, has no bytes.
    """
    found: dict[int, int] = {}
    upper, has_ended = 0, False
    for line in data.decode("ascii").splitlines():
        assert not has_ended
        assert line[0] == ":"
        record = bytes.fromhex(line[1:])
        assert sum(record) % 256 == 0
        count, offset, kind = record[0], int.from_bytes(record[1:3], "big"), record[3]
        payload = record[4:-1]
        assert len(payload) == count
        match kind:
            case 0:
                assert offset + count <= 0x10000
                for place, byte in enumerate(payload, upper + offset):
                    assert place not in found
                    found[place] = byte
            case 1:
                assert (count, offset) == (0, 0)
                has_ended = True
            case 4:
                assert (count, offset) == (2, 0)
                upper = int.from_bytes(payload, "big") << 16
            case _:
                assert kind in {3, 5}
    assert has_ended
    return found


@dataclass(frozen=True)
class Block:
    """A block of a UF2 file."""

    address: int
    number: int
    count: int
    family: int
    data: bytes


def read_uf2(data: bytes) -> list[Block]:
    """The blocks of a UF2 file with family and 256 bytes each, in their order."""
    assert len(data) % 512 == 0
    found = []
    for at in range(0, len(data), 512):
        block = data[at : at + 512]
        begin, second, flags, address, size, number, count, family = struct.unpack(
            "<8I", block[:32]
        )
        assert (begin, second, block[-4:]) == (0x0A324655, 0x9E5D5157, b"\x30\x6f\xb1\x0a")
        assert (flags, size, address % 256) == (0x2000, 256, 0)
        assert not any(block[32 + size : 508])
        found.append(Block(address, number, count, family, block[32 : 32 + size]))
    return found


def rom_writes(blocks: Iterable[Block]) -> dict[int, bytes]:
    """The pages of flash after the boot ROM of an RP2040 got these blocks.

    It erases 4 KiB around the address of a block if no block of the same sixteen was
    written before: it goes by their numbers (bootrom/virtual_disk.c). Only erased pages
    can be written.
    """
    flash: dict[int, bytes] = {}
    begun = set()
    for block in blocks:
        sector = block.number * 256 // 4096
        if sector not in begun:
            begun.add(sector)
            first = block.address - block.address % 4096
            flash |= dict.fromkeys(range(first, first + 4096, 256), b"\xff" * 256)
        assert flash[block.address] == b"\xff" * 256, f"{block.address:#x} was not erased"
        flash[block.address] = block.data
    return flash
