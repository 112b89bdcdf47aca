"""Functions that take signed updates: which methods they load, and their names."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from orchestrator.emit.generate.api_header import api_header
from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.ports import api_methods
from orchestrator.emit.generate.product import Product, UpdateTarget
from orchestrator.errors import ModelError
from tests.unit.products import memory_of, program_of, target_of

HOST: Final = target_of("host", "zig")
TARGET: Final = UpdateTarget(identity=bytes(range(32)), firmware_version=0x01020003)


def test_all_methods_of_the_model_are_loaded_or_none() -> None:
    program = program_of("add_mul")
    (method,) = program.methods
    two = replace(program, methods=tuple(replace(method, name=n) for n in "ab"))
    programs = {"m": two, "other": program}
    memory = memory_of(programs, HOST)
    source = api_source(Product("p", "head", programs, memory, updates={"m": TARGET})).text
    text = source[source.index("p_m_check_update_target") :]
    loads = [f"if (error == ORCH_OK) error = p_m_{n}_load(program" for n in "ab"]
    assert all(load in text for load in loads)
    assert text.index(loads[0]) < text.index(loads[1])
    unloads = [f"(void)p_m_{n}_load(nullptr, 0);" for n in "ab"]
    assert all(unload in text for unload in unloads)
    assert "other" not in text
    assert "0x00, 0x01, 0x02" in text
    assert f'"m", {0x01020003}u' in text


def test_what_is_declared_is_defined() -> None:
    programs = {"m": program_of("add_mul")}
    memory = memory_of(programs, HOST)
    declared = api_header(Product("a-b", "head", programs, memory, updates={"m": TARGET})).text
    defined = api_source(Product("a-b", "head", programs, memory, updates={"m": TARGET})).text
    for name in ("a_b_m_check_update(", "a_b_m_load_update("):
        assert f"orch_update_result {name}" in declared
        assert f"orch_update_result {name}" in defined


@pytest.mark.parametrize("name", ["load_update", "check_update"])
def test_no_method_may_have_their_names(name: str) -> None:
    program = program_of("add_mul")
    (method,) = program.methods
    programs = {"m": replace(program, methods=(replace(method, name=name),))}
    assert api_methods("p", programs)
    with pytest.raises(ModelError, match=f"two meanings of p_m_{name}"):
        api_methods("p", programs, updates=["m"])
