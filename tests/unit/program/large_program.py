"""A program with as many bytes of constants as wanted: linear layers, as exported."""

from __future__ import annotations

import random
from typing import Any

from tests.unit.program.program_writer import write_program

_ALIGNMENT = 16


def linear_program(layers: int, width: int) -> bytes:
    """Linear layers on one row: each permutes its weights, which the build does."""
    values: list[dict[str, Any]] = []
    constants: list[bytes] = []
    numbers = random.Random(width)  # noqa: S311  # weights

    def value(kind: str, **facts: Any) -> int:
        values.append({"val_type": kind, "val": facts})
        return len(values) - 1

    def tensor(*sizes: int, place: int | None) -> int:
        found = len(constants) + 1 if place is None else 0
        if place is None:
            items = 4 * (sizes[0] if len(sizes) == 1 else sizes[0] * sizes[1])
            constants.append(numbers.randbytes(items))
        allocation = {"memory_id": 1, "memory_offset_low": place, "memory_offset_high": 0}
        return value(
            "Tensor",
            scalar_type=6,
            sizes=list(sizes),
            dim_order=list(range(len(sizes))),
            data_buffer_idx=found,
            allocation_info=None if place is None else allocation,
        )

    row = -(-4 * width // _ALIGNMENT) * _ALIGNMENT
    one = value("Int", int_val=1)
    swapped = value("IntList", items=[one, value("Int", int_val=0)])
    given = first = tensor(1, width, place=0)
    instructions = []
    for layer in range(layers):
        weights, bias = tensor(width, width, place=None), tensor(width, place=None)
        turned = tensor(width, width, place=2 * row)
        result = tensor(1, width, place=row * (1 - layer % 2))
        calls = (
            (0, [weights, swapped, turned, turned]),
            (1, [bias, given, turned, one, one, result, result]),
        )
        instructions += [
            {"instr_args_type": "KernelCall", "instr_args": {"op_index": operator, "args": args}}
            for operator, args in calls
        ]
        given = result
    data, offsets = bytearray(), [0]
    for constant in constants:
        data += bytes(-len(data) % _ALIGNMENT)
        offsets.append(len(data))
        data += constant
    method = {
        "name": "forward",
        "container_meta_type": {"encoded_inp_str": "", "encoded_out_str": ""},
        "values": values,
        "inputs": [first],
        "outputs": [given],
        "chains": [{"inputs": [], "outputs": [], "instructions": instructions}],
        "operators": [
            {"name": "aten::permute_copy", "overload": "out"},
            {"name": "aten::addmm", "overload": "out"},
        ],
        "delegates": [],
        "non_const_buffer_sizes": [0, 2 * row + 4 * width * width],
    }
    program = {
        "version": 0,
        "execution_plan": [method],
        "constant_buffer": [],
        "backend_delegate_data": [],
        "segments": [{"offset": 0, "size": len(data)}],
        "constant_segment": {"segment_index": 0, "offsets": offsets},
    }
    return write_program(program, bytes(data))
