"""`orchestrator build`: firmware, library, reports and lock of profiles."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from orchestrator.build import BuildReport, Project, build_product, load
from orchestrator.cli.commands.named_files import depfile_problems, write_dependencies
from orchestrator.cli.commands.options import build_options, options_of
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.cli.fastpath import unchanged_profile
from orchestrator.cli.render import failure_document
from orchestrator.errors import Diagnostic, ExitCode, OrchestratorError, UsageError
from orchestrator.fleet.outcome import Kind
from orchestrator.measure import dtype_notice
from orchestrator.measure.size import DtypeComparison
from orchestrator.shell.stamp import Looked


def run(args: Namespace, console: Console) -> ExitCode:
    """Build the profiles, or all products of the workspace."""
    if not needs_profile(args, args.profiles):
        return run_workspace(args, console, Kind.BUILD)
    _check(args)
    options = build_options(args)
    documents = []
    failures: list[OrchestratorError] = []
    looked = Looked()
    for path in args.profiles:
        # `fastpath` looked at all profiles together, and one had something to do: those
        # without are told one by one, without loading them.
        if _is_unchanged(path, args, console, looked):
            continue
        try:
            with console.progress(explain=args.explain) as reporter:
                project = Project(load(path), options_of(options, path))
                report = build_product(project, console.shell(reporter))
        except OrchestratorError as error:
            if not args.keep_going:
                raise
            failures.append(error)
            continue
        if args.depfile is not None:
            # The library is what a build system links, so it is what a rule of its
            # depfile is for.
            target = args.depfile_target or report.library
            write_dependencies(args.depfile, target=target, inputs=report.inputs)
        console.status(_summary(report))
        if notice := dtype_notice(report.report):
            console.status(f"{report.profile}: {notice.rstrip()}")
        documents.append(_document(report))
    found: dict[str, object] = {"builds": documents}
    if args.keep_going:
        found["failures"] = [failure_document(one) for one in failures]
    console.document(found)
    for failure in failures:
        console.problems(failure.diagnostics)
    # The first failure decides: a build that stopped there would have had this code.
    return failures[0].exit_code if failures else ExitCode.OK


def _is_unchanged(path: Path, args: Namespace, console: Console, looked: Looked) -> bool:
    """Whether one of several profiles has nothing to do; says so."""
    with_results = args.json or args.explain or args.locked or args.frozen
    if len(args.profiles) == 1 or with_results:
        return False
    options = {"--no-lock": ""} if args.no_lock else {}
    lines = unchanged_profile(str(path), options, looked)
    if lines is not None:
        console.status("\n".join(lines))
    return lines is not None


def _check(args: Namespace) -> None:
    """Check what the parser cannot. Raises UsageError with every problem."""
    problems = [
        Diagnostic.of(
            "usage",
            f"{option} takes one profile",
            found=f"{len(args.profiles)} profiles",
            hint=f"build them one by one, or without {option}",
        )
        for option, value in (
            ("--out", args.out),
            ("--lock", args.lock_file),
            ("--depfile", args.depfile),
        )
        if value is not None and len(args.profiles) > 1
    ]
    problems += depfile_problems(args)
    UsageError.raise_if(problems)


def _summary(report: BuildReport) -> str:
    totals = report.report.totals
    if report.plan.is_current and not report.lock_changed:
        done = f"{report.profile}: up to date"
    else:
        done = f"{report.profile}: built"
    lock = "no lock"
    if report.lock_file is not None:
        lock = f"lock {report.lock_file}{' written' if report.lock_changed else ''}"
    return (
        f"{done}, {totals.flash_bytes:,} bytes of flash"
        f" ({totals.flash_bytes_without_models:,} without models),"
        f" {totals.ram_bytes:,} bytes of RAM; outputs in {report.folder}, {lock}"
    )


def _document(report: BuildReport) -> dict[str, object]:
    steps = [*report.exports, *((s.label, s.reason) for s in report.plan.stages)]
    return {
        "profile": report.profile,
        "folder": str(report.folder),
        "lock": str(report.lock_file) if report.lock_file is not None else None,
        "lock_changed": report.lock_changed,
        "stages": [
            {"stage": label, "ran": bool(reason), "reason": reason} for label, reason in steps
        ],
        "flash_bytes": report.report.totals.flash_bytes,
        "flash_bytes_without_models": report.report.totals.flash_bytes_without_models,
        "ram_bytes": report.report.totals.ram_bytes,
        "dtype_comparison": _comparison(report.report.dtype_comparison),
        "missing": list(report.missing),
        "outputs": dict(report.lock.outputs),
    }


def _comparison(found: DtypeComparison | None) -> dict[str, object] | None:
    return None if found is None else asdict(found)
