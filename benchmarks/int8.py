"""int8 models on Cortex-M, beside ExecuTorch and TFLite Micro with CMSIS-NN.

Prelinked, both toolchains, exact: sizes from the ELF, instructions from QEMU. Those of
`size` and `speed` are beside the best published results, too, which are cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks import counting
from benchmarks.firmwares import measure_all
from benchmarks.macs import multiply_accumulates
from benchmarks.product import CORPUS, Built, build
from benchmarks.profiled import profiled
from benchmarks.reference import EXECUTORCH_INT8, GOALS, LOAD_GOAL, PUBLISHED, TFLITE_MICRO_INT8
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table
from orchestrator.program.reader import read_program

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.counting import Counts

_CASES = {
    "kws": "kws_dscnn_int8",
    "resnet8": "ic_resnet8_int8",
    "vww": "vww_mobilenetv1_int8",
    "autoencoder": "ad_autoencoder_int8",
}
_CORES = ("cortex-m55", "cortex-m4")
_TOOLCHAINS = ("gnu", "zig")
_OPTIMIZE = ("size", "speed")
_EXTRA = 'load = "prelinked"\n[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
_KIB = 1024
_FLASH_PARTS = 4
_RAM_PARTS = 10
_LOAD = 500
_MILLION = 1_000_000
_PUBLISHED_CORES = ("M4", "M33", "M7", "M85")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    model: str
    built: Built
    flash: int
    ram: int
    arena: int
    macs: int
    counts: Counts | None
    cycles: int | None


def measure(repetitions: int) -> Findings:
    """Sizes and instructions; they are exact, so that one run is enough."""
    del repetitions
    findings = Findings()
    keys = [(m, c, t, o) for c in _CORES for m in _CASES for t in _TOOLCHAINS for o in _OPTIMIZE]
    every = measure_all(keys, _measure, findings)
    measured = [m for m in every if m.built.optimize == "size"]
    for cpu in _CORES:
        rows = [m for m in measured if m.built.cpu == cpu]
        if rows:
            findings.tables += [_sizes(cpu, rows), _instructions(cpu, rows)]
            findings.goals += [goal for m in rows for goal in _goals(m)]
    if counted := [m for m in every if m.counts is not None]:
        findings.tables.append(_published(counted))
        findings.goals += [goal for m in counted for goal in _wanted(m)]
    loaded = [("kws", c, t, "size") for c in _CORES for t in _TOOLCHAINS]
    findings.goals += measure_all(loaded, _load, findings)
    return findings


def _case(model: str, cpu: str) -> str:
    """The case that was exported for the core, or for the one there is."""
    name = f"{_CASES[model]}_{cpu.removeprefix('cortex-')}"
    return name if (CORPUS / name).is_dir() else f"{_CASES[model]}_m55"


def _measure(folder: Path, key: tuple[str, str, str, str], plugin: Path | None) -> _Measured | str:
    """What there is to know of a firmware, or why nothing is."""
    model, cpu, toolchain, optimize = key
    case = _case(model, cpu)
    counts, cycles = None, None
    try:
        built = build(
            folder / "-".join(key),
            case,
            cpu=cpu,
            toolchain=toolchain,
            optimize=optimize,
            extra=_EXTRA,
        )
        if plugin is not None:
            counts = counting.run(built, plugin=plugin)
            scenario = str(CORPUS / case / "case.json")
            where = ("--scenario", scenario, "--out", str(built.folder))
            costs = profiled(built.folder.parent / "product.toml", *where)
            cycles = costs["cycle_estimate"]["total"] // costs["runs"]
    except NotMeasuredError as missing:
        return f"{model}, {cpu}, {toolchain}, {optimize}: {missing}"
    report = built.report
    totals = report["totals"]
    program = read_program((CORPUS / case / "model.pte").read_bytes(), file=case)
    return _Measured(
        model=model,
        built=built,
        flash=totals["flash_bytes_without_models"],
        ram=totals["state_bytes"] + totals["data_bytes"] + report["stack"]["stack_bytes"],
        arena=totals["arena_bytes"],
        macs=sum(multiply_accumulates(program.method("forward")).values()),
        counts=counts,
        cycles=cycles,
    )


def _load(folder: Path, key: tuple[str, str, str, str], plugin: Path | None) -> Goal | str:
    """The goal for loading a program, with what its firmware takes."""
    model, cpu, toolchain, _ = key
    if plugin is None:
        return f"load of {model}, {cpu}: no plugin to count instructions"
    extra = _EXTRA.replace("prelinked", "pte")
    try:
        built = build(
            folder / f"load-{model}-{cpu}-{toolchain}",
            _case(model, cpu),
            cpu=cpu,
            toolchain=toolchain,
            extra=extra,
        )
        counts = counting.run(built, plugin=plugin)
    except NotMeasuredError as missing:
        return f"load of {model}, {cpu}, {toolchain}: {missing}"
    return Goal(
        name=f"instructions to load, {model}, {built.place}, pte",
        found=counts.load,
        limit=LOAD_GOAL,
        at_most=True,
    )


def _sizes(cpu: str, found: list[_Measured]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for m in found:
        theirs, micro = (EXECUTORCH_INT8[m.model, cpu], TFLITE_MICRO_INT8[m.model, cpu])
        rows.append(
            (
                f"{m.model}, {m.built.toolchain}",
                *(m.flash, theirs.flash_bytes, theirs.flash_bytes / m.flash),
                micro.flash_bytes / m.flash,
                *(m.ram, theirs.ram_kib * _KIB, theirs.ram_kib * _KIB / m.ram),
                m.arena,
            )
        )
    return Table(
        title=f"int8 on {cpu}, prelinked: bytes of flash and RAM",
        columns=(
            *("model", "flash", "ExecuTorch", "ratio", "TFLite Micro : ours"),
            *("RAM", "ExecuTorch", "ratio", "arena"),
        ),
        rows=tuple(rows),
        notes=(
            "flash without the model; RAM beside the arena, with the stack",
            "ExecuTorch and TFLite Micro with CMSIS-NN: reference.py",
        ),
    )


def _instructions(cpu: str, found: list[_Measured]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for m in found:
        if m.counts is None:
            continue
        theirs, micro = (EXECUTORCH_INT8[m.model, cpu], TFLITE_MICRO_INT8[m.model, cpu])
        ours = m.counts.inference
        rows.append(
            (
                f"{m.model}, {m.built.toolchain}",
                *(m.counts.load, theirs.load),
                *(ours, theirs.inference, theirs.inference / ours),
                micro.inference / ours,
                *(m.macs, ours / m.macs, theirs.inference / m.macs),
            )
        )
    return Table(
        title=f"int8 on {cpu}, prelinked: instructions",
        columns=(
            *("model", "load", "ExecuTorch"),
            *("inference", "ExecuTorch", "ratio", "TFLite Micro : ours"),
            *("MACs", "per MAC", "ExecuTorch per MAC"),
        ),
        rows=tuple(rows),
        notes=("MACs of our program, padding counted as if it were multiplied",),
    )


def _published(found: list[_Measured]) -> Table:
    """Millions, beside the best of MLPerf Tiny."""
    rows: list[tuple[Cell, ...]] = []
    for model in _CASES:
        for toolchain in _TOOLCHAINS:
            for optimize in _OPTIMIZE:
                ours = {
                    m.built.cpu: m
                    for m in found
                    if (m.model, m.built.toolchain, m.built.optimize)
                    == (model, toolchain, optimize)
                }
                cells: list[Cell] = []
                for cpu in reversed(_CORES):
                    m = ours.get(cpu)
                    counts = m.counts if m else None
                    cells.append(counts.inference / _MILLION if counts else None)
                    cells.append(m.cycles / _MILLION if m and m.cycles else None)
                best = (PUBLISHED[model, core] for core in _PUBLISHED_CORES)
                rows.append(
                    (
                        f"{model}, {toolchain}, {optimize}",
                        *cells,
                        *(published.million_cycles for published in best),
                    )
                )
    return Table(
        title="int8, prelinked, beside the best published: millions per inference",
        columns=(
            *("model", "M4 instructions", "M4 est. cycles"),
            *("M55 instructions", "M55 est. cycles"),
            *(f"{core} cycles" for core in _PUBLISHED_CORES),
        ),
        rows=tuple(rows),
        notes=(
            "estimated cycles: memory without wait states; docs/targets.md",
            "published: MLPerf Tiny, closed division, devices: reference.py; M4: "
            + ", ".join(f"{m} {PUBLISHED[m, 'M4'].by}" for m in _CASES),
        ),
    )


def _wanted(m: _Measured) -> list[Goal]:
    """What the project wants to reach."""
    wanted = GOALS[m.model]
    is_m4, is_fast = m.built.cpu == "cortex-m4", m.built.optimize == "speed"
    instructions = {
        (True, True): wanted.m4_speed,
        (True, False): wanted.m4_size,
        (False, True): wanted.m55_speed,
        (False, False): wanted.m55_size,
    }[is_m4, is_fast]
    where = f"{m.model}, {m.built.place}, {m.built.optimize}"
    limits: list[tuple[str, float | None, float]] = []
    if m.counts is not None:
        found = m.counts.inference / _MILLION
        limits.append(("million instructions", found, instructions))
    if is_m4 and is_fast:
        cycles = m.cycles / _MILLION if m.cycles else None
        limits.append(("million estimated cycles", cycles, wanted.m4_cycles))
    if not is_fast:
        flash = wanted.m4_flash if is_m4 else wanted.m55_flash
        ram = m.ram + m.arena - wanted.arena
        limits += [
            ("flash without model, bytes", m.flash, flash),
            ("RAM beside the arena with pixels, bytes", ram, wanted.ram),
        ]
    return [
        Goal(name=f"{name}, {where}", found=found, limit=most, at_most=True)
        for name, found, most in limits
        if found is not None
    ]


def _goals(m: _Measured) -> list[Goal]:
    theirs = EXECUTORCH_INT8[m.model, m.built.cpu]
    where = f"{m.model}, {m.built.place}"
    limits: list[tuple[str, float, float]] = [
        ("flash, a quarter", m.flash, theirs.flash_bytes / _FLASH_PARTS),
        ("RAM beside the arena, a tenth", m.ram, theirs.ram_kib * _KIB / _RAM_PARTS),
    ]
    if m.counts is not None:
        limits += [
            ("instructions to load", m.counts.load, _LOAD),
            ("instructions per inference", m.counts.inference, theirs.inference),
        ]
    return [
        Goal(name=f"{name}, {where}", found=found, limit=limit, at_most=True)
        for name, found, limit in limits
    ]
