"""`orchestrator compat`: whether built firmware can run new programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.commands.in_the_field import (
    firmware_in,
    model_to_replace,
    replacement_problems,
)
from orchestrator.cli.commands.reading import read_bytes
from orchestrator.cli.render import diagnostic_to_json
from orchestrator.errors import ExitCode

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Check for each program whether it can replace a model, and why not."""
    firmware = firmware_in(args.firmware)
    model = model_to_replace(firmware, args.model)
    found = [
        (path, replacement_problems(firmware, read_bytes(path), model, file=str(path)))
        for path in args.programs
    ]
    console.document(
        {
            "ok": not any(problems for _, problems in found),
            "model": model,
            "programs": [
                {
                    "file": str(path),
                    "ok": not problems,
                    "problems": [diagnostic_to_json(p) for p in problems],
                }
                for path, problems in found
            ],
        }
    )
    for path, problems in found:
        verdict = f"{len(problems)} problems" if problems else "can take its place"
        console.data(f"{path}: {verdict} (model {model})")
    console.problems([p for _, problems in found for p in problems])
    failed = any(problems for _, problems in found)
    return ExitCode.INCOMPATIBLE if failed else ExitCode.OK
