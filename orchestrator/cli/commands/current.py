"""Check whether the last build of a product is current."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.build import Build, Project, build_product, inputs, open_build, table
from orchestrator.build.engine import Unread
from orchestrator.build.product import known_outputs
from orchestrator.cli.console import Console
from orchestrator.errors import Diagnostic, ToolchainError, UsageError
from orchestrator.measure import check_budget
from orchestrator.shell.build_folder import CURRENT
from orchestrator.shell.stamp import STAMP_NAME, is_current


def make_current(project: Project, console: Console) -> None:
    """Build a product, unless there is nothing to do.

    Raises:
        OrchestratorError: A stage failed.
    """
    stamp, options = _stamp(project), project.options
    # Without --lock, a product built with --no-lock runs without a lock.
    has_lock = options.lock is None or stamp == _absolute(options.lock)
    # --locked and --frozen compare, also where nothing is to be built.
    if stamp is not None and has_lock and not options.locked:
        return
    with console.progress() as reporter:
        build_product(project, console.shell(reporter))


def need_current(project: Project, console: Console) -> None:
    """Reject a product that a build would change.

    A compiler that is not installed counts as unchanged since the last build.

    Raises:
        UsageError: It is not built (`not-built`), or changed since (`stale-build`).
        OverBudgetError: The last build is current, and exceeds its budget.
    """
    if _stamp(project) is not None:
        return
    profile = project.profile.named
    is_built = (project.reports / "report.json").is_file()
    if is_built:
        build = open_build(project, console.shell())
        if not build[inputs.PENDING_EXPORTS] and _holds(project, build):
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


def _holds(project: Project, build: Build) -> bool:
    """Whether the outputs match the current inputs."""
    try:
        _ = build[inputs.TOOLCHAIN]
    except ToolchainError:
        before = project.notes.inputs("compile") or {}
        # Without a compiler nothing can be built, but a build that is there may be
        # current: its notes have the compiler's digest.
        build = build.replace({inputs.TOOLCHAIN: Unread(digest=before.get("toolchain", ""))})
    outputs = known_outputs(project, build)
    if outputs is None:
        if build.plan().is_current and (report := build.remembered(table.MEASURE)):
            check_budget(report, project.profile.budget, project.profile.span)
        return False
    # The user may have replaced a link by a file.
    published = project.folder / CURRENT
    try:
        return all((project.folder / n).samefile(published / n) for n in outputs)
    except FileNotFoundError:
        return False


def note_if_stale(project: Project, console: Console, what: str) -> None:
    """Note that a result comes from an older build.

    Args:
        project: The product.
        console: Where to print it.
        what: The result: `costs`.
    """
    if project.over_budget.is_dir():
        console.status(f"{project.profile.name}: the last build exceeds its budget; {what} are its")
    elif _stamp(project) is None:
        console.status(
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
