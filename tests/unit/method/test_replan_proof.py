"""The proof of new places: what it refuses, and in which words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.method.effects import Effect
from orchestrator.method.replan.proof import problems_of
from orchestrator.program.values import Allocation, TensorValue
from tests.unit.method.made_effects import effects_of
from tests.unit.method.methods import tensor

if TYPE_CHECKING:
    from orchestrator.method.effects import MethodEffects
    from orchestrator.program.values import Value

CHAIN = effects_of(
    [(0, 16), (16, 16), (32, 16)],
    [Effect(reads=(0,), fills=(1,), next=(1,)), Effect(reads=(0, 1), fills=(2,), next=(2,))],
    inputs=(0,),
    outputs=(2,),
)


def problems(method: MethodEffects, *places: int, size: int = 48) -> tuple[str, ...]:
    """What is wrong with new offsets."""
    values: list[Value] = []
    for value, at in zip(method.values, places, strict=True):
        assert isinstance(value, TensorValue)
        place = Allocation(memory_id=1, offset_bytes=at)
        values.append(replace(value, allocation=place))
    return problems_of(method, values, (0, size))


def test_another_order_is_right() -> None:
    assert problems(CHAIN, 32, 0, 16) == ()
    assert problems(CHAIN, 16, 0, 32) == ()


def test_bytes_that_are_overwritten_too_early() -> None:
    code = (
        Effect(fills=(0,), next=(1,)),
        Effect(fills=(1,), next=(2,)),
        Effect(reads=(0,), next=(3,)),
    )
    method = effects_of([(0, 16), (16, 16)], code)
    assert problems(method, 16, 16) == ("instruction 2 finds other bytes in value 0",)
    ends = replace(method, outputs=(0,), at=code[:2])
    assert problems(ends, 0, 0) == ("instruction 2 finds other bytes in value 0",)


def test_tensors_of_one_instruction_come_to_overlap() -> None:
    assert problems(CHAIN, 0, 0, 16) == (
        "instruction 0 touches values 0 and 1, which overlap",
        "instruction 1 touches values 0 and 1, which overlap",
        "instruction 1 finds other bytes in value 0",
    )
    inputs = effects_of([(0, 16), (16, 16)], [Effect(next=(1,))], inputs=(0, 1))
    assert problems(inputs, 0, 0) == ("instruction -1 touches values 0 and 1, which overlap",)


def test_places_outside_of_the_arena_and_between() -> None:
    assert problems(CHAIN, 0, 16, 32, size=47) == ("value 2 ends at byte 48 of 47",)
    assert problems(CHAIN, 0, 24, 40, size=56) == (
        "value 1 is aligned otherwise",
        "value 2 is aligned otherwise",
    )


def test_other_tensors_and_other_sizes() -> None:
    values = (*CHAIN.values[:2], tensor((8,), 32))
    assert problems_of(CHAIN, values, (0, 48)) == ("value 2 has another size",)
    values = (*CHAIN.values[:2], tensor((16,), None))
    assert problems_of(CHAIN, values, (0, 48)) == ("other tensors are planned",)


def test_state_stays_from_run_to_run() -> None:
    method = effects_of(
        [(0, 16), (16, 16)], [Effect(fills=(1,), next=(1,))], state=[0], outputs=(1,)
    )
    assert problems(method, 16, 0) == ()
    assert problems(method, 0, 0) == (
        "instruction 1 touches values 1 and 0, which overlap",
        "instruction 1 finds other bytes in value 0",
    )


def test_what_is_behind_a_move_is_looked_at() -> None:
    code = [
        Effect(fills=(0,), next=(1,)),
        Effect(fills=(1,), next=(2,)),
        Effect(reads=(2,), updates=(2,), moved=(0,), next=(3,)),
    ]
    method = effects_of([(0, 16), (16, 16), (32, 16)], code, moved=(0,))
    assert problems(method, 16, 0, 32) == ()
    assert problems(method, 0, 0, 32) == (
        "instruction 2 finds other bytes in value 0",
        "instruction 3 finds other bytes in value 0",
    )


def test_all_ways_of_a_loop_are_looked_at() -> None:
    code = [
        Effect(fills=(0,), next=(1,)),
        Effect(reads=(0,), next=(2,)),
        Effect(fills=(1,), next=(3,)),
        Effect(next=(4, 1)),
    ]
    method = effects_of([(0, 16), (16, 16)], code)
    assert problems(method, 0, 0) == ("instruction 1 finds other bytes in value 0",)
    # A run that never ends has no outputs.
    endless = [Effect(fills=(0,), next=(1,)), Effect(next=(0,))]
    assert problems(effects_of([(0, 16)], endless, outputs=(0,)), 16) == ()
