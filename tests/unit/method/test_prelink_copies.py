"""Copies of prelinked methods: which are left out, and which must not be."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import PASSES, link_program, run_passes
from orchestrator.method.passes.constants import converted
from orchestrator.method.passes.dataflow import Dataflow, without
from orchestrator.method.passes.proof import Dropped, is_same
from orchestrator.method.passes.views import View
from orchestrator.method.places import Place
from orchestrator.method.sets import cut, join, meet
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import (
    Allocation,
    BoolValue,
    Dynamism,
    IntValue,
    NoneValue,
    TensorListValue,
    TensorValue,
)
from orchestrator.selection.extract import extract
from tests.unit.method.machine import behaves_alike
from tests.unit.method.methods import Builder
from tests.unit.products import program_of, resolution_of

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod

CLONE = "dim_order_ops::_clone_dim_order.out"
VIEW = "aten::view_copy.out"
CONTENT = bytes(range(40, 52))


def clone(b: Builder, source: int, out: int) -> None:
    none = b.value(NoneValue())
    b.call(CLONE, source, none, none, out)


def bases(method: LinkedMethod) -> list[str]:
    """What is left of a method."""
    return [
        i.operator.base if isinstance(i, LinkedCall) else type(i).__name__
        for i in method.instructions
    ]


def offset(method: LinkedMethod, index: int) -> int:
    """Where a tensor lies."""
    value = method.values[index]
    assert isinstance(value, TensorValue)
    assert value.allocation is not None
    return value.allocation.offset_bytes


def checked(method: LinkedMethod, *names: str) -> LinkedMethod:
    """The method after passes; it computes what it did."""
    after = run_passes(method, names or PASSES)
    behaves_alike(method, after, CONTENT)
    return after


def test_a_copy_shows_its_source() -> None:
    """In place of its output everything lies where the source does."""
    b = Builder()
    x, y, z, out = (b.tensor((8,), at) for at in (0, 8, 16, 24))
    b.call("aten::relu.out", x, y)
    clone(b, y, z)
    b.call("aten::relu.out", z, out)
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["relu", "relu"]
    assert offset(after, z) == 8
    assert after.origins == (0, 2)


def test_a_producer_writes_to_the_place_of_the_copy() -> None:
    """The source's place is written again while the copy is read."""
    b = Builder()
    x, y, z, other, out = (b.tensor((8,), at) for at in (0, 8, 16, 8, 24))
    b.call("aten::relu.out", x, y)
    clone(b, y, z)
    b.call("aten::relu.out", x, other)
    b.call("aten::relu.out", z, other, out)
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["relu", "relu", "relu"]
    assert offset(after, y) == 16


def test_before_planning_a_copy_gets_a_place_of_its_own() -> None:
    """Both places are in use: a reader writes to one, the producer reads the other."""
    b = Builder()
    x, w, y, z, v, out = (b.tensor((8,), at) for at in (0, 16, 8, 16, 8, 24))
    b.call("aten::relu.out", x, w)
    b.call("aten::relu.out", w, y)
    clone(b, y, z)
    b.call("aten::relu.out", z, v)
    b.call("aten::relu.out", v, out)
    method = b.method((x,), (out,))
    assert len(bases(checked(method, "alias_copies"))) == 5
    after = run_passes(method, ("alias_copies",), plans=True)
    behaves_alike(method, after, CONTENT)
    assert bases(after) == ["relu"] * 4
    assert offset(after, y) == offset(after, z) >= method.ends["arena", 1]


def test_a_chain_of_views_is_one_tensor() -> None:
    b = Builder()
    x, y, v, w, out = (
        b.tensor(sizes, at)
        for sizes, at in (((8,), 0), ((8,), 8), ((2, 4), 16), ((4, 2), 24), ((8,), 32))
    )
    b.call("aten::relu.out", x, y)
    b.call(VIEW, y, b.numbers(2, 4), v)
    b.call(VIEW, v, b.numbers(-1, 2), w)
    b.call(VIEW, w, b.numbers(8), out)
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["relu"]
    assert offset(after, y) == offset(after, out)


