"""Laws of planning afresh: whatever a method does, it finds the same bytes.

Methods are wild: tensors overlap as they like, jumps go anywhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.method.effects import Effect, MethodEffects
from orchestrator.method.replan.proof import problems_of
from orchestrator.program.values import Allocation, TensorValue
from tests.unit.method.made_effects import arena_bytes, effects_of, offsets, replanned, run_alike

if TYPE_CHECKING:
    from orchestrator.program.values import Value


@st.composite
def methods(draw: st.DrawFn, *, jumps: bool) -> MethodEffects:
    """A method whose instructions read what some instruction has written."""
    count = draw(st.integers(3, 8))
    places = [
        (16 * draw(st.integers(0, 5)), draw(st.sampled_from([16, 16, 32, 48])))
        for _ in range(count)
    ]
    some = st.integers(0, count - 1)
    few = st.lists(some, max_size=2).map(lambda v: tuple(dict.fromkeys(v)))
    inputs = draw(few)
    code = []
    length = draw(st.integers(1, 8))
    for index in range(length):
        following: tuple[int, ...] = (index + 1,)
        if jumps and draw(st.integers(0, 3)) == 0:
            target = draw(st.integers(0, length))
            following = tuple(dict.fromkeys((index + 1, target)))
        kind = draw(st.sampled_from(["fills", "fills", "fills", "both", "none"]))
        written = draw(few) if kind != "none" else ()
        code.append(
            Effect(
                reads=tuple(dict.fromkeys((*draw(few), *(written if kind == "both" else ())))),
                fills=written if kind == "fills" else (),
                updates=written if kind == "both" else (),
                next=following,
            )
        )
    return effects_of(
        places,
        code,
        inputs=inputs,
        outputs=draw(few),
        state=draw(st.sampled_from([(), (), (count - 1,)])),
        dynamic=draw(st.sampled_from([(), (), (0,), (0, 1)])),
    )


choices = st.lists(st.integers(0, 1), min_size=40, max_size=40)


@pytest.mark.parametrize("jumps", [False, True])
def test_a_random_method_finds_the_same_bytes(jumps: bool) -> None:  # noqa: FBT001
    seen: Counter[str] = Counter()

    @given(method=methods(jumps=jumps), ways=choices)
    def check(method: MethodEffects, ways: list[int]) -> None:
        found = replanned(method, slack=1000)
        for arena in found.arenas:
            seen["planned"] += 1
            # Without slack the program's plan is never worse than ours.
            assert replanned(method).arena_bytes[1] <= arena_bytes(method.values)[1]
            assert arena.lower_bound_bytes <= arena.size_bytes
        seen["moved"] += offsets(found.values) != offsets(method.values)
        assert problems_of(method, found.values, found.arena_bytes) == ()
        run_alike(method, found.values, ways)

    check()
    assert seen["moved"] > 0  # the law is about something
    assert seen["planned"] > 0


def test_a_plan_that_breaks_a_method_is_refused() -> None:
    """What the machine notices on some way, the proof does."""
    seen: Counter[bool] = Counter()

    @given(
        method=methods(jumps=True), ways=choices, victim=st.integers(0, 7), place=st.integers(0, 6)
    )
    def check(method: MethodEffects, ways: list[int], victim: int, place: int) -> None:
        values: list[Value] = list(method.values)
        victim %= len(values)
        value = values[victim]
        assert isinstance(value, TensorValue)
        moved = Allocation(memory_id=1, offset_bytes=16 * place)
        values[victim] = replace(value, allocation=moved)
        try:
            run_alike(method, values, ways)
        except AssertionError:
            seen[True] += 1
            assert problems_of(method, values, (0, 4096))

    check()
    assert seen[True] > 0  # the law is about something


def test_the_order_of_values_changes_no_size() -> None:
    @given(method=methods(jumps=True), data=st.data())
    def check(method: MethodEffects, data: st.DataObject) -> None:
        count = len(method.values)
        order = data.draw(st.permutations(range(count)))
        new = {old: at for at, old in enumerate(order)}

        def moved(values: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(new[v] for v in values)

        other = replace(
            method,
            values=tuple(method.values[old] for old in order),
            inputs=moved(method.inputs),
            outputs=moved(method.outputs),
            at=tuple(
                replace(s, reads=moved(s.reads), fills=moved(s.fills), updates=moved(s.updates))
                for s in method.at
            ),
        )
        assert replanned(other).arena_bytes == replanned(method).arena_bytes

    check()
