"""Time of every kernel on this machine, beside ExecuTorch's kernel.

    python -m tests.speeds.host (--portable PROGRAM | --executorch PYTHON)
        [--operators NAME,...]

PROGRAM runs `.pte` files with ExecuTorch's portable kernels; it answers as `load_file
serve times` does (`tests/cpp/support/load_file.cpp`). PYTHON has the package
`executorch`, whose runtime has vectorized kernels for some operators. Each call of
`calls`, with more items, becomes two programs that make it once and several times; both
run in the host program and in ExecuTorch's. The difference is the kernels' own time,
without copies of inputs, per item or product.
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

from orchestrator.program.encode import write_program
from orchestrator.program.reader import read_program
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
    method = replace(method, instructions=code)
    return bytes(write_program(replace(program, methods=(method,)))), inputs


class Wheel:
    """ExecuTorch's Python runtime, asked as a `Runner` is."""

    microseconds = 0.0
    """That the last run took."""

    def __init__(self, python: str, folder: Path) -> None:
        """In the interpreter that has it; the folder is for programs and inputs."""
        self._stem = folder / "call"
        self._upstream = Upstream(python, folder / "upstream.log")

    def give(self, call: Call) -> None:
        """Take the inputs of a call for what is run from now on."""
        arrays = {}
        for i, tensor in enumerate(t for t in tensors(call) if not t.is_out):
            array = np.frombuffer(tensor.data, NUMPY[tensor.dtype])
            is_mask = tensor.dtype.name == "Bool"
            array = array.astype(bool) if is_mask else array
            arrays[f"in{i}"] = array.reshape(tensor.sizes)
        # Arrays by name.
        np.savez(self._stem.with_suffix(".npz"), **arrays)  # type: ignore[arg-type]

    def run(self, program: bytes, inputs: bytes) -> tuple[str, bytes]:
        """What failed, "" if nothing did; no outputs."""
        del inputs  # given before
        self._stem.with_suffix(".pte").write_bytes(program)
        answer = self._upstream.run(self._stem)
        self.microseconds = float(answer.get("microseconds", 0))
        return answer["failed"], b""


def row(timed: Timed, runner: Runner, upstream: Runner | Wheel) -> Row:
    """Time a call in both runtimes."""
    if isinstance(upstream, Wheel):
        upstream.give(timed.call)
    ours, theirs = [], []
    reason = ""
    counts = [FEW]
    for count in counts:
        program, inputs = repeated(timed.call, count)
        runs: tuple[list[float], list[float]] = ([], [])
        for _ in range(_RUNS):
            failed, _ = runner.run(program, inputs)
            if failed:
                return Row(timed.call.operator, 0, 0, failed)
            runs[0].append(runner.microseconds)
            if not reason:
                reason, _ = upstream.run(program, inputs)
            runs[1].append(upstream.microseconds)
        ours.append(min(runs[0]))
        theirs.append(min(runs[1]))
        if len(counts) == 1:
            counts.append(min(max(int(LONG_US / ours[0]), 8), MOST) + FEW)
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
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--portable", type=Path, help="program with its portable kernels")
    which.add_argument("--executorch", help="Python that has it")
    parser.add_argument("--operators", default="", help="NAME,...; default: all")
    options = parser.parse_args()
    names = tuple(filter(None, options.operators.split(",")))
    build = native.ROOT / "build" / "opinfo-run"
    program = native.build("load_file", folder=build, sanitize=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runner = Runner(program, times=True)
        upstream: Runner | Wheel = (
            Runner(options.portable, times=True)
            if options.portable
            else Wheel(options.executorch, folder)
        )
        calls = (t for t in timed_calls(ROWS) if not names or t.call.operator in names)
        rows = [row(timed, runner, upstream) for timed in calls]
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
