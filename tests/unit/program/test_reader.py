from __future__ import annotations

import re
import struct
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.core.dtype import ALL
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.program.program import BufferDevice, CompileSpec, Frame, FreeCall, Program
from orchestrator.program.reader import read_program
from orchestrator.program.values import BoolListValue, DoubleListValue, TensorValue
from tests.conftest import CASES, model_bytes
from tests.unit.program.program_writer import program_json, write_program

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
RUNTIME = Path(__file__).parents[3] / "runtime"
_REEXPORT = "export the model again, the file is damaged or was cut off"


def _problems(data: bytes) -> tuple[Diagnostic, ...]:
    with pytest.raises(ModelError) as caught:
        read_program(data, file="m.pte")
    return caught.value.diagnostics


def _tensor(**changes: object) -> Json:
    tensor: Json = {
        "scalar_type": 6,
        "storage_offset": 0,
        "sizes": [2, 2],
        "dim_order": [0, 1],
        "requires_grad": False,
        "layout": 0,
        "data_buffer_idx": 0,
        "allocation_info": None,
        "shape_dynamism": 0,
        "extra_tensor_info": None,
    }
    return {"val": tensor | changes, "val_type": "Tensor"}


def _int(value: int = 0) -> Json:
    return {"val": {"int_val": value}, "val_type": "Int"}


def _program(*values: Json, **method_changes: object) -> Json:
    """A program of one method with these values and one segment of 64 bytes."""
    method: Json = {
        "name": "forward",
        "container_meta_type": None,
        "values": list(values),
        "inputs": [],
        "outputs": [],
        "chains": [{"inputs": [], "outputs": [], "instructions": []}],
        "operators": [{"name": "aten::relu", "overload": "out"}],
        "delegates": [],
        "non_const_buffer_sizes": [0, 64],
    }
    return {
        "version": 0,
        "execution_plan": [method | method_changes],
        "segments": [{"offset": 0, "size": 64}],
        "constant_segment": {"segment_index": 0, "offsets": [0, 0, 48]},
    }


def _write(program: Json) -> bytes:
    return write_program(program, bytes(64))


def _calls(kind: str, **body: object) -> list[Json]:
    return [{"instructions": [{"instr_args": body, "instr_args_type": kind}]}]


def _read(program: Json) -> Program:
    return read_program(_write(program), file="m.pte")


