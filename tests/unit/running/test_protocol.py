from __future__ import annotations

import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.errors import ExitCode, MismatchError, UsageError
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import compare_calls
from orchestrator.running.npy import Array
from orchestrator.running.product import Port, ProductMethod
from orchestrator.running.protocol import (
    CallResult,
    CallTrace,
    DeviceError,
    ResponseReader,
    decode_response,
    encode_request,
)
from orchestrator.running.scenario import Scenario, read_scenario
from orchestrator.running.values import NPY_DTYPES, Call, ListValue, OtherValue
from tests.conftest import CASES, CORPUS
from tests.unit.running.corpus_products import case_text, product_of
from tests.unit.running.fake_firmware import check_request, response

INCLUDE: Final = Path(__file__).parents[3] / "runtime" / "include" / "orch"


def scenario(case: str) -> Scenario:
    return read_scenario(
        case_text(case),
        file=str(CORPUS / case / "case.json"),
        product=product_of(case),
        read_bytes=lambda path: Path(path).read_bytes(),
    )


def enum_codes(header: str, name: str) -> dict[str, int]:
    """Names and codes of a C++ enum, counted as a compiler does."""
    text = (INCLUDE / header).read_text()
    body = re.search(rf"enum class (?:\[\[\w+\]\] )?{name} : \w+ \{{(.*?)\}};", text, re.DOTALL)
    assert body is not None
    codes: dict[str, int] = {}
    for found, code in re.findall(r"^  (\w+)(?: = (\d+))?,", body[1], re.MULTILINE):
        codes[found] = int(code) if code else max(codes.values()) + 1
    return codes


def test_error_codes_are_those_of_the_runtime() -> None:
    codes = enum_codes("error.h", "Error")
    assert {error.name: int(error) for error in DeviceError} == codes
    assert all(error.meaning for error in DeviceError)


def test_every_dtype_of_the_runtime_can_be_stored() -> None:
    codes = enum_codes("scalar_type.h", "ScalarType")
    assert {dtype.name: int(dtype) for dtype in NPY_DTYPES} == codes
    assert all(int(d[2:]) == dtype.item_bytes for dtype, d in NPY_DTYPES.items())


@pytest.mark.parametrize("case", CASES)
def test_requests_of_the_corpus(case: str) -> None:
    check_request(case, encode_request(scenario(case).calls))


@pytest.mark.parametrize("case", CASES)
def test_expected_outputs_come_back(case: str) -> None:
    expected = scenario(case)
    results = decode_response(response(case), expected.calls)

    assert [r.outputs for r in results] == [c.expected for c in expected.calls]
    assert all(
        replace(r, outputs=())
        == CallResult(error=DeviceError.Ok, instruction=None, state_used_bytes=100, outputs=())
        for r in results
    )
    compared = compare_calls(expected.calls, results, expected.tolerance)
    assert len(compared) == sum(len(c.method.outputs) for c in expected.calls)
    assert all(o.comparison and o.comparison.is_ok for o in compared)


def test_a_product_with_hooks_reports_times() -> None:
    """Events of each call stand before what every product says of it."""
    method = ProductMethod(
        index=0, model="kws", name="forward", state_bytes=96, inputs=(), outputs=()
    )
    call = Call(method=method, inputs=())
    events = struct.pack("<IQIQ", 0, 2**40, 2, 7) + struct.pack("<I", 2**32 - 1)
    sound = events + struct.pack("<QQ", 900, 2**41) + struct.pack("<IIII", 0, 3, 96, 0)
    failed = (
        struct.pack("<IQI", 0, 5, 2**32 - 1)
        + struct.pack("<QQ", 0, 6)
        + struct.pack("<III", 10, 0, 96)
    )
    first, second = decode_response(b"ORT1" + sound + failed, [call, call, call])
    assert first.trace == CallTrace(load_ticks=900, events=((0, 2**40), (2, 7)), run_ticks=2**41)
    assert first.error is DeviceError.Ok
    assert second.trace == CallTrace(load_ticks=0, events=((0, 5),), run_ticks=6)
    assert (second.error, second.instruction) == (DeviceError.InvalidArgument, 0)
    with pytest.raises(MismatchError):
        decode_response(b"ORT1" + sound[:20], [call])