def test_a_view_that_the_plan_made_follows() -> None:
    """A tensor that nobody writes shows another one, and moves with it."""
    b = Builder()
    x, y, z, out = (b.tensor((8,), at) for at in (0, 8, 16, 24))
    half = b.tensor((4,), 20)
    b.call("aten::relu.out", x, y)
    clone(b, y, z)
    b.call("aten::relu.out", half, out)
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["relu", "relu"]
    assert offset(after, half) == 12


def test_parts_of_a_tensor_lie_in_it() -> None:
    b = Builder()
    x, y = b.tensor((8,), 0), b.tensor((2, 4), 8)
    row, rows, one, two = (
        b.tensor(sizes, at) for sizes, at in (((4,), 16), ((1, 4), 20), ((1, 4), 24), ((1, 4), 28))
    )
    out = b.tensor((8,), 40)
    zero, first = b.value(IntValue(0)), b.value(IntValue(1))
    none = b.value(NoneValue())
    b.call("aten::relu.out", x, y)
    b.call("aten::select_copy.int_out", y, zero, b.value(IntValue(-1)), row)
    b.call("aten::slice_copy.Tensor_out", y, zero, first, none, first, rows)
    each = b.value(TensorListValue((one, two)))
    b.call("aten::split_with_sizes_copy.out", y, b.numbers(1, 1), zero, each,
           outs=(one, two))  # fmt: skip
    b.call("aten::relu.out", row, rows, one, two, out)
    after = run_passes(b.method((x,), (out,)), ["alias_copies"])
    assert bases(after) == ["relu", "relu"]
    assert [offset(after, t) for t in (row, rows, one, two)] == [12, 12, 8, 12]


def test_parts_are_written_where_they_are_put_together() -> None:
    b = Builder()
    x, one, two = (b.tensor((4,), at) for at in (0, 4, 12))
    both, out = b.tensor((8,), 16), b.tensor((4,), 32)
    b.call("aten::relu.out", x, one)
    b.call("aten::relu.out", one, two)
    b.call("aten::cat.out", b.value(TensorListValue((one, two))),
           b.value(IntValue(0)), both)  # fmt: skip
    b.call("aten::relu.out", both, out)
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["relu"] * 3
    assert (offset(after, one), offset(after, two)) == (16, 20)


def test_a_part_that_is_there_twice_stays_a_copy() -> None:
    b = Builder()
    x, one, both = b.tensor((4,), 0), b.tensor((4,), 4), b.tensor((8,), 16)
    b.call("aten::relu.out", x, one)
    b.call("aten::cat.out", b.value(TensorListValue((one, one))),
           b.value(IntValue(0)), both)  # fmt: skip
    after = checked(b.method((x,), (both,)), "alias_copies")
    assert bases(after) == ["relu", "cat"]


def test_a_view_in_place_is_no_call() -> None:
    b = Builder()
    x, y, view, out = (
        b.tensor(sizes, at) for sizes, at in (((8,), 0), ((8,), 8), ((2, 4), 8), ((8,), 16))
    )
    b.call("aten::relu.out", x, y)
    b.call("executorch_prim::et_view.default", y, b.numbers(2, 4), view)
    b.call("aten::relu.out", view, out)
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["relu", "relu"]
    assert (offset(after, y), offset(after, view)) == (8, 8)


def test_state_is_copied_before_it_changes() -> None:
    """A clone of state that is a result holds what state was before the update."""
    b = Builder()
    state = b.tensor((4,), 0, state=True)
    x, new, out = (b.tensor((4,), at) for at in (8, 16, 24))
    clone(b, state, out)
    b.call("aten::relu.out", x, state, new)
    b.call("aten::copy_", state, new, b.value(NoneValue()), state)
    method = b.method((x,), (out,))
    assert bases(checked(method)) == bases(method)


def test_state_that_does_not_change_is_shown() -> None:
    b = Builder()
    state = b.tensor((4,), 0, state=True)
    x, y, out = (b.tensor((4,), at) for at in (8, 16, 24))
    clone(b, state, y)
    b.call("aten::relu.out", x, y, out)
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["relu"]
    assert offset(after, y) == 0


