from __future__ import annotations

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.program.values import ValueKind
from orchestrator.running.npy import Array
from orchestrator.running.product import Port
from orchestrator.running.values import (
    ListValue,
    Misfit,
    RunValue,
    describe,
    input_misfit,
    kind_of,
    stored_as,
)


def tensor(*sizes: int, dtype: ScalarType = ScalarType.Float, dynamic: bool = False) -> Port:
    return Port(
        kind=ValueKind.TENSOR,
        dtype=dtype,
        sizes=sizes,
        dim_order=tuple(range(len(sizes))),
        is_dynamic=dynamic,
    )


def floats(*shape: int, dtype: str = "<f4") -> Array:
    return Array(dtype=dtype, shape=shape, data=b"")


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (floats(2), ValueKind.TENSOR, "float32 [2]"),
        (True, ValueKind.BOOL, "bool true"),
        (3, ValueKind.INT, "int 3"),
        (0.5, ValueKind.DOUBLE, "double 0.5"),
        ("a", ValueKind.STRING, "string 'a'"),
        (ListValue(ValueKind.INT_LIST, (1, 2)), ValueKind.INT_LIST, "int_list [1, 2]"),
    ],
)
def test_kinds(value: RunValue, kind: ValueKind, text: str) -> None:
    assert kind_of(value) is kind
    assert describe(value) == text


@pytest.mark.parametrize(
    ("value", "port"),
    [
        (floats(), tensor()),
        (floats(3, 0), tensor(3, 0)),
        (floats(8, 6), tensor(8, 6, dynamic=True)),
        (floats(0, 5), tensor(8, 6, dynamic=True)),
        (floats(2, dtype="<u2"), tensor(2, dtype=ScalarType.BFloat16)),
        (floats(2, dtype="|b1"), tensor(2, dtype=ScalarType.Bool)),
        (-(2**63), Port(kind=ValueKind.INT)),
        (2**63 - 1, Port(kind=ValueKind.INT)),
        (0.5, Port(kind=ValueKind.DOUBLE)),
        (False, Port(kind=ValueKind.BOOL)),
    ],
)
def test_what_fits(value: RunValue, port: Port) -> None:
    assert input_misfit(value, port) is None


SHAPE = "the array has the wrong shape for this method"
DTYPE = "the array has the wrong dtype for this method"
KIND = "the input has the wrong kind for this method"


@pytest.mark.parametrize(
    ("value", "port", "misfit"),
    [
        (
            floats(3, 6),
            tensor(8, 6),
            Misfit(message=SHAPE, found="float32 [3, 6]", expected="float32 [8, 6]"),
        ),
        (
            floats(9, 6),
            tensor(8, 6, dynamic=True),
            Misfit(message=SHAPE, found="float32 [9, 6]", expected="float32 at most [8, 6]"),
        ),
        (
            floats(8),
            tensor(8, 6, dynamic=True),
            Misfit(message=SHAPE, found="float32 [8]", expected="float32 at most [8, 6]"),
        ),
        (
            floats(2),
            tensor(2, dtype=ScalarType.Half),
            Misfit(
                message=DTYPE,
                found="float32 [2]",
                expected="float16 [2]",
                hint='convert the array with astype("float16") before it is saved',
            ),
        ),
        (
            floats(2),
            tensor(2, dtype=ScalarType.BFloat16),
            Misfit(
                message=DTYPE,
                found="float32 [2]",
                expected="uint16 (bit patterns of bfloat16) [2]",
                hint="save the bit patterns: tensor.view(torch.uint16).numpy()",
            ),
        ),
        (
            floats(2),
            tensor(2, dtype=ScalarType.ComplexFloat),
            Misfit(
                message=DTYPE,
                found="float32 [2]",
                expected="complex64 [2]",
                hint='convert the array with astype("complex64") before it is saved',
            ),
        ),
        (
            floats(2),
            tensor(2, dtype=ScalarType.ComplexHalf),
            Misfit(
                message=DTYPE,
                found="float32 [2]",
                expected="uint32 (bit patterns of complex32) [2]",
                hint="save the bit patterns: tensor.view(torch.uint32).numpy()",
            ),
        ),
        (
            floats(2),
            tensor(2, dtype=ScalarType.QInt8),
            Misfit(
                message="the method takes a dtype that no .npy file can hold",
                found="float32 [2]",
                expected="QInt8 [2]",
            ),
        ),
        (3, tensor(2), Misfit(message=KIND, found="int 3", expected="float32 [2]")),
        (True, Port(kind=ValueKind.INT), Misfit(message=KIND, found="bool true", expected="int")),
        (
            "a",
            Port(kind=ValueKind.STRING),
            Misfit(
                message="an input of kind string cannot be given",
                found="string 'a'",
                expected="a method that takes tensors, ints, doubles and bools only",
                hint="export the model without this input",
            ),
        ),
    ],
)
def test_what_does_not_fit(value: RunValue, port: Port, misfit: Misfit) -> None:
    assert input_misfit(value, port) == misfit


def test_stored_as() -> None:
    assert stored_as(Port(kind=ValueKind.NONE)) == "none"
    assert stored_as(tensor(1, dtype=ScalarType.QInt8)) == "QInt8 [1]"
