"""Calls get a struct where the build knows all that their kernels need."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.emit.generate.prelinked import prelinked_block
from orchestrator.method.compact import table_layout
from orchestrator.method.linked import LinkedCall, LinkedMethod, Prepared
from orchestrator.method.passes import run_passes
from orchestrator.program.program import MoveCall
from orchestrator.program.values import Allocation, Dynamism, IntValue, TensorValue
from tests.unit.method.recorded_calls import Call, Tensor, method_of

if TYPE_CHECKING:
    from collections.abc import Callable

CHAR = ScalarType.Char


def _quantize(scale: float = 0.5, zero: int = 3) -> LinkedMethod:
    """A method that quantizes its input."""
    x = Tensor(ScalarType.Float, (2, 3), (0, 1), bytes(24))
    y = Tensor(CHAR, (2, 3), (0, 1), bytes(6), is_out=True)
    args = (x, scale, zero, -128, 127, int(CHAR), y)
    method = method_of([Call("cortex_m::quantize_per_tensor.out", args)])
    place = Allocation(memory_id=1, offset_bytes=16)
    first = replace(_tensor(method, 0), allocation=place, data_buffer_index=0)
    values = (first, *method.values[1:])
    return replace(method, values=values, data=(), inputs=(0,), outputs=(6,))


def _prepared(method: LinkedMethod, isa: str = "scalar") -> LinkedMethod:
    return run_passes(method, ["prepare_calls", "share_values"], isa=isa)


def _call(method: LinkedMethod) -> LinkedCall:
    found = method.instructions[0]
    assert isinstance(found, LinkedCall)
    return found


def test_a_call_keeps_tensors_only_and_numbers_go_into_its_struct() -> None:
    method = _prepared(_quantize())
    call = _call(method)
    assert call.function == "orch::cortex_m::quantize_char"
    assert call.prepared == Prepared(
        struct="orch::QuantizeNearCall",
        memory=(("input", 0), ("out", 1)),
        numbers=(
            ("count", 6),
            ("affine", (("inverse", 2.0), ("low", -131.0), ("high", 124.0), ("zero_point", 3))),
        ),
    )
    assert len(method.values) == method.slots == 2


def test_the_path_is_that_of_the_core_and_of_the_numbers() -> None:
    def path(scale: float, zero: int, isa: str) -> str:
        return _call(_prepared(_quantize(scale, zero), isa)).function

    near, kernel = ("orch::cortex_m::quantize_char", "orch::cortex_m::quantize_per_tensor_out")
    assert path(0.5, 3, "dsp") == near
    assert path(0.5, 3, "mve") == f"{near}_vectors"
    assert path(2.0**-64, 3, "mve") == near
    assert path(0.5, 1 << 21, "dsp") == near
    assert path(0.5, (1 << 21) + 1, "dsp") == kernel
    assert path(0.5, 1 << 31, "mve") == f"{near}_vectors"


def _tensor(method: LinkedMethod, index: int) -> TensorValue:
    value = method.values[index]
    assert isinstance(value, TensorValue)
    return value


def _given(method: LinkedMethod) -> LinkedMethod:
    return method.with_values({0: replace(_tensor(method, 0), allocation=None)})


def _dynamic(method: LinkedMethod) -> LinkedMethod:
    changed = replace(_tensor(method, 6), dynamism=Dynamism.BOUNDED)
    return method.with_values({6: changed})


def _moved(method: LinkedMethod) -> LinkedMethod:
    move = MoveCall(source=0, target=6)
    return replace(method, instructions=(*method.instructions, move), origins=(0, 1))


def _written(method: LinkedMethod) -> LinkedMethod:
    call = replace(_call(method), outs=(6, 2))
    return replace(method, instructions=(call,))


@pytest.mark.parametrize("change", [_given, _dynamic, _moved, _written])
def test_what_only_a_run_knows_leaves_a_call_as_it_is(
    change: Callable[[LinkedMethod], LinkedMethod],
) -> None:
    method = change(_quantize())
    after = run_passes(method, ["prepare_calls"], isa="dsp")
    assert after.instructions == method.instructions


def test_a_loaded_method_keeps_its_calls() -> None:
    after = run_passes(_quantize(), ["prepare_calls"])
    assert _call(after).prepared is None
    (record,) = [r for r in after.passes if r.name == "prepare_calls"]
    assert record.skipped == "only prelinked"


def test_values_that_other_calls_use_keep_their_slots() -> None:
    alone = replace(_quantize(), inputs=())
    after = run_passes(alone, ["prepare_calls"], isa="dsp")
    assert after.slotless == {6}
    assert after.values[6] == alone.values[0]
    assert (after.slots, len(after.values)) == (6, 7)
    other = replace(_call(alone), function="orch::own::other")
    both = replace(alone, instructions=(other, _call(alone)), origins=(0, 1))
    after = run_passes(both, ["prepare_calls"], isa="dsp")
    assert after.slots == len(after.values) == 7


def test_rows_name_operator_arguments_and_members() -> None:
    method = _prepared(_quantize())
    layout = table_layout(["m"], {"m": [method]})
    assert layout.prepared_calls
    assert not layout.kernel_calls
    made = prelinked_block(method, "b", {}, layout=layout)
    assert (
        "// 0: cortex_m::quantize_per_tensor.out(input=Float[2, 3], out=Char[2, 3])\n"
        "constexpr QuantizeNearCall b_call0 = {\n"
        "    {orch::cortex_m::quantize_char},\n"
        "    /* input */ b_arena1 + 16,\n"
        "    /* out */ b_arena1 + 0,\n"
        "    /* count */ 6,\n"
        "    /* affine */ {/* inverse */ 0x1.0000000000000p+1F,"
        " /* low */ -0x1.0600000000000p+7F, /* high */ 0x1.f000000000000p+6F,"
        " /* zero_point */ 3}};\n"
    ) in made.text
    assert "constexpr Instruction b_code[1] = {" in made.text
    assert "Instruction(b_call0)" in made.text
    numbers = dict(made.blocks)["&b_call0.count"]
    assert bytes(numbers) == bytes.fromhex("06000000 00000040 000003c3 0000f842 03000000")


def test_calls_of_equal_shape_share_its_numbers() -> None:
    x = Tensor(ScalarType.Float, (1, 2, 3, 3), (0, 1, 2, 3), bytes(72))
    y = Tensor(ScalarType.Float, (1, 2, 1, 1), (0, 1, 2, 3), bytes(8), is_out=True)
    args = (x, (3, 3), (), (0, 0), False, True, None, y)
    pool = Call("aten::avg_pool2d.out", args)
    method = _prepared(method_of([pool, pool]), "dsp")
    made = prelinked_block(
        method,
        "b",
        dict.fromkeys(method.constants, "c"),
        layout=table_layout(["m"], {"m": [method]}),
    )
    assert made.text.count("constexpr portable::AverageImages b_shape") == 1
    assert made.text.count("    /* shape */ &b_shape0}") == 2
    numbers = dict(made.blocks)["&b_shape0"]
    assert bytes(numbers) == struct.pack("<6if", 1, 2, 9, 18, 9, 1, 9.0)


def test_a_number_that_is_not_32_bits_is_not_prepared() -> None:
    method = _quantize()
    assert isinstance(method.values[2], IntValue)
    far = method.with_values({2: IntValue(1 << 40)})
    assert _call(_prepared(far)).prepared is None
