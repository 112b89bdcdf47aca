"""`orchestrator size`: what the last build costs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, ExitCode, UsageError
from orchestrator.pipeline import BuildOptions, Pipeline, load
from orchestrator.stages.measure import diff_table, read_report, size_table

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from orchestrator.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Print flash and RAM by contributor and section, or the change to a report."""
    folder = Pipeline(load(args.profile), BuildOptions(out=args.out)).folder
    text = _read(folder / "report.json", f"orchestrator build {args.profile}")
    report = read_report(text)
    table = size_table(report)
    if args.diff is not None:
        other = _read(args.diff, "orchestrator build")
        table = diff_table(read_report(other), report)
    console.document(json.loads(text))
    console.data(table)
    return ExitCode.OK


def _read(path: Path, remedy: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            Diagnostic(
                code="no-report",
                message=f"{path} cannot be read",
                notes=(("found", getattr(error, "strerror", None) or str(error)),),
                hint=f"run `{remedy}` first",
            )
        ) from error
