from __future__ import annotations

import io
import json
from dataclasses import replace
from math import inf, nan
from typing import Any, Final

import numpy as np
import pytest

from orchestrator.cli.render import render_diagnostics
from orchestrator.core.dtype import ScalarType
from orchestrator.errors import Diagnostic, SourceSpan
from orchestrator.program.program import Frame
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import Tolerance
from orchestrator.running.inputs import output_files
from orchestrator.running.npy import Array
from orchestrator.running.product import Port, ProductMethod
from orchestrator.running.protocol import CallResult, DeviceError
from orchestrator.running.report import Failure, Ran
from orchestrator.running.status import Place, explain_status
from orchestrator.running.values import Call, OtherValue, RunValue
from tests.unit.products import program_of


def floats(*values: float) -> Array:
    data = np.array(values, dtype="<f4").tobytes()
    return Array(dtype="<f4", shape=(1, len(values)), data=data)


METHOD: Final = ProductMethod(
    index=0,
    model="kws",
    name="forward",
    state_bytes=640,
    inputs=(),
    outputs=(
        Port(kind=ValueKind.TENSOR, dtype=ScalarType.Float, sizes=(1, 3), dim_order=(0, 1)),
        Port(kind=ValueKind.INT),
    ),
)
TOLERANCE: Final = Tolerance(atol=0.01, rtol=0.5)


def result(*outputs: RunValue) -> CallResult:
    return CallResult(error=DeviceError.Ok, instruction=None, state_used_bytes=600, outputs=outputs)


def failed(error: DeviceError, instruction: int | None) -> CallResult:
    return CallResult(error=error, instruction=instruction, state_used_bytes=0, outputs=())


CALLS: Final = [
    Call(method=METHOD, inputs=(), expected=(floats(1, 2, 3), 7), fresh=True),
    Call(method=METHOD, inputs=(), expected=(floats(1, 2, nan), 7)),
    Call(method=METHOD, inputs=(), expected=(floats(1, 2), 7)),
    Call(method=METHOD, inputs=()),
    Call(method=METHOD, inputs=(), expected=(floats(1, 2, 3), 7)),
]
RESULTS: Final = [
    result(floats(1, 2.25, 3), 7),
    result(floats(1, 4, inf), 8),
    result(floats(1, 2, 3), OtherValue(ValueKind.NONE)),
    result(floats(0, 0, 0), 1),
    failed(DeviceError.ShapeTooLarge, 12),
]
RAN: Final = Ran(calls=CALLS, results=RESULTS, tolerance=TOLERANCE)


def test_table() -> None:
    assert RAN.table == (
        "call  method       output  value         largest error"
        "  tolerance              result\n"
        "0     kws.forward  0       Float [1, 3]  0.25         "
        "  0.01 + 0.5*|expected|  ok\n"
        "0     kws.forward  1       int 7         0            "
        "  0.01 + 0.5*|expected|  ok\n"
        "1     kws.forward  0       Float [1, 3]  inf          "
        "  0.01 + 0.5*|expected|  FAIL\n"
        "1     kws.forward  1       int 8         1            "
        "  0.01 + 0.5*|expected|  ok\n"
        "2     kws.forward  0       Float [1, 3]  -            "
        "  0.01 + 0.5*|expected|  FAIL\n"
        "2     kws.forward  1       none          -            "
        "  0.01 + 0.5*|expected|  FAIL\n"
        "3     kws.forward  0       Float [1, 3]  -            "
        "  -                      -\n"
        "3     kws.forward  1       int 1         -            "
        "  -                      -\n"
    )


def test_failures() -> None:
    found = RAN.problems
    assert [d.code for d in found] == ["run-mismatch"] * 3 + ["device-error"]
    assert found[0] == Diagnostic(
        code="run-mismatch",
        message="output 0 of kws.forward is not what was expected",
        notes=(
            ("at", "call 1 of kws.forward, output 0"),
            ("found", "2 of 3 elements differ by more than 0.01 + 0.5*|expected|"),
            ("worst", "element [0, 2]: inf, expected nan"),
            ("largest error", "inf"),
        ),
        hint="compare the model file with the one the expected outputs were made with",
    )
    assert found[1].notes[1:] == (("found", "float32 [1, 3], expected float32 [1, 2]"),)
    assert found[2].notes[1:] == (("found", "none, expected int 7"),)
    assert found[3] == Diagnostic(
        code="device-error",
        message="kws.forward stopped on the device: ShapeTooLarge",
        notes=(
            ("at", "call 4"),
            ("model", "kws"),
            ("method", "forward"),
            ("instruction", "12"),
            ("error", "ShapeTooLarge (11): a tensor would grow past its planned size"),
            ("method state", "0 of 640 bytes used"),
        ),
        hint="see what the firmware printed",
    )
    assert "error[device-error]" in render_diagnostics(found)


