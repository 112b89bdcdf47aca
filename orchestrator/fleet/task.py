"""Do what a command does, for one product, in this process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from traceback import format_exception
from typing import Any, Final, TypeAlias, assert_never

from orchestrator.build import (
    BuildOptions,
    Project,
    Shell,
    build_product,
    inputs,
    open_build,
    table,
)
from orchestrator.build.checking import build_twice, check_lock, check_outputs
from orchestrator.build.judging import found_scenario, need_equal, run_scenario
from orchestrator.build.locking import lock_text_of
from orchestrator.build.product import check_product, target_facts
from orchestrator.build.project import load_product
from orchestrator.build.published import KnownLists
from orchestrator.build.report_file import last_report
from orchestrator.errors import Diagnostic, ExitCode, OrchestratorError
from orchestrator.fleet.outcome import Costs, Kind, Outcome, sizes_in_lock
from orchestrator.measure.size import SizeReport
from orchestrator.shell.files import refused
from orchestrator.shell.input_files import CommonFiles
from orchestrator.shell.reporter import Reporter
from orchestrator.shell.settings import read_settings
from orchestrator.shell.toolchain import InstalledToolchains, KnownToolchains, Toolchains
from orchestrator.workspace import Product
from orchestrator.workspace.load import Workspace, read_workspace

Work: TypeAlias = "Callable[[Project, Shell], Mapping[str, Any]]"

MOST_RESULTS: Final = 64
"""As many as the stages of some twenty products have: products of one profile, which
have most in common, are done one after the other."""


class RecentResults:
    """The last results of stages that several products of a workspace have in common.

    By key; those used least recently are dropped first.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[str, object] = OrderedDict()

    def get(self, key: str) -> object | None:
        """See `Results`."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: str, value: object) -> None:
        """See `Results`."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > MOST_RESULTS:
            self._values.popitem(last=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is done with one product.

    Args:
        kind: The command, or a function of a module that returns fields of the
            outcome, for commands that are no part of a build.
        workspace: Its `orchestrator.toml`.
        product: The product.
        options: Of builds.
        command: Folder that lasts as long as the command, for what its processes tell
            each other; None if there is only one process.
    """

    kind: Kind | Work
    workspace: Path
    product: Product
    options: BuildOptions = field(default_factory=BuildOptions)
    command: Path | None = None


class _Notes(Reporter):
    """Keeps what builds say about a product."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        """See `Reporter`."""
        self.texts.append(text.rstrip())


class Worker:
    """Does tasks one after the other, and keeps what they share.

    Args:
        shell: Tools to build with.
    """

    def __init__(self, shell: Shell) -> None:
        self._shell = replace(shell, common=CommonFiles(), results=RecentResults())
        self._command: tuple[Path | None, Path] | None = None
        self._workspace: Workspace
        self._tools: tuple[Toolchains, KnownLists]

    def do(self, task: Task) -> Outcome:
        """The outcome of a task. Errors of the product are part of it."""
        begin = time.monotonic()
        notes = _Notes()
        outcome = Outcome(product=task.product)
        try:
            self._begin(task)
            toolchains, lists = self._tools
            shell = replace(self._shell, reporter=notes, toolchains=toolchains, lists=lists)
            profile = load_product(self._workspace, task.product)
            project = Project(profile, task.options)
            outcome = replace(
                outcome,
                target=target_facts(open_build(project, shell)[inputs.TARGET]),
                before=sizes_in_lock(lock_text_of(project.lock_file) or ""),
            )
            if isinstance(task.kind, Kind):
                outcome = _done(task.kind, project, shell, outcome)
            else:
                outcome = replace(outcome, **task.kind(project, shell))
        except (OrchestratorError, OSError) as error:
            found = refused(error) if isinstance(error, OSError) else error
            outcome = replace(outcome, exit_code=found.exit_code, problems=found.diagnostics)
        except Exception as error:  # noqa: BLE001  # one product stops no other
            problem = Diagnostic.of(
                "internal-error",
                f"internal error: {type(error).__name__}: {error}",
                trace="".join(format_exception(error)),
                hint="please report it",
            )
            outcome = replace(outcome, exit_code=ExitCode.INTERNAL, problems=(problem,))
        return replace(
            outcome, seconds=time.monotonic() - begin, notes=tuple(dict.fromkeys(notes.texts))
        )

    def _begin(self, task: Task) -> None:
        """Read what the tasks of a command share; a scheduler's worker outlives it."""
        # By the folder of the command, which is new each time: files that tasks share
        # are read once for each command, not once for a worker of a scheduler, which
        # may live for days.
        if self._command == (task.command, task.workspace):
            return
        self._workspace = read_workspace(task.workspace)
        cache = read_settings(self._workspace.settings).cache
        given = self._shell.toolchains or InstalledToolchains(cache)
        lists = KnownLists(self._shell.lists.waits, task.command)
        self._tools = KnownToolchains(given), lists
        self._command = task.command, task.workspace


def _done(kind: Kind, project: Project, shell: Shell, begun: Outcome) -> Outcome:
    """The outcome, if nothing is wrong."""
    costs = begun.before or Costs()  # those of the lock
    match kind:
        case Kind.BUILD:
            report = build_product(project, shell)
            is_new = report.lock_changed or not report.plan.is_current
            done, costs = "built" if is_new else "up to date", costs_of(report.report)
        case Kind.CHECK:
            build = open_build(project, shell)
            done = "fits" if check_product(build, shell.reporter) else "may fit"
            memory = build[table.MEMORY]
            costs = Costs(ram_bytes=memory.arena_bytes + memory.state_bytes)
            begun = replace(begun, before=None)
        case Kind.SIZE:
            costs = costs_of(last_report(project)[1])
            done = "over budget" if project.over_budget.is_dir() else "measured"
        case Kind.VERIFY:
            twice, _ = build_twice(project.profile, project.options, shell)
            done, costs = "same twice", costs_of(twice.report)
        case Kind.RUN:
            done, costs = "outputs right", _run(project, shell)
        case Kind.TEST:
            done, costs = _tested(project, shell)
        case Kind.LOCK_CHECK:
            check_lock(project, shell)
            done = "lock current"
        case Kind.OUTPUTS_CHECK:
            done = f"match in {check_outputs(project, shell)} files"
        case _:
            assert_never(kind)
    return replace(begun, done=done, costs=costs)


def _run(project: Project, shell: Shell) -> Costs:
    """Build, and run the scenario of the product, or that of its profile."""
    path = found_scenario(project.profile)
    report = build_product(project, shell).report
    run_scenario(project, path)
    return costs_of(report)


def _tested(project: Project, shell: Shell) -> tuple[str, Costs]:
    """Build, and compare the product with its program."""
    report = build_product(project, shell).report
    verdict = need_equal(project, shell)
    return f"equal in {sum(m.runs for m in verdict.methods)} runs", costs_of(report)


def costs_of(report: SizeReport) -> Costs:
    """Sizes of a firmware."""
    totals = report.totals
    return Costs(flash_bytes=totals.flash_bytes, ram_bytes=totals.ram_bytes)
