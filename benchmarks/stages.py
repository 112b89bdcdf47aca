"""The stages before the compiler against ExecuTorch's tools, within one process.

Ours: read the program and functions.yaml, extract, aggregate, resolve, plan the memory,
generate, write the files. Theirs: the tools that make the same files. Both sides have
imported everything before; profiles and command lines are read by neither.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.clock import ROOT, cpu_seconds
from benchmarks.executorch_driver import STAND_INS, clear_caches
from benchmarks.product import write_profile
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table, short
from orchestrator.build import Build, BuildOptions, Project, inputs, load, open_build, table
from orchestrator.build.engine import Input, Value, all_of
from orchestrator.shell.files import write_if_changed
from orchestrator.shell.sources import library_file

MODELS = ("kws_dscnn_fp32", "vww_mobilenetv1_fp32")
DRIVER = Path(__file__).parent / "executorch_driver.py"
_GOAL_TIMES = 20
_THEIR_OPERATORS = 209
"""Entries of kernels/portable/functions.yaml in ExecuTorch 1.5.1."""

_LONG, _FRESH, _KEPT = (
    f"caches cleared, {_THEIR_OPERATORS} operators",
    "caches cleared",
    "caches kept",
)
_VARIANTS = {_LONG: "fresh", _FRESH: "fresh", _KEPT: "kept"}
"""Of our side, each with the one of theirs that it is compared with."""

_Runs = dict[str, list[dict[str, float]]]
"""Seconds by step, of each run, by variant."""


def executorch_python() -> str:
    """The interpreter with ExecuTorch: `$EXECUTORCH_PYTHON`, or this one."""
    python = os.environ.get("EXECUTORCH_PYTHON", "")
    if not python and find_spec("executorch"):
        python = sys.executable
    program = shutil.which(python) if python else None
    if program is None:
        raise NotMeasuredError(
            "no ExecuTorch: set EXECUTORCH_PYTHON to a Python with the package executorch 1.5.1"
        )
    return program


def driver(mode: str, model: Path, folder: Path, *more: str) -> dict[str, object]:
    """The answer of executorch_driver.py."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [executorch_python(), str(DRIVER), mode, str(model), str(folder), *more],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(f"ExecuTorch's tools failed: {short(done.stderr)}")
    document = json.loads(done.stdout)
    assert isinstance(document, dict)  # noqa: S101  # written by our own driver
    return document


