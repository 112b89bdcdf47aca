"""`orchestrator watch`: build whenever something changes, and show what it costs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Project, build_product, load
from orchestrator.errors import ExitCode, OrchestratorError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Iterator

    from orchestrator.cli.console import Console

    Watch = Callable[[frozenset[Path]], Iterator[set[str]]]
    """Yields the paths of changed files below folders, until it is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Built:
    """What a build needs, and the files that it read, by absolute path."""

    flash_bytes: int
    ram_bytes: int
    inputs: frozenset[str]


def run(args: Namespace, console: Console) -> ExitCode:
    """Build, then again after each change of a file that the build read."""
    return follow(args, console, _watcher())


def follow(args: Namespace, console: Console, watch: Watch) -> ExitCode:
    """Build now, and for each change that `watch` yields.

    A profile or model that is broken does not end it: what is shown is the problem, and
    the next change may repair it.
    """
    profile = os.path.abspath(args.profile)  # noqa: PTH100  # keeps links
    before, ok = _build(args, console, None)
    folders: frozenset[Path] = frozenset()
    events: Iterator[set[str]] = iter(())
    while True:
        inputs = {profile} | (before.inputs if before else frozenset())
        if _folders(inputs) != folders:
            folders = _folders(inputs)
            events = watch(folders)
        # One that goes on also has what changed while the build ran.
        for changed in events:
            mine = changed & inputs
            if not ok:
                # Any file may be what was missing.
                mine = {p for p in changed if not _is_output(p, Path(profile).parent)}
            if mine:
                shown = ", ".join(os.path.relpath(path) for path in sorted(mine))
                console.status(f"\n{shown} changed")
                before, ok = _build(args, console, before)
                break
        else:
            return ExitCode.OK


def _is_output(path: str, folder: Path) -> bool:
    """Whether a path looks like something that a build writes."""
    parts = Path(os.path.relpath(path, folder)).parts
    return not _OUTPUT_FOLDERS.isdisjoint(parts) or path.endswith((".lock", "~"))


_OUTPUT_FOLDERS = frozenset({"build", ".work", ".out", "__pycache__"})


def _folders(inputs: Iterable[str]) -> frozenset[Path]:
    """The folders of the inputs that exist; those below another one are left out."""
    found = {Path(path).parent for path in inputs}
    return frozenset(
        folder
        for folder in found
        if folder.is_dir() and not found.intersection(folder.parents)
    )


def _build(
    args: Namespace, console: Console, before: _Built | None
) -> tuple[_Built | None, bool]:
    """Build and show the result; the build that was right last, and if it is this."""
    options = BuildOptions(out=args.out, jobs=args.jobs, write_lock=False)
    try:
        with console.progress() as reporter:
            project = Project(load(args.profile), options)
            report = build_product(project, console.shell(reporter))
    except OrchestratorError as error:
        console.failure(error)
        return before, False
    totals = report.report.totals
    now = _Built(
        flash_bytes=totals.flash_bytes,
        ram_bytes=totals.ram_bytes,
        inputs=frozenset(report.inputs),
    )
    flash = _change(now.flash_bytes, before.flash_bytes if before else None)
    ram = _change(now.ram_bytes, before.ram_bytes if before else None)
    console.document(
        {
            "profile": report.profile,
            "flash_bytes": now.flash_bytes,
            "ram_bytes": now.ram_bytes,
            "flash_change": now.flash_bytes - before.flash_bytes if before else None,
            "ram_change": now.ram_bytes - before.ram_bytes if before else None,
        }
    )
    console.data(f"{report.profile}: flash {flash}, RAM {ram}")
    return now, True


def _change(now: int, before: int | None) -> str:
    """`12,345 bytes (+32)`."""
    if before is None:
        return f"{now:,} bytes"
    return f"{now:,} bytes ({now - before:+,})" if now != before else f"{now:,} (same)"


def _watcher() -> Watch:
    from watchfiles import watch  # noqa: PLC0415  # nothing else needs it

    def changes(folders: frozenset[Path]) -> Iterator[set[str]]:
        for found in watch(*folders, watch_filter=None, raise_interrupt=True):
            yield {path for _, path in found}

    return changes