def test_importing_the_reader_imports_nothing_heavy() -> None:
    code = (
        "import sys, orchestrator.program.reader, orchestrator.selection.extract;"
        "heavy = {'numpy', 'flatbuffers', 'yaml', 'pydantic'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_problem_says_where_what_and_what_next() -> None:
    data = _write(_program(_int(), outputs=[3]))
    assert _problems(data) == (
        Diagnostic(
            code="bad-program",
            message="a value is named that does not exist",
            where=SourceSpan(file="m.pte"),
            notes=(
                ("at", 'method "forward", output 0'),
                ("found", "value 3"),
                ("expected", "0 to 0"),
            ),
            hint=_REEXPORT,
        ),
    )


def test_what_is_not_supported_says_what_to_do() -> None:
    data = _write(_program(_tensor(storage_offset=4)))
    assert _problems(data) == (
        Diagnostic(
            code="unsupported-program",
            message="a tensor is not stored densely from the start of its buffer",
            where=SourceSpan(file="m.pte"),
            notes=(
                ("at", 'method "forward", value 0'),
                ("found", "storage offset 4, layout 0"),
                ("expected", "storage offset 0, layout 0 (strided)"),
            ),
            hint="make the tensor contiguous before exporting the model",
        ),
    )


def test_all_problems_are_reported_at_once() -> None:
    program = _program(_tensor(sizes=[-1, 2]), _int(), inputs=[7], outputs=[9])
    found = [(d.message, d.notes[0][1]) for d in _problems(_write(program))]
    assert found == [
        ("a tensor has a negative size", 'method "forward", value 0'),
        ("a value is named that does not exist", 'method "forward", input 0'),
        ("a value is named that does not exist", 'method "forward", output 0'),
    ]


def test_the_list_of_problems_is_bounded() -> None:
    problems = _problems(_write(_program(outputs=[1] * 1000)))
    assert len(problems) == 21
    assert problems[-1].message == "980 more problems in the same file"


_PLANNED = {"memory_id": 1, "memory_offset_low": 0, "memory_offset_high": 0}
_EXTRA = {"mutable_data_segments_idx": 0, "fully_qualified_name": "w", "location": 0}
_MOVE_INT = _calls("MoveCall", move_from=0, move_to=1)
_DELEGATE = {"id": "B", "processed": {"location": 1, "index": 0}, "compile_specs": []}
_BOOL = {"val": {"bool_val": True}, "val_type": "Bool"}
_TENSORS = {"val": {"items": []}, "val_type": "TensorList"}


@pytest.mark.parametrize(
    ("program", "message", "place", "found"),
    [
        (_program(_tensor(scalar_type=42)), "a tensor has an unknown dtype", "value 0", "dtype 42"),
        (
            _program(_tensor(scalar_type=12)),
            "a tensor has a dtype that the runtime does not have",
            "value 0",
            "QInt8",
        ),
        (
            _program(_tensor(shape_dynamism=3)),
            "a tensor has an unknown dynamism",
            "value 0",
            "dynamism 3",
        ),
        (
            _program(_tensor(layout=1)),
            "a tensor is not stored densely from the start of its buffer",
            "value 0",
            "storage offset 0, layout 1",
        ),
        (
            _program(_tensor(sizes=[1] * 9, dim_order=list(range(9)))),
            "a tensor has too many dimensions",
            "value 0",
            "9 dimensions",
        ),
        (
            _program(_tensor(dim_order=[0])),
            "the dim order of a tensor is not a permutation of its dimensions",
            "value 0",
            "[0]",
        ),
        (
            _program(_tensor(dim_order=[1, 1])),
            "the dim order of a tensor is not a permutation of its dimensions",
            "value 0",
            "[1, 1]",
        ),
        (
            _program(_tensor(sizes=None)),
            "the list of sizes of a tensor is missing",
            "value 0",
            "nothing",
        ),
        (
            _program(_tensor(sizes=[2**29, 1])),
            "a tensor is impossibly large",
            "value 0",
            "[536870912, 1] of Float, 2147483648 bytes",
        ),
        (
            _program(_tensor(sizes=[0, 2**31 - 1])),
            "a tensor is impossibly large",
            "value 0",
            "[0, 2147483647] of Float, 8589934588 bytes",
        ),
        (
            _program(_tensor(allocation_info=_PLANNED | {"memory_id": 0})),
            "a tensor is planned into an arena that is not there",
            "value 0",
            "memory id 0",
        ),
        (
            _program(_tensor(allocation_info=_PLANNED | {"memory_id": 2})),
            "a tensor is planned into an arena that is not there",
            "value 0",
            "memory id 2",
        ),
        (
            _program(_tensor(allocation_info=_PLANNED | {"memory_offset_low": 52})),
            "a tensor is planned past the end of its arena",
            "value 0",
            "offset 52, 16 bytes",
        ),
        (
            _program(_tensor(allocation_info=_PLANNED | {"memory_offset_high": 1})),
            "a tensor is planned past the end of its arena",
            "value 0",
            "offset 4294967296, 16 bytes",
        ),
        (
            _program(_tensor(allocation_info=_PLANNED | {"memory_offset_low": 2})),
            "a tensor is planned at an offset that its dtype cannot have",
            "value 0",
            "offset 2 for Float",
        ),
        (
            _program(_tensor(data_buffer_idx=3)),
            "a tensor has data that is not in the program",
            "value 0",
            "data buffer 3 of table 0",
        ),
        (
            _program(_tensor(data_buffer_idx=2, sizes=[5, 1])),
            "the data of a tensor leaves its segment",
            "value 0",
            "offset 48, 20 bytes",
        ),
        (
            _program(_tensor(data_buffer_idx=1, allocation_info=_PLANNED)),
            "a tensor has data that is not in the program",
            "value 0",
            "data buffer 1 of table 0",
        ),
        (
            _program(_tensor(extra_tensor_info=_EXTRA | {"location": 2})),
            "a tensor is stored at an unknown location",
            "value 0",
            "location 2",
        ),
        (
            _program(_tensor(extra_tensor_info=_EXTRA | {"device_type": 1})),
            "a tensor lies on another device than the CPU",
            "value 0",
            "device type 1",
        ),
        (
            _program(_int(), {"val": {"items": [1]}, "val_type": "IntList"}),
            "a list has an item that it cannot have",
            "value 1",
            "item 1, int list",
        ),
        (
            _program({"val": {"items": [-1]}, "val_type": "TensorList"}),
            "a list has an item that it cannot have",
            "value 0",
            "item -1",
        ),
        (
            _program({"val": {"items": [-2]}, "val_type": "OptionalTensorList"}),
            "a list has an item that it cannot have",
            "value 0",
            "item -2",
        ),
        (
            _program({"val": None, "val_type": "Int"}),
            "the content of a value is missing",
            "value 0",
            "nothing",
        ),
        (
            _program({"val": {}, "val_type": 12}),
            "a value is of an unknown kind",
            "value 0",
            "kind 12",
        ),
        (
            _program(_tensor(data_buffer_idx=1), inputs=[0]),
            "an input is a constant of the program",
            "input 0",
            "value 0",
        ),
        (
            _program(non_const_buffer_sizes=[0, 2**31]),
            "an arena has an impossible size",
            "arena 1",
            "2147483648 bytes",
        ),
        (
            _program(
                non_const_buffer_device=[{"buffer_idx": 1, "device_type": 1, "device_index": 0}]
            ),
            "an arena lies on another device than the CPU",
            "arena device 0",
            "arena 1 on device type 1",
        ),
        (
            _program(operators=[{"name": "relu", "overload": "out"}]),
            "an operator has an impossible name",
            "operator 0",
            '"relu.out"',
        ),
        (
            _program(operators=[{"name": "aten::a b", "overload": ""}]),
            "an operator has an impossible name",
            "operator 0",
            '"aten::a b"',
        ),
        (
            _program(delegates=[_DELEGATE | {"id": ""}]),
            "a delegate has no backend or no data",
            "delegate 0",
            'backend "", segment 0',
        ),
        (
            _program(delegates=[_DELEGATE | {"processed": {"index": 0}}]),
            "a delegate has no backend or no data",
            "delegate 0",
            'backend "B", inline data 0',
        ),
        (
            _program(delegates=[_DELEGATE | {"processed": {"location": 7}}]),
            "the data of a delegate is at an unknown location",
            "delegate 0",
            "location 7",
        ),
        (_program(chains=[]), "a method has not exactly one chain of instructions", "", "0 chains"),
        (
            _program(chains=[{"instructions": []}] * 2),
            "a method has not exactly one chain of instructions",
            "",
            "2 chains",
        ),
        (
            _program(chains=_calls("KernelCall", op_index=0, args=[])),
            "a call has an impossible number of arguments",
            "instruction 0",
            "0 arguments",
        ),
        (
            _program(_int(), chains=_calls("KernelCall", op_index=0, args=[0] * 65536)),
            "a call has an impossible number of arguments",
            "instruction 0",
            "65536 arguments",
        ),
        (
            _program(_int(), chains=_calls("DelegateCall", delegate_index=0, args=[0])),
            "an instruction calls an operator or delegate that is not listed",
            "instruction 0",
            "index 0",
        ),
        (
            _program(_int(), chains=_calls("FreeCall", value_index=0)),
            "an instruction is given a value of the wrong kind",
            "instruction 0",
            "value 0, int",
        ),
        (
            _program(_int(), _BOOL, chains=_MOVE_INT),
            "an instruction is given a value of the wrong kind",
            "instruction 0",
            "value 0, int",
        ),
        (
            _program(_tensor(), _tensor(dim_order=[1, 0]), chains=_MOVE_INT),
            "a move would change the dtype or dim order of a tensor",
            "instruction 0",
            "Float [0, 1]",
        ),
        (
            _program(_tensor(sizes=[2, 3]), _tensor(sizes=[6, 3]), chains=_MOVE_INT),
            "a move would change the sizes of a tensor whose sizes are fixed",
            "instruction 0",
            "[2, 3]",
        ),
        (
            _program(_tensor(shape_dynamism=1), _tensor(), chains=_MOVE_INT),
            "a move would change the sizes of a tensor whose sizes are fixed",
            "instruction 0",
            "[2, 2] at most",
        ),
        (
            _program(_TENSORS, _TENSORS, chains=_MOVE_INT),
            "a move would change the tensors of a list",
            "instruction 0",
            "value 0, tensor list",
        ),
        (
            _program(_tensor(), _tensor(), inputs=[1], chains=_MOVE_INT),
            "an input is replaced by a move",
            "input 0",
            "value 1",
        ),
        (
            _program(_int(), chains=_calls("JumpFalseCall", cond_value_index=0)),
            "an instruction is given a value of the wrong kind",
            "instruction 0",
            "value 0, int",
        ),
        (
            _program(_tensor(), chains=_calls("JumpFalseCall", cond_value_index=0)),
            "the condition of a jump is not a single truth value",
            "instruction 0",
            "value 0: Float [2, 2]",
        ),
        (
            _program(_BOOL, chains=_calls("JumpFalseCall", destination_instruction=2)),
            "a jump leads out of the method",
            "instruction 0",
            "to instruction 2",
        ),
        (
            _program(_BOOL, chains=_calls("JumpFalseCall", destination_instruction=-1)),
            "a jump leads out of the method",
            "instruction 0",
            "to instruction -1",
        ),
        (
            _program(chains=[{"instructions": [{"instr_args_type": 6}]}]),
            "an instruction is of an unknown kind",
            "instruction 0",
            "kind 6",
        ),
    ],
)
def test_what_cannot_be_in_a_method_is_refused(
    program: Json, message: str, place: str, found: str
) -> None:
    (problem,) = _problems(_write(program))
    assert problem.message == message
    where = f'method "forward", {place}' if place else 'method "forward"'
    assert problem.notes[:2] == (("at", where), ("found", found))


def _at_top(**changes: object) -> Json:
    return _program() | changes


@pytest.mark.parametrize(
    ("program", "message", "found"),
    [
        (_at_top(version=1), "the program has an unknown schema version", "version 1"),
        (_at_top(execution_plan=[]), "the program has no method", ""),
        (
            _at_top(segments=[{"offset": 0, "size": 64}, {"offset": 60, "size": 5}]),
            "a segment ends after the segment data of the file",
            "offset 60, 5 bytes",
        ),
        (
            _at_top(constant_segment={"segment_index": 1, "offsets": [0, 0]}),
            "a table of data offsets leads to a segment that is not there",
            "segment 1",
        ),
        (
            _program(_tensor(data_buffer_idx=1))
            | {"constant_segment": {"segment_index": 9, "offsets": [0, 0]}},
            "a table of data offsets leads to a segment that is not there",
            "segment 9",
        ),
        (
            _at_top(mutable_data_segments=[{"segment_index": 1, "offsets": [0, 0]}]),
            "a table of data offsets leads to a segment that is not there",
            "segment 1",
        ),
        (
            _at_top(named_data=[{"key": "a", "segment_index": 1}]),
            "named data leads to a segment that is not there",
            "segment 1",
        ),
        (
            _at_top(named_data=[{"key": "a"}, {"key": "a"}]),
            "two blocks of named data have the same name",
            "'a'",
        ),
    ],
)
def test_what_cannot_be_in_a_program_is_refused(program: Json, message: str, found: str) -> None:
    (problem,) = _problems(_write(program))
    assert problem.message == message
    assert dict(problem.notes).get("found", "") == found


def test_dtypes_are_those_of_the_runtime() -> None:
    header = RUNTIME / "include" / "orch" / "scalar_type.h"
    pattern = re.compile(r"enum class ScalarType .*?\{(.*?)\};", re.DOTALL)
    (body,) = pattern.findall(header.read_text())
    found = {name: int(code) for name, code in re.findall(r"(\w+) = (\d+),", body)}
    assert found == {dtype.name: int(dtype) for dtype in ALL}


@pytest.mark.parametrize("names", [[""], ["a\0b"], ["forward", "forward"]])
def test_method_names_are_unique_and_not_empty(names: list[str]) -> None:
    methods = [_program(name=name)["execution_plan"][0] for name in names]
    (problem,) = _problems(_write(_at_top(execution_plan=methods)))
    assert problem.message == "a method has an impossible name"
    assert dict(problem.notes)["found"] == ascii(names[-1])


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("values", "the list of values is missing"),
        ("inputs", "the list of inputs is missing"),
        ("outputs", "the list of outputs is missing"),
        ("chains", "a method has not exactly one chain of instructions"),
        ("operators", "the list of operators is missing"),
        ("non_const_buffer_sizes", "the list of arena sizes is missing"),
        ("name", "the name of a method is missing"),
    ],
)
def test_every_method_has_its_lists(field: str, message: str) -> None:
    (problem,) = _problems(_write(_program(**{field: None})))
    assert problem.message == message


