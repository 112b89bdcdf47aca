"""Checks and runs the programs of the zoo, and compares with what PyTorch gave.

    python -m tests.zoo.run [--only PART,...] [--executorch PYTHON] [--sanitize] FOLDER

FOLDER is what `tests.zoo.export` wrote. Every program is checked as `orchestrator
check` does. It runs as it was exported if each of its operators has a kernel, and as a
product ships it if it passes the check. Prints a line for each and why it was refused,
then sums by group and operators without a kernel. The exit code is 1 if anything is
wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from orchestrator.build import BuildOptions, Project, load, open_build, prove, table
from orchestrator.errors import OrchestratorError
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.cpp.support import native
from tests.cpp.support.running import decoded
from tests.opinfo.run import Runner

TOLERANCE: Final = 1e-4
"""Of Float, as a part of the largest number of an output."""
STEPS: Final = 2
"""Of quantized numbers."""
PROFILE: Final = """\
schema = 1
name = "zoo"
[target]
cpu = "host"
toolchain = "gnu"
[kernels]
libraries = ["cortex_m", "quantized", "portable"]
[[models]]
name = "model"
path = "{}"
"""
_ERROR: Final = re.compile(r"^\[(?!cpuinfo)\w+\.cpp:\d+\] ")
"""How its errors begin."""
COLUMNS: Final = (*("models", "exported", "refused", "deployed", "right", "wrong", "failed"),)
"""Of sums; what is refused, by the check or before, is not run as it ships."""
NO_INPUT: Final = "no input"
"""The state of a function that no natural input was found for: it does not count."""


@dataclass
class Row:
    """The outcome for one model.

    Args:
        name: Of the model.
        group: What its name begins with.
        state: A column of the sums.
        reasons: Why it is not right: one line each.
        missing: Operators without a kernel.
        facts: Numbers for the table, by column.
    """

    name: str
    group: str
    state: str = ""
    reasons: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class Upstream:
    """ExecuTorch's own runtime; started again where it dies."""

    def __init__(self, python: str, log: Path) -> None:
        """In the interpreter that has it; `log` gets what it reports."""
        self._log = log.open("w+", encoding="utf-8", errors="replace")
        self._command = [python, str(Path(__file__).with_name("upstream.py"))]
        self._process: subprocess.Popen[str] | None = None

    def run(self, stem: Path) -> dict[str, Any]:
        """What it answers: `failed`, `microseconds`."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{stem.resolve()}\n")
        before = self._log.seek(0, 2)
        process.stdin.flush()
        line = process.stdout.readline()
        if line:
            found: dict[str, Any] = json.loads(line)
        else:
            self._process = None
            found = {"failed": f"crash {process.wait()}"}
        if found["failed"]:
            self._log.seek(before)
            said = [text for text in self._log if _ERROR.search(text)]
            found["failed"] = _ERROR.sub("", said[0]).strip() if said else found["failed"]
        return found


class Zoo:
    """Everything that a row is made with."""

    def __init__(self, runner: Runner, folder: Path, python: str) -> None:
        """Programs are in the folder."""
        self._runner = runner
        self._folder = folder
        self._upstream = Upstream(python, folder / "upstream.log") if python else None
        self._known = {
            str(kernel.operator)
            for _, kernels in native.linked_catalog().libraries
            for kernel in kernels
        }

    def row(self, facts: dict[str, Any]) -> Row:
        """Check, run and compare a model."""
        row = Row(facts["name"], facts["name"].rpartition("/")[0])
        if "error" in facts:
            is_refused = facts["step"] == "lower" and row.group.startswith("functions")
            row.state = "refused" if is_refused else "not exported"
            if facts["error"].endswith("no natural input"):
                row.state = NO_INPUT
            row.reasons = [f"{facts['step']}: {facts['error']}"]
            return row
        stem = self._folder / row.name.replace("/", "-")
        data = stem.with_suffix(".pte").read_bytes()
        row.facts["KB"] = len(data) / 1024
        arrays = dict(np.load(stem.with_suffix(".npz")))
        steps = facts.get("steps", [])
        shipped = self._check(stem, row)
        with suppress(OrchestratorError):
            program = read_program(data, file=stem.name)
            names = {str(o) for m in program.methods for o in m.operators}
            row.missing = sorted(names - self._known)
            row.facts["calls"] = len(program.methods[0].instructions)
        others = {
            name.removeprefix("other "): array
            for name, array in arrays.items()
            if name.startswith("other ")
        }
        self._note_own(row, arrays, steps)
        # The last run has the example's sizes: its time is shown.
        for values, what in ((others, " with other sizes"), (arrays, "")):
            if values and not row.missing and "calls" in row.facts:
                self._run(row, data, values, steps, f"as exported{what}")
            if values and shipped is not None:
                self._run(row, shipped, values, steps, f"as shipped{what}")
        if self._upstream:
            self._ask_upstream(row, stem, arrays, steps)
        return row

    def _note_own(self, row: Row, arrays: dict[str, Any], steps: list[float]) -> None:
        """How far PyTorch's int8 outputs are from those of the graph in Double."""
        own = own_error(arrays)
        if steps and own > STEPS * max(steps):
            row.reasons.append(
                f"PyTorch's own outputs are {own / max(steps):.0f} steps from those of"
                " the graph in Double: as far counts as right"
            )

    def _check(self, stem: Path, row: Row) -> bytes | None:
        """The program as a product ships it, None if it is refused."""
        folder = self._folder / "check"
        folder.mkdir(exist_ok=True)
        profile = folder / "zoo.toml"
        path = stem.with_suffix(".pte").resolve()
        profile.write_text(PROFILE.format(path), encoding="utf-8")
        options = BuildOptions(out=folder / "out", write_lock=False)
        start = time.process_time()
        try:
            build = open_build(Project(load(profile), options))
            prove(build)
            _ = build[table.GENERATE]
            row.facts["arena"] = build[table.MEMORY].arena_bytes
            row.state = "right"
            return bytes(build[table.REPLAN].files["models/model.pte"])
        except OrchestratorError as error:
            row.state = "refused"
            for problem in error.diagnostics:
                notes = dict(problem.notes)
                found = notes.get("found") or notes.get("needs") or ""
                row.reasons.append(f"{problem.code}: {problem.message}; {found}")
        except Exception as error:  # noqa: BLE001  # a fault of ours, to be shown
            row.state = "failed"
            row.reasons.append(f"check: {type(error).__name__}: {error}")
        finally:
            row.facts["check"] = time.process_time() - start
        return None

    def _run(
        self, row: Row, data: bytes, arrays: dict[str, Any], steps: list[float], how: str
    ) -> None:
        """Run a program and compare; notes what is wrong."""
        method = read_program(data, file=row.name).methods[0]
        inputs = b""
        for number, index in enumerate(method.inputs):
            value, array = method.values[index], arrays[f"in{number}"]
            if not isinstance(value, TensorValue):
                code = "d" if array.dtype.kind == "f" else "q"
                letter = {"f": b"D", "b": b"B"}.get(array.dtype.kind, b"I")
                inputs += letter + struct.pack(f"<{code}", array.item())
                continue
            inputs += struct.pack("<cBB", b"T", value.dtype, array.ndim)
            inputs += struct.pack(f"<{array.ndim}i", *array.shape)
            order = value.dim_order
            inputs += np.ascontiguousarray(array.transpose(order)).tobytes()
        failed, outputs = self._runner.run(data, inputs)
        if failed:
            fault, worst = failed, 0.0
        else:
            fault, worst = compared(decoded(outputs, method), arrays, steps)
        kind = "failed" if failed else "wrong"
        if how.startswith("as exported") and row.state == "refused":
            # A check that refuses what runs may be too narrow.
            row.reasons.append(f"{how}: {fault or 'right all the same'}")
        elif fault:
            row.state = kind
            row.reasons.append(f"{how}: {fault}")
        row.facts["error"] = max(worst, row.facts.get("error", 0.0))
        row.facts["ms"] = self._runner.microseconds / 1000

    def _ask_upstream(
        self, row: Row, stem: Path, arrays: dict[str, Any], steps: list[float]
    ) -> None:
        assert self._upstream is not None
        answer = self._upstream.run(stem)
        if answer["failed"]:
            row.facts["upstream"] = "refused"
            row.reasons.append(f"ExecuTorch: {answer['failed']}")
            return
        found = dict(np.load(f"{stem}.upstream.npz"))
        outputs = [found[f"out{i}"] for i in range(len(found))]
        fault, worst = compared(outputs, arrays, steps)
        row.facts["their error"] = worst
        row.facts["their ms"] = answer["microseconds"] / 1000
        row.facts["upstream"] = fault or "right"


