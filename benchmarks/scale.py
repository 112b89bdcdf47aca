"""Many models in one profile, programs of thousands of instructions, large ones."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.clock import Command, cost_of, cpu_seconds, orchestrator
from benchmarks.executorch_driver import clear_caches
from benchmarks.long_program import linear_program, repeated_program
from benchmarks.product import CASES, CORPUS
from benchmarks.stages import driver, fresh_build
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table
from orchestrator.build import BuildOptions, Project, inputs, load, open_build, table
from orchestrator.selection.oplist import selected_operators_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

_MODELS = 50
_LONG_CASE = "vww_mobilenetv1_fp32"
_LONG_TIMES = 88
_PER_INSTRUCTION = 1.5
_LAYERS = (25, 42)
_WIDTH = 1000
_PEAK = 1.3
_LISTING = ("read program", "extract", "aggregate", "write list")
"""Our steps that make what ExecuTorch's gen_oplist and gen_all_oplist make."""

_Seconds = dict[str, float]
"""Processor seconds by step."""


def measure(repetitions: int) -> Findings:
    """How times grow with the number of models and of instructions."""
    findings = Findings()
    with tempfile.TemporaryDirectory() as name:
        _many_models(findings, Path(name), repetitions)
        try:
            _long_program(findings, Path(name), repetitions)
        except NotMeasuredError as missing:
            findings.missing.append(f"a long program: {missing}")
        try:
            _large_programs(findings, Path(name), repetitions)
        except NotMeasuredError as missing:
            findings.missing.append(f"large programs: {missing}")
    return findings