def test_an_external_tensor_needs_a_name() -> None:
    extra = _EXTRA | {"location": 1}
    named = _tensor(data_buffer_idx=9, extra_tensor_info=extra)
    (value,) = _read(_program(named)).methods[0].values
    assert isinstance(value, TensorValue)
    assert value.is_external
    assert not value.is_constant
    nameless = _tensor(extra_tensor_info=extra | {"fully_qualified_name": ""})
    (problem,) = _problems(_write(_program(nameless)))
    assert problem.message == "an external tensor has no name"


def test_constants_must_be_aligned_to_their_dtype() -> None:
    program = _program(_tensor(data_buffer_idx=1))
    program["constant_segment"]["offsets"][1] = 2
    (problem,) = _problems(_write(program))
    assert problem.message == "a tensor is stored at an offset that its dtype cannot have"


def _header(change: Callable[[list[int]], None]) -> tuple[Diagnostic, ...]:
    data = bytearray(_write(_program()))
    fields = list(struct.unpack_from("<IQQQ", data, 12))
    change(fields)
    struct.pack_into("<IQQQ", data, 12, *fields)
    return _problems(bytes(data))


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        (0, 23, "the extended header has an impossible length"),
        (0, 10**6, "the extended header has an impossible length"),
        (1, 10**6, "the flatbuffer does not lie inside the file"),
        (1, 31, "the flatbuffer does not lie inside the file"),
        (2, 8, "the segments overlap the flatbuffer"),
        (2, 10**6, "the file is too short for its segments"),
        (3, 65, "the file is too short for its segments"),
        (3, 63, "a segment ends after the segment data of the file"),
        (2, 0, "a segment ends after the segment data of the file"),
    ],
)
def test_a_damaged_header_is_refused(index: int, value: int, message: str) -> None:
    def change(fields: list[int]) -> None:
        fields[index] = value

    (problem,) = _header(change)
    assert problem.message == message


