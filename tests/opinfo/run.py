"""Runs drawn calls as programs, and compares with what PyTorch gave.

    python -m tests.opinfo.run [--operators NAME,...] [--sanitize] [--conditions]
        [--portable PROGRAM] FOLDER

Every call of the files in FOLDER becomes a `.pte` program of one call that is loaded
and run by one host program. Prints a line per operator: calls, of which bit-equal,
within the bound, refused, wrong and crashed. PROGRAM runs `.pte` files with
ExecuTorch's portable kernels (docs/testing.md); the same calls run there, too, and have
a line below ours where it differs, with those that only ExecuTorch takes.
`--conditions` makes calls that differ in one fact and compares the conditions of
functions.yaml with kernels. The exit code is 1 if anything of ours is wrong.
"""

from __future__ import annotations

import argparse
import random
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.cpp.support import native
from tests.integration.argument_facts import variants
from tests.integration.test_conditions import kernels, verdict
from tests.opinfo.programs import difference, outputs_of, program_of, short, tensors
from tests.unit.method.recorded_calls import Call, read_calls

if TYPE_CHECKING:
    from collections.abc import Iterable

COLUMNS: Final = ("calls", "equal", "bound", "refused", "wrong", "crashed")
UPSTREAM: Final = "  ExecuTorch"
SHOWN: Final = 6
"""Faults that are printed of an operator."""


class Runner:
    """The host program; started again where it dies."""

    microseconds = 0.0
    """That the last run took, if times are measured."""

    def __init__(self, program: Path, *, times: bool = False) -> None:
        """Run calls with a program of `native`, and measure their times."""
        self._command = [str(program), "serve", *(["times"] if times else [])]
        self._times = times
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, program: bytes, inputs: bytes) -> tuple[str, bytes]:
        """What failed, "" if nothing did, and the outputs."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        process = self._process
        assert process.stdin is not None
        try:
            for block in (program, inputs):
                process.stdin.write(struct.pack("<I", len(block)) + block)
            process.stdin.flush()
            failed, outputs = self._block().decode(), self._block()
            if self._times:
                self.microseconds = float(self._block() or 0)
        except (BrokenPipeError, EOFError):
            self._process = None
            _, errors = process.communicate()
            lines = [line for line in errors.decode().splitlines() if "rror" in line]
            return "crash " + (lines[0] if lines else str(process.returncode)), b""
        return failed, outputs

    def close(self) -> None:
        """End the program."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _block(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        head = self._process.stdout.read(4)
        if len(head) != len(b"size"):
            raise EOFError
        return self._process.stdout.read(struct.unpack("<I", head)[0])


def outcome(runner: Runner, call: Call, *, dynamic: bool) -> tuple[str, str]:
    """A column of the table, and what there is to say about it."""
    failed, data = runner.run(*program_of(call, dynamic=dynamic))
    if failed.startswith("crash"):
        return "crashed", failed
    if failed:
        return "refused", failed
    fault, equal = difference(call, outputs_of(data))
    if fault:
        return "wrong", fault
    return ("equal" if equal else "bound"), ""


def described(call: Call) -> str:
    """A call on one line."""
    parts = []
    for argument in call.args:
        items = list(tensors(Call("", (argument,))))
        if items:
            parts += [f"{short((t.dtype,))}{list(t.sizes)}{list(t.order)}" for t in items]
        else:
            parts.append(repr(argument))
    return "(" + ", ".join(parts) + ")"


class Results:
    """What one runtime made of calls."""

    def __init__(self, runner: Runner) -> None:
        """None yet."""
        self._runner = runner
        self._faults: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.total: Counter[str] = Counter()

    def add(self, number: int, call: Call) -> str:
        """Run a call; its column."""
        column, reason = outcome(self._runner, call, dynamic=number % 3 == 1)
        self.found.update([column, "calls"])
        if not reason:
            return column
        if column == "refused":
            types = tuple(dict.fromkeys(t.dtype for t in tensors(call)))
            reason = f"{reason}: {short(types)}"
        text = f"  {column}: {reason}"
        self._faults[text] += 1
        if self._faults[text] == 1 and len(self._faults) <= SHOWN:
            self._faults[f"    {described(call)[:300]}"] = 0
        return column

    def end(self) -> list[str]:
        """End an operator: its faults."""
        lines = [
            f"{text} ({count} calls)" if count else text
            for text, count in list(self._faults.items())[: 2 * SHOWN]
        ]
        self.total += self.found
        self.found.clear()
        self._faults.clear()
        return lines


