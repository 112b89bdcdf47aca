"""examples/gestures: its program is what it exports, in int8, and as good as 2-D."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.cli.main import run
from orchestrator.shell.toolchain import InstalledToolchains
from tests.tools import need_emulator, need_toolchain
from tests.tutorial import EXAMPLE

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
NETS = Path(__file__).with_name("gesture_nets.py")

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example, with other forms of its network."""
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", PYTHON)
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    ignored = shutil.ignore_patterns("__pycache__", "*.lock")
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "gestures", ignore=ignored))
    shutil.copy(NETS, folder)
    return folder


def _document(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Any:
    capsys.readouterr()
    assert run([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def _export(example: Path, function: str) -> Path:
    """The folder with a form's program, the example of its input, and its output."""
    profile = example / f"{function.replace('_', '-')}.toml"
    text = (example / "export.toml").read_text()
    assert text.count("network.py:build") == 1
    profile.write_text(text.replace("network.py:build", f"gesture_nets.py:{function}"))
    out = example / "out" / function
    assert run(["export", str(profile), "--out", str(out)]) == 0
    return out / "exported" / "gestures"


def test_the_program_is_what_the_profile_exports(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    profile = example / "export.toml"
    (model,) = _document(capsys, "export", profile, "--out", out)["models"]
    assert model["warnings"] == []
    folder = out / "exported" / "gestures"
    made = (folder / "model.pte").read_bytes()
    assert made == (EXAMPLE / "gestures.pte").read_bytes()
    for name in ("in0.npy", "out0.npy"):
        assert np.array_equal(np.load(folder / name), np.load(EXAMPLE / name)), name


@pytest.mark.toolchain
def test_all_windows_get_the_scores_of_quantized_pytorch(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of the table, and those of the recording."""
    need_toolchain("host", InstalledToolchains().name_for_host())
    with (example / "gestures.csv").open(newline="") as file:
        rows = [row[:-1] for row in csv.reader(file)][1:]
    hops = [np.load(example / "stream" / f"in{call}.npy") for call in range(12)]
    last = [np.concatenate(hops[call - 7 : call + 1], 2) for call in range(7, 12)]
    table = np.array(rows, np.float32).reshape(-1, 3, 64)
    windows = np.concatenate([table, *last])
    np.save(example / "windows.npy", windows)
    expected = np.load(_export(example, "as_batch") / "out0.npy")
    np.savez(example / "all.npz", inputs=windows, expected=expected)
    profile = example / "gestures-m4.toml"
    words = ("evaluate", profile, "--data", example / "all.npz", "--no-lock")
    found = _document(capsys, *words)
    assert found["samples"] == len(rows) + 5
    assert found["reference"]["max_abs_error"] == 0
    streamed = [np.load(example / "stream" / f"out{c}.npy") for c in range(7, 12)]
    assert np.array_equal(np.concatenate(streamed), expected[len(rows) :])


@pytest.mark.toolchain
@pytest.mark.qemu
def test_lines_cost_what_images_of_one_row_cost(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("cortex-m4", "zig")
    need_emulator("cortex-m4")
    given, scores = np.load(example / "in0.npy"), np.load(example / "out0.npy")
    images = _export(example, "as_images")
    assert np.array_equal(np.load(images / "in0.npy"), given[:, :, None])
    assert np.array_equal(np.load(images / "out0.npy"), scores)
    shutil.copy(example / "gestures.pte", example / "as_lines.pte")
    shutil.copy(images / "model.pte", example / "as_images.pte")
    text = (example / "gestures-m4.toml").read_text()
    found = []
    for name, items in (("as_lines", given), ("as_images", given[:, :, None])):
        profile = example / f"{name.replace('_', '-')}.toml"
        profile.write_text(text.replace("gestures.pte", f"{name}.pte"))
        np.save(example / "items.npy", items)
        words: list[str | Path] = ["run", profile, "--no-lock", "--profile"]
        words += ["--input", example / "items.npy", "--expect", example / "out0.npy"]
        instructions = _document(capsys, *words)["profile"]["total"]
        arena = _document(capsys, "check", profile)["arena_bytes"]
        found.append((instructions, arena))
    lines, row_images = found
    for one, other in zip(lines, row_images, strict=True):
        assert 0.9 * other <= one <= 1.1 * other
