"""Flash, RAM, instructions and outputs of firmware for Cortex-M."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import counting
from benchmarks.macs import multiply_accumulates
from benchmarks.product import CASES, CORPUS, Built, build
from benchmarks.reference import EXECUTORCH
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table
from orchestrator.program.reader import read_program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.counting import Counts

CORES = ("cortex-m55", "cortex-m4")
TOOLCHAINS = ("gnu", "zig")
_KIB = 1024
_KERNELS = {
    "aten::convolution.out": "orch::portable::convolution_out",
    "aten::addmm.out": "orch::portable::addmm_out",
    "aten::mm.out": "orch::portable::mm_out",
}
_DS_CNN = "kws_dscnn_fp32"
_FLASH_GOALS = {
    ("add_mul", "pte"): 10 * _KIB,
    (_DS_CNN, "pte"): 16 * _KIB,
    (_DS_CNN, "prelinked"): 7_000,
}
"""Less than these bytes without the model on M55, by case and load."""
_PER_MAC_GOALS = {"cortex-m4": 8, "cortex-m55": 3}
"""Instructions per multiply-accumulate: a prelinked inference, optimized for size."""
_DS_CNN_PER_MAC = {"cortex-m4": 4.5, "cortex-m55": 1.3}
_NETWORKS = CASES[4:]
"""Of MLPerf Tiny; they are also measured prelinked."""
_SMALL_MACS = 1000
"""Below that, a multiply-accumulate is not what an inference consists of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    built: Built
    load: str
    report: dict[str, Any]
    counts: Counts | None

    @property
    def name(self) -> str:
        """Case, target and toolchain; how it is loaded, if that is not usual."""
        name = f"{self.built.case}, {self.built.place}"
        return name if self.load == "pte" else f"{name}, {self.load}"


def measure(repetitions: int) -> Findings:
    """Sizes and instructions; they are exact, so that one run is enough."""
    del repetitions
    findings = Findings()
    keys = tuple(_keys())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plugin: Path | None = None
        try:
            plugin = counting.plugin_file()
        except NotMeasuredError as missing:
            findings.missing.append(f"instructions: {missing}")
        with ThreadPoolExecutor(max_workers=2) as pool:
            results = list(pool.map(lambda key: _measure(folder, key, plugin), keys))
    found = [measured for measured, _ in results if measured is not None]
    _sizes(findings, [m for m in found if m.built.optimize == "size"])
    _instructions(findings, found)
    _outputs(findings, found)
    reasons: dict[str, list[str]] = {}
    for key, (_, reason) in zip(keys, results, strict=True):
        if reason:
            reasons.setdefault(reason, []).append(" ".join(key))
    findings.missing += [
        f"{len(names)} of {len(keys)} firmwares, {reason} (such as {names[0]})"
        for reason, names in reasons.items()
    ]
    return findings


_Key = tuple[str, str, str, str, str]
"""Case, core, toolchain, optimize, load."""


def _keys() -> Iterator[_Key]:
    for case in CASES:
        for toolchain in TOOLCHAINS:
            for cpu in CORES:
                yield case, cpu, toolchain, "size", "pte"
                yield case, cpu, toolchain, "speed", "pte"
                if case in _NETWORKS:
                    yield case, cpu, toolchain, "size", "prelinked"
            yield case, "host", toolchain, "size", "pte"


def _measure(folder: Path, key: _Key, plugin: Path | None) -> tuple[_Measured | None, str]:
    """What there is to know of a firmware, and why something is not known."""
    case, cpu, toolchain, optimize, load = key
    # Prelinked calls are prepared: they have functions of their own.
    operators = _macs(case) if load == "pte" else ()
    names = [_KERNELS[operator] for operator in operators if operator in _KERNELS]
    try:
        built = build(
            folder / "-".join(key),
            case,
            cpu=cpu,
            toolchain=toolchain,
            optimize=optimize,
            extra=f'load = "{load}"\n',
        )
    except NotMeasuredError as missing:
        return None, f"build: {missing}"
    try:
        counts = counting.run(built, plugin=plugin, kernels=names)
    except NotMeasuredError as missing:
        found = _Measured(built=built, load=load, report=built.report, counts=None)
        return found, f"run: {missing}"
    return _Measured(built=built, load=load, report=built.report, counts=counts), ""


def _macs(case: str) -> dict[str, int]:
    model = CORPUS / case / "model.pte"
    program = read_program(model.read_bytes(), file=str(model))
    return multiply_accumulates(program.method("forward"))