def _print_row(name: str, found: Counter[str]) -> None:
    print(f"{name:55}" + "".join(f"{found[c]:9}" for c in COLUMNS), flush=True)


def check_results(ours: Results, theirs: Results | None, files: Iterable[Path]) -> None:
    """Print the table."""
    untried: list[str] = []
    print(f"{'operator':55}" + "".join(f"{c:>9}" for c in COLUMNS))
    for file in files:
        name = file.stem.replace(".", "::", 1)
        narrower: list[str] = []
        for number, call in enumerate(read_calls(file)):
            column = ours.add(number, call)
            takes = theirs and theirs.add(number, call) in {"equal", "bound"}
            if takes and column == "refused":
                narrower.append(described(call)[:300])
        if not ours.found["calls"]:
            untried.append(name)
        _print_row(name, ours.found)
        differs = theirs is not None and theirs.found != ours.found
        lines = ours.end()
        if theirs:
            if differs:
                _print_row(UPSTREAM, theirs.found)
            theirs.end()
        lines += [f"  only ExecuTorch takes {text}" for text in narrower[:SHOWN]]
        if lines:
            print("\n".join(lines))
    _print_row("all", ours.total)
    if theirs:
        _print_row(UPSTREAM, theirs.total)
    if untried:
        print(f"without a call: {', '.join(untried)}")


def check_conditions(runner: Runner, files: Iterable[Path]) -> int:
    """Print calls whose conditions say something else than the kernel; their number."""
    wrong = 0
    rng = random.Random(7)  # a test
    for file in files:
        calls = list(read_calls(file))
        if not calls:
            continue
        kernel = kernels()[calls[0].operator]
        drawn = rng.sample(calls, min(len(calls), 60))
        for call in rng.sample(drawn, min(len(drawn), 12)):
            drawn += variants(call, kernel.schema)
        refused = 0
        shown = 0
        for call in drawn:
            said = verdict(call, kernel)
            if said is None:
                continue
            failed, _ = runner.run(*program_of(call, dynamic=False))
            if failed.startswith(("open", "load")):
                continue
            refused += said != ""
            if (failed == "") != (said == "") or failed.startswith("crash"):
                wrong += 1
                shown += 1
                if shown <= SHOWN:
                    print(f"  build: {said or 'takes it'}; kernel: {failed or 'takes it'}")
                    print(f"    {described(call)[:300]}")
        print(f"{calls[0].operator}: {len(drawn)} calls, {refused} refused, {shown} wrong")
    return wrong


def main() -> int:
    """Build, run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--operators", default="", help="NAME,...; default: all")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--conditions", action="store_true")
    parser.add_argument("--portable", type=Path, help="program with ExecuTorch's portable kernels")
    options = parser.parse_args()
    names = tuple(filter(None, options.operators.split(",")))
    files = sorted(options.folder.glob("*.bin"))
    if names:
        files = [options.folder / f"{n.replace('::', '.')}.bin" for n in names]
    folder = native.ROOT / "build" / ("opinfo-san" if options.sanitize else "opinfo-run")
    program = native.build("load_file", folder=folder, operators=names, sanitize=options.sanitize)
    runner = Runner(program)
    if options.conditions:
        return int(check_conditions(runner, files) > 0)
    ours = Results(runner)
    theirs = Results(Runner(options.portable, times=True)) if options.portable else None
    check_results(ours, theirs, files)
    return int(ours.total["wrong"] + ours.total["crashed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