def test_new_state_is_not_written_early() -> None:
    """If the run fails in between, state is what it was."""
    b = Builder()
    state = b.tensor((4,), 0, state=True)
    x, new, out = (b.tensor((4,), at) for at in (8, 16, 24))
    b.call("aten::relu.out", state, x, out)
    b.call("aten::relu.out", x, new)
    b.call("aten::copy_", state, new, b.value(NoneValue()), state)
    method = b.method((x,), (out,))
    assert bases(checked(method, "alias_copies")) == ["relu", "relu", "copy_"]


def test_what_stays_in_the_arena_from_run_to_run_is_kept() -> None:
    """State without initial data is only memory that is read before it is written."""
    b = Builder()
    x, kept, new, out = (b.tensor((4,), at) for at in (0, 8, 16, 24))
    b.call("aten::relu.out", x, kept, new)
    clone(b, new, kept)
    b.call("aten::relu.out", kept, out)
    after = checked(b.method((x,), (out,)))
    assert "_clone_dim_order" in bases(after)


def test_an_output_does_not_come_to_lie_on_an_input() -> None:
    """The caller may write the next input while it still reads the output."""
    b = Builder()
    x, view, out = b.tensor((8,), 0), b.tensor((2, 4), 0), b.tensor((2, 4), 8)
    clone(b, view, out)
    after = checked(b.method((x,), (out, out)), "alias_copies")
    assert bases(after) == ["_clone_dim_order"]


def test_an_output_that_lay_on_an_input_may_do_so() -> None:
    b = Builder()
    x, y, z, out = (b.tensor((8,), at) for at in (0, 8, 16, 0))
    b.call("aten::relu.out", x, y)
    b.call("aten::relu.out", y, z)
    clone(b, z, out)
    method = b.method((x,), (out,))
    assert Dataflow(method).overlaps == {(out, x)}
    value = method.values[out]
    assert isinstance(value, TensorValue)
    away = replace(value, allocation=Allocation(memory_id=1, offset_bytes=24))
    flow = Dataflow(method)
    moved = replace(method, values=(*method.values[:out], away, *method.values[out + 1 :]))
    assert is_same(moved, flow, {out: method.values[out]}, {})
    assert not is_same(moved, Dataflow(moved), {out: method.values[out]}, {})


@pytest.mark.parametrize(("place", "left"), [(0, 2), (4, 1)])
def test_a_kernel_that_writes_over_its_input_goes_on_to_do_so(place: int, left: int) -> None:
    """What it reads once it has written is its own affair."""
    b = Builder()
    rows, row, out = b.tensor((2, 4), None), b.tensor((4,), 0), b.tensor((4,), place)
    zero = b.value(IntValue(0))
    b.call("aten::select_copy.int_out", rows, zero, zero, row)
    b.call("aten::relu.out", row, out)
    after = checked(b.method((), (out,)), "fold_constants")
    assert len(after.instructions) == left


def test_an_input_that_is_an_output_is_left_alone() -> None:
    b = Builder()
    x, y = b.tensor((4,), 0), b.tensor((4,), 8)
    clone(b, x, y)
    b.call("aten::relu.out", y, x)
    after = checked(b.method((x,), (x, x, y)), "alias_copies")
    assert bases(after) == ["_clone_dim_order", "relu"]


def test_a_part_of_what_is_written_later_stays_a_copy() -> None:
    """And where only the part is written, what it was taken from is not."""
    b = Builder()
    x, y, part, out = (
        b.tensor(sizes, at) for sizes, at in (((8,), 0), ((2, 4), 8), ((4,), 16), ((8,), 24))
    )
    number = b.value(IntValue(0)), b.value(IntValue(1))
    b.call("aten::relu.out", x, y)
    b.call("aten::select_copy.int_out", y, *number, part)
    b.call("custom::change.out", part, part)
    b.call("aten::relu.out", y, part, out)
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["relu", "select_copy", "change", "relu"]


