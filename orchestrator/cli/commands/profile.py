"""`orchestrator profile`: what runs cost, compared."""

from __future__ import annotations

from argparse import Namespace

from orchestrator.cli.commands.named_files import read_text
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode
from orchestrator.running.cost_diff import cost_diff, read_costs


def run(args: Namespace, console: Console) -> ExitCode:
    """Compare two profiles; `diff` is the only action."""
    before, after = (
        read_costs(
            read_text(path, wanted="what `orchestrator run --profile --json` prints"),
            file=str(path),
        )
        for path in (args.before, args.after)
    )
    found = cost_diff(before, after, files=(str(args.before), str(args.after)))
    return console.result(found.data, found.table)
