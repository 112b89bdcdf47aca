"""Delegates in what is generated and compiled, and in what a firmware takes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.compat.check import check_compat, firmware_of
from orchestrator.compat.firmware import firmware_facts, read_firmware
from orchestrator.emit.compile import LibraryOptions, plan_compile
from orchestrator.emit.generate import generate
from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.product import Product
from orchestrator.emit.generate.tables import registered_delegates
from orchestrator.memory.product import method_state_bytes, plan_memory
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import extract
from orchestrator.selection.op_info import Origin
from orchestrator.selection.resolution import DelegateCode, Resolution, ResolvedDelegate
from tests.unit.products import GNU, target_of

if TYPE_CHECKING:
    from orchestrator.program.program import Program

MODEL = Path(__file__).parents[3] / "examples" / "delegate" / "model.pte"
CODE = DelegateCode(
    backend="Elementwise", namespace="mine::run", state_bytes=12, sources=("a.cpp",)
)
LINKED = ResolvedDelegate(code=CODE, origins=(Origin("m", "forward", 0),))


def program() -> Program:
    return read_program(MODEL.read_bytes(), file="model.pte")


def test_the_table_has_an_entry_per_backend() -> None:
    other = replace(CODE, backend="Other", state_bytes=0)
    text = registered_delegates("Head.", [LINKED, ResolvedDelegate(code=other, origins=())]).text
    assert text.startswith("// Head.\n")
    assert text.count("namespace mine::run {") == 1
    assert '{"Elementwise", 12,\n     mine::run::init, mine::run::execute},' in text
    assert '{"Other", 0,\n     mine::run::init, mine::run::execute},' in text
    assert "kDelegates[2]" in text


@pytest.mark.parametrize("has_delegates", [False, True])
def test_only_a_product_with_delegates_has_a_table(*, has_delegates: bool) -> None:
    resolution = Resolution(delegates=(LINKED,) if has_delegates else ())
    states = resolution.delegate_states
    programs = {"m": program()}
    memory = plan_memory(programs, pointer_bytes=4, board=None, spans={}, delegates=states)
    files = generate(
        Product("p", "Head.", programs, memory, resolution=resolution),
        target_of("host", "gnu"),
        generator="Orchestrator",
        kernels=(),
    )
    texts = {file.path: file.text for file in files}
    assert ("gen/src/registered_delegates.cpp" in texts) == has_delegates
    assert ("sizeof(DelegateHandle)" in texts["gen/src/api.cpp"]) == has_delegates


@pytest.mark.parametrize(
    ("delegates", "expected"),
    [
        ({}, "7*sizeof(Value)+3*sizeof(Instruction)+0*sizeof(int32_t)"),
        (
            {"Elementwise": 0},
            "7*sizeof(Value)+3*sizeof(Instruction)+0*sizeof(int32_t)+2*sizeof(DelegateHandle)",
        ),
        (
            {"Elementwise": 12},
            "in_words(7*sizeof(Value)+3*sizeof(Instruction)+0*sizeof(int32_t)"
            "+2*sizeof(DelegateHandle))+in_words(12)+in_words(12)",
        ),
    ],
)
def test_the_compiler_counts_handles_and_states(delegates: dict[str, int], expected: str) -> None:
    programs = {"m": program()}
    memory = plan_memory(programs, pointer_bytes=4, board=None, spans={}, delegates=delegates)
    codes = (replace(CODE, backend=b, state_bytes=size) for b, size in delegates.items())
    resolution = Resolution(delegates=tuple(ResolvedDelegate(code=c, origins=()) for c in codes))
    text = api_source(Product("p", "Head.", programs, memory, resolution=resolution)).text
    found = re.search(r"static_assert\((.*?)==", text, re.DOTALL)
    assert found
    assert re.sub(r"\s", "", found[1]) == expected
    assert ("orch/delegate.h" in text) == bool(delegates)
    assert ("constexpr size_t in_words" in text) == ("in_words(12)" in expected)


@pytest.mark.parametrize("has_delegates", [False, True])
def test_code_for_delegates_is_compiled_only_where_there_are_some(*, has_delegates: bool) -> None:
    names = ("executor", "load_delegates", "load_method", "load_values", "model")
    options = LibraryOptions(include=("inc",), defines=("A=1",))
    plan = plan_compile(
        profile="test",
        target=target_of("cortex-m4", "gnu"),
        toolchain=GNU,
        resolution=Resolution(delegates=(LINKED,) if has_delegates else ()),
        runtime_sources=tuple(f"src/{name}.cpp" for name in names),
        models=(),
        delegates={"Elementwise": options, "Unused": options},
    )
    flags = {unit.source: unit.flags for unit in plan.units}
    switched = {s for s, words in flags.items() if "-DORCH_DELEGATES=1" in words}
    expected = {f"src/runtime/src/{name}.cpp" for name in names[:-1]}
    assert switched == (expected if has_delegates else set())
    own = "src/delegates/Elementwise/a.cpp"
    generated = "gen/src/registered_delegates.cpp"
    assert (expected | {own, generated} <= set(flags)) == has_delegates
    assert ("src/runtime/src/load_delegates.cpp" in flags) == has_delegates
    if has_delegates:
        assert "-DORCH_DELEGATE_STATE_BYTES=12" in flags[own]
        assert "-DA=1" in flags[own]
        assert "-Isrc/delegates/Elementwise/inc" in flags[own]
        assert "-Wconversion" not in flags[own]
        assert not any("selected" in flag for flag in flags[own])
        assert "delegates/Elementwise/a.cpp" in plan.sources


def problems(*linked: ResolvedDelegate, new: Program) -> list[tuple[str, str]]:
    """Codes and messages for a program in the place of the example's."""
    resolution = Resolution(delegates=linked)
    states = resolution.delegate_states
    memory = plan_memory({"m": program()}, pointer_bytes=4, board=None, spans={}, delegates=states)
    firmware = firmware_of(
        resolution=resolution, memory=memory, programs={"m": program()}, pointer_bytes=4
    )
    assert dict(firmware.delegates) == states
    found = check_compat(
        firmware,
        new,
        extract(new, model="m"),
        {m.name: method_state_bytes(m, pointer_bytes=4, delegates=states) for m in new.methods},
        model="m",
        file="new.pte",
    )
    return [(p.code, p.message) for p in found if p.code != "operator-missing"]


