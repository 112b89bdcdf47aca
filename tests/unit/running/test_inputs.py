from __future__ import annotations

import io
from math import inf, isnan
from typing import Any

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.errors import Diagnostic, UsageError
from orchestrator.program.values import ValueKind
from orchestrator.running.inputs import command_line_call
from orchestrator.running.npy import Array
from orchestrator.running.product import Port, Product, ProductMethod
from orchestrator.running.values import Call, RunValue


def npy(item: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, item)
    return file.getvalue()


FILES = {
    "a.npy": npy(np.array([1, 2], dtype=np.float32)),
    "int.npy": npy(np.int64(7)),
    "small.npy": npy(np.array([200], dtype=np.uint8)),
    "half.npy": npy(np.float16(0.5)),
    "true.npy": npy(np.array([[True]])),
    "no.npy": b"no array",
    "3": npy(np.int64(33)),
}


def read_bytes(path: str) -> bytes:
    if path == "folder":
        raise IsADirectoryError(21, "Is a directory", path)
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


TENSOR = Port(kind=ValueKind.TENSOR, dtype=ScalarType.Float, sizes=(2,), dim_order=(0,))


def product(*inputs: Port, outputs: tuple[Port, ...] = ()) -> Product:
    method = ProductMethod(
        index=0, model="m", name="forward", state_bytes=0, inputs=inputs, outputs=outputs
    )
    return Product(profile="p", board="", emulator=(), firmware="f", methods=(method,))


def call(known: Product, *inputs: str, **options: Any) -> Call:
    given: dict[str, Any] = {"model": None, "method": "forward", **options}
    return command_line_call(known, inputs=inputs, read_bytes=read_bytes, **given)


def problems(known: Product, *inputs: str, **options: Any) -> list[Diagnostic]:
    with pytest.raises(UsageError) as caught:
        call(known, *inputs, **options)
    return list(caught.value.diagnostics)


ARRAY = Array(dtype="<f4", shape=(2,), data=np.array([1, 2], dtype=np.float32).tobytes())


def test_tensors_are_files() -> None:
    known = product(TENSOR, TENSOR)
    assert call(known, "a.npy", "a.npy") == Call(method=known.methods[0], inputs=(ARRAY, ARRAY))
    assert call(known, "a.npy", "a.npy", model="m").inputs == (ARRAY, ARRAY)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ValueKind.INT, "-12", -12),
        (ValueKind.INT, "+4", 4),
        (ValueKind.INT, "3", 33),  # there is a file of this name
        (ValueKind.INT, "int.npy", 7),
        (ValueKind.INT, "small.npy", 200),
        (ValueKind.DOUBLE, "2.5", 2.5),
        (ValueKind.DOUBLE, "4", 4.0),
        (ValueKind.DOUBLE, "-.5e-3", -0.0005),
        (ValueKind.DOUBLE, "-Inf", -inf),
        (ValueKind.DOUBLE, "half.npy", 0.5),
        (ValueKind.DOUBLE, "int.npy", 7.0),
        (ValueKind.BOOL, "true", True),
        (ValueKind.BOOL, "False", False),
        (ValueKind.BOOL, "true.npy", True),
    ],
)
def test_numbers(kind: ValueKind, text: str, value: RunValue) -> None:
    (found,) = call(product(Port(kind=kind)), text).inputs
    assert found == value
    assert type(found) is type(value)


def scalar(dtype: ScalarType, *sizes: int) -> Port:
    order = tuple(range(len(sizes)))
    return Port(kind=ValueKind.TENSOR, dtype=dtype, sizes=sizes, dim_order=order)


@pytest.mark.parametrize(
    ("port", "text", "value"),
    [
        (scalar(ScalarType.Float), "2.5", np.float32(2.5)),
        (scalar(ScalarType.Float, 1, 1), "-3", np.array([[-3]], np.float32)),
        (scalar(ScalarType.Long), "3", np.int64(33)),  # a file of that name
        (scalar(ScalarType.Long), "4", np.int64(4)),
        (scalar(ScalarType.Char, 1), "-128", np.array([-128], np.int8)),
        (scalar(ScalarType.Bool), "true", np.True_),
    ],
)
def test_numbers_for_tensors_of_one_element(port: Port, text: str, value: Any) -> None:
    (found,) = call(product(port), text).inputs
    assert found == Array.of(np.asarray(value))


