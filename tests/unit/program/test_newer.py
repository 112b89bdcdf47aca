"""Fields that this version does not know: whatever the table, they are refused."""

from __future__ import annotations

import re
import struct
from itertools import pairwise
from pathlib import Path

import flatbuffers
import pytest

from orchestrator.cli.main import run
from orchestrator.compat.check import check_compat, firmware_of
from orchestrator.errors import Diagnostic, ExitCode, ModelError, SourceSpan
from orchestrator.memory.product import method_state_bytes, plan_memory
from orchestrator.method.lifetimes import peak_live_bytes
from orchestrator.method.replan import adapt_program
from orchestrator.method.state import kept_arenas, with_state
from orchestrator.planner import plan_blocks
from orchestrator.program.encode import write_program as rewrite
from orchestrator.program.external import read_flat_tensors
from orchestrator.program.flatbuffer import DATA_FILE, PROGRAM, UNIONS
from orchestrator.program.program import DelegateCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import Allocation, TensorValue
from orchestrator.selection.extract import extract
from orchestrator.selection.resolution import Resolution
from tests.conftest import CASES, CORPUS, model_bytes
from tests.unit.program import program_writer
from tests.unit.program.newer_program import every_table, two_parts, with_newer_field, with_scratch
from tests.unit.program.program_writer import slots_of, write_program

HEADER = Path(__file__).parents[3] / "runtime" / "src" / "flatbuffer.h"


def problems(data: bytes) -> tuple[Diagnostic, ...]:
    with pytest.raises(ModelError) as caught:
        read_program(data, file="m.pte")
    return caught.value.diagnostics


@pytest.mark.parametrize("inline", [False, True])
def test_the_program_of_these_tests_is_right(*, inline: bool) -> None:
    data = write_program(every_table(inline_constants=inline), bytes(64))
    assert len(read_program(data, file="m.pte").methods[0].values) == 14


_ABOVE = {
    *("program", "method 0", "constant 0", "delegate data 0", "segment 0"),
    *("mutable segment 0", "named data 0"),
}
"""Places that are in no method."""


@pytest.mark.parametrize("gap", [0, 5])
@pytest.mark.parametrize("table", PROGRAM)
def test_a_field_more_is_refused_by_name(table: str, gap: int) -> None:
    (problem,) = problems(with_newer_field(table, gap=gap))
    assert problem.code == "newer-program"
    notes = dict(problem.notes)
    field = len(PROGRAM[table].types) + gap
    assert notes["found"] == f"field {field} of table {table}"
    assert notes["at"] in _ABOVE or notes["at"].startswith('method "forward"')


def test_the_message_is_whole() -> None:
    assert problems(with_newer_field("MoveCall")) == (
        Diagnostic(
            code="newer-program",
            message="the file has a field that this version does not know",
            where=SourceSpan(file="m.pte"),
            notes=(
                ("at", 'method "forward", instruction 2'),
                ("found", "field 2 of table MoveCall"),
                ("expected", "fields 0 to 1 (move_from, move_to)"),
            ),
            hint="update Orchestrator, or export the model with a version of"
            " ExecuTorch that it knows (docs/executorch-compatibility.md)",
        ),
    )


@pytest.mark.parametrize("case", CASES)
def test_programs_of_the_corpus_have_no_such_field(case: str) -> None:
    read_program(model_bytes(case), file=case)


def test_a_longer_vtable_without_fields_is_fine() -> None:
    """A schema may be newer, and a program may not use what is new in it."""
    builder = flatbuffers.Builder(64)
    builder.StartVector(4, 0, 4)
    methods = builder.EndVector()
    builder.StartObject(20)
    builder.PrependUOffsetTRelativeSlot(1, methods, 0)
    # The package leaves out what follows the last field that is there.
    builder.Finish(builder.EndObject(), file_identifier=b"ET12")
    data = bytearray(builder.Output())
    (root,) = struct.unpack_from("<I", data)
    vtable = root - struct.unpack_from("<i", data, root)[0]
    (size,) = struct.unpack_from("<H", data, vtable)
    longer = struct.pack("<H", 4 + 2 * 20) + data[vtable + 2 : vtable + size]
    start = len(data)
    data += longer.ljust(4 + 2 * 20, b"\0")
    struct.pack_into("<i", data, root, root - start)
    # Not for its fields.
    assert [p.code for p in problems(bytes(data))] == ["bad-program"]
    struct.pack_into("<H", data, start + 4 + 2 * 19, 4)
    assert [p.code for p in problems(bytes(data))] == ["newer-program"]