def test_a_short_header_leaves_the_segments_the_rest_of_the_file() -> None:
    data = bytearray(_write(_program(_tensor(data_buffer_idx=2))))
    struct.pack_into("<I", data, 12, 24)
    program = read_program(bytes(data), file="m.pte")
    assert program.header is not None
    assert program.header.segment_data_bytes is None
    assert program.segment_offset(0) == len(data) - 64


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"", "bad-program", "not an ExecuTorch program"),
        (b"\0\0\0\0FT01", "bad-program", "not an ExecuTorch program"),
        (b"\0\0\0\0ET11", "unsupported-program", "the program has another format version"),
        (b"\0\0\0\0ET12eh00", "bad-program", "the extended header is cut off"),
    ],
)
def test_other_files_are_refused(data: bytes, code: str, message: str) -> None:
    (problem,) = _problems(data)
    assert (problem.code, problem.message) == (code, message)


@pytest.mark.parametrize("case", [c for c in CASES if len(model_bytes(c)) < 3000])
def test_a_program_cut_off_anywhere_is_refused(case: str) -> None:
    data = model_bytes(case)
    program = read_program(data, file=case)
    header = program.header
    end = len(data)
    if header is not None:
        end = header.segment_base + (header.segment_data_bytes or 0)
    refused = 0
    for size in range(0, end, 7):
        try:
            # Without a header only padding of the flatbuffer can be missing.
            assert read_program(data[:size], file=case) == program
        except ModelError:
            refused += 1
    assert refused >= len(range(0, end, 7)) - (3 if header is None else 0)


