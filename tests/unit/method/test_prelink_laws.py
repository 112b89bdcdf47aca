"""Laws of the passes: a random method gives the same with and without them.

Methods are wild: their tensors overlap as they like, jumps go anywhere, what is read
need not have been written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes import PASSES, run_passes
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import (
    BoolValue,
    DoubleValue,
    IntValue,
    NoneValue,
    TensorListValue,
    TensorValue,
)
from tests.integration.test_joined import NETS
from tests.unit.method.machine import behaves_alike
from tests.unit.method.methods import ARENA, Builder, tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.linked import LinkedMethod

SIZES: Final = ((4,), (8,), (2, 4), (2, 4), (4, 2), (4, 2), (1, 4), (4, 1), (1, 8))


def _copies(  # noqa: C901, PLR0912, PLR0915  # a few lines per operator
    draw: st.DrawFn, b: Builder, tensors: list[int]
) -> None:
    """Add a call that moves items, of a kind that fits two of the tensors."""

    def sizes(index: int) -> tuple[int, ...]:
        value = b.values[index]
        assert isinstance(value, TensorValue)
        return value.sizes

    def numel(index: int) -> int:
        value = b.values[index]
        assert isinstance(value, TensorValue)
        return value.numel

    still = [t for t in tensors if not getattr(b.values[t], "is_dynamic", True)]
    outs = [t for t in still if t != tensors[0]]
    if not outs:
        return
    source = draw(st.sampled_from([tensors[0]] * len(tensors) + still))
    same = [t for t in outs if numel(t) == numel(source)]
    out = draw(st.sampled_from(same * 2 + outs))
    here, to = sizes(source), sizes(out)
    none = b.value(NoneValue())
    ways: list[str] = []
    if numel(source) == numel(out):
        ways.append("view")
        if here == to:
            ways += ["clone", "copy_"]
        if len(here) == 2 and (here[1], here[0]) == to:
            ways += ["permute"] * 5
    if len(here) == len(to) and here[1:] == to[1:] and here[0] >= to[0]:
        ways.append("slice")
    if here[1:] == to and len(here) > 1:
        ways.append("select")
    parts = [t for t in still if len(sizes(t)) == len(to) and sizes(t)[1:] == to[1:]]
    half = [t for t in parts if 2 * sizes(t)[0] == to[0]]
    if half:
        ways.append("cat")
    pieces = [t for t in half if t in outs and t != source]
    if len(pieces) > 1 and here == to:
        ways.append("split")
    way = draw(st.sampled_from(ways)) if ways else ""
    if way == "view":
        given_sizes = (-1,) if len(to) == 1 else to
        b.call("aten::view_copy.out", source, b.numbers(*given_sizes), out)
    elif way == "clone":
        b.call("dim_order_ops::_clone_dim_order.out", source, none, none, out)
    elif way == "copy_":
        b.call("aten::copy_", out, source, none, out)
    elif way == "permute":
        b.call("aten::permute_copy.out", source, b.numbers(1, 0), out)
    elif way == "slice":
        start = draw(st.integers(0, here[0] - to[0]))
        bounds = [b.value(IntValue(n)) for n in (0, start, start + to[0], 1)]
        b.call("aten::slice_copy.Tensor_out", source, *bounds, out)
    elif way == "select":
        at = [b.value(IntValue(n)) for n in (0, draw(st.integers(0, here[0] - 1)))]
        b.call("aten::select_copy.int_out", source, *at, out)
    elif way == "cat":
        both = tuple(draw(st.sampled_from(half)) for _ in range(2))
        b.call("aten::cat.out", b.value(TensorListValue(both)), b.value(IntValue(0)), out)
    elif way == "split":
        two = draw(st.permutations(pieces))[:2]
        each = b.numbers(*(sizes(t)[0] for t in two))
        b.call(
            "aten::split_with_sizes_copy.out",
            source,
            each,
            b.value(IntValue(0)),
            b.value(TensorListValue(tuple(two))),
            outs=tuple(two),
        )


def _adds(draw: st.DrawFn, b: Builder, tensors: list[int]) -> None:
    """Add a call that may write over its inputs, or over one of them."""
    still = [t for t in tensors if isinstance(v := b.values[t], TensorValue) and not v.is_dynamic]
    outs = [t for t in still if t != tensors[0]]
    if outs:
        one, other = draw(st.sampled_from(still)), draw(st.sampled_from(still))
        in_place = draw(st.sampled_from([(0,), (0, 1), (1,)]))
        out = draw(st.sampled_from(outs))
        b.call("aten::add.out", one, other, out, in_place=in_place)


def _ands(draw: st.DrawFn, b: Builder, tensors: list[int]) -> None:
    """Add a call of a kernel of ours, which the build can compute."""

    def sizes(index: int) -> tuple[int, ...]:
        value = b.values[index]
        assert isinstance(value, TensorValue)
        return () if value.is_dynamic else value.sizes

    one = draw(st.sampled_from([tensors[0]] * len(tensors) + tensors))
    same = [t for t in tensors if sizes(t) and sizes(t) == sizes(one)]
    outs = [t for t in same if t != tensors[0]]
    if outs:
        other = draw(st.sampled_from([one] * len(same) + same))
        b.call(
            "aten::mul.out",
            *(one, other, draw(st.sampled_from(outs))),
            function="orch::portable::mul_out",
        )


def _begins(draw: st.DrawFn, b: Builder, tensors: list[int]) -> None:
    """Maybe add a call of which the build can compute the result."""
    begin = draw(st.sampled_from(("", "permute", "and", "and")))
    if begin:
        first = b.values[tensors[0]]
        assert isinstance(first, TensorValue)
        sizes = first.sizes[::-1] if begin == "permute" else first.sizes
        place = draw(st.integers(0, (ARENA - 12) // 4)) * 4
        tensors.append(b.tensor(sizes, place))
    if begin == "permute":
        b.call("aten::permute_copy.out", tensors[0], b.numbers(1, 0), tensors[-1])
    elif begin == "and":
        b.call(
            "aten::bitwise_and.Tensor_out",
            *(tensors[0], tensors[0], tensors[-1]),
            function="orch::portable::bitwise_and_Tensor_out",
        )


def _joins(draw: st.DrawFn, b: Builder, planned: list[int]) -> list[Callable[[], None]]:
    """Calls of a kind that a pass joins, to be added in order; or near misses."""

    taken = [0]

    def own(sizes: tuple[int, ...], dtype: ScalarType = ScalarType.Char) -> int:
        # Most often side by side, as in a plan.
        room = prod(sizes) * dtype.item_bytes
        place = taken[-1]
        if place + room > ARENA or draw(st.integers(0, 5)) == 0:
            place = draw(st.integers(0, (ARENA - room) // 4)) * 4
        taken.append(place + -(-room // 4) * 4)
        found = b.value(replace(tensor(sizes, place), dtype=dtype))
        planned.append(found)
        return found

    def add(name: str, *args: int) -> Callable[[], None]:
        function = f"orch::cortex_m::{name}_out"
        return lambda: b.call(f"cortex_m::{name}.out", *args, function=function)

    def number(value: float) -> int:
        return b.value(DoubleValue(value) if value % 1 else IntValue(int(value)))

    low = draw(st.sampled_from((-128, -128, -128, -50)))
    way = draw(st.sampled_from(("pads", "limits", "floats", "permutes")))
    if way == "permutes":
        x, y, z = own((2, 4)), own((4, 2)), own((2, 4))
        dims = b.numbers(1, 0)
        return [
            lambda: b.call("aten::permute_copy.out", x, dims, y),
            lambda: b.call("aten::permute_copy.out", y, dims, z),
        ]
    if way == "floats":
        x, f, y = own((2,)), own((2,), ScalarType.Float), own((2,))
        other = draw(st.sampled_from((3, 3, 4)))
        rest = [number(n) for n in (-128, 127, int(ScalarType.Char))]
        return [
            add("dequantize_per_tensor", x, number(0.5), number(3), *rest, f),
            add("quantize_per_tensor", f, number(0.5), number(other), *rest, y),
        ]
    x, y = own((1, 1, 2, 2)), own((1, 1, 3, 2))
    pads = draw(st.sampled_from((1, 1, 1, 0)))
    pair = [*map(number, (3, 3))]

    def pool(given: int, padding: int) -> Callable[[], None]:
        lists = [b.numbers(*p) for p in ((1, 2), (1, 1), (0, padding), (1, 1))]
        exact = b.value(BoolValue(value=False))
        limits = [number(low), number(127)]
        name = "quantized_max_pool2d_nhwc"
        return add(name, given, *lists, exact, *pair, *limits, y)

    if way == "pads":
        wide = own((1, 1, 3 + pads, 2))
        padding = 0 if pads else 1
        before = b.numbers(0, 0, 1, 0)
        after = b.numbers(0, 0, pads, 0)
        value = number(draw(st.sampled_from((-128, -128, -128, -20))))
        return [add("pad_contiguous", x, before, after, value, wide), pool(wide, padding)]
    table = replace(tensor((256,), None), dtype=ScalarType.Char)
    lut, z = b.value(table), own((1, 1, 3, 2))
    most = draw(st.sampled_from((127, 60)))
    items = [min(max(n, -20), most) for n in range(-128, 128)]
    if draw(st.sampled_from((False, False, True))):
        items[200] = 5
    b.data.append((lut, bytes(n % 256 for n in items)))
    return [pool(x, 1), add("quantized_activation", y, lut, z)]


@st.composite
def methods(  # noqa: C901, PLR0912  # a few lines per kind of instruction
    draw: st.DrawFn, *, jumps: bool, joins: bool
) -> LinkedMethod:
    """Random methods, at most half of whose calls compute."""
    b = Builder()
    tensors = [b.tensor(draw(st.sampled_from(SIZES[2:6])), None)]
    for _ in range(draw(st.integers(3, 9))):
        sizes = draw(st.sampled_from(SIZES))
        kind = draw(st.sampled_from(("plain",) * 6 + ("dynamic", "state")))
        place = draw(st.integers(0, (ARENA - 12) // 4)) * 4
        tensors.append(b.tensor(sizes, place, dynamic=kind == "dynamic", state=kind == "state"))
    _begins(draw, b, tensors)
    planned = tensors[1:]
    some = st.sampled_from(planned)
    inputs = tuple(draw(st.lists(some, max_size=2, unique=True)))
    inputs = tuple(i for i in inputs if i not in dict(b.data))
    number = b.value(BoolValue(value=draw(st.sampled_from((True, True, False)))))
    pair = _joins(draw, b, planned) if joins else []
    some = st.sampled_from(planned)
    count = draw(st.integers(1 - joins, 9))
    kinds = ["copy", "copy", "copy", "mix", "mix", "add", "and", "and", "other"]
    for _ in range(count):
        kind = draw(st.sampled_from(kinds + ["join"] * 3 * len(pair)))
        if kind == "join":
            pair.pop(0)()
        elif kind == "copy":
            _copies(draw, b, tensors)
        elif kind == "mix":
            reads = draw(st.lists(st.sampled_from(tensors), min_size=1, max_size=2))
            b.call("aten::relu.out", *reads, draw(some))
        elif kind == "add":
            _adds(draw, b, tensors)
        elif kind == "and":
            _ands(draw, b, tensors)
        else:
            way = draw(st.sampled_from(("change", "two", "jump", "move")))
            if way == "change":
                b.call("custom::change.out", draw(some), draw(some))
            elif way == "two":
                outs = (draw(some), draw(some))
                b.call("aten::relu.out", draw(some), *outs, outs=outs)
            elif jumps and way == "jump":
                b.code.append(
                    JumpFalseCall(
                        condition=draw(st.one_of(some, st.just(number))),
                        destination=draw(st.integers(0, count)),
                    )
                )
            elif jumps:
                source, target = draw(some), draw(some)
                one, other = b.values[source], b.values[target]
                assert isinstance(one, TensorValue)
                assert isinstance(other, TensorValue)
                if one.sizes == other.sizes and one.dynamism == other.dynamism:
                    b.code.append(MoveCall(source=source, target=target))
    for join in pair:
        join()
    end = len(b.code)
    b.code = [
        replace(i, destination=min(i.destination, end)) if isinstance(i, JumpFalseCall) else i
        for i in b.code
    ]
    outputs = tuple(draw(st.lists(some, min_size=1, max_size=3)))
    return b.method(inputs, outputs)


contents = st.binary(min_size=12, max_size=12)


JOINS: Final = {"fold_pads", "fold_transposes", "cancel_quantize", "fuse_activations"}
OTHERS: Final = {
    *("in_place", "pack_weights", "prepare_calls", "share_values", "drop_values"),
    *("keep_inputs", "quantized_io", "order_calls"),
    *(NETS.keys() - JOINS),
}
"""They change places, not calls, or do what the profile says: test_border.py; or join calls whose
numbers this test does not know: test_joined.py."""
CHANGES: Final = {"fold_batch_norm", "round_weights"}
"""They change bits."""


@pytest.mark.parametrize("jumps", [False, True])
@pytest.mark.parametrize("joins", [False, True])
def test_a_random_method_computes_the_same(*, jumps: bool, joins: bool) -> None:
    """After each pass alone, and after all of them."""
    dropped: Counter[str] = Counter()
    names = JOINS if joins else {*PASSES} - JOINS

    # Few methods have something for every pass.
    @settings(max_examples=(5 if joins else 4) * settings().max_examples)
    @given(method=methods(jumps=jumps, joins=joins), contents=contents)
    def check(method: LinkedMethod, contents: bytes) -> None:
        runs = (*((name, [name]) for name in sorted(names)), ("all", PASSES))
        for (name, passes), plans in product(runs, (False, True)):
            note(f"{name} {plans=}")
            after = run_passes(method, passes, plans=plans, replans=plans)
            dropped[name] += len(after.instructions) < len(method.instructions)
            behaves_alike(method, after, contents)

    check()
    # The law is about something.
    calls = {*names, "all"} - OTHERS - CHANGES
    assert {name for name in calls if not dropped[name]} == set()
