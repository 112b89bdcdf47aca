"""The pass that computes calls on constants: which ones, and what it must not do."""

from __future__ import annotations

import struct
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import PASSES, run_passes
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.ledger_lines import NO_OPERATOR
from orchestrator.program.program import MoveCall
from orchestrator.program.values import DoubleValue, IntValue, NoneValue, TensorValue
from tests.unit.method.machine import behaves_alike
from tests.unit.method.methods import Builder

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod

EVALUATE = "evaluate_constants"
MUL = "orch::portable::mul_out"
CONTENT = bytes(range(40, 52))


def both(b: Builder, one: int, other: int, out: int, function: str = MUL) -> None:
    """A call that the build can compute."""
    b.call("aten::mul.out", one, other, out, function=function)


def bases(method: LinkedMethod) -> list[str]:
    """What is left of a method."""
    return [i.operator.base for i in method.instructions if isinstance(i, LinkedCall)]


def checked(method: LinkedMethod, *names: str) -> LinkedMethod:
    """The method after passes; it computes what it did."""
    after = run_passes(method, names or [EVALUATE])
    behaves_alike(method, after, CONTENT)
    return after


def data_of(method: LinkedMethod, index: int) -> bytes:
    """Bytes of a constant."""
    value = method.values[index]
    assert isinstance(value, TensorValue)
    assert value.allocation is None
    return bytes(dict(method.data)[index])


def test_a_call_on_constants_is_computed() -> None:
    b = Builder()
    one, other = b.tensor((8,), None), b.tensor((8,), None)
    y, x, out = b.tensor((8,), 0), b.tensor((8,), 8), b.tensor((8,), 16)
    b.data[1] = (other, bytes([0xF0]) * 8)
    both(b, one, other, y)
    both(b, x, y, out)
    method = b.method((x,), (out,))
    after = checked(method)
    assert bases(after) == ["mul"]
    assert data_of(after, y) == bytes(i * 0xF0 % 256 for i in dict(b.data)[one])
    assert after.origins == (1,)


def test_what_was_computed_is_computed_with_and_moved() -> None:
    """As far as all is constant: sums of sums, and views of them."""
    b = Builder()
    one, other = b.tensor((2, 4), None), b.tensor((2, 4), None)
    y, z, v, w = (b.tensor((2, 4), at) for at in (0, 8, 0, 24))
    turned, x, out = b.tensor((4, 2), 32), b.tensor((4, 2), 16), b.tensor((4, 2), 40)
    both(b, one, other, y)
    both(b, y, one, z)
    none = b.value(NoneValue())
    b.call("dim_order_ops::_clone_dim_order.out", z, none, none, v)
    both(b, v, other, w)
    b.call("aten::permute_copy.out", w, b.numbers(1, 0), turned)
    both(b, x, turned, out)
    after = checked(b.method((x,), (out,)))
    assert bases(after) == ["mul"]


def test_moves_of_what_was_constant_before_belong_to_other_passes() -> None:
    b = Builder()
    one, y, out = b.tensor((8,), None), b.tensor((8,), 0), b.tensor((8,), 8)
    none = b.value(NoneValue())
    b.call("dim_order_ops::_clone_dim_order.out", one, none, none, y)
    both(b, y, one, out)
    method = b.method((), (out,))
    assert bases(checked(method)) == ["_clone_dim_order", "mul"]
    assert bases(checked(method, "fold_constants", EVALUATE)) == ["mul"]


def test_an_output_of_the_method_is_not_made_a_constant() -> None:
    b = Builder()
    one, out = b.tensor((8,), None), b.tensor((8,), 0)
    both(b, one, one, out)
    method = b.method((), (out,))
    assert PASSES[EVALUATE].change(method, Context()) is method


def test_what_the_caller_or_a_move_decides_is_not_constant() -> None:
    b = Builder()
    one, x, y, z = (b.tensor((8,), at) for at in (None, 0, 8, 16))
    both(b, one, x, y)
    both(b, y, x, z)
    method = b.method((x,), (z,))
    assert bases(checked(method)) == ["mul"] * 2
    b = Builder()
    one, other, y, z = (b.tensor((8,), at) for at in (None, None, 8, 16))
    b.code.append(MoveCall(source=other, target=one))
    both(b, one, one, y)
    both(b, y, y, z)
    assert len(checked(b.method((), (z,))).instructions) == 3
    b = Builder()
    one, y, z = (b.tensor((8,), at) for at in (None, 0, 8))
    both(b, one, one, y)
    b.code.append(MoveCall(source=y, target=z))
    assert len(checked(b.method((), (z,))).instructions) == 2


