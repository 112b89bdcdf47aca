"""Checksums in generated texts: of which bytes, and who is asked to compare them."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from zlib import crc32

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from orchestrator.emit.generate.api_header import api_header
from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.integrity import table_words
from orchestrator.emit.generate.prelinked import argument_table, prelinked_block
from orchestrator.emit.generate.product import Product
from orchestrator.errors import ModelError
from orchestrator.memory.plan import constants_of
from orchestrator.memory.product import plan_memory
from orchestrator.method.compact import TableLayout
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes import link_program
from orchestrator.profile.choices import CheckImage
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import (
    Allocation,
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    Dynamism,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
)
from orchestrator.selection.extract import extract
from tests.unit.products import memory_of, program_of, resolution_of, target_of

HEAD = "Generated."
HOST = target_of("host", "zig")


def _source(*cases: str, integrity: CheckImage = CheckImage.START, prelinked: bool = False) -> str:
    programs = {case: program_of(case) for case in cases}
    linked = {
        case: link_program(program, extract(program, model=case), resolution_of(case), where=None)
        for case, program in programs.items()
        if prelinked
    }
    memory = plan_memory(programs, pointer_bytes=4, board=None, spans={}, linked=linked)
    return api_source(Product("p", HEAD, programs, memory, linked, integrity=integrity)).text


def _checked(text: str) -> dict[str, tuple[int, int]]:
    """Count and checksum of each block, by the name of its first byte."""
    found = re.findall(r"\{([\w.]+), (\d+), (0x[0-9a-f]{8})U\}", text)
    return {name: (int(count), int(crc, 16)) for name, count, crc in found}


def test_the_checksum_of_a_program_is_that_of_the_whole_file() -> None:
    cases = ("add_mul", "multi_method")
    text = _source(*cases)
    assert _checked(text) == {
        f"orch_model_{case}": (program_of(case).size_bytes, crc32(bytes(program_of(case).data)))
        for case in cases
    }
    # A program is compared once for all of its methods, or for the one that is asked.
    image = text.partition("Error check_image() {")[2].partition("}")[0]
    assert image.split() == [
        "ORCH_TRY(p_add_mul_forward_intact());",
        f"ORCH_TRY(p_multi_method_{program_of('multi_method').methods[-1].name}_intact());",
        *("return", "Error::Ok;"),
    ]
    for method in program_of("multi_method").methods:
        base = f"p_multi_method_{method.name}"
        assert f"orch_status {base}_check(void) noexcept {{" in text
        assert (
            f"Error {base}_intact() {{\n"
            "  return check_bytes(orch_model_multi_method_checked);\n}" in text
        )


@pytest.mark.parametrize("integrity", CheckImage)
@pytest.mark.parametrize(
    ("prelinked", "loader"), [(False, "load_linked"), (True, "start_prelinked")]
)
def test_a_method_is_compared_before_its_first_call_only_if_asked_for(
    integrity: CheckImage, loader: str, *, prelinked: bool
) -> None:
    text = _source("add_mul", integrity=integrity, prelinked=prelinked)
    ready = (
        "Error p_add_mul_forward_ready(const ModelMethod& method) {\n"
        "  ORCH_TRY(p_add_mul_forward_intact());\n"
        f"  return {loader}(method);\n}}"
    )
    at_load = integrity is CheckImage.LOAD
    assert (ready in text) == at_load
    assert (", p_add_mul_forward_ready};" in text) == at_load
    assert (f", {loader}}};" in text) != at_load
    never = integrity is CheckImage.NEVER
    assert ("integrity.h" not in text) == never
    assert ("check" not in text) == never
    assert ("intact" not in text) == never


def test_what_holds_no_address_is_covered_in_a_prelinked_method() -> None:
    for case in ("linear_softmax", "dynamic_batch"):
        text = _source(case, prelinked=True)
        found = _checked(text)
        program = program_of(case)
        (method,) = link_program(
            program, extract(program, model=case), resolution_of(case), where=None
        )
        constants = constants_of([method])
        assert constants
        for index, data in enumerate(constants):
            symbol = f"orch_constant_{case}_{index}"
            assert found.pop(symbol) == (len(data), crc32(bytes(data)))
        tables = re.findall(r"constexpr (u?int\d+_t|double) (\w+)\[\d+\] = \{(.*)\};", text)
        assert len(tables) > 3
        args = bytes(argument_table(method)[0])
        found_args = found.pop(f"p_{case}_forward_code.args")
        assert found_args == (len(args), crc32(args))
        codes = {"uint8_t": "B", "int32_t": "i", "double": "d"}
        for c_type, name, content in tables:
            kind = float.fromhex if c_type == "double" else int
            items = [kind(item) for item in content.split(", ")]
            data = struct.pack(f"<{len(items)}{codes[c_type]}", *items)
            assert found.pop(name) == (len(data), crc32(bytes(data)))
        assert not found
        assert any("sizes_first" in t for _, t, _ in tables) == (case == "dynamic_batch")
        words = [w for row in table_words(method, layout=TableLayout(index_bytes=1)) for w in row]
        crc = crc32(struct.pack(f"<{len(words)}I", *words))
        assert f"{crc:#010x}U);" in text


def _tensor(**changes: object) -> TensorValue:
    facts: dict[str, object] = {
        "dtype": ScalarType.Half,
        "sizes": (2, 3),
        "dim_order": (0, 1),
        "requires_grad": False,
        "data_buffer_index": 0,
        "allocation": Allocation(memory_id=1, offset_bytes=0),
        "dynamism": Dynamism.STATIC,
        "extra": None,
    }
    return TensorValue(**{**facts, **changes})  # type: ignore[arg-type]  # of a test


def _method(*values: object, instructions: tuple[object, ...] = ()) -> LinkedMethod:
    return LinkedMethod(
        model="m",
        name="f",
        values=values,  # type: ignore[arg-type]  # of a test
        instructions=instructions,  # type: ignore[arg-type]  # of a test
        inputs=(),
        outputs=(),
        data=(),
        origins=tuple(range(len(instructions))),
    )


def test_three_words_stand_for_a_value_or_an_instruction() -> None:
    """Tags and flags are those of the runtime's headers."""
    half_rank_2 = 1 | 5 << 8 | 2 << 16
    expected = {
        NoneValue(): (0, 0, 0),
        _tensor(): (half_rank_2 | 2 << 24, 0, 0),
        _tensor(dim_order=(1, 0)): (half_rank_2, 0, 0),
        _tensor(allocation=None): (half_rank_2 | 6 << 24, 0, 0),
        _tensor(dynamism=Dynamism.BOUNDED): (half_rank_2 | 3 << 24, 0, 0),
        IntValue(-2): (2, 0xFFFFFFFE, 0xFFFFFFFF),
        DoubleValue(1.0): (3, 0, 0x3FF00000),
        BoolValue(value=True): (4, 1, 0),
        StringValue("ä"): (5, 2, 0),
        IntListValue((0, 1)): (6, 2, 0),
        DoubleListValue((0.5,)): (7, 1, 0),
        BoolListValue((True, False, True)): (8, 3, 0),
        TensorListValue((1,)): (9, 1, 0),
        OptionalTensorListValue((-1, 1)): (9, 2, 0),
    }
    call = LinkedCall(
        operator=OperatorName.parse("aten::add.out"),
        function="k::add",
        args=(1, 2, 3),
        accesses=(),
        outs=(3,),
    )
    instructions = {
        call: (3 << 8, 0, 0),
        MoveCall(source=4, target=5): (1, 4, 5),
        JumpFalseCall(condition=6, destination=7): (2, 6, 7),
    }
    method = _method(*expected, instructions=tuple(instructions))
    assert table_words(method) == [*expected.values(), *instructions.values()]
    twice = replace(method, instructions=(replace(call, args=(1,)), call))
    compact = table_words(twice, layout=TableLayout(index_bytes=1))
    assert compact[-2:] == [(1 << 8, 0, 0), (3 << 8, 1, 0)]


