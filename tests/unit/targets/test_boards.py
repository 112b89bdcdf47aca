"""Memories of boards, and those that a profile describes instead."""

from __future__ import annotations

from importlib import resources
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
import tomli

from orchestrator.profile.memory import RegionTable, with_regions
from orchestrator.targets.boards import BOARDS, Board, Region, boards_of
from orchestrator.targets.cores import CPUS
from tests.doc_blocks import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BOARD = BOARDS["mps3-an547"]
_described = RegionTable.model_construct


@pytest.mark.parametrize("board", BOARDS.values(), ids=list(BOARDS))
def test_boards_have_what_the_linker_needs(board: Board) -> None:
    assert {r.kind for r in board.regions} == {"flash", "ram"}
    assert len({r.name for r in board.regions}) == len(board.regions)
    assert not any(a.origin < b.end and b.origin < a.end for a, b in combinations(board.regions, 2))
    assert set(board.cpus) <= set(CPUS)


def test_every_core_has_a_board_that_is_its_own() -> None:
    for cpu in CPUS.values():
        if cpu.default_board:
            assert cpu.default_board in boards_of(cpu.name, BOARDS)
    assert boards_of("cortex-m0plus", BOARDS) == ("microbit", "mps2-an385", "rp2040", "samd21g18")


def test_nothing_described_changes_nothing() -> None:
    assert with_regions(BOARD, ()) == BOARD


def test_without_an_origin_a_memory_of_the_board_is_limited() -> None:
    found = with_regions(BOARD, [_described(name="dtcm", size_bytes=4096)])
    assert [r.name for r in found.regions] == [r.name for r in BOARD.regions]
    assert {r.name: r.size_bytes for r in found.regions} == {
        r.name: 4096 if r.name == "dtcm" else r.size_bytes for r in BOARD.regions
    }
    assert found.emulator == BOARD.emulator
    assert not found.is_own


def _own(flash: int, ram: int, size_bytes: int = 4096) -> Board:
    return with_regions(
        BOARD,
        [
            _described(name="rom", size_bytes=64, origin=flash, kind="flash"),
            _described(name="work", size_bytes=size_bytes, origin=ram),
            _described(name="sram", size_bytes=128),
        ],
    )


def test_with_an_origin_they_are_all_memories() -> None:
    found = _own(0x10000000, 0x30000000)
    assert found.is_own
    assert found.regions == (
        Region(name="rom", origin=0x10000000, size_bytes=64, kind="flash"),
        Region(name="work", origin=0x30000000, size_bytes=4096, kind="ram"),
        Region(name="sram", origin=0x31000000, size_bytes=128, kind="ram"),
    )


@pytest.mark.parametrize(
    ("flash", "ram", "size_bytes", "stays"),
    [
        (0x10000000, 0x30000000, 512 * 1024, True),
        (0x10000000, 0x30000000, 512 * 1024 + 1, False),  # longer than there is
        (0x10000000, 0x20000000, 4096, False),  # where there is nothing
        (0x10000400, 0x30000000, 4096, False),  # the core starts elsewhere
    ],
)
def test_the_emulator_stays_while_it_has_the_memories(
    flash: int, ram: int, size_bytes: int, *, stays: bool
) -> None:
    found = _own(flash, ram, size_bytes)
    assert found.emulator == (BOARD.emulator if stays else ())


def test_each_board_has_wait_states_or_says_why_not() -> None:
    """docs/commands.md counts those that have none."""
    folder = resources.files("orchestrator.targets") / "board_files"
    unknown = [name for name in BOARDS if BOARDS[name].flash_wait_states is None]
    for name in BOARDS:
        text = (folder / f"{name}.toml").read_text(encoding="utf-8")
        reason = text.partition("# Wait states unknown: ")[2].partition("\n")[0]
        assert bool(reason) == (name in unknown), name
    page = " ".join((ROOT / "docs" / "commands.md").read_text().split())
    assert f"{len(unknown)} of the {len(BOARDS)} boards have none" in page


_CLOCKS_PER_BIT: Mapping[str, Callable[[Mapping[int, int]], float]] = {
    "cmsdk": lambda found: found[0x10],
    "imxrt-lpuart": lambda found: 16 * found[0x10],
    "ns16550": lambda found: 16 * found[0x00],
    "pl011": lambda found: 16 * (found[0x24] + found[0x28] / 64),
    "sam-usart": lambda found: 8 * found[0x20],
    "sifive": lambda found: found[0x18] + 1,
    "stm32-lpuart": lambda found: found[0x0C] / 256,
    "stm32-usart": lambda found: found[0x08],
    "stm32-usart-v2": lambda found: found[0x0C],
}
"""By driver, from the registers that it writes, by offset: as manuals define the divisor."""


@pytest.mark.parametrize("board", [b for b in BOARDS.values() if b.uart], ids=lambda b: b.name)
def test_a_uart_has_the_baud_rate_that_it_says(board: Board) -> None:
    """Two ends understand each other up to some 4 %, of which each gets half."""
    file = resources.files("orchestrator.targets") / "board_files" / f"{board.name}.toml"
    data = tomli.loads(file.read_text(encoding="utf-8"))["uart"]
    assert board.uart is not None
    if data["driver"] == "nrf-uart":
        assert board.uart.baud == 115_200
        return
    found = {one.address - data["base"]: one.value for one in board.uart.settings}
    baud = data["clock"] / _CLOCKS_PER_BIT[data["driver"]](found)
    assert baud == pytest.approx(board.uart.baud, rel=0.02)
