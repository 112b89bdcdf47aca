"""Whether the last build of a product is one of the profile as it is now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from orchestrator.build import WORK, Pipeline
from orchestrator.build.exporting import pending_exports
from orchestrator.errors import Diagnostic, ToolchainError, UsageError
from orchestrator.shell.build_folder import CURRENT
from orchestrator.shell.stamp import STAMP_NAME, is_current

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.cli.console import Console


def make_current(pipeline: Pipeline, console: Console) -> None:
    """Build a product, unless there is nothing to do.

    Raises:
        OrchestratorError: Of the stage that failed.
    """
    stamp, options = _stamp(pipeline), pipeline.options
    # Without --lock, what was built with --no-lock needs no lock to be run.
    has_lock = options.lock is None or stamp == _absolute(options.lock)
    if stamp is not None and has_lock and not options.locked:
        return
    reporter = console.reporter(explain=False)
    try:
        # By another one: this one has read what the build is about to change.
        Pipeline(pipeline.profile, options).build(reporter)
    finally:
        reporter.close()


def need_current(pipeline: Pipeline) -> None:
    """Refuse a product that a build would change.

    Where its compiler is not installed, it is taken for the one of the last build.

    Raises:
        UsageError: It is not built (`not-built`), or not as it is now (`stale-build`).
    """
    if _stamp(pipeline) is not None:
        return
    profile = pipeline.profile.file
    is_built = (pipeline.folder / "product.json").is_file()
    if is_built:
        if not pending_exports(pipeline) and _holds(pipeline):
            return
        message = f"something changed since {pipeline.profile.name} was built"
    else:
        message = f"{profile} is not built"
    raise UsageError(
        Diagnostic(
            code="stale-build" if is_built else "not-built",
            message=message,
            notes=(("found", f"an older build in {pipeline.folder}"),)
            if is_built
            else (("expected", str(pipeline.folder / "product.json")),),
            hint=f"leave out --no-build, or run `orchestrator build {profile}` first",
        )
    )


def _holds(pipeline: Pipeline) -> bool:
    """Whether the outputs are those of the inputs as they are now."""
    try:
        plan = pipeline.plan(with_toolchain=True)
    except ToolchainError:
        plan = pipeline.plan(with_toolchain=False, as_before=True)
    outputs = pipeline.known_outputs(plan)
    if outputs is None:
        return False
    # Somebody may have put a file in the place of a link.
    published = pipeline.folder / CURRENT
    try:
        return all((pipeline.folder / n).samefile(published / n) for n in outputs)
    except FileNotFoundError:
        return False


def note_if_stale(pipeline: Pipeline, console: Console, what: str) -> None:
    """Say that what is shown is of an older build.

    Args:
        pipeline: The product.
        console: Hears of it.
        what: That is shown: `costs`.
    """
    if _stamp(pipeline) is None:
        console.talk(
            f"{pipeline.profile.file}: something changed since the last build;"
            f" {what} are from that build"
        )


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100  # keeps links


def _stamp(pipeline: Pipeline) -> str | None:
    """The lock that the stamp of the last build names; None unless it is current."""
    path = pipeline.folder / WORK / STAMP_NAME
    stamp = is_current(str(path), profile=str(pipeline.profile.file))
    return None if stamp is None else str(stamp.get("lock"))