def test_lists_are_covered_by_their_items() -> None:
    method = _method(
        StringValue("ä"),
        DoubleListValue((0.5, -2.0)),
        BoolListValue((True, False)),
        IntListValue((0, 4)),
        TensorListValue((1,)),
    )
    blocks = prelinked_block(method, "b", {}).blocks
    assert [data for _, data in blocks] == [
        "ä".encode(),
        struct.pack("<2d", 0.5, -2.0),
        b"\1\0",
        struct.pack("<2q", 0, 4),
        struct.pack("<i", 1),
    ]


def test_a_prelinked_method_of_nothing_has_no_blocks() -> None:
    made = prelinked_block(_method(), "b", {})
    assert made.blocks == ()
    text = api_source(
        Product(
            "p",
            HEAD,
            {"passthrough": program_of("passthrough")},
            memory_of({"passthrough": program_of("passthrough")}, HOST),
            {"passthrough": (_method(),)},
            integrity=CheckImage.START,
        )
    ).text
    assert "_intact() {\n  return check_tables({}, {},\n" in text


def test_a_product_without_models_is_intact() -> None:
    text = _source()
    assert "Error check_image() {\n  return Error::Ok;\n}" in text
    assert "orch_status p_check(void) noexcept {" in text


def _header(names: dict[str, str]) -> str:
    programs = {name: program_of(case) for name, case in names.items()}
    memory = memory_of(programs, HOST)
    return api_header(Product("p-q", HEAD, programs, memory, integrity=CheckImage.START)).text


def test_the_header_declares_the_functions() -> None:
    text = _header({"m": "add_mul"})
    assert "ORCH_NODISCARD orch_status p_q_check(void) ORCH_NOEXCEPT;" in text
    assert "orch_status p_q_m_forward_check(void) ORCH_NOEXCEPT;" in text
    assert "inline orch_status check() ORCH_NOEXCEPT {\n  return ::p_q_check();" in text
    plain = api_header(
        Product(
            "p-q", HEAD, {"m": program_of("add_mul")}, memory_of({"m": program_of("add_mul")}, HOST)
        )
    ).text
    assert "_check" not in plain


def test_a_model_called_check_has_its_namespace() -> None:
    text = _header({"check": "add_mul"})
    assert "namespace p_q {\nnamespace check {" in text
    assert "inline orch_status check_() ORCH_NOEXCEPT {\n  return ::p_q_check();" in text


def test_a_method_cannot_have_the_name_of_anothers_check() -> None:
    names = {"m": "add_mul", "m_forward": "multi_method"}
    programs = {name: program_of(case) for name, case in names.items()}
    (first, *others) = programs["m_forward"].methods
    renamed = (replace(first, name="check"), *others)
    programs["m_forward"] = replace(programs["m_forward"], methods=renamed)
    memory = memory_of(programs, HOST)
    api_header(Product("p", HEAD, programs, memory))
    with pytest.raises(ModelError) as caught:
        api_header(Product("p", HEAD, programs, memory, integrity=CheckImage.START))
    assert [d.code for d in caught.value.diagnostics] == ["name-clash"]
