"""`orchestrator watch`: build whenever something changes, and show what it costs."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from orchestrator.build import BuildOptions, Project, build_product, load
from orchestrator.build.firmware import need_runnable
from orchestrator.build.judging import product_of, scenario_of
from orchestrator.cli.commands.measuring import measure
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, OrchestratorError
from orchestrator.running.costs import NANOSECONDS
from orchestrator.workspace.lookup import is_name, member_at

Watch: TypeAlias = Callable[[frozenset[Path]], Iterator[set[str]]]
"""Yields the paths of changed files below folders, until it is ended.

Also yields nothing now and then, so first when it watches.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Built:
    """What a build needs, and the files that it read, by absolute path."""

    flash_bytes: int
    ram_bytes: int
    inputs: frozenset[str]
    cost: int | None = None
    """What the scenario took, if it ran through."""
    unit: str = ""
    cycles: int | None = None
    """Estimated, of the same."""


def run(args: Namespace, console: Console) -> ExitCode:
    """Build, then again after each change of a file that the build read."""
    return follow(args, console, _watcher())


def follow(args: Namespace, console: Console, watch: Watch) -> ExitCode:
    """Build now, and for each change that `watch` yields.

    A profile or model that is broken does not end it: what is shown is the problem, and
    the next change may repair it.
    """
    file = member_at(args.profile)[0] if is_name(args.profile) else args.profile
    profile = os.path.abspath(file)  # noqa: PTH100  # keeps links
    began = time.time_ns()
    # The first build tells which files to watch.
    before, ok = _build(args, console, None)
    folders: frozenset[Path] = frozenset()
    events: Iterator[set[str]] = iter(())
    unseen = False
    while True:
        inputs = {profile} | (before.inputs if before else frozenset())
        if _folders(inputs) != folders:
            folders = _folders(inputs)
            events = watch(folders)
            unseen = True
        # One that goes on also has what changed while the build ran; a new one has not.
        for found in events:
            # A new watch knows nothing of what was saved while the build ran: time
            # stamps do.
            missed = _saved_since(began, inputs, Path(profile).parent) if unseen else ()
            unseen = False
            changed = found.union(missed)
            mine = changed & inputs
            if not ok:
                # Any file may be what was missing.
                mine = {p for p in changed if not _is_output(p, Path(profile).parent)}
            if mine:
                shown = ", ".join(os.path.relpath(path) for path in sorted(mine))
                console.status(f"\n{shown} changed")
                began = time.time_ns()
                before, ok = _build(args, console, before)
                break
        else:
            return ExitCode.OK


def _saved_since(began: int, inputs: Iterable[str], folder: Path) -> set[str]:
    """Inputs that somebody else saved since a build began."""
    found = set()
    for path in inputs:
        with suppress(OSError):
            is_new = Path(path).stat().st_mtime_ns >= began
            if is_new and not _is_output(path, folder):
                found.add(path)
    return found


def _is_output(path: str, folder: Path) -> bool:
    """Whether a path looks like something that a build writes."""
    parts = Path(os.path.relpath(path, folder)).parts
    return not _OUTPUT_FOLDERS.isdisjoint(parts) or path.endswith((".lock", "~"))


# Milliseconds.
_FIRST_MS = 500
"""After which files are compared that were saved before they were watched."""
# Seconds, as of `run`.
_TIMEOUT_S = 600.0
"""Most time for a run of the scenario."""
_OUTPUT_FOLDERS = frozenset({"build", ".work", ".out", "__pycache__"})


def _folders(inputs: Iterable[str]) -> frozenset[Path]:
    """The folders of the inputs that exist; those below another one are left out."""
    found = {Path(path).parent for path in inputs}
    # watchfiles watches recursively: a folder below another would report each change
    # twice.
    return frozenset(
        folder for folder in found if folder.is_dir() and not found.intersection(folder.parents)
    )


def _build(args: Namespace, console: Console, before: _Built | None) -> tuple[_Built | None, bool]:
    """Build and show the result; the build that was right last, and if it is this."""
    # No lock: what is saved every minute is not yet what anybody wants to commit.
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
        flash_bytes=totals.flash_bytes, ram_bytes=totals.ram_bytes, inputs=frozenset(report.inputs)
    )
    if args.scenario is not None:
        now = _measured(args.scenario, project, console, now)
    flash = _change(now.flash_bytes, before.flash_bytes if before else None, " bytes")
    ram = _change(now.ram_bytes, before.ram_bytes if before else None, " bytes")
    document: dict[str, object] = {
        "profile": report.profile,
        "flash_bytes": now.flash_bytes,
        "ram_bytes": now.ram_bytes,
        "flash_change": now.flash_bytes - before.flash_bytes if before else None,
        "ram_change": now.ram_bytes - before.ram_bytes if before else None,
    }
    text = f"{report.profile}: flash {flash}, RAM {ram}"
    if now.cost is not None:
        earlier = before.cost if before and before.unit == now.unit else None
        is_time = now.unit == NANOSECONDS
        cost = _change(now.cost, earlier, " ns" if is_time else "")
        text += f", {'time' if is_time else now.unit} {cost}"
        document["cost"] = now.cost
        document["cost_unit"] = now.unit
        document["cost_change"] = None if earlier is None else now.cost - earlier
    if now.cycles is not None:
        earlier = before.cycles if before else None
        text += f", est. cycles {_change(now.cycles, earlier)}"
        document["estimated_cycles"] = now.cycles
        document["estimated_cycles_change"] = None if earlier is None else now.cycles - earlier
    console.document(document)
    console.data(text)
    return now, True


def _measured(scenario: Path, project: Project, console: Console, built: _Built) -> _Built:
    """The build with what the scenario takes, whose file is watched too."""
    files = {os.path.abspath(scenario)}  # noqa: PTH100  # keeps links
    cost, unit, cycles = None, "", None
    try:
        product = product_of(project)
        need_runnable(product)
        calls = scenario_of(scenario, product).calls
        _, found = measure(project, calls, console, passes=None, timeout_s=_TIMEOUT_S)
        if found is None:
            console.status(f"{scenario} fails; `orchestrator run` shows where")
        else:
            cost, unit, cycles = found.total, found.unit, found.cycles
    except OrchestratorError as error:
        console.problems(error.diagnostics)
    inputs = built.inputs | files
    return replace(built, inputs=inputs, cost=cost, unit=unit, cycles=cycles)


def _change(now: int, before: int | None, unit: str = "") -> str:
    """`12,345 bytes (+32)`."""
    if before is None:
        return f"{now:,}{unit}"
    return f"{now:,}{unit} ({now - before:+,})" if now != before else f"{now:,} (same)"


def _watcher() -> Watch:
    from watchfiles import watch  # noqa: PLC0415  # nothing else needs it

    def changes(folders: frozenset[Path]) -> Iterator[set[str]]:
        for found in watch(
            *folders,
            # Its own filter leaves out what editors and Python write, and also files
            # that a profile may name.
            watch_filter=None,
            raise_interrupt=True,
            rust_timeout=_FIRST_MS,
            yield_on_timeout=True,
        ):
            yield {path for _, path in found}

    return changes
