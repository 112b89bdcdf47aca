"""Time of every kernel on this machine, beside ExecuTorch's portable kernel.

    python -m tests.speeds.host --executorch PYTHON [--operators NAME,...]

PYTHON has the package `executorch`. Each call of `calls`, with more items, becomes two
programs that make it once and several times; both run in the host program and in
ExecuTorch's runtime. The difference is the kernels' own time, without copies of inputs.
Prints the ratio of the two runtimes, the slowest first; the exit code is 1 if a kernel
is slower than ExecuTorch's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.program.program import SubsegmentOffsets
from orchestrator.program.reader import read_program
from orchestrator.program.write import write_program
from tests.cpp.support import native
from tests.opinfo.programs import NUMPY, program_of, tensors
from tests.opinfo.run import Runner
from tests.speeds.calls import Timed, timed_calls
from tests.zoo.run import Upstream

if TYPE_CHECKING:
    from tests.unit.method.recorded_calls import Call

ROWS: Final = 128
FEW: Final = 1
"""Calls that the first program makes."""
MOST: Final = 2000
"""Calls that the second one makes; fewer if they take longer than `LONG_US`."""
LONG_US: Final = 8000
_RUNS: Final = 5
"""Of each program; the fastest counts."""
EQUAL: Final = 0.9
"""A ratio that times which vary may have where kernels are equally fast."""


@dataclass(frozen=True, slots=True)
class Row:
    """Nanoseconds per item or product; why ExecuTorch has none."""

    operator: str
    ours: float
    theirs: float
    reason: str

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.theirs / self.ours


def repeated(call: Call, times: int) -> tuple[bytes, bytes]:
    """A program that makes a call several times, and its inputs."""
    data, inputs = program_of(call, dynamic=False)
    program = read_program(data, file="call.pte")
    (method,) = program.methods
    code = method.instructions * times
    many = replace(program, methods=(replace(method, instructions=code),))
    # ExecuTorch's runtime wants an offset even where no tensor is constant.
    none = SubsegmentOffsets(segment_index=0, offsets=(0,))
    written = write_program(replace(many, constants=none, inline_constants=()))
    return bytes(written), inputs


def row(timed: Timed, runner: Runner, upstream: Upstream, folder: Path) -> Row:
    """Time a call in both runtimes."""
    ours, theirs = [], []
    given = [t for t in tensors(timed.call) if not t.is_out]
    arrays = {
        f"in{i}": np.frombuffer(t.data, NUMPY[t.dtype]).reshape(t.sizes)
        for i, t in enumerate(given)
    }
    masks = {f"in{i}" for i, t in enumerate(given) if t.dtype.name == "Bool"}
    arrays = {n: a.astype(bool) if n in masks else a for n, a in arrays.items()}
    np.savez(folder / "call.npz", **arrays)  # type: ignore[arg-type]  # arrays by name
    reason = ""
    counts = [FEW]
    for count in counts:
        program, inputs = repeated(timed.call, count)
        runs = []
        for _ in range(_RUNS):
            failed, _ = runner.run(program, inputs)
            if failed:
                return Row(timed.call.operator, 0, 0, failed)
            runs.append(runner.microseconds)
        ours.append(min(runs))
        if len(counts) == 1:
            counts.append(min(max(int(LONG_US / ours[0]), 8), MOST) + FEW)
        (folder / "call.pte").write_bytes(program)
        runs = []
        for _ in range(_RUNS):
            answer = upstream.run(folder / "call")
            reason = answer["failed"]
            runs.append(float(answer.get("microseconds", 0)))
            if reason:
                break
        theirs.append(min(runs))
    scale = 1e3 / (counts[1] - FEW) / timed.units
    return Row(
        timed.call.operator,
        max(ours[1] - ours[0], 1e-3) * scale,
        (theirs[1] - theirs[0]) * scale,
        reason,
    )


def main() -> int:
    """Time and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--executorch", required=True, help="Python that has it")
    parser.add_argument("--operators", default="", help="NAME,...; default: all")
    options = parser.parse_args()
    names = tuple(filter(None, options.operators.split(",")))
    build = native.ROOT / "build" / "opinfo-run"
    program = native.build("load_file", folder=build, sanitize=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runner = Runner(program, times=True)
        upstream = Upstream(options.executorch, folder / "upstream.log")
        calls = (t for t in timed_calls(ROWS) if not names or t.call.operator in names)
        rows = [row(timed, runner, upstream, folder) for timed in calls]
    compared = sorted((r for r in rows if not r.reason), key=lambda r: r.ratio)
    print(f"{'operator':52}{'ours':>10}{'theirs':>10}{'times':>8}   ns")
    for r in compared:
        print(f"{r.operator:52}{r.ours:10.3f}{r.theirs:10.3f}{r.ratio:8.2f}")
    for r in rows:
        if r.reason:
            print(f"{r.operator:52}{r.ours:10.3f}{'-':>10}   {r.reason}")
    slower = sum(r.ratio < EQUAL for r in compared)
    print(f"{len(compared)} compared, {slower} slower than ExecuTorch's")
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
