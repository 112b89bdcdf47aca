"""Which tensors stay together, and how long they live: cases, one by one."""

from __future__ import annotations

import pytest

from orchestrator.core.operator import OperatorName, parse_schema
from orchestrator.method.replan import flow as flow_module
from orchestrator.method.replan.flow import Flow, flow_of
from orchestrator.method.replan.steps import Step, linked_subject, method_subject
from orchestrator.program.program import (
    DelegateCall,
    FreeCall,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
)
from orchestrator.program.values import IntValue, OptionalTensorListValue, Value
from tests.unit.method.methods import Builder, tensor
from tests.unit.method.subjects import offsets, replanned, subject

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


def lives(flow: Flow) -> dict[tuple[int, ...], tuple[int, int]]:
    """By group: first and last moment."""
    return {group.members: (group.first, group.last) for group in flow.groups}


A, B, C = tensor((16,), 0), tensor((16,), 16), tensor((16,), 32)


def test_kernel_calls_read_what_is_no_out_argument() -> None:
    found = method_subject(
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
    assert found.steps == (
        Step(reads=(0,), fills=(1,), next=(1,)),
        Step(reads=(1, 0), fills=(2,), next=(2,)),
        Step(reads=(1,), changes=(2,), next=(3,)),
        Step(reads=(0,), fills=(1, 2), next=(4,)),
        Step(reads=(0,), fills=(1,), next=(5,)),
        Step(reads=(1, 2), grows=(0,), next=(6,)),
        Step(next=(7,)),
    )


def test_linked_calls_are_read_alike() -> None:
    b = Builder()
    one, other = b.tensor((16,), 0), b.tensor((16,), 16)
    b.call("aten::relu.out", one, other)
    b.code += [
        JumpFalseCall(condition=one, destination=0),
        MoveCall(source=one, target=other),
    ]
    found = linked_subject(b.method((one,), (other,)), SCHEMAS)
    assert found.steps == (
        Step(reads=(0,), fills=(1,), next=(1,)),
        Step(reads=(0,), next=(2, 0)),
        Step(reads=(0,), next=(3,)),
    )
    assert found.kept == (0,)
    assert found.replaced == {1}
    # Where a write goes is known, as it comes before any move's target is read.
    assert found.is_known


def test_calls_that_nothing_is_known_of_leave_everything_in_place() -> None:
    unknown = method((A, B), ("aten::relu.out", (0, 1, 1)))
    assert not method_subject(unknown, {}).is_known
    short = method((A, B), ("aten::relu.out", (0,)))
    found = method_subject(short, SCHEMAS)
    assert not found.is_known
    assert replanned(found, slack=100).arenas == ()


def test_what_moves_replace_is_not_written_in_place() -> None:
    code = (MoveCall(source=0, target=1), ("aten::add_", (1, 2, 1)))
    assert not method_subject(method((A, B, C), *code), SCHEMAS).is_known
    given = method((A, B, C), code[0], inputs=(1,))
    assert not method_subject(given, SCHEMAS).is_known


def test_moves_are_followed_through_each_other() -> None:
    found = method_subject(
        method(
            (A, B, C),
            MoveCall(source=0, target=1),
            MoveCall(source=1, target=2),
            ("aten::relu.out", (2, 0, 0)),
            JumpFalseCall(condition=2, destination=4),
        ),
        SCHEMAS,
    )
    assert found.steps[2].moved == (0, 1)
    assert found.steps[3] == Step(reads=(2,), moved=(0, 1), next=(4,))
    assert found.steps[2].touches == (2, 0, 1)


def test_delegates_may_do_anything_with_their_arguments() -> None:
    code = DelegateCall(delegate=0, args=(0, 1))
    found = method_subject(method((A, B), code), SCHEMAS)
    assert found.steps == (Step(changes=(0, 1), next=(1,)),)


def test_items_of_lists_count_and_numbers_do_not() -> None:
    values = (OptionalTensorListValue((1, -1, 2)), A, B, IntValue(3), C)
    found = method_subject(
        method(values, ("aten::relu.out", (0, 4, 4)), inputs=(0, 3)), SCHEMAS
    )
    assert found.steps == (Step(reads=(1, 2), fills=(4,), next=(1,)),)
    assert found.inputs == (1, 2)


@pytest.mark.parametrize("beside", [True, False])
def test_a_view_stays_with_its_base_if_it_lies_there(beside: bool) -> None:  # noqa: FBT001
    view = tensor((4, 4), 0 if beside else 16)
    found = method_subject(
        method((A, view, IntValue(1)), ("executorch_prim::et_view.default", (0, 2, 1))),
        SCHEMAS,
    )
    same, fills = ((1,), ()) if beside else ((), (1,))
    assert found.steps == (Step(reads=(0,), fills=fills, same=same, next=(1,)),)


def test_tensors_live_from_write_to_read() -> None:
    found = flow_of(
        subject(
            [(0, 16), (16, 16), (0, 16), (64, 16)],
            [
                Step(reads=(0,), fills=(1,), next=(1,)),
                Step(reads=(1,), fills=(2,), next=(2,)),
                Step(next=(3,)),
            ],
            inputs=(0,),
            outputs=(2,),
        ),
        1,
    )
    assert lives(found) == {(0,): (-1, 0), (1,): (0, 1), (2,): (1, 3)}
    assert found.idle == (3,)
    assert found.is_clear


def test_a_view_that_nothing_writes_stays_with_what_it_shows() -> None:
    found = flow_of(
        subject(
            [(0, 32), (16, 16), (16, 16)],
            [
                Step(fills=(0,), next=(1,)),
                Step(reads=(1,), next=(2,)),
                Step(fills=(2,), next=(3,)),
            ],
            outputs=(2,),
        ),
        1,
    )
    assert lives(found) == {(0, 1): (0, 1), (2,): (2, 3)}


def test_a_value_that_the_next_turn_of_a_loop_reads_lives_through_the_loop() -> None:
    steps = [
        Step(fills=(0,), next=(1,)),
        Step(reads=(0,), fills=(1,), next=(2,)),
        Step(reads=(1,), next=(3,)),
        Step(fills=(0,), next=(4,)),
        Step(next=(5, 1)),
        Step(next=(6,)),
    ]
    found = flow_of(subject([(0, 16), (16, 16)], steps), 1)
    assert lives(found) == {(0,): (0, 4), (1,): (1, 2)}


def test_rows_live_until_all_are_there() -> None:
    steps = [
        Step(fills=(1,), next=(1,)),
        Step(reads=(1,), fills=(2,), next=(2,)),
        Step(reads=(2,), grows=(0,), next=(3,)),
        Step(next=(4, 1)),
    ]
    # Where rows come to lie, something else was before.
    found = flow_of(subject([(0, 32), (32, 16), (48, 16)], steps, outputs=(0,)), 1)
    assert lives(found) == {(0,): (1, 4), (1,): (0, 3), (2,): (1, 2)}


def test_state_lives_always() -> None:
    found = flow_of(
        subject([(0, 16)], [Step(next=(1,)), Step(next=(2,))], state=[0]), 1
    )
    assert lives(found) == {(0,): (-1, 2)}


def test_what_nothing_has_written_is_not_clear() -> None:
    read = [Step(reads=(0,), next=(1,))]
    assert not flow_of(subject([(0, 16)], read), 1).is_clear
    moved = [Step(moved=(0,), next=(1,))]
    assert not flow_of(subject([(0, 16)], moved), 1).is_clear
    assert flow_of(subject([(0, 16)], read, replaced=[0]), 1).is_clear


def test_bytes_that_a_smaller_tensor_may_have_left_are_not_clear() -> None:
    steps = [
        Step(fills=(0,), next=(1,)),
        Step(fills=(1,), next=(2,)),
        Step(reads=(2,), next=(3,)),
    ]
    places = [(0, 16), (0, 16), (0, 16)]
    assert flow_of(subject(places, steps), 1).is_clear
    assert not flow_of(subject(places, steps, dynamic=[1]), 1).is_clear
    # A view of a tensor that changes its size has the items that one has.
    viewed = [
        Step(fills=(0,), next=(1,)),
        Step(reads=(0,), same=(1,), next=(2,)),
        Step(reads=(1,), next=(3,)),
    ]
    assert flow_of(subject(places, viewed, dynamic=[0, 1]), 1).is_clear


def test_a_method_that_takes_too_long_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    method = subject([(16, 16)], [Step(fills=(0,), next=(1,))])
    assert flow_of(method, 1).is_clear
    monkeypatch.setattr(flow_module, "_MOST_WORK", 1)
    assert not flow_of(method, 1).is_clear


def test_a_jump_to_the_beginning_and_code_that_nothing_reaches() -> None:
    steps = [
        Step(fills=(0,), next=(1,)),
        Step(reads=(0,), next=(0,)),
        Step(reads=(1,), next=(3,)),
    ]
    found = flow_of(subject([(0, 16), (16, 16)], steps), 1)
    assert lives(found) == {(0,): (0, 1), (1,): (2, 2)}


def test_idle_tensors_and_those_without_bytes_only_have_to_fit() -> None:
    method = subject(
        [(0, 16), (16, 64), (80, 32), (112, 0)],
        [Step(fills=(0,), next=(1,))],
        outputs=(0,),
    )
    found = replanned(method)
    assert found.arena_bytes == (0, 64)
    assert offsets(found.values) == [0, 0, 0, 0]
    assert found.arenas[0].file_bytes == 112


def test_tensors_keep_their_distance_to_multiples_of_16() -> None:
    found = replanned(
        subject([(1004, 8), (500, 4)], [Step(fills=(0, 1), next=(1,))], outputs=(0,))
    )
    assert [offset % 16 for offset in offsets(found.values)] == [12, 4]
    assert found.arena_bytes[1] < 64
