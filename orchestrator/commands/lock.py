"""`orchestrator lock`: write the lock, or check it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import ExitCode
from orchestrator.pipeline import BuildOptions, Pipeline, load

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Build what is needed to know the lock; write it, or compare with --check."""
    options = BuildOptions(out=args.out, locked=args.check)
    reporter = console.reporter(explain=False)
    try:
        report = Pipeline(load(args.profile), options).build(reporter)
    finally:
        reporter.close()
    console.document({"lock": str(report.lock_file), "changed": report.lock_changed})
    state = "written" if report.lock_changed else "current"
    console.data(f"{report.lock_file}: {state}")
    return ExitCode.OK
