"""Numbers that calls return: what they are, and what is left to the kernel.

tests/integration/test_evaluate.py compares them with the kernels, to the bit.
"""

from __future__ import annotations

from dataclasses import replace
from math import copysign, inf, nan
from typing import Any

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.evaluate import number_of, results_of
from orchestrator.program.values import BoolValue, DoubleValue, Dynamism, IntValue, TensorValue
from tests.unit.method.recorded_calls import Call, Returned, Tensor, method_of

TOP = 1 << 63
THREE = Tensor(ScalarType.Int, (1, 3), (0, 1), b"\5\0\0\0" + bytes(8))


def number(operator: str, *args: Any, kind: type = int) -> Any:
    """What a call returns; None if it is left to the kernel."""
    name = operator if "::" in operator else f"executorch_prim::{operator}"
    method = method_of([Call(name, (*args, Returned(kind)))])
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    found = number_of(method, call, frozenset(call.outs), ())
    assert found is None or isinstance(found, IntValue | DoubleValue | BoolValue)
    return None if found is None else found.value


@pytest.mark.parametrize(
    ("operator", "args", "want"),
    [
        ("add.Scalar", (2, 3), 5),
        ("add.Scalar", (2, 0.5), 2.5),
        ("sub.Scalar", (-TOP, -1), 1 - TOP),
        ("mul.Scalar", (1 << 31, -(1 << 32)), -TOP),
        ("neg.Scalar", (0.0,), -0.0),
        ("truediv.Scalar", (1, -0.0), -inf),
        ("truediv.Scalar", (-1, 4), -0.25),
        ("floordiv.Scalar", (-7, 2), -4),
        ("floordiv.Scalar", (-7.0, 2), -4.0),
        ("floordiv.Scalar", (-0.0, 0), -inf),
        ("floordiv.Scalar", (1e308, 1e-300), inf),
        ("floordiv.int", (7, -2), -4),
        ("mod.Scalar", (7, -2), -1),
        ("mod.int", (-TOP, -1), 0),
        ("sym_max.Scalar", (-3, 2), 2),
        ("sym_min.Scalar", (-3, 2), -3),
        ("round.Scalar", (2.5,), 2),
        ("round.Scalar", (-3.5,), -4),
        ("ceil.Scalar", (-0.5,), 0),
        ("trunc.Scalar", (-1.9,), -1),
        ("sym_int.Scalar", (float(-TOP),), -TOP),
        ("sym_int.Scalar", (-7,), -7),
        ("sym_float.Scalar", ((1 << 53) + 1,), 2.0**53),
        ("sym_ite.Scalar", (False, 1, 2), 2),
    ],
)
def test_numbers(operator: str, args: tuple[Any, ...], want: Any) -> None:
    found = number(operator, *args, kind=type(want))
    assert (found, copysign(1, found)) == (want, copysign(1, want))
    assert type(found) is type(want)


@pytest.mark.parametrize(
    ("operator", "args", "want"),
    [
        ("eq.Scalar", (TOP - 1, 2.0**63), False),
        ("lt.Scalar", (TOP - 1, 2.0**63), True),
        ("ge.Scalar", (nan, 0), False),
        ("le.Scalar", (-0.0, 0), True),
        ("gt.Scalar", (True, False), True),
        ("gt.Scalar", (1, 0.5), True),
        ("sym_not.Scalar", (False,), True),
    ],
)
def test_truth_values(operator: str, args: tuple[Any, ...], want: bool) -> None:  # noqa: FBT001  # a parameter
    assert number(operator, *args, kind=bool) is want


@pytest.mark.parametrize(
    ("operator", "args", "kind"),
    [
        ("add.Scalar", (TOP - 1, 1), int),
        ("sub.Scalar", (-TOP, 1), int),
        ("mul.Scalar", (TOP - 1, 2), int),
        ("neg.Scalar", (-TOP,), int),
        ("add.Scalar", (True, 1), int),
        ("eq.Scalar", (True, 1), bool),
        ("floordiv.int", (1, 0), int),
        ("floordiv.Scalar", (-TOP, -1), int),
        ("mod.int", (1, 0), int),
        ("trunc.Scalar", (2.0**63,), int),
        ("round.Scalar", (nan,), int),
        ("sym_max.Scalar", (1, 2.0), int),
        ("sym_not.Scalar", (1,), bool),
        # NaN
        ("sub.Scalar", (inf, inf), float),
        ("truediv.Scalar", (0, 0), float),
        ("truediv.Scalar", (nan, 0), float),
        ("floordiv.Scalar", (inf, 2), float),
        ("floordiv.Scalar", (nan, 0), float),
        # of another kind than the slot
        ("add.Scalar", (1, 2), float),
        ("sym_ite.Scalar", (True, 1.5, 2), int),
    ],
)
def test_what_a_kernel_refuses_is_left_to_it(
    operator: str, args: tuple[Any, ...], kind: type
) -> None:
    assert number(operator, *args, kind=kind) is None


def test_sizes_and_items() -> None:
    assert number("aten::sym_size.int", THREE, -1) == 3
    assert number("aten::sym_size.int", THREE, 2) is None
    assert number("aten::sym_numel", THREE) == 3
    assert number("aten::_local_scalar_dense", THREE) == 5
    point = Tensor(ScalarType.BFloat16, (), (), b"\x80\x3f")
    assert number("aten::_local_scalar_dense", point, kind=float) == 1.0
    assert number("aten::_local_scalar_dense", point) is None
    assert number("aten::sym_size.int", point, 0) is None
    empty = Tensor(ScalarType.Int, (0,), (0,), b"")
    assert number("aten::_local_scalar_dense", empty) is None


def test_sizes_that_may_change_are_left_to_the_kernel() -> None:
    method = method_of([Call("aten::sym_numel", (THREE, Returned(int)))])
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    written = frozenset((0, *call.outs))
    assert number_of(method, call, written, ()) == IntValue(3)
    assert number_of(method, call, written, {0}) is None
    assert results_of(method, call, frozenset()) is None
    tensor = method.values[0]
    assert isinstance(tensor, TensorValue)
    values = (replace(tensor, dynamism=Dynamism.BOUNDED), *method.values[1:])
    assert number_of(replace(method, values=values), call, written, ()) is None


def test_only_the_number_that_is_chosen_has_to_be_known() -> None:
    call = Call("executorch_prim::sym_ite.Scalar", (True, 1, 2, Returned(int)))
    method = method_of([call])
    (linked,) = method.instructions
    assert isinstance(linked, LinkedCall)
    assert number_of(method, linked, frozenset({2, 3}), ()) == IntValue(1)
    for unknown in (0, 1):
        assert number_of(method, linked, frozenset({unknown, 3}), ()) is None
