"""Flash of firmware with every operator, with those of the model, with its dtypes."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.product import build
from benchmarks.table import Cell, Findings, NotMeasuredError, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = ("add_mul", "kws_dscnn_fp32", "ic_resnet8_fp32")
_CPU, _TOOLCHAIN = "cortex-m55", "zig"
_SELECTED = "operators and dtypes"
_EXTRAS = {
    "everything": "[operators]\nall = true\n",
    "operators": '[dtypes]\nselect = "all"\n',
    _SELECTED: "",
}
"""What is selected, and the tables of the profile that say so."""


def measure(repetitions: int) -> Findings:
    """Sizes; they are exact, so that one build of each is enough."""
    del repetitions
    findings = Findings()
    keys = [(case, selected) for case in CASES for selected in _EXTRAS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            with ThreadPoolExecutor(max_workers=2) as pool:
                found = list(pool.map(lambda key: _report(folder, *key), keys))
        except NotMeasuredError as missing:
            findings.missing.append(f"flash by selection: {missing}")
            return findings
    reports = dict(zip(keys, found, strict=True))
    findings.tables.append(
        Table(
            title=f"Flash by what is selected (bytes, {_CPU} {_TOOLCHAIN})",
            columns=(*("firmware", *_EXTRAS), *("everything : selected", "operators : selected")),
            rows=tuple(_rows(reports)),
            notes=(
                "everything: operators.all, with every dtype; operators: those of the"
                ' model, dtypes.select = "all"; operators and dtypes: the default',
                "firmware: without the model's program; kernels: their code and what"
                " only they need",
            ),
        )
    )
    return findings


def _report(folder: Path, case: str, selected: str) -> dict[str, Any]:
    built = build(
        folder / f"{case}-{selected.replace(' ', '-')}",
        case,
        cpu=_CPU,
        toolchain=_TOOLCHAIN,
        extra=_EXTRAS[selected],
    )
    return built.report


def _rows(reports: dict[tuple[str, str], Any]) -> Iterator[tuple[Cell, ...]]:
    for case in CASES:
        flash = [int(reports[case, s]["totals"]["flash_bytes_without_models"]) for s in _EXTRAS]
        kernels = [
            sum(
                int(c["flash_bytes"])
                for c in reports[case, s]["contributors"]
                if c["kind"] == "kernel"
            )
            for s in _EXTRAS
        ]
        for name, sizes in ((case, flash), (f"{case}, kernels", kernels)):
            *more, selected = sizes
            yield (name, *sizes, *(size / selected for size in more))