def test_an_old_iteration_is_not_a_new_one() -> None:
    """In a loop the copy is what the source was an iteration ago."""
    b = Builder()
    x, last, new, out = (b.tensor((4,), at) for at in (0, 8, 16, 24))
    go_on = b.tensor((4,), 32)
    clone(b, x, last)
    b.call("aten::relu.out", last, x, new)
    b.call("aten::relu.out", last, new, out)
    clone(b, new, last)
    b.call("aten::relu.out", out, go_on)
    b.code.append(JumpFalseCall(condition=go_on, destination=1))
    after = checked(b.method((x,), (out, last)), "alias_copies")
    assert bases(after).count("_clone_dim_order") >= 1


def test_a_copy_in_a_loop_is_left_out() -> None:
    b = Builder()
    x, new, view, out = (b.tensor((4,), at) for at in (0, 8, 16, 24))
    b.call("aten::relu.out", x, new)
    clone(b, new, view)
    b.call("aten::relu.out", view, out)
    b.code.append(JumpFalseCall(condition=out, destination=1))
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["relu", "relu", "JumpFalseCall"]
    assert after.instructions[-1] == JumpFalseCall(condition=out, destination=1)


def test_what_moves_touch_stays() -> None:
    b = Builder()
    x, one, two, out = (b.tensor((4,), at) for at in (0, 8, 16, 24))
    clone(b, x, one)
    b.code.append(MoveCall(source=one, target=two))
    b.code.append(MoveCall(source=two, target=out))
    method = b.method((x,), (out,))
    assert bases(checked(method)) == bases(method)
    b.call("aten::relu.out", x, two)
    assert Dataflow(b.method((x,), (out,))).is_open
    assert bases(run_passes(b.method((x,), (out,)), PASSES)) == [
        *("_clone_dim_order", "MoveCall", "MoveCall", "relu")
    ]


def test_what_changes_its_sizes_stays() -> None:
    b = Builder()
    x, y, out = (b.tensor((4,), at, dynamic=at > 4) for at in (0, 8, 16))
    clone(b, y, out)
    method = b.method((x,), (out,))
    assert bases(run_passes(method, PASSES)) == ["_clone_dim_order"]


@pytest.mark.parametrize("place", [12, 18])
def test_what_would_lie_elsewhere_than_words_stays(place: int) -> None:
    """Or beyond the arena."""
    b = Builder()
    x, y, out = b.tensor((3, 4), 24), b.tensor((12,), 0), b.tensor((12,), 36)
    part = b.tensor((4,), place)
    numbers = (b.value(IntValue(n)) for n in (0, 2, 6, 1))
    b.call("aten::relu.out", x, y)
    b.call("aten::slice_copy.Tensor_out", y, *numbers, part)
    b.call("aten::relu.out", part, y, out)
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["relu", "slice_copy", "relu"]


def test_sides_that_overlap_stay() -> None:
    b = Builder()
    x, y, out = (b.tensor((8,), at) for at in (0, 4, 16))
    clone(b, x, y)
    b.call("aten::relu.out", y, out)
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after) == ["_clone_dim_order", "relu"]


def test_a_call_nobody_looks_at_is_left_out() -> None:
    b = Builder()
    x, y, z, out = (b.tensor((4,), at) for at in (0, 8, 16, 24))
    b.call("aten::relu.out", x, out)
    clone(b, x, y)
    clone(b, y, z)
    b.call("aten::relu.out", x, z)
    method = b.method((x,), (out,))
    assert bases(checked(method, "drop_unused_calls")) == ["relu", "relu"]
    assert checked(replace(method, outputs=(out, y)), "drop_unused_calls") != method


def test_a_constant_is_copied_by_the_build() -> None:
    b = Builder()
    c, x = b.tensor((2, 4), None), b.tensor((4,), 0)
    y, row, out = b.tensor((4, 2), 8), b.tensor((2,), 10), b.tensor((4,), 24)
    b.call("aten::permute_copy.out", c, b.numbers(-1, 0), y)
    b.call("aten::relu.out", x, row, out)
    method = b.method((x,), (out,))
    after = checked(method, "fold_permutes")
    assert bases(after) == ["relu"]
    data = dict(method.data)[c]
    permuted = bytes(bytes(data)[i * 4 + j] for j in range(4) for i in range(2))
    assert dict(after.data)[y] == permuted
    assert dict(after.data)[row] == permuted[2:4]
    assert bases(run_passes(method, ["fold_constants"])) == ["permute_copy", "relu"]