def own_error(arrays: dict[str, Any]) -> float:
    """How far outputs are from those in Double, where these are known."""
    pairs = [
        (array.astype(np.float64), arrays[name.removeprefix("double ")])
        for name, array in arrays.items()
        if name.startswith("double ") and array.dtype.kind == "f" and array.size
    ]
    return max((float(np.abs(one - other).max()) for one, other in pairs), default=0.0)


def compared(outputs: list[Any], arrays: dict[str, Any], steps: list[float]) -> tuple[str, float]:
    """What is wrong with outputs, "" if nothing; the largest relative error."""
    wanted = [arrays[f"out{i}"] for i in range(len(arrays)) if f"out{i}" in arrays]
    if len(wanted) != len(outputs):
        return f"{len(outputs)} outputs instead of {len(wanted)}", 0.0
    worst = 0.0
    for number, (want, got) in enumerate(zip(wanted, outputs, strict=True)):
        got = np.asarray(got)
        if want.dtype.kind == "f" and got.dtype == np.uint16:  # BFloat16
            got = (got.astype(np.uint32) << 16).view(np.float32)
        if got.shape != want.shape:
            return f"output {number} has sizes {got.shape}, not {want.shape}", worst
        if want.dtype.kind != "f":
            if not np.array_equal(got, want):
                count = int(np.sum(got != want))
                return f"output {number}: {count} of {want.size} items differ", worst
            continue
        one, other = want.astype(np.float64), got.astype(np.float64)
        strange = ~np.isfinite(one) | ~np.isfinite(other)
        if not np.array_equal(one[strange], other[strange], equal_nan=True):
            return f"output {number}: other NaN or infinity", worst
        one, other = one[~strange], other[~strange]
        if not one.size:
            continue
        error = float(np.abs(one - other).max())
        largest = float(np.abs(one).max())
        relative = error / largest if largest else error
        worst = max(worst, relative)
        # A number of steps is exact but for the rounding of floats.
        most = max(STEPS * max(steps, default=0.0), own_error(arrays))
        most *= 1 + TOLERANCE
        if error > TOLERANCE * largest and error > most:
            at = int(np.abs(one - other).argmax())
            return (
                f"output {number}: {other[at]:.6g} instead of {one[at]:.6g},"
                f" {relative:.1e} of the largest",
                worst,
            )
    return "", worst


