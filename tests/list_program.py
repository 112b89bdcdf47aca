"""A program whose inputs and outputs are of every kind, which no exporter writes.

ExecuTorch flattens what a model takes and returns: lists as single values come from
other writers of the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.program.program_writer import write_program

if TYPE_CHECKING:
    from collections.abc import Sequence

Json = dict[str, Any]


def value(kind: str, **content: Any) -> Json:
    """A slot of a method."""
    return {"val_type": kind, "val": content}


def tensor(sizes: Sequence[int], offset: int, *, dynamic: bool = False, dtype: int = 6) -> Json:
    """A planned tensor, of Float unless another code is given."""
    return value(
        "Tensor",
        scalar_type=dtype,
        storage_offset=0,
        sizes=[*sizes],
        dim_order=[*range(len(sizes))],
        requires_grad=False,
        data_buffer_idx=0,
        allocation_info={"memory_id": 1, "memory_offset_low": offset, "memory_offset_high": 0},
        layout=0,
        shape_dynamism=1 if dynamic else 0,
    )


def call(operator: int, *args: int) -> Json:
    """A kernel call."""
    return {"instr_args_type": "KernelCall", "instr_args": {"op_index": operator, "args": [*args]}}


def move(source: int, target: int) -> Json:
    """A move."""
    return {"instr_args_type": "MoveCall", "instr_args": {"move_from": source, "move_to": target}}


def plan(
    name: str,
    values: list[Json],
    ports: tuple[Sequence[int], Sequence[int]],
    instructions: list[Json],
    operators: Sequence[str] = (),
    *,
    arena_bytes: Sequence[int] = (512,),
) -> Json:
    """A method; `ports` are its inputs and outputs."""
    parts = [name.partition(".") for name in operators]
    return {
        "name": name,
        "values": values,
        "inputs": [*ports[0]],
        "outputs": [*ports[1]],
        "chains": [{"inputs": [], "outputs": [], "instructions": instructions}],
        "operators": [{"name": base, "overload": end} for base, _, end in parts],
        "delegates": [],
        "non_const_buffer_sizes": [0, *arena_bytes],
    }


def program(*plans: Json) -> bytes:
    """The file of a program without constants."""
    return write_program(
        {
            "version": 0,
            "execution_plan": [*plans],
            "constant_buffer": [],
            "backend_delegate_data": [],
            "segments": [],
            "mutable_data_segments": [],
            "named_data": [],
        }
    )


def list_plan(name: str = "forward", *, third: float = 0.25, more: int = 0) -> Json:
    """Takes tensors in a list, and what is fixed; returns every kind.

    Inputs: list (x Float [2, 3], None, y Float [2, 3], z at most [4]), int n that is
    read, int 3, double 0.5, bool true, string "täxt", ints [7, -9], doubles
    [0.5, -1], bools [true, false], None.

    Outputs: list (x + n * y, None, x * y), optional list (z, None), ints
    [7, -9, 4611686018427387904] in place of [n], doubles, bools, string, n, double,
    bool, None, an empty list.
    """
    values = [
        tensor([2, 3], 0),  # 0 x
        tensor([2, 3], 32),  # 1 y
        tensor([4], 64, dynamic=True),  # 2 z
        value("OptionalTensorList", items=[0, 17, 1, 2]),  # 3
        value("Int", int_val=1),  # 4 n
        value("Int", int_val=3),  # 5
        value("Double", double_val=0.5),  # 6
        value("Bool", bool_val=True),  # 7
        value("String", string_val="täxt"),  # 8
        value("Int", int_val=7),  # 9
        value("Int", int_val=-9),  # 10
        value("IntList", items=[9, 10]),  # 11
        value("DoubleList", items=[0.5, -1.0]),  # 12
        value("BoolList", items=[True, False]),  # 13
        value("Null"),  # 14
        tensor([2, 3], 96),  # 15 x + n * y
        tensor([2, 3], 128),  # 16 x * y
        value("Null"),  # 17
        value("OptionalTensorList", items=[15, 17, 16]),  # 18
        value("OptionalTensorList", items=[2, -1]),  # 19
        value("IntList", items=[4]),  # 20, replaced by a move
        value("Int", int_val=1 << 62),  # 21
        value("IntList", items=[9, 10, 21]),  # 22
        value("DoubleList", items=[third, 1e300, float("inf")]),  # 23
        value("BoolList", items=[False, True, True]),  # 24
        value("String", string_val="out"),  # 25
        value("Double", double_val=-0.125),  # 26
        value("Bool", bool_val=False),  # 27
        value("TensorList", items=[]),  # 28
    ]
    values[3]["val"]["items"] += [0] * more
    return plan(
        name,
        values,
        ([3, 4, 5, 6, 7, 8, 11, 12, 13, 14], [18, 19, 20, 23, 24, 25, 4, 26, 27, 14, 28]),
        [call(0, 0, 1, 4, 15, 15), call(1, 0, 1, 16, 16), move(22, 20)],
        ["aten::add.out", "aten::mul.out"],
        arena_bytes=[160],
    )