def test_constants_are_folded_in_loops_as_well() -> None:
    b = Builder()
    c, x, y, out = b.tensor((4,), None), *(b.tensor((4,), at) for at in (0, 8, 16))
    clone(b, c, y)
    b.call("aten::relu.out", y, x, out)
    b.code.append(JumpFalseCall(condition=out, destination=0))
    after = checked(b.method((x,), (out,)), "fold_constants")
    assert bases(after) == ["relu", "JumpFalseCall"]


@pytest.mark.parametrize("why", ["output", "written", "partly", "moved"])
def test_a_constant_that_would_be_written_stays_a_copy(why: str) -> None:
    b = Builder()
    c, x, y, out = b.tensor((4,), None), *(b.tensor((4,), at) for at in (0, 8, 16))
    clone(b, c, y)
    b.call("aten::relu.out", x, y, out)
    outputs = (out, y) if why == "output" else (out, out)
    if why == "written":
        b.call("aten::relu.out", x, y)
    elif why == "partly":
        b.call("aten::relu.out", x, b.tensor((4,), 10), out)
    elif why == "moved":
        b.code.append(MoveCall(source=c, target=b.tensor((4,), 24)))
    method = b.method((x,), outputs)
    assert "_clone_dim_order" in bases(checked(method, "fold_constants"))


def test_parts_of_a_large_constant_stay_unless_it_goes() -> None:
    """Flash would hold them twice."""

    def made(reader: bool, is_output: bool) -> LinkedMethod:  # noqa: FBT001
        b = Builder()
        c, x = b.tensor((2, 40), None), b.tensor((4,), 88)
        row, out = b.tensor((40,), 0), b.tensor((4,), 80)
        b.data = [(c, bytes(range(80)))]
        number = b.value(IntValue(0)), b.value(IntValue(1))
        b.call("aten::select_copy.int_out", c, *number, row)
        b.call("aten::relu.out", row, x, out)
        if reader:
            b.call("aten::relu.out", c, out)
        return b.method((x,), (out, c) if is_output else (out,))

    folded = run_passes(made(False, False), ["fold_constants"])  # noqa: FBT003
    assert bases(folded) == ["relu"]
    for reader, is_output in ((True, False), (False, True)):
        after = run_passes(made(reader, is_output), ["fold_constants"])
        assert bases(after)[0] == "select_copy"


def _dtype(b: Builder, index: int, dtype: ScalarType) -> None:
    value = b.values[index]
    assert isinstance(value, TensorValue)
    b.values[index] = replace(value, dtype=dtype)


def test_a_constant_becomes_another_dtype_where_that_is_exact() -> None:
    for number, folds in ((5, True), (2**40 + 1, False)):
        b = Builder()
        c, y, out = b.tensor((1,), None), b.tensor((1,), 0), b.tensor((4,), 16)
        _dtype(b, c, ScalarType.Long)
        _dtype(b, y, ScalarType.Float)
        b.data = [(c, struct.pack("<q", number))]
        none = b.value(NoneValue())
        b.call("dim_order_ops::_to_dim_order_copy.out", c, none, none, y)
        b.call("aten::relu.out", y, out)
        method = b.method((), (out,))
        after = run_passes(method, ["fold_constants"])
        assert (len(after.instructions) == 1) is folds
        if folds:
            assert dict(after.data)[y] == struct.pack("<f", 5.0)
        assert run_passes(method, ["alias_copies"]) == method


