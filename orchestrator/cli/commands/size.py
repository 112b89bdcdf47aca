"""`orchestrator size`: the cost of the last build, and of variants."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from orchestrator.build import Project
from orchestrator.build.instrument import what_if
from orchestrator.build.project import project_at
from orchestrator.build.report_file import last_report, read_report_file
from orchestrator.build.variant import Variant
from orchestrator.cli.commands.current import note_if_stale
from orchestrator.cli.commands.options import project_of
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, UsageError
from orchestrator.fleet.outcome import Kind
from orchestrator.measure import (
    By,
    diff_document,
    diff_table,
    group_document,
    group_table,
    size_summary,
    size_table,
)
from orchestrator.measure.size import SizeReport


def run(args: Namespace, console: Console) -> ExitCode:
    """Print flash and RAM, or their change from another build or in a what-if."""
    if not needs_profile(args, args.profile):
        return run_workspace(args, console, Kind.SIZE)
    variant = Variant(
        without_models=tuple(dict.fromkeys(args.without_model)),
        without_operators=tuple(dict.fromkeys(map(_operator, args.without_op))),
        dtypes=args.dtypes,
        optimize=args.optimize,
        toolchain=args.toolchain,
    )
    if variant.text and args.diff is not None:
        raise UsageError.wrong(
            "--diff compares with another build, and a what-if with this",
            "ask one after the other",
            found=f"--diff and {variant.text}",
        )
    by = By(args.by) if args.by else By.PART
    project = project_of(args)
    if variant.text:
        return _show_what_if(project, variant, by, console)
    text, report = last_report(project)
    note_if_stale(project, console, "sizes")
    if args.diff is not None:
        other = _other(args.diff, console)
        return console.result(diff_document(other, report, by), diff_table(other, report, by))
    if args.by:
        return console.result(group_document(report, by), group_table(report, by))
    return console.result(
        json.loads(text), size_table(report) if args.full else size_summary(report)
    )


def _operator(name: str) -> str:
    """Name of an operator; without a namespace it is `aten`."""
    return name if "::" in name else f"aten::{name}"


def _show_what_if(project: Project, variant: Variant, by: By, console: Console) -> ExitCode:
    with console.progress() as reporter:
        now, then = what_if(project, variant, console.shell(reporter))
    return console.result(
        {"what_if": variant.text, **diff_document(now, then, by)},
        diff_table(now, then, by, what=f"what if {variant.text}"),
    )


def _other(path: Path, console: Console) -> SizeReport:
    """The report that `--diff` names, or that of the product it names."""
    project = project_at(path)
    if project is None:
        return read_report_file(path)[1]
    report = last_report(project)[1]
    note_if_stale(project, console, "sizes")
    return report
