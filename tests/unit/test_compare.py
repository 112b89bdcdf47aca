"""docs/compare.md: its figures are those of the benchmarks, its claims have sources."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from benchmarks.reference import EXECUTORCH_INT8, TFLITE_MICRO_INT8
from orchestrator.targets.boards import BOARDS
from tests.doc_blocks import ROOT

if TYPE_CHECKING:
    import pytest

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


def _written(name: str, core: str) -> str:
    """The row of a model: ours is the first column of the benchmarks."""
    ours = re.search(rf"^\| {re.escape(f'{name}, {core}')} \|.*$", BENCHMARKS, re.MULTILINE)
    assert ours
    _, instructions, _, flash, _, ram = (cell.split(" / ")[0] for cell in _cells(ours[0]))
    key = (NAMES[name], core.replace("M", "cortex-m"))
    theirs, tflite = EXECUTORCH_INT8[key], TFLITE_MICRO_INT8[key]
    # Published in thousands of bytes, with one decimal.
    shown = list(ROWS[f"{name}, {core}"][2][1:])
    assert round(_bytes(shown[0]) / 1000, 1) == theirs.ram_kib
    counts = (_bytes(instructions), theirs.inference, tflite.inference)
    return "| {}, {} | {} | {} | {} |".format(
        name,
        core,
        f"{flash} / {theirs.flash_bytes:,} / {tflite.flash_bytes:,}",
        " / ".join(f"{count / 1e6:.3f} M" for count in counts),
        " / ".join([ram, *shown]),
    )


def test_every_measured_model_is_shown() -> None:
    assert len(ROWS) == len(EXECUTORCH_INT8) == len(TFLITE_MICRO_INT8)


def test_figures_are_those_of_the_benchmarks(pytestconfig: pytest.Config) -> None:
    rows = {row: _written(*row.split(", ")) for row in ROWS}
    expected = re.sub(r"^\| (.*, M\d+) \|.*$", lambda row: rows[row[1]], PAGE, flags=re.MULTILINE)
    if pytestconfig.getoption("--update-golden"):
        (ROOT / "docs" / "compare.md").write_text(expected, encoding="utf-8")
    assert expected == PAGE


def test_the_size_of_the_runtime_is_that_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = readme.partition("| model (float32) |")[2].partition("\n\n")[0]
    prelinked = re.findall(r"^\|[^|]*\|[^|]*\|[^|]*\| ([\d.]+) KiB \|", rows, re.MULTILINE)
    smallest, largest = min(prelinked, key=float), max(prelinked, key=float)
    assert f"{smallest} to {largest} KiB prelinked" in PAGE


def test_boards_are_counted() -> None:
    emulated = sum(bool(board.emulator) for board in BOARDS.values())
    assert (len(BOARDS), emulated) == (47, 14)
    assert "[47 memory maps](boards.md), 14 of them emulated" in PAGE


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
