"""Whole builds of one firmware: from nothing, and after a change in one kernel."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from shutil import which

from benchmarks.clock import ROOT, Command, cost_of, orchestrator
from benchmarks.product import write_profile
from benchmarks.table import Cell, Findings, NotMeasuredError, Table
from orchestrator.shell.distribution import PACKAGE_FOLDER
from orchestrator.shell.sources import native_root

CASE = "kws_dscnn_fp32"
_KERNEL = "kernels/portable/op_convolution.cpp"
_EXECUTORCH_CPU_S = 21.0
"""Source: ExecuTorch 1.5.0 main, the same model, arm-none-eabi-gcc 12.2 -Os, its tools
and the 54 objects that are needed, by ninja -j2; not measured here."""


def measure(repetitions: int) -> Findings:
    """Processor and clock seconds of builds, with each toolchain."""
    findings = Findings()
    rows: list[tuple[Cell, ...]] = []
    with tempfile.TemporaryDirectory() as name:
        for toolchain in ("zig", "gnu"):
            try:
                rows += _rows(Path(name) / toolchain, toolchain, repetitions)
            except NotMeasuredError as missing:
                findings.missing.append(f"builds with {toolchain}: {missing}")
    if rows:
        findings.tables.append(
            Table(
                title=f"Builds of {CASE} for cortex-m55",
                columns=("build", "CPU s", "wall s", "ExecuTorch CPU s", "ratio"),
                rows=tuple(rows),
                notes=(
                    "CPU: of all processes; wall depends on what else runs",
                    "from nothing: empty build folder; zig's support functions are in"
                    " the cache, where the first build of a core puts them",
                    "ExecuTorch: measured before on such a machine, not in this run",
                ),
            )
        )
    return findings


def _rows(folder: Path, toolchain: str, repetitions: int) -> list[tuple[Cell, ...]]:
    profile = write_profile(folder, CASE, cpu="cortex-m55", toolchain=toolchain)
    package_root = _copy_package(folder / "package")
    out = folder / "out"
    build = orchestrator("build", str(profile), "--out", str(out))
    kernel = package_root / native_root().relative_to(PACKAGE_FOLDER.parent) / _KERNEL
    shell = str(which("sh"))
    empty = [str(which("rm")), "-rf", str(out)]
    change = [shell, "-c", 'echo "//" >> "$0"', str(kernel)]
    steps = {
        "from nothing": Command(words=build, before=empty),
        "from nothing, -j1": Command(words=[*build, "-j1"], before=empty),
        "one kernel changed": Command(words=build, before=change),
    }
    costs = cost_of(
        list(steps.values()),
        folder=folder,
        repetitions=max(3, repetitions // 2),
        package_root=package_root,
    )
    rows: list[tuple[Cell, ...]] = []
    for (name, step), cost in zip(steps.items(), costs, strict=True):
        theirs = _EXECUTORCH_CPU_S if step.before is empty else None
        ratio = None if theirs is None else theirs / cost.cpu_s
        row = (f"{toolchain}, {name}", cost.cpu_s, cost.wall_s, theirs, ratio)
        rows.append(row)
    return rows


def _copy_package(root: Path) -> Path:
    """A copy of package and C++ sources that may be changed."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE_FOLDER, root / "orchestrator", ignore=ignore)
    if native_root() == ROOT:
        for name in ("runtime", "kernels"):
            shutil.copytree(ROOT / name, root / name, ignore=ignore)
    return root
