"""Faults of plans, and what a delegate reads and writes."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.method.separate import plan_faults, separated
from orchestrator.method.state import with_state
from orchestrator.program.program import DelegateCall, JumpFalseCall, Method, Program
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import Allocation, BoolValue, TensorValue
from tests.unit.method.methods import tensor
from tests.unit.method.test_effects import SCHEMAS, method
from tests.unit.products import program_of

A, B, C, D = (tensor((16,), 16 * at) for at in range(4))
VIEW = tensor((4, 4), 0)
"""Of what lies at the place of A, without an instruction."""


def _program(*methods: Method) -> Program:
    return replace(program_of("add_mul"), methods=methods)


def _kept(*methods: Method) -> list[list[int]]:
    """By method: values that outlive a run."""
    found = with_state(_program(*methods), SCHEMAS)
    return [
        [i for i, v in enumerate(m.values) if isinstance(v, TensorValue) and v.is_state]
        for m in found.methods
    ]


def _delegate(*args: int) -> DelegateCall:
    return DelegateCall(delegate=0, args=args)


def _relu(source: int, target: int) -> tuple[str, tuple[int, ...]]:
    return "aten::relu.out", (source, target, target)


def _shared(value: TensorValue) -> TensorValue:
    assert value.allocation is not None
    place = Allocation(memory_id=SHARED_ID, offset_bytes=value.allocation.offset_bytes)
    return replace(value, allocation=place)


def test_a_delegate_reads_through_a_view() -> None:
    found = method(
        (A, VIEW, B, C, D), _relu(4, 0), _delegate(1, 2), _relu(0, 3), inputs=(4,), outputs=(2, 3)
    )
    assert plan_faults(found, SCHEMAS) == ()
    apart = separated(_program(found), SCHEMAS, ["forward"]).methods[0].values
    assert isinstance(apart[0], TensorValue)
    assert isinstance(apart[1], TensorValue)
    assert apart[0].allocation == apart[1].allocation
    assert _kept(found) == [[]]


def test_state_that_a_delegate_reads_is_kept() -> None:
    """It comes first, also where a kernel writes it later, under another name."""
    values = (A, VIEW, B, D)
    for state in (0, 1):
        found = method(values, _delegate(state, 2), _relu(3, 0), inputs=(3,), outputs=(2,))
        assert _kept(found) == [[0, 1]]
    found = method(values, _delegate(3, 1, 2), _relu(2, 0), inputs=(3,), outputs=(2,))
    assert _kept(found) == [[0, 1]]


def test_state_that_one_method_writes_and_a_delegate_of_another_one_reads() -> None:
    values = tuple(map(_shared, (A, B))), (C, D)
    both = (*values[0], *values[1])
    encode = method(both, _relu(2, 0), _relu(2, 3), inputs=(2,), outputs=(3,))
    decode = method(both, _delegate(0, 3), inputs=(2,), outputs=(3,))
    encode, decode = (
        replace(m, name=name, arena_bytes=(0, 1024, 1024))
        for m, name in ((encode, "encode"), (decode, "decode"))
    )
    assert _kept(encode, decode) == [[0], [0]]


def test_outputs_of_a_delegate_are_no_state() -> None:
    found = method((A, B, C, D), _delegate(3, 0, 1), _relu(0, 2), inputs=(3,), outputs=(1, 2))
    assert _kept(found) == [[]]
    assert _kept(method((A, B), _delegate(0), _relu(0, 1), outputs=(1,))) == [[]]


def test_what_a_delegate_writes_anew_in_a_loop_is_no_fault() -> None:
    over = tensor((16,), 0)
    found = method(
        (D, A, over, B, BoolValue(value=True)),
        _delegate(0, 1),
        _relu(1, 3),
        _relu(3, 2),
        _relu(2, 3),
        JumpFalseCall(condition=4, destination=0),
        inputs=(0,),
        outputs=(3,),
    )
    assert plan_faults(found, SCHEMAS) == ()


def test_a_loop_over_what_was_lost_ends() -> None:
    """What is lost before a loop is lost in each round, and that is known then."""
    over = tensor((16,), 0)
    found = method(
        (D, A, over, B, BoolValue(value=True)),
        _relu(0, 1),
        _relu(1, 3),
        _relu(0, 2),
        _relu(2, 3),
        JumpFalseCall(condition=4, destination=2),
        _relu(1, 3),
        inputs=(0,),
        outputs=(3,),
    )
    (fault,) = plan_faults(found, SCHEMAS)
    assert (fault.value, fault.written, fault.read) == (1, 2, 5)


def test_a_value_that_a_view_shows_is_still_one_that_was_lost() -> None:
    """The view joins the family after a part of it was overwritten."""
    part, rest = tensor((4,), 0), tensor((4,), 12)
    found = method(
        (D, rest, A, part, B, C),
        _relu(0, 2),
        _relu(0, 3),
        _relu(1, 4),
        _relu(2, 5),
        inputs=(0,),
        outputs=(4, 5),
    )
    faults = plan_faults(found, SCHEMAS)
    assert (2, 3, 1, 3) in {(f.value, f.writer, f.written, f.read) for f in faults}


def test_faults_are_as_many_as_reads() -> None:
    count = 50
    parts = [tensor((4,), 4 * i) for i in range(count)]
    whole, out = tensor((4 * count,), 0), tensor((4 * count,), 8 * count)
    values = (whole, *parts, out)
    writes = [_relu(count + 1, 1 + i) for i in range(count)]
    reads = [_relu(0, count + 1)] * count
    found = method(values, *writes, *reads, inputs=(0, count + 1))
    assert len(plan_faults(found, SCHEMAS)) <= 2 * count
