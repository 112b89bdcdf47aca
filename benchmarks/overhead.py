"""What running and loading cost per instruction, against ExecuTorch's runtime."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.clock import ROOT, environment, orchestrator
from benchmarks.long_program import repeated_program, scalar_program
from benchmarks.stages import executorch_python
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table, short

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_CASE = "add_mul"
_INPUT_ITEMS = 4
_TIMES = (1, 250)
_OVERHEAD = 4.0
_LOADS = ("pte", "prelinked")

_Times = dict[str, float]
"""Nanoseconds of processor time: `load` of a method, `run` of one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """Instructions of one kind, many of them.

    Args:
        name: As tables call it.
        program: The bytes of a program with so many copies.
        instructions: Of one copy.
        note: What they compute.
    """

    name: str
    program: Callable[[str, int], bytes]
    instructions: int
    note: str


_CHAINS = (
    _Chain(
        name="integers",
        program=scalar_program,
        instructions=1,
        note="integers: sums of two, whose kernels are one addition",
    ),
    _Chain(
        name="tensors",
        program=repeated_program,
        instructions=2,
        note="tensors: 2 x 2 floats, product and sum in turn; kernels are most of it",
    ),
)


def measure(repetitions: int) -> Findings:
    """Chains of tiny operators, short and long: the difference is per instruction."""
    findings = Findings()
    for chain in _CHAINS:
        _measure(chain, repetitions, findings)
    return findings


def _measure(chain: _Chain, repetitions: int, findings: Findings) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = {}
        for times in _TIMES:
            models[times] = folder / f"chain{times}.pte"
            models[times].write_bytes(chain.program(_CASE, times))
        ours = {
            load: {n: _ours(folder, models[n], load, repetitions) for n in _TIMES}
            for load in _LOADS
        }
        theirs: dict[int, _Times] | None = None
        try:
            theirs = {n: _theirs(models[n], repetitions) for n in _TIMES}
        except NotMeasuredError as missing:
            findings.missing.append(f"ExecuTorch's runtime: {missing}")
    findings.tables.append(_table(chain, ours, theirs))
    if theirs:
        faster = _per_instruction(chain, theirs, "run") / _per_instruction(
            chain, ours["pte"], "run"
        )
        findings.goals.append(
            Goal(
                name=f"per instruction, {chain.name}: times faster than ExecuTorch",
                found=faster,
                limit=_OVERHEAD,
                at_most=False,
            )
        )


def _per_instruction(chain: _Chain, times: Mapping[int, _Times], what: str) -> float:
    """Nanoseconds that one more instruction takes."""
    short_, long = _TIMES
    count = (long - short_) * chain.instructions
    return (times[long][what] - times[short_][what]) / count


def _ours(folder: Path, model: Path, load: str, repetitions: int) -> _Times:
    """Times of a program that calls the generated API.

    Raises:
        NotMeasuredError: There is no C compiler, or it cannot be built.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NotMeasuredError("there is no C compiler")
    profile, out = folder / "p.toml", folder / "out"
    profile.write_text(
        'schema = 1\nname = "p"\n'
        '[target]\ncpu = "host"\ntoolchain = "zig"\noptimize = "speed"\n'
        f'[[models]]\nname = "m"\npath = "{model.name}"\nload = "{load}"\n'
    )
    _run(orchestrator("build", str(profile), "--out", str(out)))
    program = str(folder / "calls")
    names = {
        "HEADER": '"p.h"',
        "RUN": "p_m_forward_run",
        "INPUT": "p_m_forward_input0",
        "COUNT": _INPUT_ITEMS,
    }
    _run(
        [
            *(compiler, "-O2", "-no-pie", f"-I{out / 'include'}"),
            *(f"-D{name}={value}" for name, value in names.items()),
            *(str(ROOT / "benchmarks" / "calls.c"), str(out / "libp.a"), "-o", program),
        ]
    )
    runs = [json.loads(_run([program])) for _ in range(repetitions + 1)]
    return _medians(runs[1:])


def _theirs(model: Path, repetitions: int) -> _Times:
    """Times of ExecuTorch's runtime for the same program.

    Raises:
        NotMeasuredError: It is not installed.
    """
    script = str(ROOT / "benchmarks" / "executorch_runtime.py")
    said = _run([executorch_python(), script, str(model), str(repetitions)])
    found: dict[str, list[float]] = json.loads(said.splitlines()[-1])
    runs = [
        {what: s * 1e9 for what, s in _zipped(found, i)} for i in range(repetitions)
    ]
    return _medians(runs)


def _zipped(
    found: Mapping[str, Sequence[float]], index: int
) -> list[tuple[str, float]]:
    return [(what, seconds[index]) for what, seconds in found.items()]


def _medians(runs: Sequence[_Times]) -> _Times:
    return {what: median(run[what] for run in runs) for what in runs[0]}


def _run(words: Sequence[str]) -> str:
    done = subprocess.run(
        words,
        env={**os.environ, **environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(short(done.stderr))
    return done.stdout


def _table(
    chain: _Chain,
    ours: Mapping[str, Mapping[int, _Times]],
    theirs: Mapping[int, _Times] | None,
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for what, name in (("run", "call"), ("load", "load")):
        cells: list[float | None] = [
            _per_instruction(chain, ours[x], what) for x in _LOADS
        ]
        other = _per_instruction(chain, theirs, what) if theirs else None
        ratio = other / cells[0] if other is not None and cells[0] else None
        rows.append((f"{name}, per instruction", *cells, other, ratio))
    long = _TIMES[-1]
    for what, name in (("run", "one call"), ("load", "loading")):
        cells = [ours[x][long][what] for x in _LOADS]
        other = theirs[long][what] if theirs else None
        ratio = other / cells[0] if other is not None and cells[0] else None
        rows.append((f"{name}, the whole chain", *cells, other, ratio))
    return Table(
        title=f"A chain of {long * chain.instructions} tiny operators on {chain.name},"
        " CPU nanoseconds",
        columns=("", "loaded", "prelinked", "ExecuTorch", "ExecuTorch : loaded"),
        rows=tuple(rows),
        notes=(
            chain.note,
            "ExecuTorch: its Python package, whose call costs are in the short chain"
            " as well and so are not in the time per instruction",
        ),
    )
