"""The fp32 autoencoder with its constants computed by the build, on Cortex-M.

Its program transposes the weights at run time. Prelinked, nothing of that is left;
ExecuTorch's figures are of a program whose constants were folded by its exporter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks import counting
from benchmarks.firmwares import measure_all
from benchmarks.macs import multiply_accumulates
from benchmarks.product import CORPUS, build
from benchmarks.reference import EXECUTORCH_FOLDED
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table
from orchestrator.program.reader import read_program

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.counting import Counts

_CASE = "ad_autoencoder_fp32"
_CORES = ("cortex-m55", "cortex-m4")
_TOOLCHAINS = ("gnu", "zig")
_FOLDS = ("fold_permutes", "fold_constants", "evaluate_constants")
_KIB = 1024
_FLASH_PARTS = 4
_RAM_PARTS = 10
_LOAD = 500
_Key = tuple[str, str, str, bool]
"""Core, toolchain, optimize, whether constants are computed by the build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    key: _Key
    report: dict[str, Any]
    counts: Counts | None

    @property
    def name(self) -> str:
        cpu, toolchain, optimize, folded = self.key
        return f"{cpu} {toolchain}, {optimize}" + ("" if folded else ", not folded")


def measure(repetitions: int) -> Findings:
    """Sizes and instructions; they are exact, so that one run is enough."""
    del repetitions
    findings = Findings()
    keys: list[_Key] = [
        (cpu, toolchain, optimize, folded)
        for cpu in _CORES
        for toolchain in _TOOLCHAINS
        for optimize, folded in (("size", False), ("size", True), ("speed", True))
    ]
    measured = measure_all(keys, _measure, findings)
    if measured:
        findings.tables.append(_table(measured))
        findings.goals += [goal for m in measured for goal in _goals(m)]
    return findings


def _measure(folder: Path, key: _Key, plugin: Path | None) -> _Measured | str:
    """What there is to know of a firmware, or why nothing is."""
    cpu, toolchain, optimize, folded = key
    extra = 'load = "prelinked"\n'
    if not folded:
        extra += "[passes]\nskip = [{}]\n".format(", ".join(f'"{n}"' for n in _FOLDS))
    place = folder / "-".join(map(str, key))
    try:
        built = build(place, _CASE, cpu=cpu, toolchain=toolchain, optimize=optimize, extra=extra)
        counts = counting.run(built, plugin=plugin) if plugin is not None else None
    except NotMeasuredError as missing:
        return f"{_CASE}, {cpu}, {toolchain}: {missing}"
    return _Measured(key=key, report=built.report, counts=counts)


def _ram(m: _Measured) -> int:
    """Bytes beside the arena, with the stack."""
    totals = m.report["totals"]
    stack: int = m.report["stack"]["stack_bytes"]
    return int(totals["state_bytes"] + totals["data_bytes"] + stack)


def _table(found: list[_Measured]) -> Table:
    program = read_program((CORPUS / _CASE / "model.pte").read_bytes(), file=_CASE)
    macs = sum(multiply_accumulates(program.method("forward")).values())
    rows: list[tuple[Cell, ...]] = []
    for m in found:
        theirs = EXECUTORCH_FOLDED[m.key[0]]
        flash = m.report["totals"]["flash_bytes_without_models"]
        counts, ram = m.counts, _ram(m)
        rows.append(
            (
                m.name,
                *(flash, theirs.flash_bytes / flash),
                *(ram, theirs.ram_kib * _KIB / ram),
                m.report["totals"]["arena_bytes"],
                counts.load if counts else None,
                counts.inference if counts else None,
                theirs.inference / counts.inference if counts else None,
                counts.inference / macs if counts else None,
            )
        )
    return Table(
        title="fp32 autoencoder, prelinked: constants computed by the build",
        columns=(
            *("firmware", "flash", "ratio", "RAM", "ratio", "arena", "load"),
            *("inference", "ratio", "per MAC"),
        ),
        rows=tuple(rows),
        notes=(
            "flash without the model; RAM beside the arena, with the stack",
            "ratios: ExecuTorch, constants folded by its exporter, to ours; reference.py",
        ),
    )


def _goals(m: _Measured) -> list[Goal]:
    """For firmware whose constants are computed."""
    if not m.key[3]:
        return []
    theirs = EXECUTORCH_FOLDED[m.key[0]]
    flash = m.report["totals"]["flash_bytes_without_models"]
    limits: list[tuple[str, float, float]] = [
        ("flash, a quarter", flash, theirs.flash_bytes / _FLASH_PARTS),
        ("RAM beside the arena, a tenth", _ram(m), theirs.ram_kib * _KIB / _RAM_PARTS),
    ]
    if m.counts is not None:
        limits += [
            ("instructions to load", m.counts.load, _LOAD),
            ("instructions per inference", m.counts.inference, theirs.inference),
        ]
    return [
        Goal(name=f"{name}, fp32 autoencoder, {m.name}", found=found, limit=limit, at_most=True)
        for name, found, limit in limits
    ]
