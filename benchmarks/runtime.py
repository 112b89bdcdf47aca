"""The runtime of each program of the corpus: its flash by part, RAM, and instructions.

Every program that needs nothing but portable and quantized kernels, on both cores,
loaded and prelinked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks import counting
from benchmarks.firmwares import measure_all
from benchmarks.product import CORPUS, Built, build
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table
from orchestrator.program.reader import read_program

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.counting import Counts

_CORES = ("cortex-m55", "cortex-m4")
_LOADS = ("pte", "prelinked")
_LIBRARIES = {"portable", "quantized"}
_LOADER = {"load_delegates", "load_method", "load_values", "find_kernel", "program"}
"""Sources of the runtime that only loading needs; all others but `math` run methods."""
_GOAL_CASE = "kws_dscnn_fp32"
_LOADER_BYTES = 8 * 1024
_EXECUTOR_BYTES = 3 * 1024
_BYTES_PER_VALUE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """One firmware.

    Args:
        case: What it runs.
        cpu: Its core.
        load: `pte` or `prelinked`.
        loader: Flash of the loader.
        executor: Flash of what runs methods.
        tables: Flash of the kernel table, or of a prelinked method's tables.
        registry_ram: RAM of the kernel table.
        ram: Method state and what the API keeps.
        values: Of all methods of the program.
        counts: Instructions; None if they were not counted.
    """

    case: str
    cpu: str
    load: str
    loader: int
    executor: int
    tables: int
    registry_ram: int
    ram: int
    values: int
    counts: Counts | None


def measure(repetitions: int) -> Findings:
    """Sizes and instructions; they are exact, so that one run is enough."""
    del repetitions
    findings = Findings()
    keys = [(case, cpu, load) for case in _cases() for cpu in _CORES for load in _LOADS]
    measured = measure_all(keys, _measure, findings)
    for cpu in _CORES:
        rows = [m for m in measured if m.cpu == cpu]
        if rows:
            findings.tables.append(_table(cpu, rows))
            findings.goals += _goals(cpu, rows)
    return findings


def _cases() -> list[str]:
    """Programs for kernels that there are, without delegates and files beside them."""
    found = []
    for path in sorted(CORPUS.glob("*/case.json")):
        facts: dict[str, Any] = json.loads(path.read_text())
        methods = facts["program"]["methods"].values()
        if (
            set(facts["kernel_libs"]) <= _LIBRARIES
            and not any(method["delegates"] for method in methods)
            and not facts.get("data_file")
        ):
            found.append(path.parent.name)
    return found


def _measure(folder: Path, key: tuple[str, str, str], plugin: Path | None) -> _Measured | str:
    """What there is to know of a firmware, or why nothing is."""
    case, cpu, load = key
    extra = f'load = "{load}"\n[kernels]\nlibraries = ["quantized", "portable"]\n'
    place = folder / f"{case}-{cpu}-{load}"
    try:
        built = build(place, case, cpu=cpu, toolchain="zig", extra=extra)
    except NotMeasuredError as missing:
        return f"{case}, {cpu}, {load}: build: {missing}"
    counts = None
    if plugin is not None:
        try:
            counts = counting.run(built, plugin=plugin)
        except NotMeasuredError as missing:
            return f"{case}, {cpu}, {load}: run: {missing}"
    program = read_program((CORPUS / case / "model.pte").read_bytes(), file=case)
    values = sum(len(method.values) for method in program.methods)
    return _sizes(built, load, values, counts)


def _sizes(built: Built, load: str, values: int, counts: Counts | None) -> _Measured:
    flash: dict[str, int] = dict.fromkeys(("loader", "executor", "tables"), 0)
    ram = registry_ram = 0
    for part in built.report["parts"]:
        kind, contributor = part["kind"], part["contributor"]
        if kind == "runtime" and not contributor.startswith("math"):
            name = "loader" if contributor in _LOADER else "executor"
            flash[name] += part["flash_bytes"]
        if kind == "kernel_table":
            flash["tables"] += part["flash_bytes"]
            registry_ram += part["ram_bytes"]
        if kind == "api" and part["section"] == ".rodata":
            flash["tables"] += part["flash_bytes"]
        if kind in ("method_state", "api", "runtime"):
            ram += part["ram_bytes"]
    return _Measured(
        case=built.case,
        cpu=built.cpu,
        load=load,
        **flash,
        registry_ram=registry_ram,
        ram=ram,
        values=values,
        counts=counts,
    )


def _table(cpu: str, found: list[_Measured]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            f"{m.case}, {m.load}",
            *(m.loader, m.executor, m.tables, m.ram, m.ram / m.values),
            *((m.counts.load, m.counts.inference) if m.counts else (None, None)),
        )
        for m in found
    ]
    return Table(
        title=f'The runtime on {cpu}, zig, optimize = "size": bytes, instructions',
        columns=(
            *("program", "loader", "executor", "tables", "RAM", "RAM per value"),
            *("load", "inference"),
        ),
        rows=tuple(rows),
        notes=(
            "flash of the loader, of what runs methods, and of the kernel table, or in"
            " a prelinked model of its tables; kernels and constants are not in these",
            "RAM: method states and loaded methods, besides arenas and stack",
            "load: of the first method that is called; prelinked, there is none",
            "inference: the median of the case's calls, of the first method called",
        ),
    )


def _goals(cpu: str, found: list[_Measured]) -> list[Goal]:
    loaded = [m for m in found if m.load == "pte"]
    goals = [
        ("flash of the loader, the largest", max(m.loader for m in loaded)),
        ("RAM of the registry", max(m.registry_ram for m in found)),
        ("RAM per value, the most", max(m.ram / m.values for m in loaded)),
    ]
    limits: list[float] = [_LOADER_BYTES - 1, 0, _BYTES_PER_VALUE]
    for m in found:
        if m.case == _GOAL_CASE and m.load == "prelinked":
            goals.append((f"executor and tables, {m.case}", m.executor + m.tables))
            limits.append(_EXECUTOR_BYTES - 1)
    return [
        Goal(name=f"{name}, {cpu}", found=number, limit=limit, at_most=True)
        for (name, number), limit in zip(goals, limits, strict=True)
    ]
