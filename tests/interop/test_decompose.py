"""Operators without a kernel, decomposed by the stage that exports."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import run
from orchestrator.program.reader import read_program
from tests.tools import need_toolchain

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
ROOT = Path(__file__).parents[2]
MOST_ERROR = 1e-5
MOST_INT8_ERROR = 0.1
"""A few steps of int8."""

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]

CODE = """\
import torch
from torch import nn
from torch.nn import functional


class Rare(nn.Module):
    # Three operators that have no kernel, one that has.
    def forward(self, x):
        y = functional.native_channel_shuffle(x, 2).flatten(1)
        return torch.fmax(y, y[:1]), torch.exp2(y), y.relu()


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 8, batch_first=True)
        self.gru = nn.GRU(8, 8, batch_first=True, bidirectional=True)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        y = self.gru(self.lstm(x)[0])[0]
        return self.head(self.attention(y, y, y, need_weights=False)[0])


def rare():
    torch.manual_seed(0)
    return Rare(), torch.randn(2, 4, 3, 3)


def sequences():
    torch.manual_seed(0)
    return Sequences(), torch.randn(2, 4, 8)
"""


def test_decompositions_compute_what_their_operators_do() -> None:
    done = subprocess.run(
        [PYTHON, "-W", "ignore", "-m", "tests.interop.decompose_checks"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    wrong = json.loads(done.stdout)
    assert len(wrong) > 10
    assert {name: text for name, text in wrong.items() if text} == {}


def _product(folder: Path, function: str, keys: str) -> Path:
    (folder / "nets.py").write_text(CODE)
    profile = folder / "product.toml"
    profile.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "gnu"\n'
        f'[[models]]\nname = "net"\nsource = "nets.py:{function}"\n{keys}\n'
    )
    return profile


def _built(profile: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The document of the export of a product, which is then built."""
    capsys.readouterr()
    assert run(["export", str(profile), "--json"]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert run(["build", str(profile)]) == 0
    found: dict[str, Any] = model
    return found


def _check(
    profile: Path, model: dict[str, Any], most_error: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run a product and compare with PyTorch."""
    folder = Path(model["program"]).parent
    words = ["run", str(profile), "--json"]
    for array in (a for a in model["arrays"] if a.endswith(".npy")):
        flag = "--input" if array.startswith("in") else "--expect"
        words += [flag, str(folder / array)]
    capsys.readouterr()
    run(words)
    (call,) = json.loads(capsys.readouterr().out)["calls"]
    assert call["error"] == "Ok"
    for output in call["outputs"]:
        assert float(output["comparison"]["max_abs_error"]) <= most_error


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", PYTHON)
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.toolchain
def test_what_has_no_kernel_is_decomposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    profile = _product(tmp_path, "rare", "")
    model = _built(profile, capsys)
    assert model["decomposed"] == {
        "aten::exp2": 1,
        "aten::fmax": 1,
        "aten::native_channel_shuffle": 1,
    }
    program = Path(model["program"]).read_bytes()
    (method,) = read_program(program, file="model.pte").methods
    assert "aten::relu.out" in map(str, method.operators)
    _check(profile, model, MOST_ERROR, capsys)
    assert run(["export", str(profile)]) == 0
    assert (
        "\n  decomposed for want of a kernel: aten::exp2 (1),"
        " aten::fmax (1), aten::native_channel_shuffle (1)\n"
    ) in capsys.readouterr().out


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("keys", "most_error"),
    [
        ("", MOST_ERROR),
        ('lowering = "cortex-m"', MOST_ERROR),
        ('lowering = "cortex-m"\nquantize = {}', MOST_INT8_ERROR),
    ],
    ids=["portable", "cortex-m", "cortex-m, int8"],
)
def test_recurrent_layers_and_attention_are_right(
    keys: str, most_error: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    profile = _product(tmp_path, "sequences", keys)
    model = _built(profile, capsys)
    _check(profile, model, most_error, capsys)