def test_kernels_of_others_stay() -> None:
    b = Builder()
    one, y, out = b.tensor((8,), None), b.tensor((8,), 0), b.tensor((8,), 8)
    both(b, one, one, y, function="mine::mul_out")
    both(b, y, y, out)
    method = run_passes(b.method((), (out,)), [EVALUATE])
    assert bases(method) == ["mul"] * 2


def test_the_place_of_a_constant_is_free() -> None:
    """Others write there, before and after."""
    b = Builder()
    one, other = b.tensor((8,), None), b.tensor((8,), None)
    x, y, z, out = (b.tensor((8,), at) for at in (0, 8, 8, 16))
    both(b, one, other, y)
    both(b, x, y, out)
    b.call("aten::relu.out", out, z)
    both(b, z, out, x)
    after = checked(b.method((x,), (x,)))
    assert bases(after) == ["mul", "relu", "mul"]


def test_what_is_read_with_its_neighbour_is_not_made_a_constant() -> None:
    """A tensor that shows more than the call wrote."""
    b = Builder()
    one, y, wide, out = (
        b.tensor(sizes, at) for sizes, at in (((4,), None), ((4,), 8), ((8,), 8), ((8,), 16))
    )
    both(b, one, one, y)
    both(b, wide, wide, out)
    method = b.method((), (out,))
    assert bases(checked(method)) == bases(method)


def test_a_part_of_what_was_computed_is_a_constant_of_its_own() -> None:
    b = Builder()
    one, y, half, out = (
        b.tensor(sizes, at) for sizes, at in (((8,), None), ((8,), 8), ((4,), 12), ((4,), 24))
    )
    x = b.tensor((4,), 32)
    both(b, one, one, y)
    both(b, half, x, out)
    after = checked(b.method((x,), (out,)))
    assert bases(after) == ["mul"]
    assert data_of(after, half) == bytes(i * i % 256 for i in dict(b.data)[one][4:])


def test_a_second_writer_keeps_the_call() -> None:
    """On one way the reader sees what another call wrote."""
    b = Builder()
    one, x, y, out = (b.tensor((8,), at) for at in (None, 0, 8, 16))
    both(b, one, one, y)
    b.call("custom::change.out", x, y)
    both(b, y, x, out)
    method = b.method((x,), (out,))
    assert bases(checked(method)) == bases(method)


# Flash


@pytest.mark.parametrize(
    ("rows", "shared", "folded"),
    [(1, False, True), (4, False, True), (4, True, True), (5, True, False)],
)
def test_constants_take_no_more_flash_than_before(
    rows: int,
    shared: bool,  # noqa: FBT001
    folded: bool,  # noqa: FBT001
) -> None:
    """What is freed counts, and 32 bytes for the call."""
    b = Builder()
    one = b.tensor((rows, 8), None)
    y, x, out = (b.tensor((rows, 8), at) for at in (0, 64, 128))
    b.data = [(one, bytes(i * 5 % 256 for i in range(8 * rows)))]
    other = b.tensor((8,), None)
    b.data[-1] = (other, bytes([0x3C]) * 8)
    both(b, one, other, y)
    both(b, x, y, out)
    if shared:
        both(b, x, one, out)
        both(b, x, other, out)
    after = run_passes(b.method((x,), (out,)), [EVALUATE])
    assert (len(after.instructions) < len(b.code)) is folded


@pytest.mark.parametrize(("used", "left"), [(False, 1), (True, 4)])
def test_what_is_large_only_on_its_way_is_computed(
    used: bool,  # noqa: FBT001
    left: int,
) -> None:
    """Items that are looked up by a range: the range is needed by nobody else."""
    b = Builder()
    one, x, y, z, out = (b.tensor((40,), at) for at in (None, 0, 64, 128, 192))
    b.data = [(one, bytes(range(40)))]
    size, number = b.numbers(40), b.value(IntValue(0x3C))
    b.call("aten::full.out", size, number, y, function="orch::portable::full_out")
    both(b, y, one, z)
    both(b, x, z, out)
    if used:
        both(b, x, one, out)
        both(b, x, y, out)
        left += 1
    after = run_passes(b.method((x,), (out,)), [EVALUATE])
    assert len(after.instructions) == left


def test_a_result_that_is_a_constant_already_is_free() -> None:
    b = Builder()
    one = b.tensor((48,), None)
    y, x, out = (b.tensor((48,), at) for at in (0, 64, 128))
    b.data = [(one, bytes(i % 3 % 2 for i in range(48)))]  # 0 and 1 are squares
    both(b, one, one, y)
    both(b, x, y, out)
    both(b, x, one, out)
    after = run_passes(b.method((x,), (out,)), [EVALUATE])
    assert bases(after) == ["mul"] * 2
    assert len(after.constants) == 1


