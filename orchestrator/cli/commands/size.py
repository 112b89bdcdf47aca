"""`orchestrator size`: the cost of the last build, and of variants."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Project, load
from orchestrator.build.instrument import what_if
from orchestrator.build.project import project_at
from orchestrator.build.report_file import last_report, read_report_file
from orchestrator.build.variant import Variant
from orchestrator.cli.commands.measuring import note_if_stale
from orchestrator.cli.workspace_command import needs_profile, run_workspace
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

if TYPE_CHECKING:
    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Print flash and RAM, or their change from another build or in a what-if."""
    of_one = "out full by diff without_model without_op dtypes optimize toolchain"
    if not needs_profile(args, args.profile, of_one):
        return run_workspace(args, console, Kind.SIZE, lambda: BuildOptions(jobs=args.jobs))
    variant = Variant(
        without_models=tuple(dict.fromkeys(args.without_model)),
        without_operators=tuple(dict.fromkeys(map(_operator, args.without_op))),
        dtypes=args.dtypes,
        optimize=args.optimize,
        toolchain=args.toolchain,
    )
    if variant.text and args.diff is not None:
        raise UsageError.of(
            "usage",
            "--diff compares with another build, and a what-if with this",
            found=f"--diff and {variant.text}",
            hint="ask one after the other",
        )
    by = By(args.by) if args.by else By.PART
    options = BuildOptions(out=args.out, jobs=args.jobs, write_lock=False)
    project = Project(load(args.profile), options)
    if variant.text:
        _show_what_if(project, variant, by, console)
        return ExitCode.OK
    text, report = last_report(project)
    note_if_stale(project, console, "sizes")
    if args.diff is not None:
        other = _other(args.diff, console)
        console.document(diff_document(other, report, by))
        console.data(diff_table(other, report, by))
    elif args.by:
        console.document(group_document(report, by))
        console.data(group_table(report, by))
    else:
        console.document(json.loads(text))
        console.data(size_table(report) if args.full else size_summary(report))
    return ExitCode.OK


def _operator(name: str) -> str:
    """Name of an operator; without a namespace it is `aten`."""
    return name if "::" in name else f"aten::{name}"


def _show_what_if(project: Project, variant: Variant, by: By, console: Console) -> None:
    with console.progress() as reporter:
        now, then = what_if(project, variant, console.shell(reporter))
    console.document({"what_if": variant.text, **diff_document(now, then, by)})
    console.data(diff_table(now, then, by, what=f"what if {variant.text}"))


def _other(path: Path, console: Console) -> SizeReport:
    """The report that `--diff` names, or that of the product it names."""
    project = project_at(path)
    if project is None:
        return read_report_file(path)[1]
    report = last_report(project)[1]
    note_if_stale(project, console, "sizes")
    return report