def test_the_writer_of_the_tests_has_the_same_fields() -> None:
    assert {name: slots_of(name) for name in PROGRAM} == {
        name: len(kind.types) for name, kind in PROGRAM.items()
    }
    assert UNIONS == {
        "KernelTypes": program_writer._VALUES,  # noqa: SLF001
        "InstructionArguments": program_writer._CALLS,  # noqa: SLF001
    }


# Where the device's slots lead to; a table of the schema may be reached by several.
_LEADS_TO = {
    "kExecutionPlan": "ExecutionPlan",
    "kConstantBuffer": "Buffer",
    "kDelegateData": "BackendDelegateInlineData",
    "kSegments": "DataSegment",
    "kConstantSegment": "SubsegmentOffsets",
    "kMutableDataSegments": "SubsegmentOffsets",
    "kNamedData": "NamedData",
    "kValues": "EValue",
    "kChains": "Chain",
    "kOperators": "Operator",
    "kDelegates": "BackendDelegate",
    "kAllocation": "AllocationDetails",
    "kExtra": "ExtraTensorInfo",
    "kInstructions": "Instruction",
    "kProcessed": "BackendDelegateDataReference",
    "kCompileSpecs": "CompileSpec",
    "kVal": "Int",
    "kValNull": "Null",
    "kValTensor": "Tensor",
    "kArgs": "KernelCall",
    "kArgsFree": "FreeCall",
}


def test_the_device_knows_the_same_fields() -> None:
    found = {
        name: (int(slot), int(fields))
        for name, slot, fields in re.findall(
            r"(\w+) = leads_to\((\d+), (\d+)\)", HEADER.read_text()
        )
    }
    assert found.keys() == _LEADS_TO.keys()
    for name, (slot, fields) in found.items():
        table = _LEADS_TO[name]
        assert fields == len(PROGRAM[table].types), name
        parents = [
            kind
            for kind in PROGRAM.values()
            for to in [*kind.types.values()][slot : slot + 1]
            if to.strip("[]") == table or table in UNIONS.get(to, ())
        ]
        assert parents, name
    # Other values have one field, other calls two but for what builds write anew.
    counts = {m: len(PROGRAM[m].types) for u in UNIONS.values() for m in u}
    others = counts.keys() - {"Null", "Tensor", "FreeCall"}
    assert {counts[m] for m in others & set(UNIONS["KernelTypes"])} == {1}
    calls = others & set(UNIONS["InstructionArguments"]) - {"DelegateCall"}
    assert {counts[m] for m in calls} == {2}
    assert [*PROGRAM["DelegateCall"].types][2:] == ["scratch"]
    (program,) = re.findall(r"kProgramFields = (\d+)", HEADER.read_text())
    assert int(program) == len(PROGRAM["Program"].types)


def _data_file(newer: str) -> bytes:
    """The data file of the corpus, written again with a field more in a table."""
    builder = flatbuffers.Builder(256)

    def table(name: str, *fields: tuple[str, int]) -> int:
        count = len(DATA_FILE[name].types)
        builder.StartObject(count + 1)
        for slot, (kind, value) in enumerate(fields):
            getattr(builder, f"Prepend{kind}Slot")(slot, value, 0)
        if name == newer:
            builder.PrependInt32Slot(count, 1, 0)
        return int(builder.EndObject())

    def vector(item: int) -> int:
        builder.StartVector(4, 1, 4)
        builder.PrependUOffsetTRelative(item)
        return int(builder.EndVector())

    segments = vector(table("DataSegment", ("Uint64", 0), ("Uint64", 4)))
    builder.StartVector(4, 1, 4)
    builder.PrependInt32(4)
    sizes = builder.EndVector()
    order = builder.CreateByteVector(b"\0")
    layout = table(
        "TensorLayout", ("Int8", 1), ("UOffsetTRelative", sizes), ("UOffsetTRelative", order)
    )
    key = builder.CreateString("w")
    named = vector(
        table("NamedData", ("UOffsetTRelative", key), ("Uint32", 0), ("UOffsetTRelative", layout))
    )
    root = table(
        "FlatTensor", ("Uint32", 0), ("UOffsetTRelative", segments), ("UOffsetTRelative", named)
    )
    builder.Finish(root, file_identifier=b"FT01")
    flatbuffer = bytes(builder.Output())
    size = len(flatbuffer)
    header = struct.pack("<4sIQQQQ", b"FH01", 40, 48, size - 8, size + 40, 4)
    (root,) = struct.unpack_from("<I", flatbuffer)
    head = struct.pack("<I", root + 40) + flatbuffer[4:8]
    return head + header + flatbuffer[8:] + bytes(4)


