"""examples/gestures without PyTorch: its program, its accuracy, and its stream."""

from __future__ import annotations

import csv
import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.cli.main import run
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.tools import need_toolchain
from tests.tutorial import EXAMPLE

CLASSES = ["circle", "shake", "still", "tap"]
HOP, WINDOW = 8, 64
ROWS = 10
"""Of the table, one after another: a recording."""
RIGHT = 194
"""Of 200; README.md of the example states it."""

pytestmark = pytest.mark.toolchain


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example, with its products for this machine."""
    need_toolchain("host", "gnu")
    monkeypatch.chdir(tmp_path)
    ignored = shutil.ignore_patterns("__pycache__", "*.lock")
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "gestures", ignore=ignored))
    board = 'cpu = "cortex-m4"\nboard = "wrist-board.toml"\n'
    stream = (folder / "gestures-stream.toml").read_text()
    assert stream.count(board) == 1
    stream = stream.replace(board, 'cpu = "host"\n')
    (folder / "gestures-stream.toml").write_text(stream)
    for name in ("gestures-host", "gestures-stream"):
        profile = folder / f"{name}.toml"
        profile.write_text(profile.read_text().replace('"zig"', '"gnu"'))
    return folder


def _table() -> tuple[np.ndarray, list[str]]:
    """Windows [200, 3, 64], and their labels."""
    with (EXAMPLE / "gestures.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    names = [f"{axis}{i}" for axis in "xyz" for i in range(WINDOW)]
    assert header == [*names, "label"]
    windows = np.array([row[:-1] for row in rows], np.float32)
    return windows.reshape(-1, 3, WINDOW), [row[-1] for row in rows]


def _outputs(
    profile: Path, inputs: list[np.ndarray], folder: Path, *, fresh: bool = False
) -> np.ndarray:
    """What calls of a product give, one after another: [N, 4]."""
    folder.mkdir()
    runs = []
    for call, items in enumerate(inputs):
        np.save(folder / f"given{call}.npy", items)
        value = {"kind": "tensor", "file": f"given{call}.npy"}
        runs.append({"method": "forward", "inputs": [value], "fresh": fresh})
    scenario = folder / "calls.json"
    tolerance = {"atol": 0, "rtol": 0}
    scenario.write_text(json.dumps({"runs": runs, "tolerance": tolerance}))
    words = ["run", str(profile), "--scenario", str(scenario), "--no-lock"]
    assert run([*words, "--output-dir", str(folder)]) == 0
    names = ["out0.npy", *(f"run{call}.out0.npy" for call in range(1, len(inputs)))]
    return np.concatenate([np.load(folder / name) for name in names])


def test_the_table_is_what_samples_are_made_as() -> None:
    windows, labels = _table()
    made = runpy.run_path(str(EXAMPLE / "samples.py"))
    assert list(made["CLASSES"]) == CLASSES
    expected, numbers = made["gestures"](len(labels), seed=1)
    # Rounded to two places, after products that machines round differently.
    np.testing.assert_allclose(windows, expected, atol=0.0101)
    assert labels == [CLASSES[number] for number in numbers]
    other, _ = made["gestures"](len(labels), seed=2)
    assert np.abs(windows - other).max() > 1


def test_only_what_enters_and_leaves_the_program_is_float() -> None:
    program = read_program((EXAMPLE / "gestures.pte").read_bytes(), file="")
    (method,) = program.methods
    with_floats = []
    for call in method.instructions:
        assert isinstance(call, KernelCall)
        values = [method.values[number] for number in call.args]
        tensors = [value for value in values if isinstance(value, TensorValue)]
        if any(tensor.dtype.name == "Float" for tensor in tensors):
            with_floats.append(method.operators[call.operator].base)
    assert with_floats == ["quantize_per_tensor", "dequantize_per_tensor"]


def test_accuracy_is_what_the_readme_states(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluate(least: float) -> tuple[int, Any]:
        capsys.readouterr()
        profile, data = example / "gestures-host.toml", example / "gestures.csv"
        words = ["evaluate", str(profile), "--data", str(data), "--no-lock", "--json"]
        code = run([*words, "--at-least", str(least)])
        return code, json.loads(capsys.readouterr().out)

    code, found = evaluate(RIGHT / 200)
    assert (code, found["metric"]["right"], found["samples"]) == (0, RIGHT, 200)
    assert evaluate((RIGHT + 1) / 200)[0] == 10
    assert f"({RIGHT} of 200)" in (EXAMPLE / "README.md").read_text()


def test_a_stream_gives_the_classes_of_windows(example: Path, tmp_path: Path) -> None:
    windows, labels = _table()
    recording = np.concatenate(windows[:ROWS], axis=1)[None]
    ends = range(HOP, recording.shape[2] + 1, HOP)
    hops = [recording[:, :, end - HOP : end] for end in ends]
    whole = [recording[:, :, end - WINDOW : end] for end in ends if end >= WINDOW]
    expected = _outputs(example / "gestures-host.toml", whole, tmp_path / "whole")
    stream = example / "gestures-stream.toml"
    found = _outputs(stream, hops, tmp_path / "hops")[-len(whole) :]
    assert np.array_equal(found.argmax(1), expected.argmax(1))
    assert np.array_equal(found, expected)
    answers = [CLASSES[best] for best in found[:: WINDOW // HOP].argmax(1)]
    assert sum(a == b for a, b in zip(answers, labels, strict=False)) >= ROWS - 1
    assert len(set(answers)) == len(CLASSES)
    # Without a past, hops are no windows.
    alone = _outputs(stream, hops, tmp_path / "alone", fresh=True)[-len(whole) :]
    assert not np.array_equal(alone, expected)


def test_the_recording_is_what_its_script_writes(example: Path) -> None:
    """With the scores of the product for whole windows."""
    made, old = example / "stream", EXAMPLE / "stream"
    shutil.rmtree(made)
    program = example / "bin" / "orchestrator"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m orchestrator "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join((str(program.parent), os.environ["PATH"]))
    root = str(EXAMPLE.parents[1])
    subprocess.run(
        [sys.executable, example / "stream.py"],
        env={**os.environ, "PATH": path, "PYTHONPATH": root},
        check=True,
        capture_output=True,
    )
    assert {p.name for p in made.iterdir()} == {p.name for p in old.iterdir()}
    assert (made / "case.json").read_text() == (old / "case.json").read_text()
    for file in old.glob("*.npy"):
        assert np.array_equal(np.load(made / file.name), np.load(file)), file.name
    # A circle, then shaking.
    scores = [np.load(old / f"out{call}.npy") for call in (7, 11)]
    assert [CLASSES[found.argmax()] for found in scores] == CLASSES[:2]
