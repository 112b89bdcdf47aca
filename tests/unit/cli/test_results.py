"""Results of a firmware as it writes them; scripts stand for the firmware."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from orchestrator.build.firmware import results_as_they_come
from orchestrator.core.dtype import ScalarType
from orchestrator.errors import MismatchError
from orchestrator.program.values import ValueKind
from orchestrator.running.npy import Array
from orchestrator.running.product import Port, Product, ProductMethod
from orchestrator.running.protocol import DeviceError
from orchestrator.running.values import Call

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.running.protocol import CallResult

BYTE = Port(kind=ValueKind.TENSOR, dtype=ScalarType.Byte, sizes=(1,), dim_order=(0,))
METHOD = ProductMethod(index=0, model="m", name="f", state_bytes=0, inputs=(BYTE,), outputs=(BYTE,))
PRODUCT = Product(profile="p", board="", emulator=(), firmware="firmware.elf", methods=(METHOD,))
CALLS = [
    Call(method=METHOD, inputs=(Array(dtype="|u1", shape=(1,), data=bytes([n])),)) for n in range(3)
]
START = """
import struct, sys, time
response = open(sys.argv[2], "wb", buffering=0)
result = lambda n: struct.pack("<7Ii", 0, 0xFFFFFFFF, 0, 1, 1, 0, 1, 1) + bytes([n])
"""


def results(folder: Path, script: str, seen: list[CallResult]) -> None:
    """Run a script, and note each result before there is an error."""
    program = folder / "firmware"
    program.write_text(f"#!{sys.executable}\n{START}{script}")
    program.chmod(0o755)
    for one in results_as_they_come(PRODUCT, program, CALLS, timeout_s=60.0):
        seen.append(one)  # noqa: PERF402  # one by one


def test_each_result_comes_in_order(tmp_path: Path) -> None:
    seen: list[CallResult] = []
    script = """
response.write(b"ORS1" + result(7)[:9])
time.sleep(0.05)
response.write(result(7)[9:] + result(8))
time.sleep(0.05)
response.write(result(9))
"""
    results(tmp_path, script, seen)
    values = [value for one in seen for value in one.outputs]
    assert [v.data for v in values if isinstance(v, Array)] == [b"\7", b"\10", b"\11"]


def test_an_error_of_the_device_ends_the_results(tmp_path: Path) -> None:
    seen: list[CallResult] = []
    script = 'response.write(b"ORS1" + result(7) + struct.pack("<3I", 10, 4, 0))'
    results(tmp_path, script, seen)
    assert [one.error for one in seen] == [DeviceError.Ok, DeviceError.InvalidArgument]


@pytest.mark.parametrize(
    ("script", "code", "found", "count"),
    [
        (
            'response.write(b"ORS1" + result(7)); sys.stderr.write("oh"); sys.exit(99)',
            "firmware-failed",
            "a hardware fault",
            1,
        ),
        ('response.write(b"ORS1" + result(7))', "bad-response", "it ends after 1 of 3 calls", 1),
        ("", "bad-response", "it ends after 0 of 3 calls", 0),
        (
            'response.write(b"junk"); time.sleep(600)',
            "bad-response",
            "it does not begin with ORS1",
            0,
        ),
    ],
)
def test_a_firmware_that_fails_is_an_error_after_its_results(
    script: str, code: str, found: str, count: int, tmp_path: Path
) -> None:
    seen: list[CallResult] = []
    with pytest.raises(MismatchError) as error:
        results(tmp_path, script, seen)
    (problem,) = error.value.diagnostics
    assert problem.code == code
    assert ("found", found) in problem.notes
    assert len(seen) == count


def test_a_firmware_that_hangs_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "firmware"
    program.write_text("#!/bin/sh\nprintf ORS1 > $2\nexec sleep 600\n")
    program.chmod(0o755)
    with pytest.raises(MismatchError) as error:
        list(results_as_they_come(PRODUCT, program, CALLS, timeout_s=0.5))
    (problem,) = error.value.diagnostics
    assert ("found", "it did not end within the time limit") in problem.notes


def test_a_firmware_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "firmware"
    program.write_text("not a program")
    with pytest.raises(MismatchError) as error:
        list(results_as_they_come(PRODUCT, program, CALLS, timeout_s=3.0))
    (problem,) = error.value.diagnostics
    assert ("found", "it could not be started") in problem.notes
