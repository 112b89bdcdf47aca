"""Firmware for boards whose UART no emulator has: it is built, with the registers of the board."""

from __future__ import annotations

import struct
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from orchestrator.targets.boards import BOARDS
from tests.product import make_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.targets.uarts import Setting

pytestmark = pytest.mark.toolchain

ONLY_BUILT = [b.name for b in BOARDS.values() if b.uart and not b.emulator]


def _table(settings: tuple[Setting, ...]) -> bytes:
    """Bytes of an array of `orch::Setting`, where pointers have 32 bits."""
    rows = ((s.address, s.mask, s.value, s.waits) for s in settings)
    return struct.pack("<" + "IIII" * len(settings), *chain.from_iterable(rows))


@pytest.mark.parametrize("name", ONLY_BUILT)
def test_firmware_has_the_registers_of_the_board(name: str, tmp_path: Path) -> None:
    board = BOARDS[name]
    # Each compiler has half of the boards.
    toolchain = ("gnu", "zig")[ONLY_BUILT.index(name) % 2]
    need_toolchain(board.cpu, toolchain)
    product = make_product(tmp_path, "add_mul", cpu=board.cpu, toolchain=toolchain)
    text = product.profile.read_text()
    product.profile.write_text(
        text.replace("[target]\n", f'[target]\nboard = "{name}"\nvia = "uart"\n')
    )
    assert product.run("build") == 0
    firmware = (product.out / "firmware.elf").read_bytes()
    assert board.uart is not None
    for settings in (board.uart.settings, board.settings):
        assert _table(settings) in firmware
