"""Run the calls of a scenario on a built product, and measure what they cost."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.build import Project
from orchestrator.build.firmware import carry_out
from orchestrator.build.instrument import instrument
from orchestrator.cli.console import Console
from orchestrator.running.costs import CYCLES, NANOSECONDS, RunCosts, cost_data, cost_table, timed
from orchestrator.running.counting import counted, read_counts
from orchestrator.running.device import Device
from orchestrator.running.product import Product
from orchestrator.running.protocol import CallResult, DeviceError
from orchestrator.running.values import Call

# Passes on a host, of which costs are the median. Chosen by hand.
_PASSES = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Costs of a run.

    Args:
        unit: `instructions`, `ns` or `cycles`.
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
def running(console: Console, product: Product, on: Device | None = None) -> Iterator[None]:
    """Show that the firmware runs, and since when."""
    with console.progress() as reporter:
        emulator = product.emulator_on(platform.machine())
        where = f"in QEMU, {product.board}" if product.board else "in QEMU"
        where = f"on {on}" if on else where if emulator else "on this machine"
        reporter.working(f"running {where}")
        yield


def measure(
    project: Project,
    calls: tuple[Call, ...],
    console: Console,
    *,
    passes: int | None,
    timeout_s: float,
    on: Device | None = None,
) -> tuple[tuple[CallResult, ...], Measured | None]:
    """Results of the calls, and their costs unless one failed on the device.

    Args:
        project: It is built as it is now, with a firmware that measures.
        calls: In order.
        console: Shows progress.
        passes: On hosts and devices: runs to take the median of; None for some.
        timeout_s: Of the run.
        on: The device that has the product; None: this machine, or an emulator.
    """
    with console.progress() as reporter:
        ready = instrument(project, console.shell(reporter), on)
    # Nothing else runs on a device.
    passes = (passes or (1 if on else _PASSES)) if ready.plan is None else 1
    # Each pass starts like a run: with methods that are not loaded.
    again = (replace(calls[0], fresh=True), *calls[1:])
    every = (*calls, *(again * (passes - 1)))
    with tempfile.TemporaryDirectory(prefix="orchestrator-profile-") as name:
        firmware = Path(name) / ready.product.firmware
        firmware.write_bytes(ready.firmware)
        firmware.chmod(0o755)
        with running(console, ready.product, on):
            answer = carry_out(
                *(ready.product, firmware, every),
                timeout_s=timeout_s,
                plan=ready.plan,
                cache=project.settings.cache,
                on=on,
            )
    results = answer.results
    first = results[: len(calls)]
    if any(result.error is not DeviceError.Ok for result in first):
        return first, None
    costs: RunCosts
    if ready.plan is None:
        starts = range(0, len(every), len(calls))
        groups = [results[start : start + len(calls)] for start in starts]
        costs = timed(calls, groups, ready.operators, CYCLES if on else NANOSECONDS)
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
        table=cost_table(costs, ready.operators, ready.estimate, ready.counter),
        data=cost_data(costs, ready.operators, methods, ready.estimate, ready.counter),
    )
