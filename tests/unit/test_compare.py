"""docs/compare.md: its figures are those of the benchmarks, its claims have sources."""

from __future__ import annotations

import re

import pytest

from benchmarks.reference import EXECUTORCH_INT8, TFLITE_MICRO_INT8
from orchestrator.targets.boards import BOARDS
from tests.doc_blocks import ROOT

PAGE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
NAMES = {
    "DS-CNN": "kws",
    "ResNet-8": "resnet8",
    "MobileNetV1 0.25": "vww",
    "autoencoder": "autoencoder",
}


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("| \n").split("|")]


ROWS = {
    cells[0]: [cell.split(" / ") for cell in cells[1:]]
    for line in PAGE.partition("## Measured")[2].splitlines()
    if re.match(r"\| .*, M\d+ \|", line)
    for cells in [_cells(line)]
}


def _bytes(text: str) -> int:
    return int(text.replace(",", ""))


def test_every_measured_model_is_shown() -> None:
    assert len(ROWS) == len(EXECUTORCH_INT8) == len(TFLITE_MICRO_INT8)


@pytest.mark.parametrize("row", ROWS)
def test_figures_are_those_of_the_benchmarks(row: str) -> None:
    flash, instructions, ram = ROWS[row]
    name, core = row.split(", ")
    key = (NAMES[name], core.replace("M", "cortex-m"))
    for column, table in ((1, EXECUTORCH_INT8), (2, TFLITE_MICRO_INT8)):
        known = table[key]
        assert _bytes(flash[column]) == known.flash_bytes
        shown = float(instructions[column].removesuffix(" M"))
        assert round(shown * 1e6) == known.inference
    assert round(_bytes(ram[1]) / 1000, 1) == EXECUTORCH_INT8[key].ram_kib
    ours = re.search(rf"^\| {re.escape(row)} \|.*$", BENCHMARKS, re.MULTILINE)
    assert ours
    measured = [cell.split(" / ")[0] for cell in _cells(ours[0])]
    assert f"{_bytes(measured[1]) / 1e6:.3f} M" == instructions[0]
    assert (measured[3], measured[5]) == (flash[0], ram[0])


def test_the_size_of_the_runtime_is_that_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = readme.partition("| model (float32) |")[2].partition("\n\n")[0]
    prelinked = re.findall(
        r"^\|[^|]*\|[^|]*\|[^|]*\| ([\d.]+) KiB \|", rows, re.MULTILINE
    )
    smallest, largest = min(prelinked, key=float), max(prelinked, key=float)
    assert f"{smallest} to {largest} KiB prelinked" in PAGE


def test_boards_are_counted() -> None:
    emulated = sum(bool(board.emulator) for board in BOARDS.values())
    assert (len(BOARDS), emulated) == (9, 6)
    assert "[Nine memory maps](boards.md), six of them emulated" in PAGE


def test_the_readme_has_the_flash_of_one_of_them() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = re.search(r"^\| DS-CNN int8, M55, gcc: .*$", readme, re.MULTILINE)
    assert row
    shown = [cell.strip("[").partition("]")[0] for cell in _cells(row[0])[1:4]]
    flash = [_bytes(cell) / 1024 for cell in ROWS["DS-CNN, M55"][0]]
    assert shown == [f"{kib:.1f} KiB" for kib in flash]


def test_claims_about_other_tools_have_sources() -> None:
    features = PAGE.partition("## ExecuTorch")[2].partition("## Measured")[0]
    rows = [_cells(line) for line in features.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0] not in ("feature", "---")]
    assert len(rows) > 50
    assert [row for row in rows if "https://" not in row[1]] == []
