"""What a firmware takes in place of a model, problem by problem."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from orchestrator.compat.check import check_compat, firmware_of
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey, TensorMeta
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic
from orchestrator.memory.product import method_state_bytes, plan_memory
from orchestrator.program.program import DelegateCall, MoveCall, Program
from orchestrator.program.reader import read_program
from orchestrator.program.values import IntValue, TensorValue
from orchestrator.selection.call import table_refusal
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.op_info import CallPattern
from orchestrator.selection.resolution import TableEntry
from orchestrator.selection.resolve import resolve
from tests.conftest import model_bytes
from tests.cpp.support.native import linked_catalog

if TYPE_CHECKING:
    from orchestrator.compat.firmware import Firmware


def program_of(case: str) -> Program:
    return read_program(model_bytes(case), file=case)


@cache
def firmware(case: str) -> Firmware:
    program = program_of(case)
    resolution = resolve(
        aggregate([extract(program, model="m")]),
        linked_catalog(),
        every_dtype=False,
        span_of=lambda _: None,
    )
    return firmware_of(
        resolution=resolution,
        memory=plan_memory({"m": program}, pointer_bytes=4, board=None, spans={}),
        programs={"m": program},
        pointer_bytes=4,
    )


def problems(place: Firmware, program: Program) -> tuple[Diagnostic, ...]:
    return check_compat(
        place,
        program,
        extract(program, model="m"),
        {m.name: method_state_bytes(m, pointer_bytes=4) for m in program.methods},
        model="m",
        file="new.pte",
    )


def codes(place: Firmware, program: Program) -> list[str]:
    return [p.code for p in problems(place, program)]


def changed(program: Program, **changes: object) -> Program:
    (method,) = program.methods
    return replace(program, methods=(replace(method, **changes),))  # type: ignore[arg-type]


def test_a_program_can_take_its_own_place() -> None:
    assert problems(firmware("add_mul"), program_of("add_mul")) == ()


def test_one_byte_less_is_one_byte_short() -> None:
    place = firmware("add_mul")
    (method,) = place.methods
    less = replace(
        method, state_bytes=method.state_bytes - 1, arena_bytes=(method.arena_bytes[0] - 1,)
    )
    found = problems(replace(place, methods=(less,)), program_of("add_mul"))
    assert found[0] == Diagnostic(
        code="update-memory",
        message="new.pte, method forward: the method state is 1 bytes short",
        notes=(
            ("needs", f"{method.state_bytes} bytes"),
            ("found", f"{method.state_bytes - 1} bytes in the firmware"),
        ),
        hint="build firmware with this program; its size cannot be changed over the air",
    )
    assert "arena 1 is 1 bytes short" in found[1].message
    none = replace(method, arena_bytes=())
    (short,) = problems(replace(place, methods=(none,)), program_of("add_mul"))
    assert "arena 1 is 64 bytes short" in short.message


def test_constants_in_the_flatbuffer_need_a_loader_that_knows_them() -> None:
    program = replace(program_of("add_mul"), inline_constants=((0, 0),))
    place = firmware("add_mul")
    (found,) = problems(place, program)
    assert found == Diagnostic(
        code="unsupported-program",
        message="new.pte has constants inside the flatbuffer",
        notes=(("expected", "constants in a segment, as in the firmware's"),),
        hint="export the model again with ExecuTorch 0.7 or newer",
    )
    assert problems(replace(place, inline_constants=True), program) == ()


def test_methods_must_be_there() -> None:
    program = changed(program_of("add_mul"), name="forwards")
    (found,) = problems(firmware("add_mul"), program)
    assert found == Diagnostic(
        code="method-missing",
        message="new.pte has no method forward",
        notes=(("found", "forwards"),),
        hint='did you mean "forwards"?',
    )
    (found,) = problems(firmware("add_mul"), replace(program, methods=()))
    assert found.notes == (("found", "none"),)
    assert found.hint == "export the program with this method"
    other = replace(
        firmware("add_mul"), methods=(replace(firmware("add_mul").methods[0], model="other"),)
    )
    assert problems(other, program) == ()


def test_the_interface_must_be_that_of_the_api() -> None:
    program = program_of("add_mul")
    (method,) = program.methods
    (found,) = problems(firmware("add_mul"), changed(program, inputs=method.inputs[1:]))
    assert found.code == "other-interface"
    assert found.notes == (("found", "2"), ("expected", "3"))
    place = firmware("add_mul")
    promised = replace(place.methods[0], outputs=("int",))
    (found,) = problems(replace(place, methods=(promised,)), program)
    assert "the output 0 differs from the API" in found.message
    assert found.notes == (("found", "Float [2, 2] in order [0, 1]"), ("expected", "int"))


def test_kernels_and_dtypes() -> None:
    place = firmware("add_mul")
    without = replace(place, kernels=place.kernels[1:])
    assert codes(without, program_of("add_mul")) == ["operator-missing"]
    kernels = tuple(replace(k, dtypes=frozenset()) for k in place.kernels)
    found = problems(replace(place, kernels=kernels), program_of("add_mul"))
    assert {p.code for p in found} == {"call-refused"}
    assert "dtype Float is not selected" in found[0].notes[0][1]


def test_what_the_firmware_s_kernel_requires() -> None:
    place, program = firmware("mlp"), changed_sizes(program_of("mlp"))
    found = [d for d in problems(place, program) if d.code == "call-refused"]
    assert found
    assert all(" it requires " in dict(d.notes)["found"] for d in found)


def changed_sizes(program: Program) -> Program:
    """With constants of another last size, which no other size fits."""
    (method,) = program.methods
    values = tuple(
        replace(v, sizes=(*v.sizes[:-1], v.sizes[-1] - 1))
        if isinstance(v, TensorValue) and v.is_constant
        else v
        for v in method.values
    )
    return replace(program, methods=(replace(method, values=values),))


def test_what_no_firmware_has() -> None:
    program = program_of("xnnpack_partial")
    assert "delegate-missing" in codes(firmware("add_mul"), program)
    assert any(isinstance(i, DelegateCall) for i in program.methods[0].instructions)
    outside = codes(firmware("add_mul"), program_of("io_not_planned"))
    assert "unsupported-program" in outside
    assert "unsupported-program" in codes(firmware("add_mul"), program_of("external_constants"))


def test_scalars_differ_from_tensors() -> None:
    program = program_of("add_mul")
    (method,) = program.methods
    number = next(i for i, v in enumerate(method.values) if isinstance(v, IntValue))
    (one,) = problems(firmware("add_mul"), changed(program, outputs=(number,)))
    assert one.notes[0] == ("found", "int")


def test_what_a_move_replaces_must_not_be_written() -> None:
    program = program_of("add_mul")
    (method,) = program.methods
    place = firmware("add_mul")
    roomy = replace(place, methods=(replace(place.methods[0], state_bytes=4096),))

    def moved_to(target: int) -> Program:
        move = MoveCall(source=method.inputs[1], target=target)
        return changed(program, instructions=(*method.instructions, move))

    # The input's memory is written before the move reads it.
    found = codes(roomy, moved_to(method.inputs[0]))
    assert found == ["unsound-plan", "write-to-constant"]
    overwritten, refused = problems(roomy, moved_to(method.outputs[0]))
    assert overwritten.code == "unsound-plan"
    assert refused.code == "call-refused"
    assert "is written and must not change" in refused.notes[0][1]


FLOAT = TensorMeta(ScalarType.Float, (0,))
INT = TensorMeta(ScalarType.Int, (0,))


@pytest.mark.parametrize(
    ("signature", "kinds", "why"),
    [
        ("TTSt", "TTITT", ""),
        ("TTSt", "TTDTT", ""),
        ("TTSt", "TTCTT", "argument 3 is a string"),
        ("TTSt", "TT", "2 arguments, the kernel has 4"),
        ("TT?t", "TNTT", ""),
        ("TTt", "TNTT", "argument 2 is None"),
        ("Ot", "OTT", ""),
        ("Ot", "LTT", ""),
        ("Lt", "OTT", "argument 1 is a tensor list with None in it"),
        ("TT>B", "TTB", ""),
        ("TT>B", "TTI", "argument 3 is an int"),
        ("SS>S", "IDD", ""),
    ],
)
def test_kinds_are_matched_as_the_device_does(signature: str, kinds: str, why: str) -> None:
    assert table_refusal(entry(signature), call(kinds), frozenset()) == why


def entry(signature: str, key: KernelKey | None = None) -> TableEntry:
    return TableEntry(
        operator=OperatorName.parse("aten::f.out"),
        key=key,
        function="",
        signature=signature,
        dtypes=frozenset({ScalarType.Float}),
    )


def call(kinds: str, meta: TensorMeta = FLOAT) -> CallPattern:
    places = (i for i, kind in enumerate(kinds) if kind in "TLO")
    return CallPattern(kinds=kinds, tensors=tuple((i, meta) for i in places))


def test_dtypes_keys_and_writes_are_matched_as_the_device_does() -> None:
    none: frozenset[int] = frozenset()
    why = table_refusal(entry("Tt"), call("TTT", INT), none)
    assert why == "dtype Int is not selected"
    # What follows the arguments of the signature is not looked at.
    late = CallPattern(kinds="TTT", tensors=((0, FLOAT), (1, FLOAT), (2, INT)))
    assert table_refusal(entry("Tt"), late, none) == ""
    listed = CallPattern(kinds="LTT", tensors=((0, FLOAT),), list_items=((0, INT),))
    assert "Int" in table_refusal(entry("Lt"), listed, none)
    key = KernelKey.parse("v1/6;0|6;0|6;0")
    assert table_refusal(entry("Tt", key), call("TTT"), none) == ""
    why = table_refusal(entry("Tt", key), call("TT"), none)
    assert why == "kernel key v1/6;0|6;0 is not v1/6;0|6;0|6;0"
    why = table_refusal(entry("Tt"), call("TTT"), frozenset({1}))
    assert why == "argument 2 is written and must not change"
    assert table_refusal(entry("Tt"), call("TTT"), frozenset({0, 2})) == ""