def test_bytes_after_the_last_segment_do_not_matter() -> None:
    data = model_bytes("counter")
    assert read_program(data + b"x" * 99, file="a") == read_program(data, file="a")


def test_what_no_real_program_of_the_corpus_has_is_read() -> None:
    frame = {"filename": "m.py", "lineno": 7, "name": "f", "context": "x + y"}
    program = _program(
        _tensor(),
        {"val": {"items": [True, False]}, "val_type": "BoolList"},
        {"val": {"items": [0.5, -1e300]}, "val_type": "DoubleList"},
        chains=[_calls("FreeCall", value_index=0)[0] | {"stacktrace": [{"items": [frame]}]}],
        delegates=[
            {
                "id": "B",
                "processed": {"location": 0, "index": 0},
                "compile_specs": [{"key": "k", "value": [1, 2]}, {"key": "e"}],
            }
        ],
        non_const_buffer_device=[{"buffer_idx": 1, "device_type": 0, "device_index": -1}],
    )
    program["backend_delegate_data"] = [{"data": [9, 8, 7]}]
    read = _read(program)
    (method,) = read.methods
    assert method.values[1:] == (BoolListValue((True, False)), DoubleListValue((0.5, -1e300)))
    assert method.instructions == (FreeCall(value=0),)
    expected = Frame(filename="m.py", line=7, name="f", context="x + y")
    assert method.frames == ((expected,),)
    assert method.delegates[0].compile_specs == (
        CompileSpec(key="k", value=b"\x01\x02"),
        CompileSpec(key="e", value=b""),
    )
    assert bytes(read.delegate_bytes(method.delegates[0])) == b"\x09\x08\x07"
    devices = (BufferDevice(buffer_index=1, device_type=0, device_index=-1),)
    assert method.arena_devices == devices
    assert method.operators == (OperatorName("aten", "relu", "out"),)
    assert method.container is None


