"""RISC-V code: what it does to the stack and whom it calls."""

from __future__ import annotations

import pytest

from orchestrator.measure.elf import RISCV
from orchestrator.measure.functions import CodeFile
from orchestrator.measure.riscv import steps_32, steps_64
from orchestrator.measure.steps import Kind, Span, Step
from tests.unit.measure.arm_objects import EXECUTABLE, OBJECT, ArmSpec


@pytest.mark.parametrize(
    ("text", "code", "kind", "value"),
    [
        # Encodings are those of GNU as.
        ("addi sp, sp, -48", "130101fd", Kind.GROW, 48),
        ("addi sp, sp, 48", "13010103", None, 0),
        ("addi sp, s0, -16", "130104ff", Kind.UNKNOWN_GROW, 0),
        ("add sp, sp, t0", "33015100", Kind.UNKNOWN_GROW, 0),
        ("andi sp, sp, -64", "137101fc", Kind.GROW, 48),
        ("jal ra, . - 22", "eff0bffe", Kind.CALL, -22),
        ("j . - 26", "6ff07ffe", Kind.BRANCH, -26),
        ("jalr a5", "e7800700", Kind.CALL_POINTER, 0),
        ("jr a5", "67800700", Kind.JUMP_POINTER, 0),
        ("ret", "67800000", Kind.RETURN, 0),
        ("call . + 0xffc", "97100000e780c0ff", Kind.CALL, 0xFFC),
        ("tail . - 0xff8", "17f3ffff67008300", Kind.BRANCH, -0xFF8),
        ("la a0, . + 4", "1705000013054500", None, 0),
        ("c.addi sp, -16", "4111", Kind.GROW, 16),
        ("c.addi sp, 16", "4101", None, 0),
        ("c.addi16sp -496", "4171", Kind.GROW, 496),
        ("c.addi16sp 64", "2161", None, 0),
        ("c.j . - 76", "55bf", Kind.BRANCH, -76),
        ("c.jr a5", "8287", Kind.JUMP_POINTER, 0),
        ("c.jalr a5", "8297", Kind.CALL_POINTER, 0),
        ("c.jr ra", "8280", Kind.RETURN, 0),
        ("c.mv sp, s0", "2281", Kind.UNKNOWN_GROW, 0),
        ("c.add sp, t0", "1691", Kind.UNKNOWN_GROW, 0),
        ("c.ebreak", "0290", None, 0),
        ("c.li a0, 1", "0545", None, 0),
    ],
)
def test_instructions(text: str, code: str, kind: Kind | None, value: int) -> None:
    data = bytes.fromhex(code)
    expected = [] if kind is None else [Step(0, kind, value)]
    for steps in (steps_32, steps_64):
        assert list(steps(data, [Span(0, len(data))])) == expected, text


def test_one_instruction_is_another_with_64_bits() -> None:
    """`c.jal . - 74`, or `c.addiw t5, -9`."""
    data = bytes.fromhex("5d3f")
    assert list(steps_32(data, [Span(0, 2)])) == [Step(0, Kind.CALL, -74)]
    assert list(steps_64(data, [Span(0, 2)])) == []


def test_data_between_instructions_is_left_out() -> None:
    data = bytes.fromhex("411141118280")
    found = list(steps_32(data, [Span(0, 2), Span(4, 6)]))
    assert found == [Step(0, Kind.GROW, 16), Step(4, Kind.RETURN)]


_CALL, _BRANCH, _RELAX = 19, 45, 51
"""R_RISCV_CALL_PLT, R_RISCV_RVC_JUMP, R_RISCV_RELAX."""


def _file(kind: int = OBJECT, mark: str = "$x") -> CodeFile:
    """A function that calls `other`, jumps within itself, and to a register."""
    spec = ArmSpec(["4111" + "97000000e7800000" + "01a0" + "8287"])
    spec.kind, spec.machine = kind, RISCV
    spec.symbols = [
        (mark, 1, 0, False, True),
        (".L1", 1, 12, False, True),
        ("other", 0, 0, False, False),
        ("f", 1, 0, True, False),
    ]
    spec.relocations = [(1, 2, _CALL, 3), (1, 2, _RELAX, 0), (1, 10, _BRANCH, 2)]
    return CodeFile(spec.make(), "obj/a.o")


@pytest.mark.parametrize("mark", ["$x", "$xrv32i2p1_m2p0", "no mark"])
def test_relocations_tell_calls_and_labels_none(mark: str) -> None:
    (found,) = _file(mark=mark).functions()
    assert (found.frame_bytes, found.calls, found.tails) == (16, {"other"}, set())
    assert not found.takes
    assert found.calls_pointer


def test_the_toolchain_s_functions_jump_by_tables() -> None:
    (found,) = _file(EXECUTABLE).functions()
    assert not found.calls_pointer
