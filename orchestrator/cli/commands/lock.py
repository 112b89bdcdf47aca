"""`orchestrator lock`: write the lock, or check it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Project, build_product, load
from orchestrator.build.checking import check_lock, check_outputs
from orchestrator.build.project import piped_name
from orchestrator.cli.commands.options import no_place_for_lock
from orchestrator.cli.workspace_command import needs_profile, run_workspace
from orchestrator.errors import ExitCode, UsageError
from orchestrator.fleet.outcome import Kind

if TYPE_CHECKING:
    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Build what the lock depends on, and write it; --check changes nothing."""
    if args.outputs and not args.check:
        raise UsageError.of(
            "usage",
            "--outputs requires --check",
            hint="`lock PROFILE --check --outputs` compares outputs with the lock",
        )
    if not needs_profile(args, args.profile, "out lock=lock_file"):
        if not args.check:
            raise UsageError.of(
                "usage",
                "without PROFILE, lock only checks",
                hint="`lock --check` checks the locks of the workspace, `build` writes them",
            )
        kind = Kind.OUTPUTS_CHECK if args.outputs else Kind.LOCK_CHECK
        return run_workspace(args, console, kind, lambda: BuildOptions(jobs=args.jobs, locked=True))
    if args.lock_file is None and piped_name(args.profile) is not None:
        raise no_place_for_lock()
    options = BuildOptions(out=args.out, jobs=args.jobs, lock=args.lock_file, locked=args.check)
    project = Project(load(args.profile), options)
    if args.outputs:
        count = check_outputs(project, console.shell())
        console.document({"lock": str(project.lock_file), "changed": False, "outputs": count})
        console.data(f"{project.lock_file}: current, {count} outputs match it")
        return ExitCode.OK
    changed = False
    with console.progress() as reporter:
        shell = console.shell(reporter)
        if args.check:
            check_lock(project, shell)
        else:
            changed = build_product(project, shell).lock_changed
    console.document({"lock": str(project.lock_file), "changed": changed})
    console.data(f"{project.lock_file}: {'written' if changed else 'current'}")
    return ExitCode.OK