TENSOR: Final = Port(kind=ValueKind.TENSOR, dtype=ScalarType.Short, sizes=(2, 3), dim_order=(1, 0))
SCALARS: Final = (Port(kind=ValueKind.INT), Port(kind=ValueKind.DOUBLE), Port(kind=ValueKind.BOOL))
METHOD: Final = ProductMethod(
    index=5,
    model="kws",
    name="forward",
    state_bytes=96,
    inputs=(TENSOR, *SCALARS),
    outputs=(
        TENSOR,
        *SCALARS,
        Port(kind=ValueKind.STRING),
        Port(kind=ValueKind.NONE),
        Port(kind=ValueKind.INT_LIST),
    ),
)
ARRAY: Final = Array(dtype="<i2", shape=(2, 3), data=bytes(range(12)))
CALL: Final = Call(method=METHOD, inputs=(ARRAY, -2, 0.5, True), fresh=True)
TRANSPOSED: Final = bytes([0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11])


def test_request_byte_for_byte() -> None:
    assert encode_request([CALL]) == (
        b"ORQ1"
        + struct.pack("<IIII", 1, 5, 1, 4)
        + struct.pack("<IIii", 1, 2, 2, 3)
        + TRANSPOSED
        + struct.pack("<IqIdIq", 2, -2, 3, 0.5, 4, 1)
    )


OUTPUTS: Final = (
    struct.pack("<IIIii", 1, 2, 2, 2, 3)
    + TRANSPOSED
    + struct.pack("<IqIdIq", 2, -(2**63), 3, -0.25, 4, 1)
    + struct.pack("<II", 5, 4)
    + b"\xc3\xa4\xff!"
    + struct.pack("<IIIqq", 0, 6, 2, -1, 7)
)
GOOD: Final = b"ORS1" + struct.pack("<IIII", 0, 9, 96, 7) + OUTPUTS


def test_response_byte_for_byte() -> None:
    (result,) = decode_response(GOOD, [CALL])
    assert result == CallResult(
        error=DeviceError.Ok,
        instruction=None,
        state_used_bytes=96,
        outputs=(
            ARRAY,
            -(2**63),
            -0.25,
            True,
            "ä\\xff!",
            OtherValue(ValueKind.NONE),
            ListValue(ValueKind.INT_LIST, (-1, 7)),
        ),
    )


def test_errors_of_the_runtime_end_the_results() -> None:
    data = GOOD + struct.pack("<III", 10, 3, 64)
    first, second = decode_response(data, [CALL, CALL, CALL])
    assert first.error is DeviceError.Ok
    assert second == CallResult(
        error=DeviceError.InvalidArgument, instruction=3, state_used_bytes=64, outputs=()
    )
    data = b"ORS1" + struct.pack("<III", 3, 0xFFFFFFFF, 0)
    assert decode_response(data, [CALL])[0].instruction is None


def refusal(data: bytes, calls: list[Call]) -> tuple[str, str, str]:
    with pytest.raises(MismatchError) as caught:
        decode_response(data, calls)
    assert caught.value.exit_code is ExitCode.MISMATCH
    (found,) = caught.value.diagnostics
    assert found.code == "bad-response"
    assert found.hint
    notes = dict(found.notes)
    return found.message, notes["at"], notes["found"]


def test_no_response() -> None:
    assert refusal(b"", [CALL]) == (
        "the firmware wrote no response",
        "the first word, byte 0 of 0",
        "it is cut off: 0 bytes are left of 4",
    )


def test_every_cut_is_noticed() -> None:
    for size in range(1, len(GOOD)):
        shown, at, found = refusal(GOOD[:size], [CALL])
        assert shown == "the response of the firmware is damaged"
        if size >= 4:
            assert at.startswith("call 0 of kws.forward, byte ")
        assert "it is cut off: " in found


def test_missing_call() -> None:
    shown, at, found = refusal(GOOD, [CALL, CALL])
    assert shown == "the response of the firmware is damaged"
    assert at == f"call 1 of kws.forward, byte {len(GOOD)} of {len(GOOD)}"
    assert found == "it is cut off: 0 bytes are left of 4"


def patched(at: int, word: int) -> bytes:
    return GOOD[:at] + struct.pack("<I", word) + GOOD[at + 4 :]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"ORS2" + GOOD[4:], "it does not begin with ORS1"),
        (GOOD + b"!", "1 bytes follow the last call"),
        (patched(4, 99), "the error code 99 is unknown"),
        (patched(16, 6), "it has 6 outputs, the method 7"),
        (patched(20, 10), "output 0: the tag 10 is unknown"),
        (patched(24, 6), "output 0: it is a tensor Float of 2 dimensions, expected Short [2, 3]"),
        (
            patched(24, 99),
            "output 0: it is a tensor dtype 99 of 2 dimensions, expected Short [2, 3]",
        ),
        (
            patched(28, 0xFFFFFFFF),
            ("output 0: it is a tensor Short of 4294967295 dimensions, expected Short [2, 3]"),
        ),
        (patched(32, 0xFFFFFFFF), "output 0: it has the sizes [-1, 3], expected Short [2, 3]"),
        (
            patched(32, 0x7FFFFFFF),
            "output 0: it has the sizes [2147483647, 3], expected Short [2, 3]",
        ),
    ],
)
def test_odd_responses_are_refused(data: bytes, found: str) -> None:
    assert refusal(data, [CALL])[2] == found


