"""The firmware as programmers, drives and boot loaders take it: Intel HEX, bytes, UF2.

Sources: Intel, Hexadecimal Object File Format Specification, revision A; the README of
microsoft/uf2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

from orchestrator.errors import MemoryPlanError, SourceSpan
from orchestrator.profile.choices import Image
from orchestrator.targets.boards import UF2_SECTOR_BYTES, Board

Chunks: TypeAlias = Sequence[tuple[int, bytes]]
"""Addresses in flash and the bytes from there on; they may come in any order."""

# A record holds up to 255 bytes; binutils and most programmers write 16.
_RECORD_BYTES: Final = 16
_DATA, _END, _UPPER = 0, 1, 4
"""Types of records; the last has bits 16 to 31 of the addresses that follow."""
# The RP2040 takes this size alone, and the specification calls it always correct.
_PAGE_BYTES: Final = 256
_UF2_MAGIC: Final = (0x0A324655, 0x9E5D5157, 0x0AB16F30)
_HAS_FAMILY: Final = 0x2000
_ERASED: Final = b"\xff"
"""What flash holds where nothing was written: it fills gaps."""


def firmware_images(
    chunks: Chunks, images: Sequence[Image], board: Board, span: Callable[..., SourceSpan]
) -> dict[str, bytes]:
    """The files that the profile asks for, by name.

    Args:
        chunks: What is loaded.
        images: Formats; for UF2 the board has a family.
        board: Names its memories, and what lies in front of the first one.
        span: Where the profile says what.

    Raises:
        MemoryPlanError: A raw binary would span several memories (`scattered-image`).
    """
    used = [r for r in board.regions if any(r.origin <= at < r.end for at, _ in chunks)]
    if Image.BIN in images and len(used) > 1:
        raise MemoryPlanError.of(
            "scattered-image",
            "firmware.bin would span several memories",
            where=span("target", "images"),
            found=", ".join(f"{r.name} from {r.origin:#010x}" for r in used),
            expected="one memory: its bytes follow each other without addresses",
            hint="write hex in place of bin, or place everything in one flash",
        )
    boot = [(board.image_start, board.boot)] if board.boot else []
    makers: dict[Image, Callable[[Chunks], bytes]] = {
        Image.HEX: lambda chunks: b"".join(_records(chunks)),
        Image.BIN: _joined,
        Image.UF2: partial(_uf2, family=board.uf2_family or 0),
    }
    whole = sorted([*boot, *chunks])
    return {f"firmware.{image}": makers[image](whole) for image in images}


def _joined(chunks: Chunks) -> bytes:
    data = bytearray()
    for at, piece in chunks:
        data += _ERASED * (at - chunks[0][0] - len(data)) + piece
    return bytes(data)


def _records(chunks: Chunks) -> Iterator[bytes]:
    upper = 0
    for start, data in chunks:
        at = start
        while at < start + len(data):
            if at >> 16 != upper:
                upper = at >> 16
                yield _record(_UPPER, 0, upper.to_bytes(2, "big"))
            low = at & 0xFFFF
            size = min(_RECORD_BYTES, 0x10000 - low)  # addresses of a record do not carry
            yield _record(_DATA, low, data[at - start : at - start + size])
            at += size
    yield _record(_END, 0, b"")


def _record(kind: int, address: int, data: bytes) -> bytes:
    body = struct.pack(">BHB", len(data), address, kind) + data
    return b":" + (body + bytes([-sum(body) & 0xFF])).hex().upper().encode() + b"\r\n"


def _uf2(chunks: Chunks, family: int) -> bytes:
    """A block for each page of the sectors that have bytes, up to the last with some."""
    sectors: dict[int, bytearray] = {}
    for start, data in chunks:
        for at in range(start - start % UF2_SECTOR_BYTES, start + len(data), UF2_SECTOR_BYTES):
            sector = sectors.setdefault(at, bytearray(_ERASED * UF2_SECTOR_BYTES))
            piece = data[max(at - start, 0) : at + UF2_SECTOR_BYTES - start]
            first = max(start - at, 0)
            sector[first : first + len(piece)] = piece
    end = max(at + len(data) for at, data in chunks)
    pages = [
        (at + offset, bytes(sector[offset : offset + _PAGE_BYTES]))
        for at, sector in sorted(sectors.items())
        for offset in range(0, min(UF2_SECTOR_BYTES, end - at), _PAGE_BYTES)
    ]
    head, second, tail = _UF2_MAGIC
    return b"".join(
        struct.pack(
            "<8I476sI",  # zeros follow a page: blocks have room for 476 bytes
            *(head, second, _HAS_FAMILY, at, _PAGE_BYTES, number, len(pages), family),
            *(page, tail),
        )
        for number, (at, page) in enumerate(pages)
    )
