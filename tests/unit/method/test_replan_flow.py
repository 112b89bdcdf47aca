"""Which tensors stay together, and how long they live: cases, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.method.effects import Effect
from orchestrator.method.replan import flow as flow_module
from orchestrator.method.replan.flow import Flow, flow_of
from tests.unit.method.made_effects import effects_of, offsets, replanned

if TYPE_CHECKING:
    import pytest


def lives(flow: Flow) -> dict[tuple[int, ...], tuple[int, int]]:
    """By group: first and last moment."""
    return {group.members: (group.first, group.last) for group in flow.groups}


def test_tensors_live_from_write_to_read() -> None:
    found = flow_of(
        effects_of(
            [(0, 16), (16, 16), (0, 16), (64, 16)],
            [
                Effect(reads=(0,), fills=(1,), next=(1,)),
                Effect(reads=(1,), fills=(2,), next=(2,)),
                Effect(next=(3,)),
            ],
            inputs=(0,),
            outputs=(2,),
        ),
        1,
    )
    assert lives(found) == {(0,): (-1, 0), (1,): (0, 1), (2,): (1, 3)}
    assert found.idle == (3,)
    assert found.is_clear


def test_a_view_that_nothing_writes_stays_with_what_it_shows() -> None:
    found = flow_of(
        effects_of(
            [(0, 32), (16, 16), (16, 16)],
            [
                Effect(fills=(0,), next=(1,)),
                Effect(reads=(1,), next=(2,)),
                Effect(fills=(2,), next=(3,)),
            ],
            outputs=(2,),
        ),
        1,
    )
    assert lives(found) == {(0, 1): (0, 1), (2,): (2, 3)}


def test_a_value_that_the_next_turn_of_a_loop_reads_lives_through_the_loop() -> None:
    code = [
        Effect(fills=(0,), next=(1,)),
        Effect(reads=(0,), fills=(1,), next=(2,)),
        Effect(reads=(1,), next=(3,)),
        Effect(fills=(0,), next=(4,)),
        Effect(next=(5, 1)),
        Effect(next=(6,)),
    ]
    found = flow_of(effects_of([(0, 16), (16, 16)], code), 1)
    assert lives(found) == {(0,): (0, 4), (1,): (1, 2)}


def test_rows_live_until_all_are_there() -> None:
    code = [
        Effect(fills=(1,), next=(1,)),
        Effect(reads=(1,), fills=(2,), next=(2,)),
        Effect(reads=(2,), updates=(0,), next=(3,)),
        Effect(next=(4, 1)),
    ]
    # Where rows come to lie, something else was before.
    found = flow_of(effects_of([(0, 32), (32, 16), (48, 16)], code, outputs=(0,)), 1)
    assert lives(found) == {(0,): (1, 4), (1,): (0, 3), (2,): (1, 2)}


def test_state_lives_always() -> None:
    found = flow_of(effects_of([(0, 16)], [Effect(next=(1,)), Effect(next=(2,))], state=[0]), 1)
    assert lives(found) == {(0,): (-1, 2)}


def test_what_nothing_has_written_is_not_clear() -> None:
    read = [Effect(reads=(0,), next=(1,))]
    assert not flow_of(effects_of([(0, 16)], read), 1).is_clear
    moved = [Effect(moved=(0,), next=(1,))]
    assert not flow_of(effects_of([(0, 16)], moved), 1).is_clear
    replaced = [*read, Effect(replaces=(0,), next=(2,))]
    assert flow_of(effects_of([(0, 16)], replaced), 1).is_clear
    # But for an input that the next run finds elsewhere.
    assert not flow_of(effects_of([(0, 16)], replaced, inputs=(0,)), 1).is_clear


def test_bytes_that_a_smaller_tensor_may_have_left_are_not_clear() -> None:
    code = [
        Effect(fills=(0,), next=(1,)),
        Effect(fills=(1,), next=(2,)),
        Effect(reads=(2,), next=(3,)),
    ]
    places = [(0, 16), (0, 16), (0, 16)]
    assert flow_of(effects_of(places, code), 1).is_clear
    assert not flow_of(effects_of(places, code, dynamic=[1]), 1).is_clear
    # A view of a tensor that changes its size has the items that one has.
    viewed = [
        Effect(fills=(0,), next=(1,)),
        Effect(reads=(0,), fills=(1,), views=(1,), next=(2,)),
        Effect(reads=(1,), next=(3,)),
    ]
    assert flow_of(effects_of(places, viewed, dynamic=[0, 1]), 1).is_clear


def test_a_method_that_takes_too_long_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    method = effects_of([(16, 16)], [Effect(fills=(0,), next=(1,))])
    assert flow_of(method, 1).is_clear
    monkeypatch.setattr(flow_module, "_MOST_WORK", 1)
    assert not flow_of(method, 1).is_clear


def test_a_jump_to_the_beginning_and_code_that_nothing_reaches() -> None:
    code = [
        Effect(fills=(0,), next=(1,)),
        Effect(reads=(0,), next=(0,)),
        Effect(reads=(1,), next=(3,)),
    ]
    found = flow_of(effects_of([(0, 16), (16, 16)], code), 1)
    assert lives(found) == {(0,): (0, 1), (1,): (2, 2)}


def test_idle_tensors_and_those_without_bytes_only_have_to_fit() -> None:
    method = effects_of(
        [(0, 16), (16, 64), (80, 32), (112, 0)], [Effect(fills=(0,), next=(1,))], outputs=(0,)
    )
    found = replanned(method)
    assert found.arena_bytes == (0, 64)
    assert offsets(found.values) == [0, 0, 0, 0]
    assert found.arenas[0].file_bytes == 112


def test_tensors_keep_their_distance_to_multiples_of_16() -> None:
    found = replanned(
        effects_of([(1004, 8), (500, 4)], [Effect(fills=(0, 1), next=(1,))], outputs=(0,))
    )
    assert [offset % 16 for offset in offsets(found.values)] == [12, 4]
    assert found.arena_bytes[1] < 64