def measure(repetitions: int) -> Findings:
    """Processor time of the stages and of the tools."""
    findings = Findings()
    theirs: dict[str, dict[str, dict[str, list[float]]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = {case: _our_times(case, folder, repetitions) for case in MODELS}
        try:
            for case in MODELS:
                model = ROOT / "tests" / "data" / "corpus" / case / "model.pte"
                theirs[case] = driver(  # type: ignore[assignment]  # its own shape
                    "time", model, folder / f"{case}-executorch", str(repetitions)
                )
        except NotMeasuredError as missing:
            findings.missing.append(f"ExecuTorch's tools in one process: {missing}")
    findings.tables.append(_steps(ours))
    rows: list[tuple[Cell, ...]] = []
    for case in MODELS:
        for variant, kind in _VARIANTS.items():
            here = median(sum(run.values()) for run in ours[case][variant])
            there = None
            if case in theirs:
                tools = theirs[case][kind].values()
                there = median(map(sum, zip(*tools, strict=True)))
                if variant == _LONG:  # the other two have less to read
                    findings.goals.append(
                        Goal(
                            name=f"stages, times faster than the tools, {case}",
                            found=there / here,
                            limit=_GOAL_TIMES,
                            at_most=False,
                        )
                    )
            rows.append(
                (
                    f"{case}, {variant}",
                    1e3 * here,
                    None if there is None else 1e3 * there,
                    None if there is None else there / here,
                )
            )
    findings.tables.append(
        Table(
            title="Stages in one process (CPU ms, imports done before)",
            columns=("model", "ours", "ExecuTorch", "ratio"),
            rows=tuple(rows),
            notes=(
                "ExecuTorch: gen_oplist, gen_all_oplist, codegen.gen, "
                "gen_selected_op_variants, gen_selected_prim_ops, gen_max_kernel_num",
                "the wheel lacks what these read of the source tree; stand-ins of the"
                f" same form take their place: {', '.join(STAND_INS)}",
                "caches: what functions of either side remember in a process",
                f"{_THEIR_OPERATORS} operators: our functions.yaml, filled up with"
                " renamed copies of its entries to the length of ExecuTorch's",
            ),
        )
    )
    if theirs:
        findings.tables.append(_tools(theirs))
    return findings


_NO_DIGESTS: dict[Value[Any], dict[str, str]] = {
    value: {"": ""}
    for value in all_of((inputs.ORCHESTRATOR, *table.STAGES))
    if isinstance(value, Input) and value.digests is not None
}


def fresh_build(project: Project) -> Build:
    """A build in which every stage runs, and nothing is digested to find that out."""
    return open_build(project, digests=_NO_DIGESTS)


def _with_long_list(build: Build) -> Build:
    """The same build with a functions.yaml as long as ExecuTorch's."""
    texts = [
        replace(text, text=long_list(library_file(text.name)).decode())
        if text.name == "portable"
        else text
        for text in build[inputs.LIBRARY_TEXTS]
    ]
    return build.replace({inputs.LIBRARY_TEXTS: tuple(texts)})


@cache
def long_list(path: Path) -> bytes:
    """A functions.yaml with renamed copies of its entries up to ExecuTorch's number."""
    _, *entries = path.read_text().split("\n- func: ")
    text = "".join(
        f"\n- func: {_renamed(entries[n % len(entries)], copy=n // len(entries))}"
        for n in range(_THEIR_OPERATORS)
    )
    return text.encode()


def _renamed(entry: str, *, copy: int) -> str:
    """An entry whose operator and kernel have the number of the copy in their names."""
    if copy == 0:
        return entry
    entry = re.sub(r"^(\w+::\w+)", rf"\1_{copy}", entry)
    return re.sub(r"(kernel_name: \S+)", rf"\1_{copy}", entry)


def _our_times(case: str, folder: Path, repetitions: int) -> _Runs:
    """CPU seconds of each step in each run."""
    path = write_profile(folder / case, case, cpu="cortex-m55", toolchain="zig")
    profile = load(path)
    times: _Runs = {variant: [] for variant in _VARIANTS}
    for variant, found in times.items():
        for turn in range(repetitions + 1):
            if variant != _KEPT:
                clear_caches("orchestrator")
            options = BuildOptions(out=folder / case / "out")
            build = fresh_build(Project(profile, options))
            if variant == _LONG:
                build = _with_long_list(build)
            seconds = _run_stages(build, folder / case / "generated")
            if turn:
                found.append(seconds)
    return times


def _run_stages(build: Build, folder: Path) -> dict[str, float]:
    """CPU seconds by step; each step finds the results of those before it."""

    def write() -> None:
        for file in build[table.GENERATE]:
            write_if_changed(folder / file.path, file.text.encode())

    return {
        "read program": cpu_seconds(lambda: build[inputs.PROGRAMS]),
        "extract": cpu_seconds(lambda: build[table.EXTRACT]),
        "aggregate": cpu_seconds(lambda: build[table.AGGREGATE]),
        "read functions.yaml": cpu_seconds(lambda: build[table.CATALOG]),
        "resolve": cpu_seconds(lambda: build[table.RESOLVE]),
        "memory": cpu_seconds(lambda: build[table.MEMORY]),
        "generate": cpu_seconds(lambda: build[table.GENERATE]),
        "write files": cpu_seconds(write),
    }


def _steps(ours: dict[str, _Runs]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, *(1e3 * median(run[name] for run in ours[c][_LONG]) for c in MODELS))
        for name in ours[MODELS[0]][_LONG][0]
    ]
    return Table(
        title=f"Our stages one by one (CPU ms, {_LONG})",
        columns=("step", *MODELS),
        rows=tuple(rows),
    )


def _tools(theirs: dict[str, dict[str, dict[str, list[float]]]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, *(1e3 * median(theirs[case]["fresh"][name]) for case in MODELS))
        for name in theirs[MODELS[0]]["fresh"]
    ]
    return Table(
        title="ExecuTorch's tools one by one (CPU ms, caches cleared)",
        columns=("tool", *MODELS),
        rows=tuple(rows),
    )
