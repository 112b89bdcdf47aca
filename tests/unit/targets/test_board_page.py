"""docs/boards.md has every board, as its file describes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.targets.boards import BOARDS
from orchestrator.targets.cores import CPUS

if TYPE_CHECKING:
    import pytest

    from orchestrator.targets.boards import Board

PAGE = Path(__file__).parents[3] / "docs" / "boards.md"
BEGIN = "<!-- generated from orchestrator/targets/board_files -->\n"
END = "<!-- end -->\n"
KIB = 1024


def _row(board: Board) -> str:
    defaults = {core.name for core in CPUS.values() if core.default_board == board.name}
    cores = ", ".join(f"`{c}`{' *' if c in defaults else ''}" for c in board.cpus)
    regions = "<br>".join(
        f"`{r.name}` {r.kind}, {r.size_bytes // KIB:,} KiB at `{r.origin:#010x}`"
        for r in board.regions
    )
    run = "QEMU" if board.emulator else "no"
    uart = f"{board.uart.baud:,} baud" if board.uart else "no"
    stack = f"{board.stack_bytes // KIB} KiB"
    tried = board.tried_on or "no hardware"
    what = f"`{board.name}`<br>{board.description}"
    cells = (what, cores, regions, stack, run, uart, tried)
    return f"| {' | '.join(cells)} |\n"


def _table() -> str:
    head = ("board", "cores", "memories", "stack", "`run`", "UART", "tried on")
    lines = f"| {' | '.join(head)} |\n|{' --- |' * len(head)}\n"
    rows = "".join(_row(board) for board in BOARDS.values())
    return f"{BEGIN}\n{lines}{rows}\n{END}"


def test_the_page_is_current(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    assert before
    assert after
    expected = f"{before}{_table()}{after}"
    if request.config.getoption("--update-golden", default=False):
        PAGE.write_text(expected, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == expected