def test_conversions_are_exact_or_left_to_the_kernel() -> None:
    minus = struct.pack("<2i", -3, 200)
    assert converted(minus, ScalarType.Int, ScalarType.Int) == minus
    assert converted(minus, ScalarType.Int, ScalarType.Long) == struct.pack("<2q", -3, 200)
    assert converted(minus, ScalarType.Int, ScalarType.Double) == struct.pack("<2d", -3.0, 200.0)
    assert converted(minus, ScalarType.Int, ScalarType.Char) is None
    assert converted(minus, ScalarType.Int, ScalarType.Bool) is None
    assert converted(minus, ScalarType.Int, ScalarType.Half) is None
    assert converted(b"\x01\x00", ScalarType.Bool, ScalarType.Short) == b"\1\0\0\0"
    assert converted(bytes(4), ScalarType.Float, ScalarType.Int) is None


def test_jumps_go_to_what_follows() -> None:
    b = Builder()
    condition = b.value(BoolValue(value=True))
    x = b.tensor((4,), 0)
    b.call("aten::relu.out", x, x)
    b.code.append(JumpFalseCall(condition=condition, destination=0))
    b.code.append(JumpFalseCall(condition=condition, destination=3))
    after = without(b.method(), {0})
    assert after.instructions == (
        JumpFalseCall(condition=condition, destination=0),
        JumpFalseCall(condition=condition, destination=2),
    )
    assert after.origins == (1, 2)


def test_sets_of_numbers() -> None:
    assert cut(((0, 4), (8, 12)), 2, 9) == ((0, 2), (9, 12))
    assert cut(((0, 8),), 2, 4) == ((0, 2), (4, 8))
    assert meet(((0, 4), (8, 12)), ((2, 10),)) == ((2, 4), (8, 10))
    assert join(((0, 4), (8, 12)), ((4, 6),)) == ((0, 6), (8, 12))
    here = Place(("arena", 1), 0, 8)
    assert here.holds(here.part(2, 4))
    assert not here.overlaps(Place(("arena", 2), 0, 8))


def test_a_change_of_what_is_not_free_to_move_is_no_change() -> None:
    """Passes do not ask for these; the proof refuses them all the same."""
    b = Builder()
    x, y, out = (b.tensor((4,), at) for at in (0, 8, 16))
    state = b.tensor((4,), 24, state=True)
    c = b.tensor((4,), None)
    d = b.tensor((4,), 28, dynamic=True)
    b.call("aten::relu.out", x, y)
    b.call("aten::relu.out", y, state, c, d, out)
    method = b.method((x,), (out,))
    flow = Dataflow(method)
    for index in (x, state, c, d):
        value = method.values[index]
        assert isinstance(value, TensorValue)
        moved = replace(value, allocation=Allocation(memory_id=1, offset_bytes=32))
        assert not is_same(method, flow, {index: moved}, {})
    value = method.values[y]
    assert isinstance(value, TensorValue)
    free = replace(value, allocation=Allocation(memory_id=1, offset_bytes=36))
    assert is_same(method, flow, {y: free}, {})
    constant = replace(value, allocation=None, data_buffer_index=1)
    assert not is_same(method, flow, {y: constant}, {})
    assert not is_same(method, flow, {}, {0: Dropped(outs=(Place(("arena", 1), 8, 12),))})
    assert value.dynamism is Dynamism.STATIC


def test_a_block_is_in_one_order_on_both_sides() -> None:
    def view(read: tuple[int, ...], written: tuple[int, ...]) -> View:
        return View(source=0, target=1, sizes=(2, 3), read=read, written=written)

    assert view((3, 1), (3, 1)).is_block
    assert view((1, 2), (1, 2)).is_block
    assert not view((3, 1), (1, 2)).is_block
    assert not view((6, 1), (6, 1)).is_block
    assert not view((0, 1), (3, 1)).is_block