def line(row: Row) -> str:
    """A row of the table."""
    facts = row.facts

    def number(name: str, form: str) -> str:
        return format(facts[name], form) if name in facts else ""

    return (
        f"{row.name:44} {number('calls', 'd'):>5} {number('KB', ',.0f'):>7}"
        f" {number('arena', ',d'):>11} {number('check', '.1f'):>6} {row.state:12}"
        f" {number('error', '.0e'):>6}"
        f" {number('ms', ',.2f'):>8} {number('their ms', ',.2f'):>8}"
        f" {str(facts.get('upstream', ''))[:40]}"
    )


def print_sums(rows: list[Row]) -> None:
    """Sums by group, then what is missing."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for group in (row.group, "all"):
            if row.state == NO_INPUT:
                continue
            sums[group].update(["models", row.state])
            sums[group]["exported"] += row.state != "not exported"
            sums[group]["deployed"] += row.state in {"right", "wrong", "failed"}
            sums[group]["upstream"] += row.facts.get("upstream") == "right"
    columns = (*COLUMNS, "upstream")
    print(f"\n{'group':16}" + "".join(f"{c:>10}" for c in columns))
    for group, found in sums.items():
        if group != "all":
            print(f"{group:16}" + "".join(f"{found[c]:10}" for c in columns))
    print(f"{'all':16}" + "".join(f"{sums['all'][c]:10}" for c in columns))
    counts = Counter(name for row in rows for name in row.missing)
    alone = Counter(row.missing[0] for row in rows if len(row.missing) == 1)
    print(f"\n{'operators without a kernel':50}    models      alone")
    for name, count in counts.most_common():
        print(f"{name:50}{count:10}{alone[name]:11}")
    codes = Counter(
        code
        for row in rows
        if row.state == "refused"
        for code in {reason.partition(":")[0] for reason in row.reasons}
        if " " not in code and code != "ExecuTorch"
    )
    said = ", ".join(f"{code} {count}" for code, count in codes.most_common())
    print(f"\nrefusals by code: {said or 'none'}")
    ours: list[str] = []
    theirs: list[str] = []
    for row in rows:
        found = row.facts.get("upstream", row.state)
        if (row.state == "right") != (found == "right"):
            (ours if row.state == "right" else theirs).append(row.name)
    print(f"right in ExecuTorch's runtime only: {', '.join(theirs) or 'none'}")
    print(f"right in this runtime only: {', '.join(ours) or 'none'}")


def main() -> int:
    """Check, run, compare and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="PART,... of names")
    parser.add_argument("--executorch", default="", help="Python that has it")
    parser.add_argument("--sanitize", action="store_true", help="under ASan and UBSan")
    options = parser.parse_args()
    folder = native.FOLDER if options.sanitize else native.ROOT / "build" / "zoo-run"
    program = native.build("load_file", folder=folder, sanitize=options.sanitize)
    zoo = Zoo(Runner(program, times=True), options.folder, options.executorch)
    rows = []
    print(
        f"{'model':44} {'calls':>5} {'KB':>7} {'arena':>11} {'check':>6} {'result':12}"
        f" {'error':>6} {'ms':>8} {'their ms':>8} upstream"
    )
    for text in [f.read_text("utf-8") for f in sorted(options.folder.glob("*.json"))]:
        facts = json.loads(text)
        if any(part in facts["name"] for part in options.only.split(",")):
            rows.append(zoo.row(facts))
            if rows[-1].state == NO_INPUT:
                continue
            print(line(rows[-1]))
            for reason in dict.fromkeys(rows[-1].reasons):
                print(f"    {reason[:200]}", flush=True)
    print_sums(rows)
    return int(any(row.state in {"wrong", "failed"} for row in rows))


if __name__ == "__main__":
    sys.exit(main())
