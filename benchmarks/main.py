"""Runs benchmarks and prints what they found."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.table import GOAL_COLUMNS, Findings, NotMeasuredError, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

BENCHMARKS = {
    "stages": "the stages before the compiler against ExecuTorch's tools",
    "commands": "`check` against the tools as commands; start-up and no-op build",
    "builds": "cold builds and the rebuild after a change in a kernel",
    "selection": "flash with every operator, with those of the model, with its dtypes",
    "kernels": "flash of the object of each portable kernel, with a single dtype",
    "planner": "memory plans of public hard instances, and the time they take",
    "fleet": "a workspace of a thousand products against a build of each alone",
    "scale": "a profile of 50 models; a program of thousands of instructions",
    "overhead": "a chain of tiny operators: time per instruction, and of loading",
    "runtime": "flash of the runtime by part, RAM and instructions of each program",
    "int8": "int8 models against CMSIS-NN: flash, RAM, instructions",
    "held_out": "int8 networks that no kernel was tuned for, against CMSIS-NN",
    "memory": "arenas of int8 nets: whole tensors, by rows, with rows from the caller",
    "passes": "int8 models with each pass switched off",
    "folded": "the fp32 autoencoder with its constants computed by the build",
    "lowering": "seconds of lowering networks with ExecuTorch, accelerated",
    "export": "exporting a model given as Python, and finding it unchanged",
    "firmware": "flash, RAM, instructions and outputs of firmware",
}


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; the result is the exit code."""
    args = _parser().parse_args(arguments)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a text file
    found: dict[str, Findings] = {}
    for name in args.only or BENCHMARKS:
        module = import_module(f"benchmarks.{name}")
        try:
            found[name] = module.measure(args.repetitions)
        except NotMeasuredError as missing:
            found[name] = Findings(missing=[f"{BENCHMARKS[name]}: {missing}"])
        for table in found[name].tables:
            print(table)
    goals = tuple(goal.row for f in found.values() for goal in f.goals)
    if goals:
        print(Table(title="Goals", columns=GOAL_COLUMNS, rows=goals))
    for line in dict.fromkeys(line for f in found.values() for line in f.missing):
        print(f"not measured: {line}")
    if args.json:
        document = {
            "machine": {
                "processor": platform.machine(),
                "system": platform.system(),
                "python": platform.python_version(),
            },
            **{
                name: {
                    "tables": [asdict(table) for table in f.tables],
                    "goals": [{**asdict(g), "met": g.met} for g in f.goals],
                    "not_measured": f.missing,
                }
                for name, f in found.items()
            },
        }
        args.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__)
    parser.add_argument(
        "--only",
        action="extend",
        nargs="+",
        choices=BENCHMARKS,
        help="; ".join(f"{name}: {text}" for name, text in BENCHMARKS.items()),
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers")
    parser.add_argument("--repetitions", type=_positive, default=9, metavar="N", help="default: 9")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
