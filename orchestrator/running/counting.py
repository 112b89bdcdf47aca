"""Exact counts of executed instructions: input and output of the QEMU plugin.

The kinds of the instructions are counted too where code says them (`Event`).

`runtime/tools/count_instructions.c` is the plugin; it documents both.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.errors import MismatchError
from orchestrator.running.costs import INSTRUCTIONS, InstructionCost, Operators, RunCosts, sums
from orchestrator.targets.timing import Event

# Names without a folder: the plugin's arguments are separated by commas, which a path
# may have.
COUNTS_FILE: Final = "counts.txt"
"""Where the plugin writes to, in the folder the emulator runs in."""
EVENTS_FILE: Final = "events.bin"
"""Where it reads the kinds of instructions from, likewise."""
# Events before this one are kinds of instructions, each instruction of one kind; what
# follows counts extra costs. The plugin gets the number, so that a new kind needs no
# change there.
_KINDS: Final = int(Event.MORE_REGISTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Instructions of a method in the memory of the device.

    Args:
        address: Of the first.
        stride: Bytes of one.
        count: How many there are.
        steps: Of a method by rows: bytes of each step; each byte is an entry.
        pieces: Calls of the executor for a run: more than one if it waits for rows.
    """

    address: int
    stride: int
    count: int
    steps: tuple[int, ...] = ()
    pieces: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Instructions in the memory of the device.

    Args:
        address: Of the first halfword.
        events: Two bytes for each halfword: its kind and flags, as the plugin reads
            them.
    """

    address: int
    events: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPlan:
    """What is to be counted.

    Args:
        executor: Address and size in bytes of `orch::execute`.
        steps: The same of `orch::execute_steps` and `orch::make_step`, in products that
            have them.
        tables: Per method.
        functions: Addresses of functions whose calls are counted too.
        code: All code; empty: only instructions are counted, not their kinds.
    """

    executor: tuple[int, int]
    tables: tuple[Table, ...]
    steps: tuple[tuple[int, int], ...] = ()
    functions: tuple[int, ...] = ()
    code: tuple[Code, ...] = ()

    @property
    def events(self) -> bytes:
        """Contents of `EVENTS_FILE`."""
        parts = [struct.pack("<3I", _KINDS, Event.LOAD, Event.LOOP_END)]
        for code in self.code:
            parts.append(struct.pack("<2I", code.address, len(code.events) // 2))
            parts.append(code.events)
        return b"".join(parts)

    @property
    def arguments(self) -> str:
        """Arguments of the plugin, separated by commas."""
        address, size_bytes = self.executor
        # Addresses without bit 0, the mark of Thumb in symbols: the plugin sees where
        # instructions are.
        words = [f"function={function & ~1:#x}" for function in self.functions]
        words.append(f"executor={address & ~1:#x},bytes={size_bytes}")
        for address, size_bytes in self.steps:
            words.append(f"steps={address & ~1:#x},bytes={size_bytes}")
        words += [
            f"table={table.address:#x},stride={table.stride},count={table.count}"
            for table in self.tables
        ]
        words += [f"events={EVENTS_FILE}"] if self.code else []
        return ",".join((*words, f"out={COUNTS_FILE}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What the plugin counted.

    Args:
        runs: Instructions of each call of the executor.
        calls: (function, instructions) of each call of a function, in the order they
            returned in.
        run_events: Of all calls of the executor together, by `Event`; empty without
            code in the plan. So are the next.
        call_events: Of all calls of functions.
        instructions: Per instruction of a method that ran; `method` is the table.
        total: Everything that was executed, start-up code included.
    """

    runs: tuple[int, ...]
    calls: tuple[tuple[int, int], ...]
    instructions: tuple[InstructionCost, ...]
    total: int
    run_events: tuple[int, ...] = ()
    call_events: tuple[int, ...] = ()

    def calls_of(self, function: int) -> tuple[int, ...]:
        """Instructions of each call of a function, by its position."""
        return tuple(count for which, count in self.calls if which == function)


