"""Run the calls of a scenario on a built product, and measure what they cost."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.build import Project, build_product, inputs, open_build, table
from orchestrator.build.engine import Unread
from orchestrator.build.exporting import pending_exports
from orchestrator.build.firmware import carry_out
from orchestrator.build.instrument import instrument
from orchestrator.build.product import known_outputs
from orchestrator.cli.console import Console
from orchestrator.errors import Diagnostic, ToolchainError, UsageError
from orchestrator.measure import check_budget
from orchestrator.running.costs import RunCosts, cost_data, cost_table, timed
from orchestrator.running.counting import counted, read_counts
from orchestrator.running.product import Product
from orchestrator.running.protocol import CallResult, DeviceError, decode_response
from orchestrator.running.values import Call
from orchestrator.shell.build_folder import CURRENT
from orchestrator.shell.input_files import DiskFiles
from orchestrator.shell.stamp import STAMP_NAME, is_current

_PASSES = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Costs of a run.

    Args:
        unit: `instructions` or `ns`.
        total: Of all calls, in that unit.
        cycles: Estimated; None where nothing estimates them.
        table: The costs as text.
        data: As JSON.
    """

    unit: str
    total: int
    cycles: int | None
    table: str
    data: dict[str, object]


@contextmanager
def running(console: Console, product: Product) -> Iterator[None]:
    """Show that the firmware runs, and since when."""
    with console.progress() as reporter:
        emulator = product.emulator_on(platform.machine())
        where = f"in QEMU, {product.board}" if product.board else "in QEMU"
        where = where if emulator else "on this machine"
        reporter.working(f"running {where}")
        yield


def measure(
    project: Project,
    calls: tuple[Call, ...],
    console: Console,
    *,
    passes: int | None,
    timeout_s: float,
) -> tuple[tuple[CallResult, ...], Measured | None]:
    """Results of the calls, and their costs unless one failed on the device.

    Args:
        project: It is built as it is now, with a firmware that measures.
        calls: In order.
        console: Shows progress.
        passes: On hosts: runs to take the median of; None for some.
        timeout_s: Of the run.
    """
    with console.progress() as reporter:
        ready = instrument(project, console.shell(reporter))
    passes = (passes or _PASSES) if ready.plan is None else 1
    # Each pass starts like a run: with methods that are not loaded.
    again = (replace(calls[0], fresh=True), *calls[1:])
    every = (*calls, *(again * (passes - 1)))
    with tempfile.TemporaryDirectory(prefix="orchestrator-profile-") as name:
        firmware = Path(name) / ready.product.firmware
        firmware.write_bytes(ready.firmware)
        firmware.chmod(0o755)
        with running(console, ready.product):
            answer = carry_out(
                *(ready.product, firmware, every),
                timeout_s=timeout_s,
                plan=ready.plan,
                cache=project.settings.cache,
            )
    results = decode_response(answer.response, every)
    first = results[: len(calls)]
    if any(result.error is not DeviceError.Ok for result in first):
        return first, None
    costs: RunCosts
    if ready.plan is None:
        starts = range(0, len(every), len(calls))
        groups = [results[start : start + len(calls)] for start in starts]
        costs = timed(calls, groups, ready.operators)
    else:
        found, tables = read_counts(answer.counts), ready.plan.tables
        costs = counted(
            found,
            runs=len(calls),
            operators=ready.operators,
            tables=tables,
            pieces=sum(tables[call.method.index].pieces for call in calls),
        )
    methods = {m.index: (m.model, m.name) for m in ready.product.methods}
    return first, Measured(
        unit=costs.unit,
        total=costs.total,
        cycles=ready.estimate.cycles(costs.total_events) if ready.estimate else None,
        table=cost_table(costs, ready.operators, ready.estimate),
        data=cost_data(costs, ready.operators, methods, ready.estimate),
    )


# Check whether the last build of a product is current.


def make_current(project: Project, console: Console) -> None:
    """Build a product, unless there is nothing to do.

    Raises:
        OrchestratorError: A stage failed.
    """
    stamp, options = _stamp(project), project.options
    # Without --lock, a product built with --no-lock runs without a lock.
    has_lock = options.lock is None or stamp == _absolute(options.lock)
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
        pending = pending_exports(
            profile=project.profile,
            files=DiskFiles(),
            export_choice=project.export,
            offered=open_build(project)[inputs.OFFERED],
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
    """Whether the outputs match the current inputs."""
    build = open_build(project, console.shell())
    try:
        _ = build[inputs.TOOLCHAIN]
    except ToolchainError:
        before = project.notes.inputs("compile") or {}
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