def test_other_sizes_are_left_to_the_comparison() -> None:
    data = b"ORS1" + struct.pack("<IIII", 0, 0, 0, 1)
    data += struct.pack("<IIIii", 1, 2, 2, 1, 2) + b"abcd"
    method = METHOD.model_copy(update={"outputs": (TENSOR,)})
    (result,) = decode_response(data, [replace(CALL, method=method)])
    assert result.outputs == (Array(dtype="<i2", shape=(1, 2), data=b"abcd"),)


def test_inputs_are_checked_all_at_once() -> None:
    wide = Array(dtype="<f8", shape=(2, 3), data=bytes(48))
    long = replace(ARRAY, shape=(3, 3), data=bytes(18))
    calls = [
        replace(CALL, inputs=(wide, 2**63, 1, 1)),
        replace(CALL, inputs=(long, -(2**63), 1.0, False)),
        replace(CALL, inputs=()),
        CALL,
    ]
    with pytest.raises(UsageError) as caught:
        encode_request(calls)
    assert {d.code for d in caught.value.diagnostics} == {"bad-input"}
    assert [(d.message, d.notes) for d in caught.value.diagnostics] == [
        (
            "the array has the wrong dtype for this method",
            (
                ("at", "call 0 of kws.forward, input 0"),
                ("found", "float64 [2, 3]"),
                ("expected", "int16 [2, 3]"),
            ),
        ),
        (
            "the integer is too large",
            (
                ("at", "call 0 of kws.forward, input 1"),
                ("found", "9223372036854775808"),
                ("expected", "a signed integer of 64 bits"),
            ),
        ),
        (
            "the input has the wrong kind for this method",
            (("at", "call 0 of kws.forward, input 2"), ("found", "int 1"), ("expected", "double")),
        ),
        (
            "the input has the wrong kind for this method",
            (("at", "call 0 of kws.forward, input 3"), ("found", "int 1"), ("expected", "bool")),
        ),
        (
            "the array has the wrong shape for this method",
            (
                ("at", "call 1 of kws.forward, input 0"),
                ("found", "int16 [3, 3]"),
                ("expected", "int16 [2, 3]"),
            ),
        ),
        (
            "the call has the wrong number of inputs for its method",
            (("at", "call 2 of kws.forward"), ("found", "0"), ("expected", "4")),
        ),
    ]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("step", [1, 7, 4096])
def test_a_response_is_read_as_it_is_written(case: str, step: int) -> None:
    calls = scenario(case).calls
    data = response(case)
    reader = ResponseReader(calls)
    results = []
    for at in range(0, len(data), step):
        assert reader.is_incomplete
        results += reader.add(data[at : at + step])
    assert tuple(results) == decode_response(data, calls)
    assert not reader.is_incomplete


def test_a_response_that_ends_early_is_incomplete() -> None:
    calls = scenario("kws_dscnn_fp32").calls
    data = response("kws_dscnn_fp32")
    reader = ResponseReader(calls)
    assert reader.add(data[:-1]) == []
    assert reader.is_incomplete
    (problem,) = reader.cut_off().diagnostics
    assert problem.code == "bad-response"
    assert ("found", "it ends after 0 of 1 calls") in problem.notes


def test_a_response_that_begins_wrongly_is_damaged_at_once() -> None:
    reader = ResponseReader(scenario("kws_dscnn_fp32").calls)
    with pytest.raises(MismatchError, match="response of the firmware is damaged"):
        reader.add(b"junk")


def test_nothing_follows_a_response_that_is_read_as_it_is_written() -> None:
    reader = ResponseReader(scenario("kws_dscnn_fp32").calls)
    reader.add(response("kws_dscnn_fp32"))
    assert reader.add(b"") == []
    with pytest.raises(MismatchError) as caught:
        reader.add(bytes(3))
    assert ("found", "3 bytes follow the last call") in caught.value.diagnostics[0].notes


def test_a_call_that_failed_completes_a_response() -> None:
    reader = ResponseReader(scenario("kws_dscnn_fp32").calls)
    words = (int(DeviceError.InvalidArgument), 3, 0)
    (found,) = reader.add(struct.pack("<4sIII", b"ORS1", *words))
    assert found.error is DeviceError.InvalidArgument
    assert not reader.is_incomplete