def test_a_failure_is_explained() -> None:
    (method,) = program_of("add_mul").methods
    frame = Frame(filename="net.py", line=7, name="forward", context="x")
    method = replace(method, frames=((frame,),) * len(method.instructions))
    place = Place(model="kws", method=method, instruction=1)
    failure = Failure(
        explanation=explain_status(DeviceError.NotSupported, place, state_bytes=0),
        where=SourceSpan(file="product.toml", line=4, text='path = "kws.pte"'),
    )
    ran = Ran(calls=CALLS[:1], results=[failed(DeviceError.NotSupported, 1)], failure=failure)
    (found,) = ran.problems
    assert found.where == failure.where
    assert dict(found.notes)["instruction"] == f"1, which calls {place.operator}"
    assert dict(found.notes)["exported from"] == "net.py:7"
    assert found.hint == failure.explanation.remedy
    calls: Any = ran.data["calls"]
    assert calls[0]["failure"] == {**failure.explanation.data, "where": "product.toml:4"}
    # After linking the firmware was changed: no status of the device says that.
    damaged = [failed(DeviceError.ImageDamaged, None)]
    (found,) = replace(ran, results=damaged).problems
    assert found.hint.startswith("build the profile again: the firmware was changed")


def test_method_that_does_not_load() -> None:
    results = [failed(DeviceError.OperatorMissing, None)]
    (found,) = Ran(calls=CALLS, results=results).problems
    assert found.message == ("kws.forward could not be loaded on the device: OperatorMissing")
    assert "instruction" not in dict(found.notes)
    assert found.hint


def test_integer_mismatch_names_the_numbers() -> None:
    calls = [Call(method=METHOD, inputs=(), expected=(floats(1), 2**62 + 1))]
    results = [result(floats(1), 2**62)]
    exact = Tolerance(atol=0, rtol=0)
    (found,) = Ran(calls=calls, results=results, tolerance=exact).problems
    assert found.notes[1:3] == (
        ("found", "1 of 1 elements differ by more than exact"),
        ("worst", "4611686018427387904, expected 4611686018427387905"),
    )


def test_data() -> None:
    data: Any = RAN.data
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["ok"] is False
    assert data["tolerance"] == {"atol": 0.01, "rtol": 0.5}
    first, second, third, fourth, last = data["calls"]
    assert first == {
        "model": "kws",
        "method": "forward",
        "fresh": True,
        "error": "Ok",
        "instruction": None,
        "failure": None,
        "state_bytes": 640,
        "state_used_bytes": 600,
        "outputs": [
            {
                "kind": "tensor",
                "dtype": "Float",
                "sizes": [1, 3],
                "comparison": {
                    "ok": True,
                    "problem": "",
                    "elements": 3,
                    "failed": 0,
                    "max_abs_error": 0.25,
                    "max_rel_error": 0.125,
                    "worst": {"index": [0, 1], "got": 2.25, "expected": 2.0},
                },
            },
            {
                "kind": "int",
                "value": 7,
                "comparison": {
                    "ok": True,
                    "problem": "",
                    "elements": 1,
                    "failed": 0,
                    "max_abs_error": 0.0,
                    "max_rel_error": 0.0,
                    "worst": None,
                },
            },
        ],
    }
    compared = second["outputs"][0]["comparison"]
    assert compared["max_abs_error"] == "inf"
    assert compared["worst"] == {"index": [0, 2], "got": "inf", "expected": "nan"}
    assert third["outputs"][1] == {
        "kind": "none",
        "comparison": {
            "ok": False,
            "problem": "none, expected int 7",
            "elements": 0,
            "failed": 0,
            "max_abs_error": 0.0,
            "max_rel_error": 0.0,
            "worst": None,
        },
    }
    assert fourth["outputs"][0]["comparison"] is None
    assert (last["error"], last["instruction"]) == ("ShapeTooLarge", 12)
    assert last["outputs"] == []


def test_right_runs_are_ok() -> None:
    ran = Ran(calls=CALLS[:1], results=RESULTS[:1], tolerance=TOLERANCE)
    assert ran.problems == ()
    assert ran.data["ok"] is True
    data = Ran(calls=CALLS[3:4], results=RESULTS[3:4]).data
    assert (data["ok"], data["tolerance"]) == (True, None)


@pytest.mark.parametrize(("value", "dtype"), [(True, "bool"), (-3, "int64"), (0.5, "float64")])
def test_numbers_as_files(value: RunValue, dtype: str) -> None:
    ((name, data),) = output_files([result(value)])
    assert name == "out0.npy"
    loaded = np.load(io.BytesIO(data))
    assert (loaded.shape, loaded.dtype.name, loaded) == ((), dtype, value)


def test_output_files() -> None:
    text = "ä"
    none = OtherValue(ValueKind.NONE)
    files = output_files([result(floats(1), none, text), result(floats(2))])
    assert [name for name, _ in files] == ["out0.npy", "out2.txt", "run1.out0.npy"]
    assert files[1][1] == text.encode()
    assert np.array_equal(np.load(io.BytesIO(files[2][1])), [[np.float32(2)]])
