"""Judge random programs: `python -m tests.differential --count 300 --seed 0`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from multiprocessing import Pool
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.differential.draw import Drawer
from tests.differential.exported import exported
from tests.differential.judge import PLACES, judge
from tests.differential.kept import keep
from tests.differential.reduce import reduced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.differential.judge import Difference, Place
    from tests.differential.program import Model

BATCH = 20
"""Programs of one product: what it compiles beside them is shared by all."""


def batches(count: int, seed: int, size: int = BATCH) -> Iterator[tuple[Place, list[int]]]:
    """Seeds of programs, with what they are built for."""
    for number, first in enumerate(range(0, count, size)):
        seeds = range(seed + first, seed + min(first + size, count))
        yield PLACES[number % len(PLACES)], [*seeds]


def _judged(
    work: tuple[Path, Place, list[int]],
) -> tuple[Place, list[int], list[Difference | None]]:
    folder, place, seeds = work
    found = judge([Drawer(one).model() for one in seeds], place, folder)
    shutil.rmtree(folder)
    return place, seeds, found


def differences(
    count: int, seed: int, folder: Path, size: int = BATCH, jobs: int = 1
) -> Iterator[tuple[int, Place, str]]:
    """(seed, place, what differs) of each program that does, in order."""
    work = [
        (folder / f"{number}", place, seeds)
        for number, (place, seeds) in enumerate(batches(count, seed, size))
    ]
    with ExitStack() as stack:
        each = stack.enter_context(Pool(jobs)).imap if jobs > 1 else map
        for place, seeds, found in each(_judged, work):
            for one, difference in zip(seeds, found, strict=True):
                if difference is not None:
                    yield one, place, difference.text


def smallest(seed: int, place: Place, folder: Path) -> Model:
    """The smallest program made of one that differs."""
    tried = iter(range(1000))

    def differs(model: Model) -> bool:
        return judge([model], place, folder / f"{next(tried)}")[0] is not None

    return reduced(Drawer(seed).model(), differs)


def shown(model: Model) -> str:
    """A program, a line for each instruction; its session."""
    lines = []
    for method in read_program(exported(model), file="").methods:
        lines.append(f"{method.name} {method.inputs} -> {method.outputs}")
        for index, value in enumerate(method.values):
            if isinstance(value, TensorValue):
                place = value.allocation
                at = f" at {place.memory_id}:{place.offset_bytes}" if place else ""
                kind = f"{value.dtype.name} {list(value.sizes)} {value.dim_order}"
                lines.append(f"  value {index}: {kind}{at}")
        for number, code in enumerate(method.instructions):
            text = f"{code}"
            if isinstance(code, KernelCall):
                text = f"{method.operators[code.operator]} {code.args}"
            lines.append(f"  {number}: {text}")
    called = ", ".join(model.methods[n].name for n, _ in model.session)
    return "\n".join([*lines, f"calls: {called}"])


def main() -> int:
    """Print each difference, and a closing line; 1 if there is one."""
    parser = argparse.ArgumentParser(prog="tests.differential")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=BATCH, help="of one product")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--no-reduce", action="store_true")
    parser.add_argument("--keep", type=Path, help="end with the first; its file")
    args = parser.parse_args()
    if ccache := shutil.which("ccache"):  # the models of a reduction share objects
        os.environ.setdefault("ORCHESTRATOR_COMPILER_LAUNCHER", ccache)
    failed, begin = 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="differential-") as name:
        folder = Path(name)
        for seed, place, text in differences(args.count, args.seed, folder, args.batch, args.jobs):
            failed += 1
            print(f"seed {seed}, {place.name}: {text}", flush=True)
            if not args.no_reduce:
                small = smallest(seed, place, folder / f"seed {seed}")
                print(shown(small), flush=True)
            if args.keep:
                keep(small if not args.no_reduce else Drawer(seed).model(), args.keep)
                break
    took = time.monotonic() - begin
    print(f"{args.count} programs, {failed} differ, {took:.0f} s")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
