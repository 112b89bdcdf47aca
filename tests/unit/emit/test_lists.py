"""Lists, and inputs that a program has fixed: API, memory, checks."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING

import pytest

from orchestrator.compat.check import firmware_of
from orchestrator.emit.generate.api_header import api_header
from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.ports import api_methods
from orchestrator.emit.generate.prelinked import prelinked_block
from orchestrator.emit.generate.product import Product
from orchestrator.errors import ModelError
from orchestrator.method.checks import check_writes
from orchestrator.method.lifetimes import peak_live_bytes
from orchestrator.method.linked import LinkedMethod
from orchestrator.program.interface import given_inputs, has_lists, most_items, with_items
from orchestrator.program.reader import read_program
from orchestrator.program.values import DoubleListValue
from orchestrator.selection.resolution import Resolution
from tests import list_program
from tests.list_program import call, move, plan, tensor, value
from tests.unit.products import memory_of, target_of

if TYPE_CHECKING:
    from orchestrator.program.program import Method, Program

HOST = target_of("host", "zig")


def _program(*plans: dict[str, object]) -> Program:
    return read_program(list_program.program(*plans), file="lists.pte")


LISTS = _program(list_program.list_plan())
METHOD = LISTS.methods[0]


def _method(values: list[dict[str, object]], **of_plan: object) -> Method:
    ports = of_plan.pop("ports", ((), ()))
    instructions = of_plan.pop("instructions", [])
    return _program(
        plan("forward", values, ports, instructions, **of_plan)  # type: ignore[arg-type]  # as in plan
    ).methods[0]


def test_what_a_call_may_choose() -> None:
    can = given_inputs(METHOD)
    given = [i for i, slot in enumerate(METHOD.inputs) if slot in can]
    assert given == [0, 1]
    assert sorted(with_items(METHOD, [3, 4])) == [0, 1, 2, 3, 4, 17]
    assert has_lists(METHOD)


@pytest.mark.parametrize(
    ("instructions", "outputs"),
    [
        ([call(0, 0, 2, 0)], []),
        ([move(0, 1)], []),
        (
            [
                {
                    "instr_args_type": "JumpFalseCall",
                    "instr_args": {"cond_value_index": 3, "destination_instruction": 1},
                }
            ],
            [],
        ),
        ([], [0]),
    ],
)
def test_a_number_that_is_read_can_be_given(
    instructions: list[dict[str, object]], outputs: list[int]
) -> None:
    values = [value("Int", int_val=1), value("Int", int_val=2), tensor([2], 0)]
    values.append(value("Bool", bool_val=True))
    slot = 3 if instructions and "Jump" in str(instructions) else 0
    found = _method(
        values, ports=([slot, 1], outputs), instructions=instructions, operators=["aten::add.out"]
    )
    assert given_inputs(found) == {slot}
    assert not has_lists(found)


def test_most_items_follow_moves() -> None:
    ints = [value("Int", int_val=7)]
    lists = [value("IntList", items=[0] * n) for n in (1, 2, 5, 9)]
    found = _method(ints + lists, instructions=[move(2, 1), move(3, 2), move(1, 3), move(1, 4)])
    assert most_items(found) == {1: 5, 2: 5, 3: 5, 4: 9}


def test_memory_counts_items() -> None:
    (method,) = memory_of({"m": LISTS}, HOST).models[0].methods
    assert method.input_bytes == (64, 8, 8, 8, 8, 8, 16, 16, 2, 8)
    assert method.output_bytes == (48, 16, 24, 24, 3, 8, 8, 8, 8, 8, 0)
    # Inputs are live from the start, outputs to the end; all of the arena is either.
    assert peak_live_bytes(METHOD, 1) == 4 * 24 + 16


def test_header_has_what_a_caller_gives_and_gets() -> None:
    programs = {"m": LISTS}
    text = api_header(Product("lists", "Head.", programs, memory_of(programs, HOST))).text
    for line in (
        "/* input5: string, fixed by the program */",
        "/* input6: int list [7, -9], fixed by the program */",
        "/* input9: None, fixed by the program */",
        "/* output0_item1: None */",
        "#define LISTS_M_FORWARD_OUTPUT2_COUNT 3",
        "#define LISTS_M_FORWARD_OUTPUT1_ITEM0_BYTES 16",
        "float* lists_m_forward_input0_item2(void);",
        "int64_t lists_m_forward_output2_item(uint32_t index);",
        "const uint8_t* lists_m_forward_output4(void);",
        "uint32_t lists_m_forward_output5_length(void);",
        "double lists_m_forward_output7(void);",
    ):
        assert f"\n{line}\n" in text.replace(" ORCH_NOEXCEPT", "")
    source = api_source(Product("lists", "Head.", programs, memory_of(programs, HOST))).text
    assert "orch::get_ints(method, 2, output2,\n                           3, " in source
    assert "orch::input(method, 1).set_int(input1);" in source
    assert "input2" not in source


def test_functions_of_lists_clash_like_others() -> None:
    programs = {"m": LISTS, "m_forward_output2": _program(plan("item", [], ((), ()), []))}
    with pytest.raises(ModelError) as caught:
        api_methods("p", programs)
    assert "p_m_forward_output2_item" in caught.value.diagnostics[0].message


def test_load_checks_the_items() -> None:
    source = api_source(Product("p", "head", {"m": LISTS}, memory_of({"m": LISTS}, HOST))).text
    text = source[source.index("_load(const void* program") :]
    assert "static constexpr orch::Port inputs0_items[]" in text
    assert "inputs0_items, true)" in text
    assert "outputs1_items, false)" in text
    assert "outputs10_items" not in text
    assert "if (error != orch::Error::Ok) orch::unload(method);" in text


def test_firmware_tells_lists_by_their_items() -> None:
    firmware = firmware_of(
        resolution=Resolution(),
        memory=memory_of({"m": LISTS}, HOST),
        programs={"m": LISTS},
        pointer_bytes=8,
    )
    (method,) = firmware.methods
    assert method.outputs[1] == "tensor list of (Float at most [4] in order [0], None)"
    assert method.inputs[6] == "int list"


def test_a_constant_in_an_input_list_is_refused() -> None:
    constant = tensor([2], 0)
    values = [value("TensorList", items=[1]), constant, tensor([2], 0)]
    found = _method(values, ports=([0], []), instructions=[move(2, 1)])
    program = _program(plan("forward", values, ([0], []), [move(2, 1)]))
    assert found == program.methods[0]
    resolution = Resolution()
    with pytest.raises(ModelError) as caught:
        check_writes({"m": program}, resolution, {})
    assert caught.value.diagnostics[0].notes == (("found", "method forward, input 0 (value 1)"),)


def test_doubles_of_prelinked_lists_are_exact() -> None:
    linked = LinkedMethod(
        model="m",
        name="forward",
        values=(DoubleListValue((nan, -inf, inf, 0.1)),),
        instructions=(),
        inputs=(),
        outputs=(0,),
        data=(),
        origins=(),
    )
    assert (
        'constexpr double b_table0[4] = {__builtin_nan(""), -__builtin_inf(),'
        " __builtin_inf(), 0x1.999999999999ap-4};"
    ) in prelinked_block(linked, "b", {}).text


def test_items_of_returned_lists_are_returned() -> None:
    linked = LinkedMethod(
        model="m",
        name="forward",
        values=METHOD.values,
        instructions=(),
        inputs=METHOD.inputs,
        outputs=METHOD.outputs,
        data=(),
        origins=(),
    )
    assert linked.returned == {*METHOD.outputs, 15, 16, 17, 2}
