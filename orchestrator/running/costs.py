"""What a run cost, per operator: times on a host, instructions in QEMU, cycles on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import median_low
from typing import Final

from orchestrator.document import picked
from orchestrator.errors import MismatchError
from orchestrator.plain_table import table_lines
from orchestrator.running.protocol import CallResult
from orchestrator.running.values import Call
from orchestrator.targets.timing import Event, Timing

NANOSECONDS: Final = "ns"
INSTRUCTIONS: Final = "instructions"
CYCLES: Final = "cycles"

Operators = tuple[str, ...]
"""Per instruction of a method the operator it calls; "" for one that calls none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionCost:
    """One instruction of a method.

    Args:
        method: Index in the product's method table.
        index: In the method.
        calls: How often it ran.
        total: Of all calls.
        events: Of all calls, by `Event`; empty if they were not counted.
    """

    method: int
    index: int
    calls: int
    total: int
    events: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCosts:
    """What the calls of a run cost, in one unit.

    Args:
        unit: `NANOSECONDS`, `INSTRUCTIONS` or `CYCLES`.
        passes: Runs of all calls of which these are medians; 1 for exact counts.
        runs: Calls of methods.
        instructions: Those that call kernels, by method and index.
        executor: What the runs took apart from kernels.
        loads: How often a method was loaded.
        load: What that took; no part of the runs.
        executor_events: What `executor` consists of, by `Event`; empty if that was not
            counted.
        load_events: What `load` consists of, likewise.
    """

    unit: str
    passes: int
    runs: int
    instructions: tuple[InstructionCost, ...]
    executor: int
    loads: int
    load: int
    executor_events: tuple[int, ...] = ()
    load_events: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """What the runs took, without loading."""
        return self.executor + sum(i.total for i in self.instructions)

    @property
    def total_events(self) -> tuple[int, ...]:
        """What `total` consists of."""
        found = self.executor_events
        for instruction in self.instructions:
            found = sums(found, instruction.events)
        return found


def timed(
    calls: Sequence[Call],
    passes: Sequence[Sequence[CallResult]],
    operators: Mapping[int, Operators],
    unit: str = NANOSECONDS,
) -> RunCosts:
    """Costs by a clock: of each instruction the median over the passes.

    Args:
        calls: Of one pass.
        passes: Results of the same calls, several times over, all successful, of a
            product with trace hooks.
        operators: By index of the method.
        unit: What the clock counts.

    Raises:
        MismatchError: A pass ran other instructions than the first (`bad-response`), or
            the clock stands still (`no-cycles`).
    """
    totals: dict[tuple[int, int], list[int]] = {}
    executor = load = loads = 0
    for number, call in enumerate(calls):
        traces = [result.trace for p in passes for result in p[number : number + 1]]
        found = [trace for trace in traces if trace is not None]
        # Each pass begins with methods that are not loaded, and has the same inputs:
        # jumps go the same way, and other instructions mean another firmware than
        # product.json describes.
        order = {tuple(index for index, _ in trace.events) for trace in found}
        if len(order) != 1 or len(found) != len(passes):
            raise _unsteady(number, call)
        names = operators[call.method.index]
        (indices,) = order
        if any(index >= len(names) for index in indices):
            raise _unsteady(number, call)
        kernels = [at for at, index in enumerate(indices) if names[index]]
        for at in kernels:
            # The median: a pass that the host interrupted does not count. The lower one
            # of two is a time that was measured, an integer.
            ticks = median_low(trace.events[at][1] for trace in found)
            totals.setdefault((call.method.index, indices[at]), []).append(ticks)
        # Per pass what is left beside kernels, then the median: a difference of two
        # medians may be negative.
        executor += median_low(
            trace.run_ticks - sum(trace.events[at][1] for at in kernels) for trace in found
        )
        load_ticks = median_low(trace.load_ticks for trace in found)
        load += load_ticks
        loads += load_ticks != 0
    if unit == CYCLES and not executor and not any(map(sum, totals.values())):
        raise MismatchError.of(
            "no-cycles",
            "the counter of the device stands still",
            hint="the core lacks the counter; for a board that is emulated, leave out --on",
        )
    return RunCosts(
        unit=unit,
        passes=len(passes),
        runs=len(calls),
        instructions=tuple(
            InstructionCost(method=method, index=index, calls=len(ticks), total=sum(ticks))
            for (method, index), ticks in sorted(totals.items())
        ),
        executor=executor,
        loads=loads,
        load=load,
    )