def test_items_in_another_order_stay_a_copy() -> None:
    b = Builder()
    x, y, out = b.tensor((2, 4), 0), b.tensor((4, 2), 8), b.tensor((4, 2), 16)
    none, empty = b.tensor((0,), 24), b.tensor((0,), 24)
    b.call("aten::permute_copy.out", x, b.numbers(1, 0), y)
    clone(b, none, empty)
    b.call("aten::relu.out", y, none, empty, out, outs=(empty, out))
    method = b.method((x, none), (out,))
    assert bases(run_passes(method, ["alias_copies"])) == bases(method)
    after = run_passes(method, ["drop_unused_calls"])
    assert bases(after) == ["permute_copy", "relu"]


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_read_on_two_ways_is_followed(is_moved: bool) -> None:  # noqa: FBT001
    b = Builder()
    x, y, z, out = (b.tensor((8,), at) for at in (0, 8, 16, 24))
    late = b.tensor((8,), 32)
    b.call("aten::relu.out", x, y)
    clone(b, y, z)
    b.code.append(JumpFalseCall(condition=x, destination=4))
    b.call("aten::relu.out", x, late)
    b.call("aten::relu.out", z, out)
    if is_moved:
        b.code.append(MoveCall(source=late, target=x))
    after = checked(b.method((x,), (out,)), "alias_copies")
    assert bases(after).count("_clone_dim_order") == 0


def test_what_a_run_of_other_sizes_left_is_not_looked_at() -> None:
    """A tensor that changes its sizes may lie where a folded constant was."""
    b = Builder()
    c, x = b.tensor((8,), None), b.tensor((8,), 0, dynamic=True)
    y, z = b.tensor((8,), 8), b.tensor((8,), 8, dynamic=True)
    still, out = b.tensor((8,), 16), b.tensor((8,), 24, dynamic=True)
    clone(b, c, y)
    b.call("aten::relu.out", y, x, still)
    b.call("aten::relu.out", still, z)
    b.call("aten::relu.out", z, out)
    after = checked(b.method((x,), (out,)), "fold_constants")
    assert bases(after) == ["relu"] * 3
    b.call("aten::relu.out", y, out)  # shows what z has written as well
    after = checked(b.method((x,), (out,)), "fold_constants")
    assert bases(after)[0] == "_clone_dim_order"


def test_a_program_gets_rid_of_its_views() -> None:
    """Outputs go where others are; one of them lay on the input from the start."""
    program = program_of("views")
    info = extract(program, model="views")
    (method,) = link_program(program, info, resolution_of("views"), where=None)
    assert method.origins == tuple(range(12))
    after = run_passes(method, PASSES)
    assert bases(after) == ["add", "mul", "permute_copy", "sum", "mul"]
    assert after.origins == (1, 5, 6, 7, 9)
    assert run_passes(after, PASSES) == after


def test_what_has_neither_place_nor_data_is_left_alone() -> None:
    b = Builder()
    empty, out = b.tensor((0,), None), b.tensor((0,), 0)
    clone(b, empty, out)
    b.data.clear()
    b.call("aten::relu.out", out, b.tensor((4,), 8))
    method = b.method()
    assert run_passes(method, ["fold_constants", "alias_copies"]) == method


def test_what_the_next_iteration_reads_is_kept() -> None:
    """The first iteration would not notice."""
    b = Builder()
    x, new, last, out = (b.tensor((4,), at) for at in (0, 8, 16, 24))
    b.call("aten::relu.out", x, new)
    clone(b, new, last)
    b.call("aten::relu.out", x, b.tensor((4,), 32))
    b.call("aten::relu.out", last, x, out)
    b.call("aten::relu.out", x, out, new)
    b.code.append(JumpFalseCall(condition=out, destination=2))
    method = b.method((x,), (out, new))
    assert bases(checked(method, "alias_copies")) == bases(method)


def test_a_tensor_of_other_sizes_leaves_what_it_does_not_reach() -> None:
    """Where a constant was folded, the rest would be what lay there before."""
    b = Builder()
    c, x, y = b.tensor((8,), None), b.tensor((8,), 0), b.tensor((8,), 8)
    z, shown = b.tensor((8,), 8, dynamic=True), b.tensor((8,), 8)
    still, out = b.tensor((8,), 16), b.tensor((8,), 24)
    clone(b, c, y)
    b.call("aten::relu.out", y, x, still)
    b.call("aten::relu.out", still, z)
    b.call("aten::relu.out", shown, out)
    method = b.method((x,), (out,))
    assert bases(checked(method, "fold_constants")) == bases(method)
