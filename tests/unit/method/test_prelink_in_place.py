"""Outputs in the place of inputs that die, and outputs that must not be."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.method.effects import effects_of_linked
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import run_passes
from orchestrator.method.passes.dataflow import Dataflow
from orchestrator.method.passes.proof import is_same
from orchestrator.method.replan.layout import replan
from orchestrator.planner import plan_blocks
from orchestrator.program.program import JumpFalseCall
from orchestrator.program.values import BoolValue, TensorValue, Value
from tests.unit.method.machine import behaves_alike
from tests.unit.method.methods import Builder, tensor
from tests.unit.method.test_prelink import _linked

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod

ADD = "aten::add.out"
RELU = "aten::relu.out"
CONTENT = bytes(range(12))


def after(method: LinkedMethod) -> LinkedMethod:
    """A method after the pass, which computes the same."""
    changed = run_passes(method, ["in_place"], replans=True)
    behaves_alike(method, changed, CONTENT)
    return changed


def shares(method: LinkedMethod, one: int, other: int) -> bool:
    places = method.places
    return places[one] == places[other]


def call_at(b: Builder, index: int) -> LinkedCall:
    call = b.code[index]
    assert isinstance(call, LinkedCall)
    return call


def chain(*, places: tuple[int, ...] = (0, 16, 32, 16)) -> tuple[Builder, list[int]]:
    """Input, then what mixes it, then an addition in place, then a mix again."""
    b = Builder()
    sizes = ((2,), (4,), (4,), (2,))  # most are needed where the output is written
    found = [b.tensor(s, place) for s, place in zip(sizes, places, strict=True)]
    x, y, z, out = found
    b.call(RELU, x, y)
    b.call(ADD, y, y, z, in_place=(0, 1))
    b.call(RELU, z, out)
    return b, found


def test_an_output_takes_the_place_of_an_input_that_dies() -> None:
    b, (x, y, z, out) = chain()
    method = after(b.method((x,), (out,)))
    assert shares(method, y, z)
    assert not shares(method, z, out)
    assert after(method) == method  # and that is all there is to do


def test_every_argument_that_is_the_input_must_be_allowed() -> None:
    b, (x, y, z, out) = chain()
    call = call_at(b, 1)
    for in_place, shared in (((0,), False), ((1,), False), ((0, 1), True)):
        b.code[1] = replace(call, in_place=in_place)
        assert shares(after(b.method((x,), (out,))), y, z) is shared


def test_an_input_that_is_needed_later_keeps_its_place() -> None:
    b, (x, y, z, out) = chain()
    b.code[2:] = []
    b.call(RELU, z, y, out)
    method = b.method((x,), (out,))
    assert after(method) == method


def test_inputs_of_the_method_keep_their_bytes() -> None:
    b = Builder()
    x, out = b.tensor((4,), 0), b.tensor((4,), 16)
    b.call(ADD, x, x, out, in_place=(0, 1))
    method = b.method((x,), (out,))
    assert after(method) == method


@pytest.mark.parametrize("kind", ["sizes", "dynamic", "state", "constant", "apart"])
def test_what_is_not_like_its_output_keeps_its_place(kind: str) -> None:
    b, (x, y, z, out) = chain()
    if kind == "sizes":
        b.values[z] = tensor((2,), 32)
    elif kind == "dynamic":
        b.values[y] = tensor((4,), 16, dynamic=True)
        b.values[z] = tensor((4,), 32, dynamic=True)
    elif kind == "state":
        z = b.tensor((4,), 32, state=True)
        b.code[1] = replace(call_at(b, 1), args=(y, y, z), outs=(z,))
    elif kind == "constant":
        y = b.tensor((4,), None)
        b.code[1] = replace(call_at(b, 1), args=(y, y, z))
    else:
        b.values[z] = tensor((4,), 34)  # not as far from a multiple of 16 as y
    method = b.method((x,), (out,))
    assert run_passes(method, ["in_place"], replans=True) == method


@pytest.mark.parametrize("kind", ["input", "later", "before", "dynamic"])
def test_a_pair_that_cannot_share_leaves_others_alone(kind: str) -> None:
    """It would make the proof of all of them fail."""
    b = Builder()
    x, u, v, w = (b.tensor((2,), at) for at in (0, 16, 32, 0))
    given: tuple[int, ...] = (v,)
    if kind != "input":
        b.call(RELU, x, u)
    if kind == "input":
        b.call(ADD, x, x, v, in_place=(0, 1))
    elif kind == "later":
        b.call(ADD, u, u, v, in_place=(0, 1))
        given = (u, v)
    elif kind == "before":
        b.call(RELU, x, v)
        b.call(RELU, u, v, w)
        b.call(ADD, u, u, v, in_place=(0, 1))
        given = (w, v)
    else:
        b.call(RELU, b.tensor((2,), 16, dynamic=True), w)
        b.call(ADD, u, u, v, in_place=(0, 1))
        given = (w, v)
    y, z, out = b.tensor((6,), 48), b.tensor((6,), 64), b.tensor((2,), 0)
    b.call(RELU, *given, y)
    b.call(ADD, y, y, z, in_place=(0, 1))
    b.call(RELU, z, out)
    method = run_passes(b.method((x,), (out,)), ["in_place"], replans=True)
    assert shares(method, y, z)
    assert not shares(method, u, v)


def test_without_a_lower_peak_nothing_changes() -> None:
    b, (x, _, z, _) = chain()
    b.code[2:] = []
    out = b.tensor((12,), 0)
    b.call(RELU, z, out)
    method = b.method((x,), (out,))
    assert after(method) == method


def test_methods_with_jumps_stay_as_they_are() -> None:
    b, (x, _, _, out) = chain()
    number = b.value(BoolValue(value=True))
    b.code.append(JumpFalseCall(condition=number, destination=3))
    method = b.method((x,), (out,))
    assert after(method) == method


def test_what_was_there_before_the_run_stays() -> None:
    b, (x, y, _, out) = chain(places=(0, 16, 32, 20))
    b.code[0] = replace(call_at(b, 0), outs=(out,), args=(x, out))
    method = b.method((x,), (out,))  # nobody writes y
    assert after(method) == method
    assert not shares(method, y, out)


def test_the_planner_finds_the_room_again() -> None:
    """Two buffers take turns: outputs can only stay if the later ones swap."""
    b = Builder()
    x = b.tensor((4,), 16)
    sizes = (16, 16, 8, 8, 16, 16)
    tensors = [b.tensor((s,), 16 * (n % 2)) for n, s in enumerate(sizes)]
    b.call(RELU, x, tensors[0])
    for n in range(1, 6):
        if n % 2:
            here = (tensors[n - 1], tensors[n - 1], tensors[n])
            b.call(ADD, *here, in_place=(0, 1))
        else:
            b.call(RELU, tensors[n - 1], tensors[n])
    method = b.method((x,), (tensors[-1],))
    changed = after(method)
    for n in (1, 3, 5):
        assert shares(changed, tensors[n - 1], tensors[n])
    effects = effects_of_linked(changed)
    found = replan(effects, changed.arena_bytes, file_bytes=(), fixed=(), plan=plan_blocks)
    assert found.arena_bytes[1] < method.arena_bytes[1] < changed.arena_bytes[1]


def test_both_sides_of_the_proof_are_needed() -> None:
    """Sharing is proved only where the kernel allows it and the input dies."""
    b, (x, y, z, out) = chain(places=(0, 16, 32, 0))
    method = b.method((x,), (out,))
    moved: dict[int, Value] = {z: tensor((4,), 16)}
    flow = Dataflow(method)
    assert is_same(method, flow, moved, {}, [(1, z, y)])
    assert not is_same(method, flow, moved, {})
    assert not is_same(method, flow, moved, {}, [(1, z, x), (0, z, y)])
    b.code[2:] = []
    b.call(RELU, z, y, out)
    later = b.method((x,), (out,))
    assert not is_same(later, Dataflow(later), moved, {}, [(1, z, y)])


@pytest.mark.parametrize("case", ["small_cnn"])
def test_real_programs_have_such_calls(case: str) -> None:
    method = run_passes(_linked(case), ["fold_permutes"])
    changed = run_passes(method, ["in_place"], replans=True)
    pairs = [
        (call.outs[0], call.args[i])
        for call in method.instructions
        if isinstance(call, LinkedCall)
        for i in call.in_place
    ]
    assert pairs
    assert not any(shares(method, *pair) for pair in pairs)
    assert all(shares(changed, *pair) for pair in pairs)
    for value, old in zip(changed.values, method.values, strict=True):
        if isinstance(old, TensorValue) and isinstance(value, TensorValue):
            assert (value.sizes, value.dtype) == (old.sizes, old.dtype)


def test_a_chain_computes_the_same() -> None:
    changed: Counter[bool] = Counter()

    @settings(max_examples=150, derandomize=True, deadline=None)
    @given(
        places=st.lists(st.integers(0, 2), min_size=5, max_size=5),
        which=st.lists(st.integers(0, 4), min_size=12, max_size=12),
        kinds=st.lists(st.sampled_from(["add", "one", "mix"]), min_size=4, max_size=4),
    )
    def check(places: list[int], which: list[int], kinds: list[str]) -> None:
        b = Builder()
        tensors = [b.tensor((12,), 16 * place) for place in places]
        for n, kind in enumerate(kinds):
            one, other, out = (tensors[i] for i in which[3 * n : 3 * n + 3])
            if kind == "mix":
                b.call(RELU, one, out)
            else:
                in_place = (0, 1) if kind == "add" else (1,)
                b.call(ADD, one, other, out, in_place=in_place)
        method = b.method((tensors[0],), (tensors[which[-1]],))
        changed[after(method) != method] += 1

    check()
    assert changed[True] > 0  # the law is about something


def test_what_is_not_proved_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    b, (x, _, _, out) = chain()
    method = b.method((x,), (out,))
    assert after(method) != method
    module = "orchestrator.method.passes.in_place"
    monkeypatch.setattr(f"{module}.is_same", lambda *_: False)
    assert after(method) == method
