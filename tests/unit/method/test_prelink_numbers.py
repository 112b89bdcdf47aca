"""The pass that computes calls on constants: calls that return a number."""

from __future__ import annotations

import pytest

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes import run_passes
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import BoolValue, IntListValue, IntValue
from tests.unit.method.methods import Builder

EVALUATE = "evaluate_constants"


def returns(b: Builder, name: str, *args: int) -> None:
    """A call of a kernel of ours; its last argument is the result."""
    base = name.replace(".", "_")
    b.call(f"executorch_prim::{name}", *args, function=f"orch::prim_ops::{base}")


def bases(method: LinkedMethod) -> list[str]:
    """What is left of a method."""
    return [i.operator.base for i in method.instructions if isinstance(i, LinkedCall)]


def after(method: LinkedMethod) -> LinkedMethod:
    """The method after the pass."""
    return run_passes(method, [EVALUATE])


def test_numbers_are_computed_one_from_the_other() -> None:
    """The size of an input, (size + 2) * size, and a list that has it."""
    b = Builder()
    x, out = b.tensor((5,), 0), b.tensor((5,), 32)
    two, size, total, found = (b.value(IntValue(n)) for n in (2, 0, 0, 0))
    zero = b.value(IntValue(0))
    b.call("aten::sym_size.int", x, zero, size, function="orch::prim_ops::sym_size_int")
    returns(b, "add.Scalar", size, two, total)
    returns(b, "mul.Scalar", total, size, found)
    b.call("mine::use.out", x, b.value(IntListValue((found, two))), out)
    method = b.method((x,), (out,))
    changed = after(method)
    assert bases(changed) == ["use"]
    assert [changed.values[i] for i in (size, total, found)] == [IntValue(n) for n in (5, 7, 35)]
    assert changed.written == {x, out}
    assert not method.has_constant_slots
    assert changed.has_constant_slots


def test_an_item_that_is_computed_is_a_number_too() -> None:
    b = Builder()
    one, y = b.tensor((1,), None), b.tensor((1,), 0)
    x, out = b.tensor((5,), 8), b.tensor((5,), 16)
    number = b.value(IntValue(0))
    function = "orch::portable::mul_out"
    b.call("aten::mul.out", one, one, y, function=function)
    read = "_local_scalar_dense"
    b.call(f"aten::{read}", y, number, function=f"orch::prim_ops::{read}")
    b.call("mine::use.out", x, number, out)
    changed = after(b.method((x,), (out,)))
    assert bases(changed) == ["use"]
    (data,) = [d for i, d in changed.data if i == one]
    assert changed.values[number] == IntValue(bytes(data)[0] ** 2 % 256)


def chain(b: Builder) -> tuple[int, int, int]:
    """A sum of constants; the slots of a constant, the sum and an input."""
    two, total = b.value(IntValue(2)), b.value(IntValue(9))
    return two, total, b.tensor((5,), 0)


def test_an_output_stays() -> None:
    b = Builder()
    two, total, _ = chain(b)
    returns(b, "add.Scalar", two, two, total)
    method = b.method((), (total,))
    assert after(method) == method


def test_a_list_that_is_an_output_stays() -> None:
    b = Builder()
    two, total, _ = chain(b)
    returns(b, "add.Scalar", two, two, total)
    method = b.method((), (b.value(IntListValue((total,))),))
    assert after(method) == method


def test_what_an_input_decides_stays() -> None:
    b = Builder()
    two, total, x = chain(b)
    returns(b, "add.Scalar", two, two, total)
    b.call("mine::use.out", total, x)
    method = b.method((two,), (x,))
    assert after(method) == method


@pytest.mark.parametrize("moves", [False, True])
def test_what_something_else_writes_stays(moves: bool) -> None:  # noqa: FBT001  # a parameter
    b = Builder()
    two, total, x = chain(b)
    returns(b, "add.Scalar", two, two, total)
    if moves:
        b.code.append(MoveCall(source=b.value(IntValue(1)), target=total))
    else:
        returns(b, "mul.Scalar", two, two, total)
    b.call("mine::use.out", total, x)
    method = b.method((), (x,))
    assert after(method) == method


def test_what_is_read_before_stays() -> None:
    """The first time it is what the program says, then what the last run left."""
    b = Builder()
    two, total, x = chain(b)
    b.call("mine::use.out", total, x)
    returns(b, "add.Scalar", two, two, total)
    method = b.method((), (x,))
    assert after(method) == method


def test_what_a_jump_leads_around_stays() -> None:
    b = Builder()
    two, total, x = chain(b)
    wanted = b.value(BoolValue(value=True))
    b.code.append(JumpFalseCall(condition=wanted, destination=2))
    returns(b, "add.Scalar", two, two, total)
    b.call("mine::use.out", total, x)
    method = b.method((wanted,), (x,))
    assert after(method) == method


def test_what_both_ways_lead_through_is_computed() -> None:
    """In a loop as well: the call comes before those that read it."""
    b = Builder()
    two, total, x = chain(b)
    done = b.value(BoolValue(value=False))
    returns(b, "add.Scalar", two, two, total)
    b.call("mine::use.out", total, x)
    b.call("mine::ask", x, done)
    b.code.append(JumpFalseCall(condition=done, destination=0))
    changed = after(b.method((), (x,)))
    assert bases(changed) == ["use", "ask"]
    assert changed.values[total] == IntValue(4)
    assert changed.instructions[2] == JumpFalseCall(condition=done, destination=0)


def test_what_a_move_reads_is_computed() -> None:
    b = Builder()
    two, total, x = chain(b)
    copied = b.value(IntValue(0))
    returns(b, "add.Scalar", two, two, total)
    b.code.append(MoveCall(source=total, target=copied))
    b.call("mine::use.out", copied, x)
    changed = after(b.method((), (x,)))
    assert changed.instructions[0] == MoveCall(source=total, target=copied)
    assert changed.values[total] == IntValue(4)


def test_what_decides_a_jump_is_computed() -> None:
    b = Builder()
    two, _, x = chain(b)
    found = b.value(BoolValue(value=False))
    returns(b, "eq.Scalar", two, two, found)
    b.code.append(JumpFalseCall(condition=found, destination=3))
    b.call("mine::use.out", two, x)
    changed = after(b.method((), (x,)))
    assert changed.values[found] == BoolValue(value=True)
    assert changed.instructions[0] == JumpFalseCall(condition=found, destination=2)


def test_kernels_of_others_stay() -> None:
    b = Builder()
    two, total, x = chain(b)
    b.call("executorch_prim::add.Scalar", two, two, total)
    b.call("mine::use.out", total, x)
    method = b.method((), (x,))
    assert after(method) == method