def _sizes(findings: Findings, found: list[_Measured]) -> None:
    rows: list[tuple[Cell, ...]] = []
    for measured in found:
        built, totals = measured.built, measured.report["totals"]
        if built.cpu not in CORES:
            continue
        flash = totals["flash_bytes_without_models"]
        stack = measured.report["stack"]["stack_bytes"]
        ram = totals["state_bytes"] + totals["data_bytes"] + stack
        theirs = EXECUTORCH.get((built.case, built.cpu))
        rows.append(
            (
                measured.name,
                flash,
                theirs.flash_bytes if theirs else None,
                theirs.flash_bytes / flash if theirs else None,
                ram,
                theirs.ram_bytes if theirs else None,
                theirs.ram_bytes / ram if theirs else None,
                totals["arena_bytes"],
            )
        )
        limit = _FLASH_GOALS.get((built.case, measured.load))
        if limit is not None and built.cpu == "cortex-m55":
            findings.goals.append(
                Goal(
                    name=f"flash without the model, {measured.name}",
                    found=flash,
                    limit=limit - 1,
                    at_most=True,
                )
            )
    if rows:
        findings.tables.append(
            Table(
                title="Flash without the model, and RAM beside the arenas"
                ' (bytes, optimize = "size")',
                columns=(
                    *("firmware", "flash", "ExecuTorch", "ratio"),
                    *("RAM", "ExecuTorch", "ratio", "arenas"),
                ),
                rows=tuple(rows),
                notes=(
                    "flash: everything, with start-up code and the runner of `orchestrator run`",
                    "RAM: method state, variables and the worst stack, computed from"
                    " the compiler's frames; ExecuTorch's stack is measured",
                    "ExecuTorch: its smallest unmodified build, see reference.py",
                ),
            )
        )


def _instructions(findings: Findings, found: list[_Measured]) -> None:
    rows: list[tuple[Cell, ...]] = []
    macs = {case: _macs(case) for case in CASES}
    for measured in found:
        built, counts = measured.built, measured.counts
        if built.cpu not in CORES or counts is None or not counts.inference:
            continue
        total = sum(macs[built.case].values())
        theirs = EXECUTORCH.get((built.case, built.cpu))
        other = per_mac_other = other_load = None
        if theirs is not None and theirs.macs == total:
            other_load = theirs.load
            is_fast = built.optimize == "speed"
            other = theirs.fast_inference if is_fast else theirs.inference
            per_mac_other = other / total
        large = total >= _SMALL_MACS
        conv = macs[built.case].get("aten::convolution.out", 0)
        per_conv = None
        if conv and measured.load == "pte":
            kernel = _KERNELS["aten::convolution.out"]
            per_conv = counts.by_function[kernel] / conv
        rows.append(
            (
                f"{measured.name}, {built.optimize}",
                counts.load,
                other_load,
                other_load / counts.load if other_load and counts.load else None,
                counts.inference,
                other,
                other / counts.inference if other else None,
                counts.inference / total if large else None,
                per_mac_other if large else None,
                per_conv,
            )
        )
        if measured.load == "prelinked":
            is_ds_cnn = built.case == _DS_CNN
            limits = _DS_CNN_PER_MAC if is_ds_cnn else _PER_MAC_GOALS
            findings.goals.append(
                Goal(
                    name=f"instructions per MAC, {measured.name}",
                    found=counts.inference / total,
                    limit=limits[built.cpu],
                    at_most=True,
                )
            )
    if rows:
        findings.tables.append(
            Table(
                title="Instructions (QEMU)",
                columns=(
                    *("firmware", "load", "ExecuTorch", "ratio"),
                    *("inference", "ExecuTorch", "ratio"),
                    *("per MAC", "ExecuTorch", "per MAC, conv"),
                ),
                rows=tuple(rows),
                notes=(
                    "MACs: " + ", ".join(f"{c} {sum(m.values()):,}" for c, m in macs.items()),
                    "per MAC: of the whole inference; conv: of the convolutions alone,"
                    " where they are not prepared",
                    "prelinked: what is constant was computed by the build, as the"
                    " autoencoder's transposed weights",
                    "load: the first call of `prepare`, later ones find the method"
                    " loaded; ExecuTorch: constructors, program and method",
                    'ExecuTorch: -Os, beside "speed" kernels at -O2; see reference.py',
                    "ic_resnet8_fp32: ours also runs batch normalisations, which"
                    " ExecuTorch's model has folded away",
                ),
            )
        )


def _outputs(findings: Findings, found: list[_Measured]) -> None:
    digests: dict[str, dict[str, list[str]]] = {case: {} for case in CASES}
    for m in found:
        if m.counts is not None:
            place = f"{m.built.place} {m.built.optimize}"
            digests[m.built.case].setdefault(m.counts.digest, []).append(place)
    rows: list[tuple[Cell, ...]] = []
    for case, places in digests.items():
        if not places:
            continue
        runs = sum(map(len, places.values()))
        most = max(places.values(), key=len)
        others = [p for group in places.values() if group is not most for p in group]
        answer = f"other bits: {', '.join(others)}" if others else "the same bits"
        if runs == 1:
            answer = "nothing to compare with"
        rows.append((case, runs, len(places), answer))
    if rows:
        findings.tables.append(
            Table(
                title="Outputs of all targets, toolchains and optimizations",
                columns=("case", "runs", "digests", "outputs"),
                rows=tuple(rows),
            )
        )