def test_a_small_file_cannot_make_the_reader_work_without_end() -> None:
    program = program_json("add_mul")
    method = program["execution_plan"][0]
    wide = {"val": {"items": [5] * 20000}, "val_type": "IntList"}
    method["values"] += [deepcopy(wide)] + [_int()] * 20000
    data = bytearray(write_program(program))
    # Make every value after the list the list itself.
    (root,) = struct.unpack_from("<I", data)
    values = _values_vector(data, root)
    (count,) = struct.unpack_from("<I", data, values)
    at = values + 4 + 4 * 6
    target = at + struct.unpack_from("<I", data, at)[0]
    for index in range(7, count):
        entry = values + 4 + 4 * index
        struct.pack_into("<I", data, entry, (target - entry) % 2**32)
    problems = _problems(bytes(data))
    assert problems[0].message == "calls and lists share their items too often"


def _field(data: bytearray, table: int, slot: int) -> int:
    """Position that the reference in a slot of a table leads to."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    at = table + struct.unpack_from("<H", data, vtable + 4 + 2 * slot)[0]
    return int(at + struct.unpack_from("<I", data, at)[0])


def _values_vector(data: bytearray, root: int) -> int:
    plans = _field(data, root, 1)
    plan = plans + 4 + struct.unpack_from("<I", data, plans + 4)[0]
    return _field(data, plan, 2)
