"""Whether the last build of a product is one of the profile as it is now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from orchestrator.build import Project, build_product, inputs, open_build
from orchestrator.build.engine import Unread
from orchestrator.build.exporting import pending_exports
from orchestrator.build.product import known_outputs
from orchestrator.errors import Diagnostic, ToolchainError, UsageError
from orchestrator.shell.build_folder import CURRENT
from orchestrator.shell.input_files import DiskFiles
from orchestrator.shell.stamp import STAMP_NAME, is_current

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.cli.console import Console


def make_current(project: Project, console: Console) -> None:
    """Build a product, unless there is nothing to do.

    Raises:
        OrchestratorError: Of the stage that failed.
    """
    stamp, options = _stamp(project), project.options
    # Without --lock, what was built with --no-lock needs no lock to be run.
    has_lock = options.lock is None or stamp == _absolute(options.lock)
    if stamp is not None and has_lock and not options.locked:
        return
    reporter = console.reporter(explain=False)
    try:
        build_product(project, console.shell(reporter))
    finally:
        reporter.close()


def need_current(project: Project, console: Console) -> None:
    """Refuse a product that a build would change.

    Where its compiler is not installed, it is taken for the one of the last build.

    Raises:
        UsageError: It is not built (`not-built`), or not as it is now (`stale-build`).
    """
    if _stamp(project) is not None:
        return
    profile = project.profile.file
    is_built = (project.folder / "product.json").is_file()
    if is_built:
        pending = pending_exports(
            profile=project.profile,
            files=DiskFiles(),
            export_choice=project.options.export,
        )
        if not pending and _holds(project, console):
            return
        message = f"something changed since {project.profile.name} was built"
    else:
        message = f"{profile} is not built"
    raise UsageError(
        Diagnostic(
            code="stale-build" if is_built else "not-built",
            message=message,
            notes=(("found", f"an older build in {project.folder}"),)
            if is_built
            else (("expected", str(project.folder / "product.json")),),
            hint=f"leave out --no-build, or run `orchestrator build {profile}` first",
        )
    )


def _holds(project: Project, console: Console) -> bool:
    """Whether the outputs are those of the inputs as they are now."""
    build = open_build(project, console.shell())
    try:
        _ = build[inputs.TOOLCHAIN]
    except ToolchainError:
        before = project.notes.inputs("compile") or {}
        build = build.replace(
            {inputs.TOOLCHAIN: Unread(digest=before.get("toolchain", ""))}
        )
    outputs = known_outputs(project, build)
    if outputs is None:
        return False
    # Somebody may have put a file in the place of a link.
    published = project.folder / CURRENT
    try:
        return all((project.folder / n).samefile(published / n) for n in outputs)
    except FileNotFoundError:
        return False


def note_if_stale(project: Project, console: Console, what: str) -> None:
    """Say that what is shown is of an older build.

    Args:
        project: The product.
        console: Shows it.
        what: That is shown: `costs`.
    """
    if _stamp(project) is None:
        console.talk(
            f"{project.profile.file}: something changed since the last build;"
            f" {what} are from that build"
        )


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100  # keeps links


def _stamp(project: Project) -> str | None:
    """The lock that the stamp of the last build names; None unless it is current."""
    path = project.work / STAMP_NAME
    stamp = is_current(str(path), profile=str(project.profile.file))
    return None if stamp is None else str(stamp.get("lock"))