def read_counts(text: str) -> Counts:
    """What the plugin's file says.

    Raises:
        MismatchError: It is cut off or damaged (`bad-counts`).
    """
    runs, calls, instructions = [], [], []
    run_events: tuple[int, ...] = ()
    call_events: tuple[int, ...] = ()
    total = None
    try:
        for line in text.splitlines():
            match line.split():
                case ["run", count, *events]:
                    runs.append(int(count))
                    run_events = sums(run_events, _events(events))
                case ["call", function, count, *events]:
                    calls.append((int(function), int(count)))
                    call_events = sums(call_events, _events(events))
                case ["instruction", table, index, times, count, *events]:
                    instructions.append(
                        InstructionCost(
                            method=int(table),
                            index=int(index),
                            calls=int(times),
                            total=int(count),
                            events=_events(events),
                        )
                    )
                case ["total", count, *_]:
                    total = int(count)
                # What is not known is an error: the file has no version.
                case _:
                    raise _damaged(f"the line {line!r:.80}")
    except ValueError as error:
        raise _damaged(str(error)) from None
    if total is None:
        # The plugin writes it last, when QEMU ends: without it the file may be cut off.
        raise _damaged("no total: the emulator did not end in good order")
    return Counts(
        runs=tuple(runs),
        calls=tuple(calls),
        instructions=tuple(instructions),
        total=total,
        run_events=run_events,
        call_events=call_events,
    )


def _events(words: Sequence[str]) -> tuple[int, ...]:
    if words and len(words) != len(Event):
        raise _damaged(f"{len(words)} events, expected {len(Event)}")
    return tuple(map(int, words))


def _damaged(found: str) -> MismatchError:
    return MismatchError.of(
        "bad-counts",
        "the emulator's counts of instructions cannot be used",
        found=found,
        hint="run again; the plugin of QEMU may not fit this version of it",
    )


def _of_steps(
    instructions: Sequence[InstructionCost], tables: Sequence[Table]
) -> Iterator[InstructionCost]:
    """Costs by instruction, where those of methods by rows are by byte of a step."""
    found: dict[tuple[int, int], InstructionCost] = {}
    steps = {
        at: [n for n, size in enumerate(table.steps) for _ in range(size)]
        for at, table in enumerate(tables)
        if table.steps
    }
    for cost in instructions:
        if cost.method not in steps:
            yield cost
            continue
        # A step by rows has 1 to 5 bytes, and the plugin takes each as an entry of a
        # table of stride 1.
        index = steps[cost.method][cost.index]
        first = found.get((cost.method, index))
        found[cost.method, index] = replace(
            cost,
            index=index,
            # The executor reads a step's first byte once for each step; the other bytes
            # are the same step, which counts once.
            calls=first.calls if first else cost.calls,
            total=cost.total + (first.total if first else 0),
            events=sums(first.events if first else (), cost.events),
        )
    yield from found.values()


def counted(
    counts: Counts,
    *,
    runs: int,
    operators: Mapping[int, Operators],
    tables: Sequence[Table] = (),
    pieces: int | None = None,
) -> RunCosts:
    """Costs in instructions.

    Args:
        counts: Of a run, by a plan whose functions are those that load methods.
        runs: How many calls of methods there were.
        operators: By index of the method, which is that of its table.
        tables: Those of the plan.
        pieces: Calls of the executor, if there are more: one for each time that rows
            of an input have come.

    Raises:
        MismatchError: The counts are not of such a run (`bad-counts`).
    """
    # Runs in parts enter the executor once for each part.
    expected = runs if pieces is None else pieces
    if len(counts.runs) != expected:
        raise _damaged(f"{len(counts.runs)} runs, expected {expected}")
    kernels = tuple(
        i for i in _of_steps(counts.instructions, tables) if operators[i.method][i.index]
    )
    executor = sum(counts.runs) - sum(i.total for i in kernels)
    # Tables at another address than the firmware's give entries without code behind
    # them. A table of zeros looks like a fast model otherwise.
    if not _all_called(kernels, executor):
        raise _damaged("instructions that took nothing")
    loads = [count for _, count in counts.calls]
    of_kernels: tuple[int, ...] = ()
    for kernel in kernels:
        of_kernels = sums(of_kernels, kernel.events)
    return RunCosts(
        unit=INSTRUCTIONS,
        passes=1,
        runs=runs,
        instructions=kernels,
        executor=executor,
        loads=len(loads),
        load=sum(loads),
        executor_events=sums(counts.run_events, tuple(-e for e in of_kernels)),
        load_events=counts.call_events,
    )


def _all_called(kernels: Sequence[InstructionCost], executor: int) -> bool:
    """Whether every kernel, and the executor, was seen to execute something."""
    return executor > 0 and all(kernel.total >= kernel.calls for kernel in kernels)
