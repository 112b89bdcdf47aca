"""Passes on long methods: the work grows with the calls, results stay the same."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from orchestrator.method.passes import PASSES, proof, run_passes
from tests.unit.method.methods import Builder
from tests.unit.method.test_prelink_laws import methods

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from orchestrator.method.linked import LinkedMethod

ADD = "aten::add.out"


def long_method(blocks: int) -> LinkedMethod:
    """Of each block one copy can go, and one sum can be written over its input."""
    b = Builder()
    first = given_to = b.tensor((2, 4), 0)
    one = b.tensor((2, 4), None)
    for _ in range(blocks):
        copied, summed, result = (b.tensor((2, 4), at) for at in (16, 32, 0))
        b.call("aten::view_copy.out", given_to, b.numbers(2, 4), copied)
        b.call(ADD, copied, one, summed, in_place=(0, 1))
        b.call("aten::relu.out", summed, result)
        given_to = result
    return b.method((first,), (given_to,))


def calls_of(action: Callable[[], object]) -> int:
    """Calls of Python functions: time that no machine changes."""
    count = 0

    def profile(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", [*PASSES, "all"])
def test_work_grows_with_the_calls(name: str) -> None:
    passes = PASSES if name == "all" else [name]
    short, long = long_method(100), long_method(400)
    few = calls_of(lambda: run_passes(short, passes))
    many = calls_of(lambda: run_passes(long, passes))
    assert many < 4 * 1.25 * few


def test_the_passes_find_something_in_the_long_method() -> None:
    method = run_passes(long_method(50), PASSES)
    assert len(method.instructions) < 3 * 50


def test_an_output_may_move() -> None:
    """The caller reads it after the last instruction."""
    b = Builder()
    x, y, z = (b.tensor((2, 4), at) for at in (0, 16, 32))
    one = b.tensor((2, 4), None)
    b.call("aten::relu.out", x, y)
    b.call(ADD, y, x, z, in_place=(0,))
    b.call("aten::relu.out", one, b.tensor((2, 4), 0))
    before = b.method((x,), (z,))
    after = run_passes(before, ["in_place"], replans=True)
    assert after.places[z] == after.places[y]
    assert before.places[z] != before.places[y]


@given(method=methods(jumps=False, joins=False))
def test_a_proof_along_the_line_is_the_one_along_all_paths(method: LinkedMethod) -> None:
    """What a method without jumps skips would not have changed the answer."""
    short = run_passes(method, PASSES, replans=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            proof._Proof,  # noqa: SLF001
            "_along_line",
            proof._Proof._along_all_paths,  # noqa: SLF001
        )
        assert run_passes(method, PASSES, replans=True) == short