def _write_profile(folder: Path, models: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    text = 'schema = 1\nname = "p"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
    for name, data in models.items():
        (folder / f"{name}.pte").write_bytes(data)
        text += f'[[models]]\nname = "{name}"\npath = "{name}.pte"\n'
    profile = folder / "p.toml"
    profile.write_text(text)
    return profile


def _run(profile: Path) -> _Seconds:
    """One run of each step, with everything that is remembered forgotten before."""
    clear_caches("orchestrator")
    project = Project(load(profile), BuildOptions(out=profile.parent / "out"))
    build = fresh_build(project)

    def write() -> None:
        text = selected_operators_yaml(build[table.AGGREGATE], generator="p")
        (profile.parent / "selected_operators.yaml").write_text(text)

    return {
        "read program": cpu_seconds(lambda: build[inputs.PROGRAMS]),
        "extract": cpu_seconds(lambda: build[table.EXTRACT]),
        "aggregate": cpu_seconds(lambda: build[table.AGGREGATE]),
        "write list": cpu_seconds(write),
        "read functions.yaml": cpu_seconds(lambda: build[table.CATALOG]),
        "resolve": cpu_seconds(lambda: build[table.RESOLVE]),
        "passes": cpu_seconds(lambda: build[table.PRELINK]),
        "memory": cpu_seconds(lambda: build[table.MEMORY]),
    }


def _steps(profile: Path, repetitions: int) -> _Seconds:
    """Median of each step, after one run that warms the caches of the system."""
    _, *runs = [_run(profile) for _ in range(repetitions + 1)]
    return {step: median(run[step] for run in runs) for step in runs[0]}


def _theirs(models: Path, folder: Path, repetitions: int) -> _Seconds:
    """Medians of ExecuTorch's tools for the lists of all programs in a folder."""
    answer: dict[str, list[float]] = driver(  # type: ignore[assignment]  # its own shape
        "lists", models, folder, str(repetitions)
    )
    return {tool: median(runs) for tool, runs in answer.items()}


def _listing(seconds: _Seconds) -> float:
    return sum(seconds[step] for step in _LISTING)


def _many_models(findings: Findings, folder: Path, repetitions: int) -> None:
    programs = {case: (CORPUS / case / "model.pte").read_bytes() for case in CASES}
    models = {f"m{n}": programs[CASES[n % len(CASES)]] for n in range(_MODELS)}
    alone = {
        case: _steps(_write_profile(folder / case, {case: data}), repetitions)
        for case, data in programs.items()
    }
    # What the 50 cost if each were alone, divided by 50.
    chosen = [alone[CASES[n % len(CASES)]] for n in range(_MODELS)]
    one = {step: sum(c[step] for c in chosen) / _MODELS for step in chosen[0]}
    many = _steps(_write_profile(folder / "many", models), repetitions)
    rows: list[tuple[Cell, ...]] = [
        (step, 1e3 * one[step], 1e3 * many[step], many[step] / one[step]) for step in one
    ]
    totals = sum(one.values()), sum(many.values())
    rows.append(("all of them", 1e3 * totals[0], 1e3 * totals[1], totals[1] / totals[0]))
    findings.tables.append(
        Table(
            title=f"A profile of {_MODELS} models (CPU ms, caches cleared)",
            columns=("step", "one model", f"{_MODELS} models", "times"),
            rows=tuple(rows),
            notes=(
                f"{len(CASES)} programs of the corpus under {_MODELS} names; one model:"
                " the mean of the same programs, each in a profile of its own",
            ),
        )
    )
    findings.goals.append(
        Goal(
            name=f"stages for {_MODELS} models, times those for one",
            found=totals[1] / totals[0],
            limit=_MODELS,
            at_most=True,
        )
    )
    try:
        theirs = _theirs(folder / "many", folder / "many-executorch", repetitions)
    except NotMeasuredError as missing:
        findings.missing.append(f"ExecuTorch's lists of {_MODELS} models: {missing}")
        return
    findings.tables.append(_against(f"Operator list of {_MODELS} models", _listing(many), theirs))


def _against(title: str, ours: float, theirs: _Seconds) -> Table:
    there = sum(theirs.values())
    return Table(
        title=f"{title} (CPU ms, caches cleared)",
        columns=("list", "ours", *theirs, "together", "ratio"),
        rows=(
            (
                "selected_operators.yaml",
                *(1e3 * s for s in (ours, *theirs.values(), there)),
                there / ours,
            ),
        ),
        notes=(
            f"ours: {', '.join(_LISTING)}",
            "ExecuTorch: all its calls in one process, imports done before",
        ),
    )


def _long_program(findings: Findings, folder: Path, repetitions: int) -> None:
    data = repeated_program(_LONG_CASE, _LONG_TIMES)
    short = (CORPUS / _LONG_CASE / "model.pte").read_bytes()
    found: dict[str, _Seconds] = {}
    counts: dict[str, int] = {}
    for name, model in {"short": short, "long": data}.items():
        profile = _write_profile(folder / name, {"model": model})
        found[name] = _steps(profile, repetitions)
        project = Project(load(profile), BuildOptions(out=folder / "out"))
        program = open_build(project)[inputs.PROGRAMS]["model"]
        counts[name] = sum(len(method.instructions) for method in program.methods)
    each = {
        name: {step: 1e6 * s / counts[name] for step, s in seconds.items()}
        for name, seconds in found.items()
    }
    steps = ("read program", "extract", "aggregate", "resolve", "passes", "memory")
    rows: list[tuple[Cell, ...]] = [
        (step, each["short"][step], each["long"][step], _ratio(each, (step,))) for step in steps
    ]
    rows.append(
        (
            "all of them",
            *(sum(each[name][step] for step in steps) for name in each),
            _ratio(each, steps),
        )
    )
    columns = [f"{counts[name]:,} instructions" for name in each]
    findings.tables.append(
        Table(
            title="A long program (CPU microseconds per instruction, caches cleared)",
            columns=("step", *columns, "times"),
            rows=tuple(rows),
            notes=(
                f"{_LONG_CASE} of the corpus, and a program that does the same"
                f" {_LONG_TIMES} times over, with {len(data):,} bytes",
            ),
        )
    )
    findings.goals.append(
        Goal(
            name="a long program, per instruction, times a short one",
            found=_ratio(each, steps),
            limit=_PER_INSTRUCTION,
            at_most=True,
        )
    )
    try:
        theirs = _theirs(folder / "long", folder / "long-executorch", repetitions)
    except NotMeasuredError as missing:
        findings.missing.append(f"ExecuTorch's list of a long program: {missing}")
        return
    title = f"Operator list of {counts['long']:,} instructions"
    findings.tables.append(_against(title, _listing(found["long"]), theirs))


def _ratio(each: dict[str, _Seconds], steps: tuple[str, ...]) -> float:
    """Times per instruction: the long program's in those of the short one."""
    short, long = (sum(each[name][step] for step in steps) for name in each)
    return long / short


def _large_programs(findings: Findings, folder: Path, repetitions: int) -> None:
    """What `check` needs for programs of linear layers, whose weights are permuted."""
    rows: list[tuple[Cell, ...]] = []
    ratios = []
    for layers in _LAYERS:
        data = linear_program(layers, _WIDTH)
        for kind in ("prelinked", "pte"):
            profile = _write_profile(folder / f"{layers}-{kind}", {"model": data})
            text = profile.read_text()
            profile.write_text(f'{text}load = "{kind}"\n')
            words = orchestrator("check", str(profile))
            (cost,) = cost_of(
                [Command(words=words)], folder=profile.parent, repetitions=repetitions
            )
            ratios.append(cost.peak_bytes / len(data))
            rows.append(
                (
                    f"{layers} layers, {kind}",
                    len(data) / 1e6,
                    cost.peak_bytes / 1e6,
                    ratios[-1],
                    cost.cpu_s,
                )
            )
    findings.tables.append(
        Table(
            title="`check` of large programs",
            columns=("program", "MB", "peak MB", "peak : program", "CPU s"),
            rows=tuple(rows),
            notes=("peak: resident memory, pages of files included",),
        )
    )
    findings.goals.append(
        Goal(
            name="peak memory of `check` of a large program, in its size",
            found=max(ratios),
            limit=_PEAK,
            at_most=True,
        )
    )
