"""The arguments of the QEMU plugin, and its counts."""

from __future__ import annotations

import struct

import pytest

from orchestrator.errors import MismatchError
from orchestrator.running.costs import InstructionCost
from orchestrator.running.counting import Code, CountPlan, Counts, Table, counted, read_counts
from orchestrator.targets.timing import Event

TEXT = """\
call 1 900
call 0 1000
run 500
call 0 12
run 510
instruction 0 0 2 600
instruction 0 1 2 300
total 5000
"""
OPERATORS = {0: ("aten::add.out", "")}


def test_arguments_of_the_plugin() -> None:
    plan = CountPlan(
        executor=(0x10000001, 198),
        tables=(
            Table(address=0x20000100, stride=12, count=21),
            Table(address=0x20000400, stride=12, count=0),
        ),
        functions=(0x41, 0x80),
    )
    # Addresses of functions without the bit for Thumb.
    assert plan.arguments == (
        "function=0x40,function=0x80,executor=0x10000000,bytes=198,"
        "table=0x20000100,stride=12,count=21,table=0x20000400,stride=12,count=0,"
        "out=counts.txt"
    )


def test_code_adds_its_events() -> None:
    code = Code(address=0x100, events=bytes((Event.LOAD, 0x80, Event.DATA, 0)))
    plan = CountPlan(executor=(0, 0), tables=(), code=(code,))
    assert plan.arguments == "executor=0x0,bytes=0,events=events.bin,out=counts.txt"
    head = struct.pack("<3I", Event.MORE_REGISTERS, Event.LOAD, Event.LOOP_END)
    assert plan.events == head + struct.pack("<2I", 0x100, 2) + code.events


def test_events_are_read_and_summed() -> None:
    row = " ".join(map(str, range(len(Event))))
    text = f"call 0 5 {row}\nrun 7 {row}\ncall 0 5 {row}\nrun 7 {row}\ntotal 9 {row}\n"
    counts = read_counts(text)
    assert counts.run_events == tuple(2 * n for n in range(len(Event)))
    assert counts.call_events == counts.run_events
    with pytest.raises(MismatchError) as caught:
        read_counts("run 5 1 2 3\ntotal 9\n")
    (problem,) = caught.value.diagnostics
    assert problem.notes == (("found", f"3 events, expected {len(Event)}"),)


def test_counts_are_read() -> None:
    counts = read_counts(TEXT)
    assert counts == Counts(
        runs=(500, 510),
        calls=((1, 900), (0, 1000), (0, 12)),
        instructions=(
            InstructionCost(method=0, index=0, calls=2, total=600),
            InstructionCost(method=0, index=1, calls=2, total=300),
        ),
        total=5000,
    )
    assert counts.calls_of(0) == (1000, 12)


def test_costs_are_kernels_executor_and_loading() -> None:
    costs = counted(read_counts(TEXT), runs=2, operators=OPERATORS)
    # What the second instruction took is no kernel's: it is the executor's.
    assert costs.instructions == (InstructionCost(method=0, index=0, calls=2, total=600),)
    assert costs.executor == 410
    assert costs.total == 1010
    assert (costs.loads, costs.load) == (3, 1912)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "no total: the emulator did not end in good order"),
        ("run 5\n", "no total: the emulator did not end in good order"),
        ("total x\n", "invalid literal for int() with base 10: 'x'"),
        ("what 1\n", "the line 'what 1'"),
        ("instruction 0 0 2\ntotal 1\n", "the line 'instruction 0 0 2'"),
    ],
)
def test_damaged_counts_are_refused(text: str, found: str) -> None:
    with pytest.raises(MismatchError) as caught:
        read_counts(text)
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.notes) == ("bad-counts", (("found", found),))


@pytest.mark.parametrize(
    ("text", "runs", "found"),
    [
        (TEXT, 1, "2 runs, expected 1"),
        ("run 5\ninstruction 0 0 3 2\ntotal 5\n", 1, "instructions that took nothing"),
        ("run 5\ninstruction 0 0 1 5\ntotal 5\n", 1, "instructions that took nothing"),
    ],
)
def test_counts_of_another_run_are_refused(text: str, runs: int, found: str) -> None:
    with pytest.raises(MismatchError) as caught:
        counted(read_counts(text), runs=runs, operators=OPERATORS)
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.notes) == ("bad-counts", (("found", found),))
