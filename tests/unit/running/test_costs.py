"""Costs per operator: medians, sums, tables and JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.errors import MismatchError
from orchestrator.running.costs import (
    CYCLES,
    INSTRUCTIONS,
    Counter,
    CycleEstimate,
    InstructionCost,
    OperatorCost,
    RunCosts,
    by_operator,
    cost_data,
    cost_table,
    timed,
)
from orchestrator.running.product import ProductMethod
from orchestrator.running.protocol import CallResult, CallTrace, DeviceError
from orchestrator.running.values import Call
from orchestrator.targets.timing import TIMINGS, Event

OPERATORS = {0: ("aten::add.out", "", "aten::mul.out", "aten::add.out")}
METHOD = ProductMethod(index=0, model="m", name="forward", state_bytes=0, inputs=(), outputs=())
CALL = Call(method=METHOD, inputs=())


def result(
    *events: tuple[int, int], load: int = 0, run: int = 0, traced: bool = True
) -> CallResult:
    trace = CallTrace(load_ticks=load, events=events, run_ticks=run)
    return CallResult(
        error=DeviceError.Ok,
        instruction=None,
        state_used_bytes=0,
        outputs=(),
        trace=trace if traced else None,
    )


def test_times_are_medians_per_instruction() -> None:
    passes = [
        [result((0, 10), (1, 3), (2, 50), (3, 20), load=7, run=100)],
        [result((0, 900), (1, 3), (2, 40), (3, 22), load=900, run=990)],
        [result((0, 12), (1, 3), (2, 45), (3, 400), load=9, run=470)],
    ]
    costs = timed((CALL,), passes, OPERATORS)
    assert [(c.index, c.calls, c.total) for c in costs.instructions] == [
        (0, 1, 12),
        (2, 1, 45),
        (3, 1, 22),
    ]
    # 20, 28 and 13 are left of the runs besides kernels.
    assert costs.executor == 20
    assert costs.total == 12 + 45 + 22 + 20
    assert (costs.loads, costs.load, costs.passes, costs.runs) == (1, 9, 3, 1)


def test_an_instruction_in_a_loop_counts_each_time() -> None:
    events = ((0, 5), (1, 1), (0, 6), (1, 1))
    twice = [result(*events, load=3, run=20), result(*events, run=20)]
    costs = timed((CALL, CALL), [twice], OPERATORS)
    assert costs.instructions == (InstructionCost(method=0, index=0, calls=4, total=22),)
    assert (costs.loads, costs.load, costs.executor) == (1, 3, 18)


@pytest.mark.parametrize(
    "passes",
    [
        [[result((0, 1))], [result((2, 1))]],
        [[result((0, 1))], [result()]],
        [[result((0, 1))], [result((0, 1), traced=False)]],
        [[result((4, 1))]],
        [[result((0, 1))], []],
    ],
)
def test_passes_that_differ_are_refused(passes: list[list[CallResult]]) -> None:
    with pytest.raises(MismatchError) as caught:
        timed((CALL,), passes, OPERATORS)
    (problem,) = caught.value.diagnostics
    assert problem.code == "bad-response"
    assert problem.notes == (("at", "call 0 of m.forward"),)


COSTS = RunCosts(
    unit=INSTRUCTIONS,
    passes=1,
    runs=2,
    instructions=(
        InstructionCost(method=0, index=0, calls=2, total=100),
        InstructionCost(method=0, index=2, calls=2, total=1600),
        InstructionCost(method=0, index=3, calls=2, total=200),
    ),
    executor=100,
    loads=1,
    load=12345,
)


def test_operators_are_sums_of_their_instructions() -> None:
    assert by_operator(COSTS, OPERATORS) == (
        OperatorCost(operator="aten::mul.out", calls=2, total=1600),
        OperatorCost(operator="aten::add.out", calls=4, total=300),
    )
    assert COSTS.total == 2000


def test_the_table() -> None:
    assert cost_table(COSTS, OPERATORS) == (
        "operator       calls  instructions      %  per call\n"
        "aten::mul.out      2         1,600   80.0       800\n"
        "aten::add.out      4           300   15.0        75\n"
        "executor                       100    5.0\n"
        "total              2         2,000  100.0     1,000\n"
        "load               1        12,345           12,345\n"
    )


def _events(**counts: int) -> tuple[int, ...]:
    return tuple(counts.get(event.name.lower(), 0) for event in Event)


def test_the_table_with_cycles() -> None:
    costs = replace(
        COSTS,
        instructions=(
            replace(COSTS.instructions[0], events=_events(data=60, load=40, taken=9)),
            replace(COSTS.instructions[1], events=_events(data=1600)),
            replace(COSTS.instructions[2], events=_events(divide=200)),
        ),
        executor_events=_events(data=100),
        load_events=_events(store=12345),
    )
    estimate = CycleEstimate(cpu="cortex-m4", timing=TIMINGS["cortex-m4"])
    assert cost_table(costs, OPERATORS, estimate) == (
        "operator       calls  instructions      %  per call  est. cycles\n"
        "aten::mul.out      2         1,600   80.0       800        1,600\n"
        "aten::add.out      4           300   15.0        75        1,558\n"
        "executor                       100    5.0                    100\n"
        "total              2         2,000  100.0     1,000        3,258\n"
        "load               1        12,345           12,345       12,345\n"
        "cycles are an estimate for cortex-m4: flash wait states unknown,"
        " none counted\n"
        "devices took 0.91 to 1.08 times as many in fully connected layers, 0.94 to 1.08 in"
        " networks of convolutions, with kernels of CMSIS-NN; other layers were not compared\n"
    )
    assert replace(estimate, wait_states=0).assumption.endswith(": memory without wait states")
    waiting = replace(estimate, wait_states=4)
    slow = replace(waiting, data_wait_states=1)
    assert slow.assumption.endswith(" after each taken branch, 1 at each load and store")
    assert replace(slow, wait_states=0).assumption.endswith(
        ": flash without wait states, 1 at each load and store"
    )
    assert slow.cycles(_events(data=60, load=40, taken=9)) == 158 + 4 * 9 + 40
    data: dict[str, Any] = cost_data(costs, OPERATORS, {0: ("m", "forward")}, waiting)
    assert [o["cycles"] for o in data["operators"]] == [1600, 1558 + 4 * 9]
    assert [i["cycles"] for i in data["instructions"]] == [158 + 4 * 9, 1600, 1400]
    assert (data["executor"]["cycles"], data["load"]["cycles"]) == (100, 12345)
    about = data["cycle_estimate"]
    assert (about["cpu"], about["wait_states"]) == ("cortex-m4", 4)
    assert about["total"] == 3258 + 4 * 9
    assert about["events"]["divide"] == 200
    assert about["accuracy"] == estimate.accuracy
    assert about["compared"][0] == {"layers": "fully connected layers", "least": 0.91, "most": 1.08}
    assert cost_data(costs, OPERATORS, {0: ("m", "forward")}, slow)["cycle_estimate"] == {
        **about,
        "assumption": slow.assumption,
        "data_wait_states": 1,
        "total": about["total"] + 40,
    }


def test_what_devices_took_is_said_or_that_none_was_compared() -> None:
    said = {cpu: CycleEstimate(cpu=cpu, timing=t).accuracy for cpu, t in TIMINGS.items()}
    assert said["cortex-m7"] == "no estimate for cortex-m7 was compared with a device"
    assert " 1.04 times as many in fully connected layers" in said["cortex-m33"]
    assert " 1.10 to 1.36 in depthwise convolutions, " in said["cortex-m55"]


def test_the_table_of_times_is_in_microseconds() -> None:
    passes = [[result((0, 1234), (2, 400), load=70, run=2000)]]
    costs = timed((CALL,), passes, OPERATORS)
    assert cost_table(costs, OPERATORS) == (
        "operator           calls   us      %  per call\n"
        "aten::add.out          1  1.2   61.7       1.2\n"
        "aten::mul.out          1  0.4   20.0       0.4\n"
        "executor, tracing         0.4   18.3\n"
        "total                  1  2.0  100.0       2.0\n"
        "load                   1  0.1              0.1\n"
    )


def test_cycles_of_a_device() -> None:
    passes = [[result((0, 1234), (2, 400), load=70, run=2000)]]
    costs = timed((CALL,), passes, OPERATORS, CYCLES)
    counter = Counter(device="probe:pyocd", board="own", counter="SysTick", wait_states=None)
    said = (
        "cycles of own at probe:pyocd, counted by SysTick: as the board runs (flash wait states on"
        " file: unknown), caches as start-up leaves them"
    )
    assert cost_table(costs, OPERATORS, counter=counter) == (
        "operator           calls  cycles      %  per call\n"
        "aten::add.out          1   1,234   61.7     1,234\n"
        "aten::mul.out          1     400   20.0       400\n"
        "executor, tracing            366   18.3\n"
        "total                  1   2,000  100.0     2,000\n"
        "load                   1      70               70\n"
        f"{said}\n"
    )
    data = cost_data(costs, OPERATORS, {0: ("m", "forward")}, counter=counter)
    assert (data["unit"], data["total"]) == ("cycles", 2000)
    assert data["counted_on"] == {
        "device": "probe:pyocd",
        "board": "own",
        "counter": "SysTick",
        "wait_states": None,
        "assumption": said,
    }
    assert "(flash wait states on file: 5)" in replace(counter, wait_states=5).assumption


def test_a_counter_that_stands_still_is_an_error() -> None:
    with pytest.raises(MismatchError) as caught:
        timed((CALL,), [[result((0, 0), (2, 0))]], OPERATORS, CYCLES)
    (problem,) = caught.value.diagnostics
    assert problem.code == "no-cycles"


def test_a_run_of_nothing_has_a_table() -> None:
    costs = timed((CALL,), [[result()]], {0: ()})
    assert cost_table(costs, {0: ()}).splitlines()[1].split() == [
        *("executor,", "tracing", "0.0", "0.0")
    ]


def test_the_data_add_up() -> None:
    data = cost_data(COSTS, OPERATORS, {0: ("m", "forward")})
    assert data == {
        "unit": "instructions",
        "passes": 1,
        "runs": 2,
        "operators": [
            {
                "operator": "aten::mul.out",
                "calls": 2,
                "total": 1600,
                "percent": 80.0,
                "per_call": 800.0,
            },
            {
                "operator": "aten::add.out",
                "calls": 4,
                "total": 300,
                "percent": 15.0,
                "per_call": 75.0,
            },
        ],
        "executor": {"total": 100, "percent": 5.0},
        "total": 2000,
        "load": {"calls": 1, "total": 12345},
        "instructions": [
            {
                "model": "m",
                "method": "forward",
                "instruction": index,
                "operator": operator,
                "calls": 2,
                "total": total,
            }
            for index, operator, total in (
                (0, "aten::add.out", 100),
                (2, "aten::mul.out", 1600),
                (3, "aten::add.out", 200),
            )
        ],
    }
