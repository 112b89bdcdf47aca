"""examples/mlperf_tiny: its firmware in QEMU, spoken to as the runner does.

The order of items in memory is read from the generated header, the expected outputs are
those of examples/cases.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "mlperf_tiny"
CASES = {
    "kws": "kws_dscnn_int8",
    "ic": "resnet8_int8",
    "vww": "vww_mobilenetv1_int8",
    "ad": "autoencoder_int8",
}

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]


def _host() -> ModuleType:
    spec = importlib.util.spec_from_file_location("host", EXAMPLE / "host.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _build(folder: Path, net: str, board: str, *settings: str) -> Path:
    cpu = f"cortex-{board}"
    need_toolchain(cpu, "gnu")
    need_emulator(cpu)
    subprocess.run(
        [
            *(need_tool("make"), "-s", "-f", str(EXAMPLE / "Makefile")),
            *(f"NET={net}", f"BOARD={board}", f"OUT={folder}", *settings),
            f"ORCHESTRATOR={sys.executable} -m orchestrator --quiet",
        ],
        cwd=ROOT,
        check=True,
        timeout=300,
    )
    return folder / "mlperf.elf"


def _sample(folder: Path, net: str) -> bytes:
    """The case's input as it lies in the model's memory."""
    header = (folder / "include" / "mlperf-tiny.h").read_text()
    order = re.search(r"input0: Float \[.*\], in memory in dim order \[(.*)\]", header)
    found: Any = np.load(ROOT / "examples" / "cases" / CASES[net] / "in0.npy")
    if order is not None:
        found = found.transpose([int(dim) for dim in order[1].split(",")])
    return bytes(found.astype("<f4").tobytes())


def _results(lines: list[str]) -> list[float]:
    (found,) = (m for line in lines if (m := re.match(r"m-results-\[(.*)\]$", line)))
    return [float(item) for item in found[1].split(",")]


@pytest.mark.parametrize("board", ["m4", "m55"])
@pytest.mark.parametrize(
    # An image takes the emulator half a minute.
    "net",
    [pytest.param(n, marks=[pytest.mark.nightly] * (n == "vww")) for n in CASES],
)
def test_results_are_those_of_the_case(net: str, board: str, tmp_path: Path) -> None:
    elf = _build(tmp_path, net, board)
    sample = _sample(tmp_path, net)
    expected = np.load(ROOT / "examples" / "cases" / CASES[net] / "out0.npy").ravel()
    if net == "ad":
        error = expected - np.frombuffer(sample, "<f4")
        expected = np.array([np.mean(error * error)])
    with _host().Device.of_emulator(elf, board) as device:
        assert device.answer() == ["m-timestamp-mode-performance", "m-init-done"]
        assert device.command("name") == ["m-name-dut-[orchestrator]"]
        assert device.command("profile")[1] == f"m-model-[{net}01]"
        assert device.load(sample) == ["m-load-done"]
        lines = device.command("infer 2 1")
        again = device.command("results")
    shape = [re.sub(r"lap-us-\d+", "lap-us-N", line) for line in lines[:-1]]
    assert shape == [
        *("m-warmup-start-1", "m-warmup-done", "m-infer-start-2"),
        *("m-lap-us-N", "m-lap-us-N", "m-infer-done"),
    ]
    begin, end = (int(line.rpartition("-")[2]) for line in lines[3:5])
    assert begin < end
    np.testing.assert_allclose(_results(lines), expected, rtol=1e-5, atol=2e-6)
    assert again == lines[-1:]


def test_a_byte_for_each_item_is_scaled(tmp_path: Path) -> None:
    elf = _build(tmp_path, "kws", "m4", "SAMPLE_SCALE=0.0625", "SAMPLE_ZERO=-3")
    items = np.random.default_rng(1).integers(-128, 128, 490).astype("i1")
    floats = (items.astype("<f4") + 3) * np.float32(0.0625)
    with _host().Device.of_emulator(elf, "m4") as device:
        device.answer()
        device.load(items.tobytes())
        of_bytes = device.command("infer 1 0")
        device.load(floats.tobytes())
        of_floats = device.command("infer 1 0")
    assert _results(of_bytes) == _results(of_floats)
    assert len(set(_results(of_bytes))) > 1


def test_errors_are_named_and_the_runner_goes_on(tmp_path: Path) -> None:
    elf = _build(tmp_path, "kws", "m4")
    with _host().Device.of_emulator(elf, "m4") as device:
        device.answer()
        for command, answer in [
            ("bogus", "e-[no such command: bogus]"),
            ("", "e-[no such command: ]"),
            ("x" * 80, f"e-[no such command: {'x' * 80}]"),
            ("x" * 81, "e-[command longer than 80 characters]"),
            ("infer 1 0", "e-[no sample: 0 of 0 bytes loaded]"),
            ("results", "e-[no results: infer comes first]"),
            ("db", "e-[db needs load, print or hex digits]"),
            ("db 00", "e-[db load comes first]"),
            ("db load", "e-[db load needs a number of bytes]"),
            ("db load 0", "e-[db load needs a number of bytes]"),
            ("db load -4", "e-[db load needs a number of bytes]"),
            ("db load 4294967297", "e-[db load needs a number of bytes]"),
            ("db load 1961", "e-[1961 bytes are too many, the most is 1960]"),
            ("db load 10", "m-[Expecting 10 bytes]"),
            ("db 0g", "e-[not a hex digit in '0g']"),
            ("db 012", "e-[odd number of hex digits]"),
            ("db " + "00" * 11, "e-[11 bytes are too many, 10 are missing]"),
            ("infer 1 0", "e-[no sample: 0 of 10 bytes loaded]"),
            ("db 0001fFA0", None),
            ("db print", "m-buffer-00-01-ff-a0"),
            ("db 040506070809", "m-load-done"),
            ("db 00", "e-[1 bytes are too many, 0 are missing]"),
            ("infer 0", "e-[the number of inferences must be above 0]"),
            ("infer 1 -1", "e-[the number of warmups must be 0 or above]"),
            ("infer 1 0", "e-[the net takes no sample of 10 bytes]"),
        ]:
            found = device.command(command)
            assert found == ([] if answer is None else [answer]), command
        assert device.command("db print") == ["m-buffer-00-01-ff-a0-04-05-06-07", "m-buffer-08-09"]
        (lap,) = device.command("timestamp")
        assert re.fullmatch(r"m-lap-us-\d+", lap)
        assert device.command("help")
        device.load(bytes(1960))
        assert _results(device.command("infer 1 0"))
