"""`orchestrator lock`: write the lock, or check it."""

from __future__ import annotations

from argparse import Namespace

from orchestrator.build import build_product
from orchestrator.build.checking import check_lock, check_outputs
from orchestrator.build.project import piped_name
from orchestrator.cli.commands.options import no_place_for_lock, project_of
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, UsageError
from orchestrator.fleet.outcome import Kind


def run(args: Namespace, console: Console) -> ExitCode:
    """Build what the lock depends on, and write it; --check changes nothing."""
    if args.outputs and not args.locked:
        raise UsageError.wrong(
            "--outputs requires --check",
            "`lock PROFILE --check --outputs` compares outputs with the lock",
        )
    if not needs_profile(args, args.profile):
        if not args.locked:
            raise UsageError.wrong(
                "without PROFILE, lock only checks",
                "`lock --check` checks the locks of the workspace, `build` writes them",
            )
        kind = Kind.OUTPUTS_CHECK if args.outputs else Kind.LOCK_CHECK
        return run_workspace(args, console, kind)
    if args.lock_file is None and piped_name(args.profile) is not None:
        raise no_place_for_lock()
    project = project_of(args)
    if args.outputs:
        count = check_outputs(project, console.shell())
        return console.result(
            {"lock": str(project.lock_file), "changed": False, "outputs": count},
            f"{project.lock_file}: current, {count} outputs match it",
        )
    changed = False
    with console.progress() as reporter:
        shell = console.shell(reporter)
        if args.locked:
            check_lock(project, shell)
        else:
            changed = build_product(project, shell).lock_changed
    return console.result(
        {"lock": str(project.lock_file), "changed": changed},
        f"{project.lock_file}: {'written' if changed else 'current'}",
    )
