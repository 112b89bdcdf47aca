"""Lists and fixed inputs: product.json, protocol, scenarios, comparison, files."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.errors import MismatchError, UsageError
from orchestrator.program.reader import read_program
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import Comparison, Element, Tolerance, compare_output
from orchestrator.running.inputs import command_line_call, output_files
from orchestrator.running.npy import Array, write_npy
from orchestrator.running.product import Port, Product, read_product
from orchestrator.running.product import product_json as text_of
from orchestrator.running.protocol import CallResult, DeviceError, decode_response, encode_request
from orchestrator.running.scenario import read_scenario
from orchestrator.running.values import (
    Call,
    ListValue,
    OtherValue,
    RunValue,
    describe,
    input_misfit,
    stored_as,
)
from tests import list_program
from tests.unit.products import memory_of, target_of

HOST: Final = target_of("host", "zig")
LISTS: Final = read_program(list_program.program(list_program.list_plan()), file="lists.pte")
NONE: Final = OtherValue(ValueKind.NONE)
EXACT: Final = Tolerance(atol=0, rtol=0)


def _text() -> str:
    programs = {"m": LISTS}
    memory = memory_of(programs, HOST)
    return text_of(profile="p", programs=programs, memory=memory, target=HOST)


PRODUCT: Final[Product] = read_product(_text())
METHOD: Final = PRODUCT.methods[0]
TENSORS: Final = METHOD.inputs[0]


def _floats(*numbers: float) -> Array:
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    return Array(dtype="<f4", shape=(len(numbers),), data=data)


SIX: Final = replace(_floats(1, 2, 3, 4, 5, 6), shape=(2, 3))
GIVEN: Final[tuple[RunValue, ...]] = (
    ListValue(ValueKind.TENSOR_LIST, (SIX, NONE, SIX, _floats(7))),
    5,
    3,
    0.5,
    True,
    "täxt",
    ListValue(ValueKind.INT_LIST, (7, -9)),
    ListValue(ValueKind.DOUBLE_LIST, (0.5, -1.0)),
    ListValue(ValueKind.BOOL_LIST, (True, False)),
    NONE,
)


def test_ports_have_items_and_fixed_values() -> None:
    assert [item.kind for item in TENSORS.items] == [
        *(ValueKind.TENSOR, ValueKind.NONE, ValueKind.TENSOR, ValueKind.TENSOR)
    ]
    assert TENSORS.items[3].is_dynamic
    assert [p.is_fixed for p in METHOD.inputs] == [False, False] + [True] * 8
    assert [p.fixed for p in METHOD.inputs[2:]] == [
        *(3, 0.5, True, "täxt", (7, -9), (0.5, -1.0), (True, False), None)
    ]
    assert not any(p.is_fixed for p in METHOD.outputs)
    assert str(TENSORS).startswith("tensor_list of Float [2, 3], none, Float [2, 3], ")


@pytest.mark.parametrize(
    ("index", "fixed", "problem"),
    [
        (2, 3.0, "inputs[2]: fixed value 3.0 of another kind"),
        (2, True, "inputs[2]: fixed value True of another kind"),
        (6, [7, True], "inputs[6]: fixed value (7, True) of another kind"),
        (6, 7, "inputs[6]: fixed value 7 of another kind"),
        (9, "none", "inputs[9]: fixed value 'none' of another kind"),
    ],
)
def test_damaged_products(index: int, fixed: object, problem: str) -> None:
    document = json.loads(_text())
    document["methods"][0]["inputs"][index]["fixed"] = fixed
    with pytest.raises(UsageError) as caught:
        read_product(json.dumps(document))
    assert problem in dict(caught.value.diagnostics[0].notes)["found"]


def test_request_byte_for_byte() -> None:
    call = Call(method=METHOD, inputs=GIVEN)
    six = struct.pack("<IIii", 1, 2, 2, 3) + SIX.data
    assert encode_request([call]) == (
        b"ORQ1"
        + struct.pack("<IIII", 1, 0, 0, 10)
        + struct.pack("<II", 9, 4)
        + six
        + struct.pack("<I", 0)
        + six
        + struct.pack("<IIif", 1, 1, 1, 7)
        + struct.pack("<IqIqIdIq", 2, 5, 2, 3, 3, 0.5, 4, 1)
        + struct.pack("<IIIII", 5, 6, 7, 8, 0)
    )


OUTPUTS: Final = (
    struct.pack("<IIIIIii", 9, 3, 1, 6, 2, 2, 3)
    + SIX.data
    + struct.pack("<IIIIii", 0, 1, 6, 2, 2, 3)
    + SIX.data
    + struct.pack("<IIIIIifI", 9, 2, 1, 6, 1, 1, 7, 0)
    + struct.pack("<IIqIIdIIBBB", 6, 1, -9, 7, 1, 0.25, 8, 3, 0, 1, 1)
    + struct.pack("<II", 5, 3)
    + b"out"
    + struct.pack("<IqIdIqIII", 2, 5, 3, -0.125, 4, 0, 0, 9, 0)
)
GOOD: Final = b"ORS1" + struct.pack("<IIII", 0, 3, 1008, 11) + OUTPUTS
GOT: Final[tuple[RunValue, ...]] = (
    ListValue(ValueKind.TENSOR_LIST, (SIX, NONE, SIX)),
    ListValue(ValueKind.TENSOR_LIST, (_floats(7), NONE)),
    ListValue(ValueKind.INT_LIST, (-9,)),
    ListValue(ValueKind.DOUBLE_LIST, (0.25,)),
    ListValue(ValueKind.BOOL_LIST, (False, True, True)),
    "out",
    5,
    -0.125,
    False,
    NONE,
    ListValue(ValueKind.TENSOR_LIST, ()),
)


def test_response_byte_for_byte() -> None:
    (result,) = decode_response(GOOD, [Call(method=METHOD, inputs=GIVEN)])
    assert result.outputs == GOT


@pytest.mark.parametrize(
    ("at", "word", "found"),
    [
        (24, 4, "output 0: it is a list of 4 items, expected tensor_list of Float"),
        (28, 11, "output 0: item 0: the tag 11 is unknown"),
        (32, 7, "output 0: item 0: it is a tensor Double of 2 dimensions, expected"),
    ],
)
def test_damaged_lists_name_the_item(at: int, word: int, found: str) -> None:
    data = GOOD[:at] + struct.pack("<I", word) + GOOD[at + 4 :]
    with pytest.raises(MismatchError) as caught:
        decode_response(data, [Call(method=METHOD, inputs=GIVEN)])
    assert dict(caught.value.diagnostics[0].notes)["found"].startswith(found)


def test_files_of_lists() -> None:
    result = CallResult(error=DeviceError.Ok, instruction=None, state_used_bytes=8, outputs=GOT)
    files = dict(output_files([result]))
    assert sorted(files) == [
        *("out0.item0.npy", "out0.item2.npy", "out1.item0.npy", "out2.npy"),
        *("out3.npy", "out4.npy", "out5.txt", "out6.npy", "out7.npy", "out8.npy"),
    ]


PORT: Final = Port(
    kind=ValueKind.TENSOR_LIST, items=(Port(kind=ValueKind.TENSOR, dtype=ScalarType.Float),) * 2
)


def _list(kind: ValueKind, *items: RunValue) -> ListValue:
    return ListValue(kind, items)


def test_numbers_of_lists_are_compared_one_by_one() -> None:
    kind = ValueKind.DOUBLE_LIST
    got, want = _list(kind, 1.0, 2.5, np.inf), _list(kind, 1.0, 2.0, np.inf)
    assert compare_output(got, want, PORT, EXACT) == Comparison(
        is_ok=False,
        element_count=3,
        failed_count=1,
        max_abs_error=0.5,
        max_rel_error=0.25,
        worst=Element(index=(1,), got=2.5, want=2.0),
    )
    assert compare_output(got, want, PORT, Tolerance(atol=0.5, rtol=0)).is_ok
    assert compare_output(_list(kind), _list(kind), PORT, EXACT).is_ok
    shorter = compare_output(_list(kind, 1.0), want, PORT, EXACT)
    assert shorter.problem == "double_list [1.0], expected double_list [1.0, 2.0, inf]"
    other = compare_output(_list(ValueKind.INT_LIST, 1), want, PORT, EXACT)
    assert other.problem == "int_list [1], expected double_list [1.0, 2.0, inf]"


def test_tensors_of_a_list_are_reported_together() -> None:
    kind = ValueKind.TENSOR_LIST
    got = _list(kind, _floats(1, 2), _floats(3, 5, 9))
    want = _list(kind, _floats(1, 2.5), _floats(3, 4, 5))
    assert compare_output(got, want, PORT, Tolerance(atol=0.5, rtol=0)) == Comparison(
        is_ok=False,
        element_count=5,
        failed_count=2,
        max_abs_error=4,
        max_rel_error=0.8,
        worst=Element(index=(1, 2), got=9, want=5),
    )
    assert compare_output(got, got, PORT, EXACT) == Comparison(is_ok=True, element_count=5)
    missing = _list(kind, _floats(1, 2), NONE)
    assert compare_output(got, missing, PORT, EXACT).problem == (
        "item 1: float32 [3], expected none"
    )
    assert describe(_list(kind)) == "tensor_list of nothing"


MISFITS: Final = [
    (ListValue(ValueKind.TENSOR_LIST, (SIX,)), "the list has the wrong length"),
    (
        ListValue(ValueKind.TENSOR_LIST, (SIX, SIX, SIX, _floats(7))),
        "item 1: the input has the wrong kind",
    ),
    (
        ListValue(ValueKind.TENSOR_LIST, (SIX, NONE, NONE, _floats(7))),
        "item 2: the input has the wrong kind",
    ),
    (
        ListValue(ValueKind.TENSOR_LIST, (SIX, NONE, SIX, _floats(*range(5)))),
        "item 3: the array has the wrong shape",
    ),
    (SIX, "the input has the wrong kind"),
]


@pytest.mark.parametrize(("value", "message"), MISFITS)
def test_lists_that_do_not_fit(value: RunValue, message: str) -> None:
    misfit = input_misfit(value, TENSORS)
    assert misfit is not None
    assert misfit.message.startswith(message)
    assert misfit.expected


def test_fixed_values_fit_themselves_only() -> None:
    for value, port in zip(GIVEN, METHOD.inputs, strict=True):
        assert input_misfit(value, port) is None
    nan = Port(kind=ValueKind.DOUBLE, fixed=float("nan"))
    assert input_misfit(float("nan"), nan) is None
    assert input_misfit(0.0, nan) is not None
    zero = Port(kind=ValueKind.DOUBLE, fixed=0.0)
    assert input_misfit(-0.0, zero) is not None
    assert stored_as(METHOD.inputs[5]) == "string 'täxt'"


def _read(path: str) -> bytes:
    if path not in ("six.npy", "seven.npy"):
        raise FileNotFoundError(2, "No such file")
    return write_npy(SIX if path == "six.npy" else _floats(7))


TEXTS: Final = [
    *("six.npy,none,six.npy,seven.npy", "5", "3", "0.5", "true", "täxt"),
    *("7,-9", "0.5,-1", "true,false", "none"),
]


def _command_line(texts: list[str]) -> Call:
    return command_line_call(PRODUCT, model=None, method="forward", inputs=texts, read_bytes=_read)


def test_command_line() -> None:
    assert _command_line(TEXTS).inputs == GIVEN


@pytest.mark.parametrize(
    ("index", "text", "message"),
    [
        (0, "six.npy", "the list has the wrong length for this method"),
        (0, "six.npy,x,six.npy,seven.npy", "not a value of kind none"),
        (0, "six.npy,none,six.npy,eight.npy", "cannot read the file"),
        (6, "7,x", "neither a file nor a value of kind int"),
        (6, "", "the program was exported for another value of this input"),
        (9, "", "not a value of kind none"),
    ],
)
def test_bad_command_lines(index: int, text: str, message: str) -> None:
    texts = [*TEXTS[:index], text, *TEXTS[index + 1 :]]
    with pytest.raises(UsageError) as caught:
        _command_line(texts)
    assert [d.message for d in caught.value.diagnostics] == [message]


def _scenario(kind: str, **content: Any) -> str:
    entry = {"kind": kind, **content}
    run = {"method": "forward", "inputs": [entry] * 10, "outputs": [entry] * 11}
    tolerance = {"atol": 0, "rtol": 0}
    return json.dumps({"runs": [run], "tolerance": tolerance})


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        (_scenario("int_list", value=[1, True]), "value[1]", "an integer"),
        (_scenario("double_list", value=[1, "x"]), "value[1]", "a number"),
        (_scenario("bool_list", value=[1]), "value[0]", "true or false"),
        (_scenario("int_list", value=3), "value", "a list"),
        (_scenario("tensor_list", value=[]), "items", "this key"),
        (
            _scenario("tensor_list", items=[{"kind": "none"}, {"kind": "int"}]),
            "items[1].value",
            "this key",
        ),
    ],
)
def test_bad_scenarios(text: str, place: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_scenario(text, file="s.json", product=PRODUCT, read_bytes=_read)
    first = dict(caught.value.diagnostics[0].notes)
    assert first["at"] == f"runs[0].inputs[0].{place}"
    assert first["expected"] == expected