@pytest.mark.parametrize(
    ("port", "text"),
    [
        (scalar(ScalarType.Long), "2.5"),
        (scalar(ScalarType.Char), "128"),
        (scalar(ScalarType.Bool), "1"),
        (scalar(ScalarType.BFloat16), "1"),
        (TENSOR, "7"),
    ],
)
def test_numbers_that_are_no_tensors(port: Port, text: str) -> None:
    (found,) = problems(product(port), text)
    assert found.message == "cannot read the file"
    assert found.hint == "a number stands for one value only: write one with numpy.save"


def test_nan() -> None:
    (found,) = call(product(Port(kind=ValueKind.DOUBLE)), "nan").inputs
    assert isinstance(found, float)
    assert isnan(found)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (ValueKind.INT, "2.5", "an integer such as 3"),
        (ValueKind.INT, "1_0", "an integer such as 3"),
        (ValueKind.INT, "9" * 5000, "an integer such as 3"),
        (ValueKind.INT, "", "an integer such as 3"),
        (ValueKind.DOUBLE, "gone.npy", "a number such as 2.5"),
        (ValueKind.DOUBLE, ".", "a number such as 2.5"),
        (ValueKind.DOUBLE, "0x10", "a number such as 2.5"),
        (ValueKind.BOOL, "1", "true or false"),
    ],
)
def test_texts_that_are_no_numbers(kind: ValueKind, text: str, expected: str) -> None:
    (found,) = problems(product(Port(kind=kind)), text)
    assert found.code == "bad-input"
    kind_text = {ValueKind.INT: "int", ValueKind.DOUBLE: "double", ValueKind.BOOL: "bool"}
    assert found.message == (f"neither a file nor a value of kind {kind_text[kind]}")
    notes = dict(found.notes)
    assert notes["at"] == f"--input {text}"
    assert notes["expected"] == f"{expected}, or a .npy file with one element"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ValueKind.INT, "half.npy"),
        (ValueKind.INT, "a.npy"),
        (ValueKind.BOOL, "int.npy"),
        (ValueKind.DOUBLE, "true.npy"),
    ],
)
def test_arrays_that_are_no_numbers(kind: ValueKind, text: str) -> None:
    (found,) = problems(product(Port(kind=kind)), text)
    assert found.message == "the input has the wrong kind for this method"


def test_everything_at_once() -> None:
    known = product(TENSOR, TENSOR, TENSOR, Port(kind=ValueKind.INT), TENSOR)
    found = problems(known, "gone.npy", "folder", "int.npy", "no.npy", "no.npy", "x")
    assert [(d.message, dict(d.notes)["at"]) for d in found] == [
        ("wrong number of inputs for method m.forward", "--input"),
        ("cannot read the file", "--input gone.npy"),
        ("cannot read the file", "--input folder"),
        ("not a .npy file", "--input no.npy"),
        ("not a .npy file", "--input no.npy"),
        ("the array has the wrong dtype for this method", "--input int.npy"),
    ]
    assert found[0].notes[1:] == (
        ("found", "6"),
        ("expected", "5, " + "float32 [2], " * 3 + "int, float32 [2]"),
    )
    assert found[0].hint == "give --input once for each, in the order of the method"
    assert dict(found[2].notes)["found"] == "folder: Is a directory"
    assert found[0].where is None


def test_expected_outputs() -> None:
    known = product(outputs=(TENSOR, Port(kind=ValueKind.STRING)))
    assert call(known, expected=("a.npy", "int.npy")).expected == (ARRAY, "int.npy")
    assert call(known).expected is None

    (found,) = problems(known, expected=("a.npy",))
    assert found.message == "wrong number of outputs for method m.forward"
    assert dict(found.notes)["at"] == "--expect"


def test_methods() -> None:
    known = product()
    (found,) = problems(known, method="forwards")
    assert found.message == 'the product has no method "forwards"'
    assert found.notes == (("at", "--method forwards"), ("expected", "forward"))
    assert found.hint == 'did you mean "forward"?'

    (found,) = problems(known, model="n")
    assert found.message == 'the product has no model "n"'
    assert dict(found.notes)["at"] == "--model n --method forward"

    other = known.methods[0].model_copy(update={"index": 1, "model": "o"})
    both = known.model_copy(update={"methods": (*known.methods, other)})
    (found,) = problems(both)
    assert found.message == 'several models have a method "forward"'
    assert call(both, model="o").method is other

    (found,) = problems(known.model_copy(update={"methods": ()}))
    assert dict(found.notes)["expected"] == "no method at all"
    (found,) = problems(known.model_copy(update={"methods": ()}), model="m")
    assert dict(found.notes)["expected"] == "no model at all"
