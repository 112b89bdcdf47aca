"""What instructions of programs and of linked methods read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.core.operator import OperatorName, parse_schema
from orchestrator.method.effects import Effect, effects_of_linked, effects_of_method
from orchestrator.method.places import accesses
from orchestrator.program.program import (
    DelegateCall,
    FreeCall,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
)
from orchestrator.program.values import IntValue, OptionalTensorListValue, TensorListValue
from tests.unit.method.made_effects import replanned
from tests.unit.method.methods import Builder, tensor

if TYPE_CHECKING:
    from orchestrator.program.values import Value

TEXTS = (
    "aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    "aten::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "my::pool.out(Tensor self, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)",
    "my::new(Tensor self) -> Tensor",
    "executorch_prim::et_view.default(Tensor self, SymInt[] size) -> Tensor",
    "executorch_prim::et_copy_index.tensor(Tensor(a!) copy_to, Tensor copy_from,"
    " SymInt index) -> ()",
)
SCHEMAS = {schema.name: schema for schema in map(parse_schema, TEXTS)}
NAMES = tuple(SCHEMAS)


def method(
    values: tuple[Value, ...],
    *instructions: tuple[str, tuple[int, ...]] | object,
    inputs: tuple[int, ...] = (),
    outputs: tuple[int, ...] = (),
) -> Method:
    """A program's method; calls are (operator, arguments)."""
    calls = [
        KernelCall(operator=NAMES.index(OperatorName.parse(i[0])), args=i[1])
        if isinstance(i, tuple)
        else i
        for i in instructions
    ]
    return Method(
        name="forward",
        values=values,
        inputs=inputs,
        outputs=outputs,
        instructions=tuple(calls),  # type: ignore[arg-type]  # all are instructions
        operators=NAMES,
        delegates=(),
        arena_bytes=(0, 1024),
    )


A, B, C = tensor((16,), 0), tensor((16,), 16), tensor((16,), 32)


def test_kernel_calls_read_what_is_no_out_argument() -> None:
    found = effects_of_method(
        method(
            (A, B, C),
            ("aten::relu.out", (0, 1, 1)),
            ("aten::copy_", (2, 1, 0, 2)),
            ("aten::add_", (2, 1, 2)),
            ("my::pool.out", (0, 1, 2, 2)),
            ("my::new", (0, 1)),
            ("executorch_prim::et_copy_index.tensor", (0, 1, 2)),
            FreeCall(value=0),
        ),
        SCHEMAS,
    )
    assert found.is_known
    assert found.at == (
        Effect(reads=(0,), fills=(1,), next=(1,)),
        Effect(reads=(1, 0), fills=(2,), next=(2,)),
        Effect(reads=(2, 1), updates=(2,), next=(3,)),
        Effect(reads=(0,), updates=(2,), scratch=(1,), next=(4,)),
        Effect(reads=(0,), updates=(1,), next=(5,)),
        Effect(reads=(0, 1, 2), updates=(0,), next=(6,)),
        Effect(next=(7,)),
    )


def test_linked_calls_are_read_alike() -> None:
    b = Builder()
    one, other = b.tensor((16,), 0), b.tensor((16,), 16)
    b.call("aten::relu.out", one, other)
    b.code += [JumpFalseCall(condition=one, destination=0), MoveCall(source=one, target=other)]
    found = effects_of_linked(b.method((one,), (other,)))
    assert found.at == (
        Effect(reads=(0,), fills=(1,), next=(1,)),
        Effect(reads=(0,), next=(2, 0)),
        Effect(reads=(0,), replaces=(1,), next=(3,)),
    )
    assert found.moved == (0,)
    assert found.replaced == {1}
    assert not found.is_known  # where the call writes is for the move to decide


def test_calls_that_nothing_is_known_of_leave_everything_in_place() -> None:
    unknown = method((A, B), ("aten::relu.out", (0, 1, 1)))
    assert not effects_of_method(unknown, {}).is_known
    short = method((A, B), ("aten::relu.out", (0,)))
    found = effects_of_method(short, SCHEMAS)
    assert not found.is_known
    assert replanned(found, slack=100).arenas == ()