def _floats(b: Builder, numbers: tuple[float, ...], place: int | None) -> int:
    index = b.tensor((len(numbers),), place)
    value = b.values[index]
    assert isinstance(value, TensorValue)
    b.values[index] = replace(value, dtype=ScalarType.Float)
    if place is None:
        b.data[-1] = (index, struct.pack(f"<{len(numbers)}f", *numbers))
    return index


def test_dequantized_weights_stay_where_they_are() -> None:
    """As floats they take four times the flash; small ones do not matter."""

    def left(count: int) -> int:
        b = Builder()
        weights = b.tensor((count,), None)
        value = b.values[weights]
        assert isinstance(value, TensorValue)
        b.values[weights] = replace(value, dtype=ScalarType.Char)
        b.data = [(weights, bytes(range(count)))]
        scale = b.value(DoubleValue(0.5))
        zero, low, high = (b.value(IntValue(n)) for n in (3, -128, 127))
        dtype, none = b.value(IntValue(1)), b.value(NoneValue())
        y, x, out = (_floats(b, (0.0,) * count, at) for at in (0, 128, 256))
        b.call(
            "quantized_decomposed::dequantize_per_tensor.out",
            *(weights, scale, zero, low, high, dtype, none, y),
            function="orch::quantized::dequantize_per_tensor_out",
        )
        one = b.value(IntValue(1))
        b.call("aten::add.out", x, y, one, out, function="orch::portable::add_out")
        return len(run_passes(b.method((x,), (out,)), [EVALUATE]).instructions)

    # 4 n - n <= 32
    assert (left(10), left(11)) == (1, 2)


def test_calls_without_tensors_are_constant() -> None:
    b = Builder()
    x, y, out = (_floats(b, (0.0,) * 4, at) for at in (0, 16, 32))
    size, number = b.numbers(4), b.value(DoubleValue(2.5))
    b.call("aten::full.out", size, number, y, function="orch::portable::full_out")
    one = b.value(IntValue(1))
    b.call("aten::add.out", x, y, one, out, function="orch::portable::add_out")
    after = run_passes(b.method((x,), (out,)), [EVALUATE])
    assert bases(after) == ["add"]
    assert data_of(after, y) == struct.pack("<4f", *[2.5] * 4)


def test_a_result_larger_than_any_flash_is_not_computed() -> None:
    """A few bytes of a program can name any size."""

    def peak_bytes(count: int) -> int:
        b = Builder()
        x, y, out = (b.tensor((count,), at * count) for at in range(3))
        size, number = b.numbers(count), b.value(IntValue(2))
        b.call("aten::full.out", size, number, y, function="orch::portable::full_out")
        both(b, x, y, out)
        tracemalloc.start()
        try:
            run_passes(b.method((x,), (out,)), [EVALUATE])
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak_bytes(1 << 20) > 1 << 20
    assert peak_bytes((1 << 26) + 1) < 1 << 20


def test_a_number_that_a_run_computes_is_not_constant() -> None:
    b = Builder()
    x, y, out = (_floats(b, (0.0,) * 4, at) for at in (0, 16, 32))
    size, number = b.numbers(4), b.value(IntValue(2))
    b.call("aten::full.out", size, number, y, function="orch::portable::full_out")
    b.call("aten::relu.out", y, out)
    after = run_passes(b.method((x, number), (out,)), [EVALUATE])
    assert bases(after) == ["full", "relu"]


def test_the_ledger_counts() -> None:
    b = Builder()
    one, other = b.tensor((8,), None), b.tensor((8,), None)
    y, x, out = b.tensor((8,), 0), b.tensor((8,), 8), b.tensor((8,), 16)
    b.data[1] = (other, bytes([0xF0]) * 8)
    both(b, one, other, y)
    both(b, x, y, out)
    after = run_passes(b.method((x,), (out,)), [EVALUATE, "drop_values"])
    records = {r.name: r for r in after.passes}
    record = records[EVALUATE]
    assert record.changed
    assert (record.before.calls, record.after.calls) == (2, 1)
    assert (record.before.constant_bytes, record.after.constant_bytes) == (16, 8)
    assert records["drop_values"].after.constant_bytes == 8
    b = Builder()
    x, out = b.tensor((8,), 0), b.tensor((8,), 8)
    b.call("aten::relu.out", x, out)
    found = run_passes(b.method((x,), (out,)), [EVALUATE])
    assert {r.name: r for r in found.passes}[EVALUATE].skipped == NO_OPERATOR
