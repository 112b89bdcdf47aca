"""The reader against ExecuTorch's own reader, on every real and damaged program."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from orchestrator.errors import ModelError
from orchestrator.program import program as p
from orchestrator.program import values as v
from orchestrator.program.reader import read_program
from tests.conftest import CASES, CORPUS, model_bytes
from tests.unit.program.program_writer import program_json, write_program

Json = dict[str, Any]


def _value(value: v.Value) -> Json:
    body: Json
    match value:
        case v.NoneValue():
            kind, body = "Null", {}
        case v.IntValue():
            kind, body = "Int", {"int_val": value.value}
        case v.BoolValue():
            kind, body = "Bool", {"bool_val": value.value}
        case v.DoubleValue():
            kind, body = "Double", {"double_val": value.value}
        case v.StringValue():
            kind, body = "String", {"string_val": value.value}
        case v.TensorValue():
            kind, body = "Tensor", _tensor(value)
        case _:
            kind = type(value).__name__.removesuffix("Value")
            body = {"items": list(value.items)}
    return {"val": body, "val_type": kind}


def _tensor(tensor: v.TensorValue) -> Json:
    allocation, extra = tensor.allocation, tensor.extra
    return {
        "scalar_type": int(tensor.dtype),
        "storage_offset": 0,
        "sizes": list(tensor.sizes),
        "dim_order": list(tensor.dim_order),
        "requires_grad": tensor.requires_grad,
        "layout": 0,
        "data_buffer_idx": tensor.data_buffer_index,
        "allocation_info": allocation
        and {
            "memory_id": allocation.memory_id,
            "memory_offset_low": allocation.offset_bytes & 0xFFFFFFFF,
            "memory_offset_high": allocation.offset_bytes >> 32,
        },
        "shape_dynamism": int(tensor.dynamism),
        "extra_tensor_info": extra
        and {
            "mutable_data_segments_idx": extra.mutable_segment_index,
            "fully_qualified_name": extra.qualified_name,
            "location": int(extra.is_external),
            "device_type": extra.device_type,
            "device_index": extra.device_index,
        },
    }


def _instruction(instruction: p.Instruction) -> Json:
    kind = type(instruction).__name__
    match instruction:
        case p.KernelCall(operator=operator, args=args):
            body: Json = {"op_index": operator, "args": list(args)}
        case p.DelegateCall(delegate=delegate, args=args):
            body = {"delegate_index": delegate, "args": list(args)}
        case p.MoveCall(source=source, target=target):
            body = {"move_from": source, "move_to": target}
        case p.JumpFalseCall(condition=condition, destination=destination):
            body = {"cond_value_index": condition, "destination_instruction": destination}
        case p.FreeCall(value=value):
            body = {"value_index": value}
    return {"instr_args": body, "instr_args_type": kind}


def _method(method: p.Method) -> Json:
    container = method.container
    return {
        "name": method.name,
        "container_meta_type": container
        and {"encoded_inp_str": container.inputs, "encoded_out_str": container.outputs},
        "values": [_value(value) for value in method.values],
        "inputs": list(method.inputs),
        "outputs": list(method.outputs),
        "chains": [
            {
                "inputs": [],
                "outputs": [],
                "instructions": [_instruction(i) for i in method.instructions],
                "stacktrace": [],
            }
        ],
        "operators": [
            {"name": f"{o.namespace}::{o.base}", "overload": o.overload} for o in method.operators
        ],
        "delegates": [
            {
                "id": delegate.backend,
                "processed": {
                    "location": int(not delegate.is_inline),
                    "index": delegate.data_index,
                },
                "compile_specs": [
                    {"key": spec.key, "value": list(spec.value)} for spec in delegate.compile_specs
                ],
            }
            for delegate in method.delegates
        ],
        "non_const_buffer_sizes": list(method.arena_bytes),
        "non_const_buffer_device": [],
    }


def _subsegments(table: p.SubsegmentOffsets) -> Json:
    return {"segment_index": table.segment_index, "offsets": list(table.offsets)}


def _program(program: p.Program) -> Json:
    return {
        "version": program.version,
        "execution_plan": [_method(method) for method in program.methods],
        "constant_buffer": [],
        "backend_delegate_data": [],
        "segments": [{"offset": s.offset, "size": s.size_bytes} for s in program.segments],
        "constant_segment": program.constants and _subsegments(program.constants),
        "mutable_data_segments": [_subsegments(s) for s in program.mutable_segments],
        "named_data": [
            {"key": n.key, "segment_index": n.segment_index} for n in program.named_data
        ],
    }


_LISTS: Final = {
    "backend_delegate_data",
    "mutable_data_segments",
    "named_data",
    "non_const_buffer_device",
    "stacktrace",
}


def _normal(found: Any, key: str = "") -> Any:
    """A missing vector means the same as an empty one."""
    if found is None and key in _LISTS:
        return []
    if isinstance(found, dict):
        return {k: _normal(item, k) for k, item in found.items()}
    if isinstance(found, list):
        return [_normal(item) for item in found]
    return found


@pytest.mark.parametrize("case", CASES)
def test_every_fact_is_what_executorchs_reader_finds(case: str) -> None:
    program = read_program(model_bytes(case), file=case)
    assert _program(program) == _normal(program_json(case))


@pytest.mark.parametrize("case", CASES)
def test_file_facts_are_those_of_the_case(case: str) -> None:
    program = read_program(model_bytes(case), file=case)
    facts = json.loads((CORPUS / case / "case.json").read_text())["program"]
    assert program.size_bytes == facts["size"]
    assert program.sha256 == facts["sha256"]
    header, expected = program.header, facts["extended_header"]
    assert (header is None) == (expected is None)
    if header is not None:
        assert header.length == expected["length"]
        assert header.program_bytes == expected["program_size"]
        assert header.segment_base == expected["segment_base_offset"]
        assert header.segment_data_bytes == expected["segment_data_size"]


@pytest.mark.parametrize("case", CASES)
def test_another_writers_file_of_the_same_facts_reads_the_same(case: str) -> None:
    original = read_program(model_bytes(case), file=case)
    segments = None
    if original.header is not None:
        segments = bytes(original.data[original.header.segment_base :])
    data = write_program(program_json(case), segments)
    written = read_program(data, file=case)
    assert replace(written, header=None) == replace(original, header=None)


@pytest.mark.parametrize("case", [p.parent.name for p in CORPUS.glob("*/plain_c.pte")])
def test_programs_for_a_plain_core_are_read(case: str) -> None:
    data = (CORPUS / case / "plain_c.pte").read_bytes()
    other = read_program(model_bytes(case), file=case).methods[0]
    method = read_program(data, file=case).methods[0]
    assert [o.base for o in method.operators] == [o.base for o in other.operators]


_BAD: Final = {
    entry["file"]: entry
    for entry in json.loads((CORPUS / "bad" / "index.json").read_text())["files"]
}
# These files are well-formed programs that mean something else than the original. What
# they ask for is not the reader's to judge: no kernel, or no backend, will be found.
_WELL_FORMED: Final = {
    "arg_kind.pte": "a call's argument kinds are compared with the op schema",
    "unknown_operator.pte": "an operator without kernel is reported by the resolver",
    "delegate_id.pte": "a backend that is not linked is reported by the resolver",
    "old_constant_buffer.pte": "constants may lie in the flatbuffer",
}


def _read_bad(file: str) -> p.Program:
    return read_program((CORPUS / "bad" / file).read_bytes(), file=file)


_REFUSED: Final = {
    "bad-program",
    "unsupported-program",
    # A vtable in the wrong place has fields that no version knows.
    "newer-program",
}


@pytest.mark.parametrize("file", sorted(_BAD.keys() - _WELL_FORMED.keys()))
def test_a_damaged_program_is_refused(file: str) -> None:
    with pytest.raises(ModelError) as caught:
        _read_bad(file)
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.code in _REFUSED
        assert diagnostic.where is not None
        assert diagnostic.where.file == file
        assert diagnostic.hint


def _without(program: p.Program, **changes: object) -> p.Program:
    """The program without the part of its first method that differs."""
    method = replace(program.methods[0], **changes)  # type: ignore[arg-type]  # tests
    return replace(program, methods=(method, *program.methods[1:]))


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("arg_kind.pte", "instructions"),
        ("unknown_operator.pte", "operators"),
        ("delegate_id.pte", "delegates"),
    ],
)
def test_only_the_damaged_part_of_a_well_formed_program_differs(file: str, part: str) -> None:
    assert file in _WELL_FORMED
    damaged = _read_bad(file)
    original = read_program(model_bytes(_BAD[file]["made_from"]), file=file)
    assert damaged != original
    assert _without(damaged, **{part: ()}) == _without(original, **{part: ()})