def test_a_firmware_with_the_delegate_takes_the_program() -> None:
    assert problems(LINKED, new=program()) == []


MISSING = "new.pte, method forward: the firmware has no delegate"


def test_a_firmware_has_to_have_every_delegate() -> None:
    assert problems(new=program()) == [("delegate-missing", f"{MISSING} Elementwise")]
    (method,) = program().methods
    listed = replace(method.delegates[0], backend="Listed")
    # It is needed to load the method, and no call tells.
    uncalled = replace(method, delegates=(*method.delegates, listed))
    new = replace(program(), methods=(uncalled,))
    assert problems(LINKED, new=new) == [
        ("update-memory", "new.pte, method forward: the method state is 16 bytes short"),
        ("delegate-missing", f"{MISSING} Listed"),
    ]
    # Without delegates the loader looks at calls only.
    assert problems(new=new) == [("delegate-missing", f"{MISSING} Elementwise")]


@pytest.mark.parametrize("takes", [False, True])
def test_only_delegates_that_take_named_data_pay_for_it(*, takes: bool) -> None:
    code = replace(CODE, named_data=takes)
    assert code.part_bytes == (16 + 24 if takes else 12)
    linked = replace(LINKED, code=code)
    resolution = Resolution(delegates=(linked,))
    assert resolution.delegate_states == {"Elementwise": code.part_bytes}
    table = registered_delegates("Head.", [linked]).text
    assert ("mine::run::execute, true}" in table) == takes
    plan = plan_compile(
        profile="test",
        target=target_of("cortex-m4", "gnu"),
        toolchain=GNU,
        resolution=resolution,
        runtime_sources=("src/load_delegates.cpp", "src/model.cpp"),
        models=(),
        delegates={"Elementwise": LibraryOptions()},
        external=True,
    )
    flags = {unit.source: unit.flags for unit in plan.units}
    loader = flags["src/runtime/src/load_delegates.cpp"]
    assert ("-DORCH_NAMED_DATA=0" in loader) != takes
    assert "-DORCH_EXTERNAL_DATA=1" in loader
    own = flags["src/delegates/Elementwise/a.cpp"]
    assert f"-DORCH_DELEGATE_NAMED_DATA={int(takes)}" in own
    firmware = firmware_of(
        resolution=resolution,
        memory=plan_memory({}, pointer_bytes=4, board=None, spans={}),
        programs={},
        pointer_bytes=4,
    )
    facts = dict(firmware_facts(firmware))
    text = "40 bytes, takes named data" if takes else "12 bytes"
    assert facts["delegate Elementwise"] == text
    assert read_firmware(facts) == firmware