def test_what_moves_replace_is_not_written_in_place() -> None:
    code = (MoveCall(source=0, target=1), ("aten::add_", (1, 2, 1)))
    assert not effects_of_method(method((A, B, C), *code), SCHEMAS).is_known


def test_moves_are_followed_through_each_other() -> None:
    found = effects_of_method(
        method(
            (A, B, C),
            MoveCall(source=0, target=1),
            MoveCall(source=1, target=2),
            ("aten::relu.out", (2, 0, 0)),
            JumpFalseCall(condition=2, destination=4),
        ),
        SCHEMAS,
    )
    assert found.at[2].moved == (0, 1)
    assert found.at[3] == Effect(reads=(2,), moved=(0, 1), next=(4,))
    assert found.at[2].touches == (2, 0, 1)


def test_delegates_may_do_anything_with_their_arguments() -> None:
    code = DelegateCall(delegate=0, args=(0, 1))
    found = effects_of_method(method((A, B), code), SCHEMAS)
    assert found.at == (Effect(reads=(0, 1), updates=(0, 1), next=(1,)),)


def test_items_of_lists_count_and_numbers_do_not() -> None:
    values = (OptionalTensorListValue((1, -1, 2)), A, B, IntValue(3), C)
    found = effects_of_method(method(values, ("aten::relu.out", (0, 4, 4)), inputs=(0, 3)), SCHEMAS)
    assert found.at == (Effect(reads=(1, 2), fills=(4,), next=(1,)),)
    assert found.inputs == (1, 2)


@pytest.mark.parametrize("beside", [True, False])
def test_a_view_stays_with_its_base_if_it_lies_there(beside: bool) -> None:  # noqa: FBT001
    view = tensor((4, 4), 0 if beside else 16)
    found = effects_of_method(
        method((A, view, IntValue(1)), ("executorch_prim::et_view.default", (0, 2, 1))), SCHEMAS
    )
    views = (1,) if beside else ()
    assert found.at == (Effect(reads=(0,), fills=(1,), views=views, next=(1,)),)


def how(text: str) -> str:
    """How a kernel uses its arguments, by their first letters."""
    return "".join(access[0] for access in accesses(parse_schema(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aten::add.out(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)", "rrf"),
        # Outputs of out variants are not always called so.
        (
            "aten::max.dim_max(Tensor self, int dim, *, Tensor(a!) max,"
            " Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)",
            "rrff",
        ),
        # Statistics in place, beside an output.
        ("aten::norm.out(Tensor x, Tensor(a!) mean, *, Tensor(b!) out) -> Tensor(b!)", "ruf"),
        ("aten::split.out(Tensor x, *, Tensor(a!)[] out) -> ()", "rf"),
        ("aten::empty.out(int[] size, *, Tensor(a!) out) -> Tensor(a!)", "rw"),
        ("aten::sym_numel(Tensor self) -> SymInt", "rf"),
        ("mine::f.out(Tensor x, Tensor x_scratch, *, Tensor(a!) out) -> ()", "rsw"),
        ("mine::count(Tensor(a!) state, Tensor x) -> ()", "ur"),
        ("mine::log(Tensor x) -> ()", "r"),
    ],
)
def test_the_schema_says_how_a_kernel_uses_its_arguments(text: str, expected: str) -> None:
    assert how(text) == expected


def test_a_call_without_a_schema_writes_what_it_returns() -> None:
    values = (A, B, C, TensorListValue((1, 2)))
    out = ("aten::relu.out", (0, 1, 1))
    several = ("aten::relu.out", (0, 1, 2, 3))
    functional = ("aten::relu.out", (0, 1, 2))
    found = effects_of_method(method(values, out, several, functional), {})
    assert [(e.reads, e.writes) for e in found.at] == [((0,), (1,)), ((0,), (1, 2)), ((0, 1), (2,))]


def test_delegates_have_scratch_memory_last() -> None:
    code = DelegateCall(delegate=0, args=(0, 1, 2), scratch_count=1)
    (found,) = effects_of_method(method((A, B, C), code), {}).at
    assert found == Effect(reads=(0, 1), updates=(0, 1), scratch=(2,), next=(1,))
    assert found.touches == (0, 1, 2)
