"""A program that has every table of the schema."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from tests.unit.program.program_writer import write_program

Json = dict[str, Any]

_CALLS: Final[list[tuple[str, Json]]] = [
    ("KernelCall", {"op_index": 0, "args": [0, 1]}),
    ("DelegateCall", {"delegate_index": 0, "args": [0]}),
    ("MoveCall", {"move_from": 3, "move_to": 4}),
    ("JumpFalseCall", {"cond_value_index": 5, "destination_instruction": 4}),
    ("FreeCall", {"value_index": 0}),
]
_VALUES: Final[list[tuple[str, Json]]] = [
    ("Null", {}),
    ("Int", {"int_val": 1}),
    ("Int", {"int_val": 2}),
    ("Bool", {"bool_val": True}),
    ("Double", {"double_val": 0.5}),
    ("String", {"string_val": "s"}),
    ("IntList", {"items": [3, 4]}),
    ("DoubleList", {"items": [0.5]}),
    ("BoolList", {"items": [True]}),
    ("TensorList", {"items": [0]}),
    ("OptionalTensorList", {"items": [-1]}),
]


def _tensor(**changes: object) -> Json:
    return {
        "val_type": "Tensor",
        "val": {
            "scalar_type": 6,
            "sizes": [4],
            "dim_order": [0],
            "allocation_info": {"memory_id": 1, "memory_offset_low": 0},
            "extra_tensor_info": {"fully_qualified_name": "x", "location": 0},
        }
        | changes,
    }


def every_table(*, inline_constants: bool = False) -> Json:
    """The program; its constant lies in the flatbuffer, or in a segment."""
    constant = _tensor(data_buffer_idx=1, allocation_info=None)
    state = _tensor(data_buffer_idx=1)
    values = [{"val_type": kind, "val": value} for kind, value in _VALUES]
    values[0:0] = [_tensor(), constant]
    # Values 3, 4 and 5 are what the calls name; Null goes to the end.
    null = values.pop(2)
    values[2:2] = [state]
    frame = {"filename": "m.py", "lineno": 7, "name": "f", "context": "x + y"}
    method = {
        "name": "forward",
        "container_meta_type": {"encoded_inp_str": "", "encoded_out_str": ""},
        "values": [*values, null],
        "inputs": [],
        "outputs": [0],
        "chains": [
            {
                "instructions": [
                    {"instr_args_type": kind, "instr_args": call} for kind, call in _CALLS
                ],
                "stacktrace": [{"items": [frame]} for _ in _CALLS],
            }
        ],
        "operators": [{"name": "aten::relu", "overload": "out"}],
        "delegates": [
            {
                "id": "Elementwise",
                "processed": {"location": 0, "index": 0},
                "compile_specs": [{"key": "k", "value": [1]}],
            }
        ],
        "non_const_buffer_sizes": [0, 64],
        "non_const_buffer_device": [{"buffer_idx": 1}],
    }
    facts = {
        "execution_plan": [method],
        "constant_buffer": [{"data": []}, {"data": [0] * 16}] if inline_constants else None,
        "backend_delegate_data": [{"data": [1, 2, 3]}],
        "segments": [{"offset": 0, "size": 64}],
        "constant_segment": None if inline_constants else {"segment_index": 0, "offsets": [0, 0]},
        "mutable_data_segments": [{"segment_index": 0, "offsets": [0, 16]}],
        "named_data": [{"key": "blob", "segment_index": 0}],
    }
    return deepcopy(facts)


def with_newer_field(table: str, *, gap: int = 0) -> bytes:
    """The program, where tables of a name have a field that no schema has so far."""
    facts = every_table(inline_constants=table == "Buffer")
    if table == "DelegateScratch":
        facts = with_scratch(64, 64)
    return write_program(facts, bytes(64), newer=table, gap=gap)


def with_scratch(size: int, offset: int) -> Json:
    """The program, whose call of a delegate has scratch memory beside its values."""
    facts = every_table()
    (method,) = facts["execution_plan"]
    method["non_const_buffer_sizes"] = [0, offset + size]
    call = method["chains"][0]["instructions"][1]["instr_args"]
    place = {"memory_id": 1, "memory_offset_low": offset}
    call["scratch"] = [{"size": size, "allocation": place}]
    return facts


def two_parts() -> bytes:
    """Two parts of a delegate in a row, each with 4,096 bytes of scratch memory."""
    data = {"location": 0, "index": 0}
    part = {"id": "Elementwise", "processed": data}
    calls = [
        {
            "instr_args_type": "DelegateCall",
            "instr_args": {
                "delegate_index": number,
                "args": [number, number + 1],
                "scratch": [
                    {
                        "size": 4096,
                        "allocation": {"memory_id": 1, "memory_offset_low": 192 + 4096 * number},
                    }
                ],
            },
        }
        for number in range(2)
    ]
    tensors = [
        _tensor(
            sizes=[16],
            allocation_info={"memory_id": 1, "memory_offset_low": 64 * number},
            extra_tensor_info=None,
        )
        for number in range(3)
    ]
    method = {
        "name": "forward",
        "values": tensors,
        "inputs": [0],
        "outputs": [2],
        "chains": [{"instructions": calls}],
        "operators": [],
        "delegates": [part, part],
        "non_const_buffer_sizes": [0, 8384],
    }
    return write_program({"execution_plan": [method], "backend_delegate_data": [{"data": [1]}]})
