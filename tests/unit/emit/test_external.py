"""Constants outside of programs, through the stages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.compat.check import check_compat, firmware_of
from orchestrator.compat.firmware import firmware_facts, read_firmware
from orchestrator.emit.compile import plan_compile
from orchestrator.emit.generate import generate
from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.product import Product
from orchestrator.emit.generate.tables import external_table
from orchestrator.memory.product import method_state_bytes, plan_memory
from orchestrator.selection.extract import extract
from orchestrator.selection.resolution import Resolution
from tests.unit.method.test_prelink import _linked as linked_of
from tests.unit.products import GNU, memory_of, program_of, resolution_of, target_of

CASE = "external_constants"
PROGRAM = program_of(CASE)


def test_the_loader_gets_a_table_of_names() -> None:
    programs = {"m": PROGRAM, "other": program_of("add_mul")}
    memory = plan_memory(programs, pointer_bytes=4, board=None, spans={})
    source = api_source(Product("p", "head", programs, memory)).text
    (first, *_) = PROGRAM.external
    size = len(first.data)
    row = f'{{"{first.name}", orch_constant_m_0, {size}, ScalarType::Float}}'
    assert row in source
    assert 'constexpr ModelData kDataTable[] = {\n    {"m", m_data}};' in source
    assert "kModelData{kDataTable};" in source
    assert "extern const uint8_t orch_constant_m_3[];" in source
    others = replace(memory, models=memory.models[1:])
    assert (
        "kModelData"
        not in api_source(Product("p", "head", {"other": programs["other"]}, others)).text
    )
    assert external_table(programs, {"m"}) == ""
    odd = replace(first, name='a"\\b\n?é')
    table = external_table({"m": replace(PROGRAM, external=(odd,))}, ())
    assert r'{"a\042\134b\012\077\303\251", orch_constant_m_0' in table


def test_the_data_is_assembled_once() -> None:
    target = target_of("cortex-m4", "gnu")
    programs = {"m": PROGRAM}
    memory = memory_of(programs, target)
    made_of = Product("p", "Head.", programs, memory, resolution=resolution_of(CASE))
    files = generate(made_of, target, generator="Orchestrator", kernels=())
    texts = {file.path: file.text for file in files}
    for index in range(4):
        line = f'  .section .rodata.orch_model_m.c{index},"a"'
        assert texts["gen/src/models.S"].count(line) == 1
    assert ".rodata.orch_model_m.*" in texts["gen/firmware.ld"]


def test_prelinked_methods_have_it_as_constants() -> None:
    method = linked_of(CASE)
    assert {e.data for e in PROGRAM.external} == set(method.constants)


@pytest.mark.parametrize("external", [False, True])
def test_only_products_that_need_it_can_find_data(*, external: bool) -> None:
    plan = plan_compile(
        profile="test",
        target=target_of("cortex-m4", "gnu"),
        toolchain=GNU,
        resolution=Resolution(),
        runtime_sources=("src/load_values.cpp", "src/executor.cpp"),
        models=(),
        external=external,
    )
    flag = "-DORCH_EXTERNAL_DATA=1"
    with_flag = {u.source for u in plan.units if flag in u.flags}
    assert with_flag == ({"src/runtime/src/load_values.cpp"} if external else set())


def test_programs_that_come_later_find_the_same_data() -> None:
    memory = plan_memory({"m": PROGRAM}, pointer_bytes=4, board=None, spans={})
    firmware = firmware_of(
        resolution=resolution_of(CASE), memory=memory, programs={"m": PROGRAM}, pointer_bytes=4
    )
    facts = dict(firmware_facts(firmware))
    first = PROGRAM.external[0]
    assert facts[f"data m.{first.name}"] == f"Float {len(first.data)} bytes"
    assert read_firmware(facts).data == firmware.data
    states = {"forward": method_state_bytes(PROGRAM.methods[0], pointer_bytes=4)}
    info = extract(PROGRAM, model="m")
    assert check_compat(firmware, PROGRAM, info, states, model="m", file="f") == ()
    key, text = firmware.data[0]
    other = replace(firmware, data=((key, text + "!"), *firmware.data[1:]))
    (found,) = check_compat(other, PROGRAM, info, states, model="m", file="f")
    assert found.code == "other-data"
    assert found.notes == (("found", text), ("expected", text + "!"))
    none = replace(firmware, data=())
    (found,) = check_compat(none, PROGRAM, info, states, model="m", file="f")
    assert (found.code, found.notes[1]) == ("unsupported-program", ("expected", "no data outside"))