def _unsteady(number: int, call: Call) -> MismatchError:
    return MismatchError.of(
        "bad-response",
        "the firmware did not run the same instructions each time",
        at=f"call {number} of {call.method}",
        hint="the firmware was built from something else; build again",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCost:
    """What the instructions of one operator cost together."""

    operator: str
    calls: int
    total: int
    events: tuple[int, ...] = ()


def by_operator(costs: RunCosts, operators: Mapping[int, Operators]) -> tuple[OperatorCost, ...]:
    """Costs per operator, the dearest first."""
    found: dict[str, OperatorCost] = {}
    for cost in costs.instructions:
        name = operators[cost.method][cost.index]
        row = found.get(name, OperatorCost(operator=name, calls=0, total=0))
        found[name] = OperatorCost(
            operator=name,
            calls=row.calls + cost.calls,
            total=row.total + cost.total,
            events=sums(row.events, cost.events),
        )
    return tuple(sorted(found.values(), key=lambda row: (-row.total, row.operator)))


def sums(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """Events of two parts of a run; one of them may be empty."""
    return tuple(map(sum, zip_longest(one, other, fillvalue=0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleEstimate:
    """How cycles are estimated from the events of a run.

    Args:
        cpu: The core.
        timing: Its cycles.
        wait_states: Of the flash; None if they are unknown, and then not counted.
        data_wait_states: Of the memory of tensors, likewise.
    """

    cpu: str
    timing: Timing
    wait_states: int | None = None
    data_wait_states: int | None = None

    def cycles(self, events: Sequence[int]) -> int:
        """Cycles of a part of the run; 0 without events."""
        if not events:
            return 0
        return self.timing.estimated(
            events, wait_states=self.wait_states or 0, data_wait_states=self.data_wait_states or 0
        )

    @property
    def assumption(self) -> str:
        """What the numbers are, and what they leave out."""
        match self.wait_states:
            case None:
                flash = "flash wait states unknown, none counted"
            case 0:
                flash = f"{'flash' if self.data_wait_states else 'memory'} without wait states"
            case count:
                flash = f"{count} wait states of the flash after each taken branch"
        if self.data_wait_states:
            flash += f", {self.data_wait_states} at each load and store"
        return f"cycles are an estimate for {self.cpu}: {flash}" + (
            ", averages where instructions pair" if self.timing.is_coarse else ""
        )

    @property
    def accuracy(self) -> str:
        """What devices took, where that was published."""
        if not self.timing.compared:
            return f"no estimate for {self.cpu} was compared with a device"
        found = ", ".join(
            f"{c.least:.2f}{f' to {c.most:.2f}' if c.most > c.least else ''} in {c.layers}"
            for c in self.timing.compared
        )
        return (
            f"devices took {found.replace(' in ', ' times as many in ', 1)}, with kernels of"
            " CMSIS-NN; other layers were not compared"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """What counted the cycles of a device.

    Args:
        device: As `--on` names it.
        board: Its board.
        counter: A register of the core.
        wait_states: Of the flash, as profile or board file say; None if they are unknown.
    """

    device: str
    board: str
    counter: str
    wait_states: int | None

    @property
    def assumption(self) -> str:
        """What the numbers are."""
        states = "unknown" if self.wait_states is None else self.wait_states
        return (
            f"cycles of {self.board} at {self.device}, counted by {self.counter}: as the board runs"
            f" (flash wait states on file: {states}), caches as start-up leaves them"
        )


# Hosts' clocks count nanoseconds, of which a table has too many digits.
SCALE: Final = {
    NANOSECONDS: (1000, 1, "us"),
    INSTRUCTIONS: (1, 0, "instructions"),
    CYCLES: (1, 0, "cycles"),
}
"""By unit: what a table divides by, decimals, name."""


def cost_table(
    costs: RunCosts,
    operators: Mapping[int, Operators],
    estimate: CycleEstimate | None = None,
    counter: Counter | None = None,
) -> str:
    """A table with a row per operator, one for the rest, the sum, and loading.

    Args:
        costs: Of a run.
        operators: By index of the method.
        estimate: Adds a column of cycles, and a line that says what they are.
        counter: Adds such a line for cycles that were counted.
    """
    scale, decimals, unit = SCALE[costs.unit]

    def row(
        name: str, calls: int | None, total: int, events: Sequence[int], *, percent: bool = True
    ) -> tuple[str, ...]:
        return (
            name,
            "" if calls is None else str(calls),
            f"{total / scale:,.{decimals}f}",
            f"{_percent(total, costs.total):.1f}" if percent else "",
            f"{total / calls / scale:,.{decimals}f}" if calls else "",
            *([f"{estimate.cycles(events):,}"] if estimate else []),
        )

    rest = "executor" if costs.unit == INSTRUCTIONS else "executor, tracing"
    rows = [
        ("operator", "calls", unit, "%", "per call", *(["est. cycles"] if estimate else [])),
        *(row(c.operator, c.calls, c.total, c.events) for c in by_operator(costs, operators)),
        row(rest, None, costs.executor, costs.executor_events),
        row("total", costs.runs, costs.total, costs.total_events),
        row("load", costs.loads, costs.load, costs.load_events, percent=False),
    ]
    lines = table_lines(rows, right=range(1, len(rows[0])))
    about = [estimate.assumption, estimate.accuracy] if estimate else []
    about += [counter.assumption] if counter else []
    return "\n".join([*lines, *about, ""])


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def cost_data(
    costs: RunCosts,
    operators: Mapping[int, Operators],
    methods: Mapping[int, tuple[str, str]],
    estimate: CycleEstimate | None = None,
    counter: Counter | None = None,
) -> dict[str, object]:
    """All that the table says and more as JSON data; the keys are stable.

    Args:
        costs: Of a run.
        operators: By index of the method.
        methods: Names of model and method, likewise.
        estimate: Adds `cycles` to each part, and what they are.
        counter: Adds what counted.
    """

    def cycles(events: Sequence[int]) -> dict[str, int]:
        return {"cycles": estimate.cycles(events)} if estimate else {}

    about: dict[str, object] = {}
    if counter:
        about["counted_on"] = picked(
            counter, "device", "board", "counter", "wait_states", "assumption"
        )
    if estimate:
        events = zip(Event, costs.total_events, strict=False)
        about["cycle_estimate"] = {
            **picked(estimate, "cpu", "wait_states", "data_wait_states"),
            **picked(estimate.timing, "is_coarse", "source"),
            **picked(estimate, "assumption", "accuracy"),
            "compared": [picked(c, "layers", "least", "most") for c in estimate.timing.compared],
            "total": estimate.cycles(costs.total_events),
            "events": {event.name.lower(): count for event, count in events},
        }
    return {
        **picked(costs, "unit", "passes", "runs"),
        "operators": [
            {
                **picked(cost, "operator", "calls", "total"),
                "percent": _percent(cost.total, costs.total),
                "per_call": cost.total / cost.calls,
                **cycles(cost.events),
            }
            for cost in by_operator(costs, operators)
        ],
        "executor": {
            "total": costs.executor,
            "percent": _percent(costs.executor, costs.total),
            **cycles(costs.executor_events),
        },
        "total": costs.total,
        **about,
        "load": {"calls": costs.loads, "total": costs.load, **cycles(costs.load_events)},
        "instructions": [
            {
                "model": methods[cost.method][0],
                "method": methods[cost.method][1],
                "instruction": cost.index,
                "operator": operators[cost.method][cost.index],
                **picked(cost, "calls", "total"),
                **cycles(cost.events),
            }
            for cost in costs.instructions
        ],
    }
