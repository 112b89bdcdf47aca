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
_OVERHEAD = 4.0
_LOADS = ("pte", "prelinked")

_Times = dict[str, float]
"""Nanoseconds of processor time: `load` of a method, `run` of one call."""

_Round = dict[int, _Times]
"""Times of one round, by how many copies the program has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """Instructions of one kind, many of them.

    Args:
        name: As tables call it.
        program: The bytes of a program with so many copies.
        instructions: Of one copy.
        copies: Of the long chain. One call of ExecuTorch's from Python is worth
            hundreds of integer sums, so those have to be many.
        note: What they compute.
    """

    name: str
    program: Callable[[str, int], bytes]
    instructions: int
    copies: int
    note: str


_CHAINS = (
    _Chain(
        name="integers",
        program=scalar_program,
        instructions=1,
        copies=2000,
        note="integers: sums of two, whose kernels are one addition",
    ),
    _Chain(
        name="tensors",
        program=repeated_program,
        instructions=2,
        copies=250,
        note="tensors: 2 x 2 floats, matrix product and sum in turn; kernels are most of it",
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
        for copies in (1, chain.copies):
            models[copies] = folder / f"chain{copies}.pte"
            models[copies].write_bytes(chain.program(_CASE, copies))
        programs = {
            load: {n: _program(folder, model, load) for n, model in models.items()}
            for load in _LOADS
        }
        # In turns, so that all see the same clock of the processor.
        ours: dict[str, list[_Round]] = {load: [] for load in _LOADS}
        theirs: list[_Round] = []
        missing = ""
        for _ in range(repetitions):
            for load, found in ours.items():
                found.append({n: _ours(file) for n, file in programs[load].items()})
            try:
                if not missing:
                    theirs.append(_theirs(models))
            except NotMeasuredError as error:
                missing = str(error)
                findings.missing.append(f"ExecuTorch's runtime: {error}")
    findings.tables.append(_table(chain, ours, theirs))
    if theirs:
        findings.goals.append(
            Goal(
                name=f"per instruction, {chain.name}: times faster than ExecuTorch",
                found=_ratio(chain, theirs, ours["pte"], "run"),
                limit=_OVERHEAD,
                at_most=False,
            )
        )


def _each(chain: _Chain, rounds: Sequence[_Round], what: str) -> list[float]:
    """Nanoseconds that one more instruction takes, of each round."""
    count = (chain.copies - 1) * chain.instructions
    return [(times[chain.copies][what] - times[1][what]) / count for times in rounds]


def _ratio(chain: _Chain, theirs: Sequence[_Round], ours: Sequence[_Round], what: str) -> float:
    """How many times more theirs takes per instruction: the median of the rounds."""
    pairs = zip(_each(chain, theirs, what), _each(chain, ours, what), strict=True)
    return median(a / b for a, b in pairs)


def _program(folder: Path, model: Path, load: str) -> str:
    """Build a program that calls the generated API and prints times.

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
    program = str(folder / f"{model.stem}_{load}")
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
    return program


def _ours(program: str) -> _Times:
    """Times of one run of a program that was built."""
    times: _Times = json.loads(_run([program]))
    return times


def _theirs(models: Mapping[int, Path]) -> _Round:
    """Times of ExecuTorch's runtime for the same programs.

    Raises:
        NotMeasuredError: It is not installed.
    """
    script = str(ROOT / "benchmarks" / "executorch_runtime.py")
    said = _run([executorch_python(), script, *map(str, models.values())])
    found: list[_Times] = json.loads(said.splitlines()[-1])
    return dict(zip(models, found, strict=True))


def _run(words: Sequence[str]) -> str:
    done = subprocess.run(
        words, env={**os.environ, **environment()}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotMeasuredError(short(done.stderr))
    return done.stdout


def _table(chain: _Chain, ours: Mapping[str, Sequence[_Round]], theirs: Sequence[_Round]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for what, name in (("run", "call"), ("load", "load")):
        cells = [median(_each(chain, ours[load], what)) for load in _LOADS]
        other = median(_each(chain, theirs, what)) if theirs else None
        ratio = _ratio(chain, theirs, ours["pte"], what) if theirs else None
        rows.append((f"{name}, per instruction", *cells, other, ratio))
    long = chain.copies
    for what, name in (("run", "one call"), ("load", "loading")):
        cells = [median(times[long][what] for times in ours[x]) for x in _LOADS]
        other = median(times[long][what] for times in theirs) if theirs else None
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
            "in turns; medians of the rounds, the ratio per instruction as well",
        ),
    )
