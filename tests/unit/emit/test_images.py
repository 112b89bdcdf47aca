"""Images of a firmware, read by independent readers."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.emit.images import firmware_images
from orchestrator.errors import Diagnostic, MemoryPlanError, SourceSpan
from orchestrator.profile.choices import Image
from orchestrator.targets.boards import Board, Region
from tests.images import read_hex, read_uf2, rom_writes

BASE, FAMILY = 0x1001_0000, 0xE48B_FF56
PLACE = SourceSpan(file="p.toml", line=6)
BOARD = Board(
    name="own",
    cpu="cortex-m0plus",
    regions=(
        Region(name="flash", origin=BASE, size_bytes=1 << 20, kind="flash"),
        Region(name="more", origin=BASE + (1 << 24), size_bytes=1 << 20, kind="flash"),
        Region(name="sram", origin=0x2000_0000, size_bytes=1 << 18, kind="ram"),
    ),
    stack_bytes=1024,
    emulator=(),
    uf2_family=FAMILY,
)


def _made(chunks: list[tuple[int, bytes]], *images: Image, board: Board = BOARD) -> list[bytes]:
    found = firmware_images(chunks, images, board, lambda *_: PLACE)
    assert list(found) == [f"firmware.{image}" for image in images]
    return list(found.values())


@st.composite
def _chunks(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    """Pieces with gaps between them, in any order; the first at the flash's begin."""
    at, found = BASE, []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.sampled_from([1, 15, 16, 17, 255, 256, 257, 4097, 5000]))
        found.append((at, draw(st.randoms(use_true_random=False)).randbytes(size)))
        at += size + draw(st.sampled_from([0, 1, 100, 256, 4096, 10000]))
    return draw(st.permutations(found))


@given(_chunks(), st.randoms(use_true_random=False))
def test_each_format_has_every_byte_at_its_address(
    chunks: list[tuple[int, bytes]], random: Random
) -> None:
    loaded = {at: byte for start, data in chunks for at, byte in enumerate(data, start)}
    as_hex, as_bin, as_uf2 = _made(chunks, Image.HEX, Image.BIN, Image.UF2)
    assert read_hex(as_hex) == loaded
    last = max(loaded)
    assert as_bin == bytes(loaded.get(at, 0xFF) for at in range(BASE, last + 1))
    blocks = read_uf2(as_uf2)
    assert [b.number for b in blocks] == list(range(len(blocks)))
    assert {(b.count, b.family) for b in blocks} == {(len(blocks), FAMILY)}
    addresses = [b.address for b in blocks]
    assert addresses == sorted(set(addresses))
    # No block is there without need: its sector has bytes, and more follow.
    assert {a // 4096 for a in addresses} == {at // 4096 for at in loaded}
    assert addresses[-1] == last - last % 256
    random.shuffle(blocks)  # as operating systems may write them
    flash = rom_writes(blocks)
    assert all(flash[a][n] == loaded.get(a + n, 0xFF) for a in addresses for n in range(256))


def test_a_known_record() -> None:
    """Written out by hand."""
    (text,) = _made([(BASE + 0x10, b"\xde\xad")], Image.HEX)
    assert text == b":020000041001E9\r\n:02001000DEAD63\r\n:00000001FF\r\n"


def test_addresses_of_a_record_do_not_carry() -> None:
    chunk = (BASE + 0xFFFA, bytes(range(40)))
    (text,) = _made([chunk], Image.HEX)
    assert read_hex(text) == dict(enumerate(chunk[1], chunk[0]))
    assert b"\r\n:06FFFA00" in text


def test_a_boot_loader_is_in_front() -> None:
    boot = bytes(range(256))
    board = replace(BOARD, boot=boot)
    as_bin, as_hex, as_uf2 = _made(
        [(BASE, b"firmware")], Image.BIN, Image.HEX, Image.UF2, board=board
    )
    assert as_bin == boot + b"firmware"
    assert min(read_hex(as_hex)) == BASE - 256
    assert [b.data[:8] for b in read_uf2(as_uf2)[-2:]] == [boot[:8], b"firmware"]


def test_bytes_alone_do_not_span_memories() -> None:
    chunks = [(BASE, b"code"), (BASE + (1 << 24), b"weights")]
    with pytest.raises(MemoryPlanError) as caught:
        _made(chunks, Image.BIN)
    (problem,) = caught.value.diagnostics
    assert problem == Diagnostic.of(
        "scattered-image",
        "firmware.bin would span several memories",
        where=PLACE,
        found="flash from 0x10010000, more from 0x11010000",
        expected="one memory: its bytes follow each other without addresses",
        hint="write hex in place of bin, or place everything in one flash",
    )
    as_hex, as_uf2 = _made(chunks, Image.HEX, Image.UF2)
    assert len(read_hex(as_hex)) == len(b"codeweights")
    assert read_uf2(as_uf2)[-1].data.startswith(b"weights")