def test_a_field_more_in_a_data_file_is_refused() -> None:
    (tensor,) = read_flat_tensors(_data_file(""), file="w.ptd")
    assert tensor.sizes == (4,)
    for table, kind in DATA_FILE.items():
        with pytest.raises(ModelError) as caught:
            read_flat_tensors(_data_file(table), file="w.ptd")
        (problem,) = caught.value.diagnostics
        assert problem.code == "newer-program"
        found = dict(problem.notes)["found"]
        assert found == f"field {len(kind.types)} of table {table}"


def test_the_data_file_of_the_corpus_has_no_such_field() -> None:
    for path in CORPUS.glob("*/*.ptd"):
        assert read_flat_tensors(path.read_bytes(), file=path.name)


@pytest.mark.parametrize("turned", [False, True])
def test_scratch_memory_of_a_delegate_becomes_an_argument(*, turned: bool) -> None:
    data = write_program(with_scratch(4096, 128), bytes(64), turned=turned)
    program = read_program(data, file="m.pte")
    assert program.original == data
    (method,) = program.methods
    call = method.instructions[1]
    assert call == DelegateCall(delegate=0, args=(0, len(method.values) - 1))
    assert isinstance(call, DelegateCall)
    assert call.scratch_count == 1
    scratch = method.values[-1]
    assert isinstance(scratch, TensorValue)
    assert scratch.sizes == (4096,)
    assert scratch.allocation == Allocation(memory_id=1, offset_bytes=128)
    # What the device gets says the same, without the field.
    again = read_program(program.data, file="m.pte")
    assert again == program
    assert again.original is None
    assert rewrite(again) == program.data
    assert program.sha256 != again.sha256


def test_scratch_memory_of_delegates_is_live_during_their_calls() -> None:
    program = with_state(read_program(two_parts(), file="m.pte"), {})
    (method,) = program.methods
    assert peak_live_bytes(method, 1) == 64 + 64 + 4096
    assert not kept_arenas(method)


def _span(value: object) -> tuple[int, int]:
    assert isinstance(value, TensorValue)
    assert value.allocation is not None
    begin = value.allocation.offset_bytes
    return begin, begin + value.size_bytes


def test_a_plan_leaves_scratch_memory_of_delegates_its_bytes() -> None:
    """A planner that does not see it makes the arena 128 bytes."""
    program = read_program(two_parts(), file="m.pte")
    adapted = adapt_program(program, program, {}, plan=plan_blocks)
    (arena,) = adapted.arenas[0]
    assert (arena.file_bytes, arena.size_bytes) == (8384, 4224)
    (method,) = adapted.program.methods
    assert method.arena_bytes == (0, 4224)
    assert read_program(adapted.program.data, file="").methods == (method,)
    for call in method.instructions:
        assert isinstance(call, DelegateCall)
        spans = sorted(map(_span, (method.values[i] for i in call.args)))
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
        assert spans[-1][1] <= 4224


@pytest.mark.parametrize(("size", "memory_id", "arena"), [(65, 1, 64), (4, 2, 64), (4, 0, 64)])
def test_scratch_memory_outside_of_arenas_is_refused(size: int, memory_id: int, arena: int) -> None:
    facts = with_scratch(size, 0)
    (method,) = facts["execution_plan"]
    method["non_const_buffer_sizes"] = [0, arena]
    (scratch,) = method["chains"][0]["instructions"][1]["instr_args"]["scratch"]
    scratch["allocation"]["memory_id"] = memory_id
    (problem,) = problems(write_program(facts, bytes(64)))
    assert problem.code == "bad-program"
    assert problem.message == "scratch memory of a delegate does not lie inside an arena"


def test_what_the_device_refuses_compat_does_not_let_through() -> None:
    """The file itself: what a build leaves of it is loaded."""
    file = read_program(two_parts(), file="m.pte")
    built = read_program(file.data, file="m.pte")
    firmware = firmware_of(
        resolution=Resolution(),
        memory=plan_memory({"m": built}, pointer_bytes=4, board=None, spans={}),
        programs={"m": built},
        pointer_bytes=4,
    )
    codes = []
    for program in (file, built):
        states = {m.name: method_state_bytes(m, pointer_bytes=4) for m in built.methods}
        found = check_compat(
            firmware, program, extract(program, model="m"), states, model="m", file="m.pte"
        )
        codes.append([problem.code for problem in found])
    assert codes == [["newer-program", "delegate-missing"], ["delegate-missing"]]


def test_a_newer_program_is_a_problem_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "m.pte"
    path.write_bytes(with_newer_field("Chain"))
    assert run(["inspect", str(path)]) == ExitCode.MODEL
