"""Models given as Python with several methods over one state."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.cli.main import run
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]

MODEL = """\
import torch
from torch import nn


class Lm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        self.head = nn.Linear(8, 16)
        self.register_buffer("keys", torch.full((8, 8), 0.25))
        self.register_buffer("values", torch.zeros(8, 8), persistent=False)
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def attend(self, tokens):
        x = self.embed(tokens)
        at = self.count + torch.arange(tokens.shape[0])
        self.keys[at] = self.key(x)
        self.values[at] = self.value(x)
        self.count = self.count + tokens.shape[0]
        bias = torch.where(torch.arange(8) < self.count, 0.0, -30.0)
        weights = torch.softmax(self.query(x) @ self.keys.T + bias, dim=-1)
        return self.head(weights @ self.values)

    def prefill(self, tokens):
        return self.attend(tokens)[-1:]

    def decode(self, token):
        return self.attend(token)

    def peek(self, x):
        return x + self.keys[:2] * 2  # a constant, for who looks at this method only

    def position(self):
        return self.count.item()

    def memory(self):
        return self.keys  # not a copy: later calls change what PyTorch gave

    def reset(self):
        self.keys.fill_(0.25)
        self.values.zero_()
        self.count.zero_()


INPUTS = {
    "prefill": torch.tensor([3, 1, 4]),
    "decode": (torch.tensor([1]),),
    "peek": torch.ones(2, 8),
    "position": (),
    "memory": (),
    "reset": (),
}


def build():
    return {
        "module": Lm(),
        "inputs": INPUTS,
        "calibration": [
            *(("prefill", torch.tensor([5, 9, 2])), ("decode", torch.tensor([6]))),
            *(("peek", torch.ones(2, 8)), ("reset", ())),
            *(("prefill", torch.tensor([3, 1, 4])), ("decode", torch.tensor([1]))),
        ],
        "constant_methods": {"get_max_seq_len": 8, "get_scale": torch.ones(2)},
    }


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.bn = nn.BatchNorm2d(2)
        self.conv = nn.Conv2d(1, 2, (1, 3))
        self.register_buffer("average", torch.full((1, 4), 0.5))
        self.register_buffer("again", self.average)

    def forward(self, x):
        before = self.average * 2
        self.average.mul_(0.5).add_(self.lin(x) * 0.5)
        image = torch.relu(self.bn(self.conv(x.view(1, 1, 1, 4))))
        return self.lin(self.average), before, image, self.average * 2, self.again * 2


def average():
    return Average(), torch.ones(1, 4), [torch.randn(1, 4) for _ in range(4)]


class Delay(nn.Module):
    # Buffers get each other's values, and the caller's.

    def __init__(self):
        super().__init__()
        self.register_buffer("older", torch.zeros(4))
        self.register_buffer("old", torch.full((4,), 7.0))
        self.register_buffer("flat", torch.zeros(2, 2))

    def forward(self, x):
        y = self.older + 0.5 * x + self.flat.view(4)
        self.flat.copy_(self.older.view(2, 2))
        self.older.copy_(self.old)
        self.old.copy_(x)
        return y, self.older, self.flat.view(4)


def delay():
    return Delay(), torch.ones(4)


def unknown():
    return Lm(), {"prefil": torch.tensor([1])}


def buffer():
    return Lm(), {"keys": ()}


def arguments():
    return Lm(), {"prefill": torch.tensor([1]), "decode": ()}


def kind():
    return Lm(), {"prefill": torch.tensor([1]), "decode": 1}


def sample():
    return Lm(), {"decode": torch.tensor([1])}, [("prefill", torch.tensor([1]))]


def shapes():
    return Lm(), {"decode": torch.tensor([1])}, None, ({0: 1},)


def constant():
    return Lm(), {"decode": torch.tensor([1])}, None, None, {"decode": 1}


def constants():
    return Lm(), {"decode": torch.tensor([1])}, None, None, {"facts": {"a": 1}}
"""
EXPECTED = """\
import json, sys
import numpy as np
import torch

sys.path.insert(0, ".")
import lm

torch.manual_seed(0)
model = lm.build()["module"].eval()
calls = []
order = ["decode", "position", "prefill", "peek", "decode", "memory", "reset"]
with torch.no_grad():
    for at, name in enumerate(order * 2):
        inputs = lm.INPUTS[name]
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        found = getattr(model, name)(*inputs)
        run = {"method": name, "inputs": [], "outputs": []}
        for kind, values in (("inputs", inputs), ("outputs", (found,))):
            for value in values:
                if value is None:
                    run[kind].append({"kind": "none"})
                    continue
                file = f"{at}.{kind}{len(run[kind])}.npy"
                np.save(file, np.asarray(value))
                run[kind].append({"kind": "tensor", "file": file})
        calls.append(run)
document = {"tolerance": {"atol": 1e-5, "rtol": 1e-5}, "runs": calls}
json.dump(document, open("turns.json", "w"))
"""
DELAYED = """\
import json, sys
import numpy as np
import torch

sys.path.insert(0, ".")
import lm

model, runs = lm.Delay(), []
for at in range(6):
    x = torch.arange(4.0) + 10 * at
    run = {"method": "forward", "inputs": [], "outputs": []}
    np.save(f"x{at}.npy", x)
    run["inputs"].append({"kind": "tensor", "file": f"x{at}.npy"})
    for number, value in enumerate(model(x.clone())):
        np.save(f"y{at}.{number}.npy", value)
        run["outputs"].append({"kind": "tensor", "file": f"y{at}.{number}.npy"})
    runs.append(run)
document = {"tolerance": {"atol": 0, "rtol": 0}, "runs": runs}
json.dump(document, open("turns.json", "w"))
"""
QUANTIZED = {
    "portable": "quantize = {}",
    "portable, dynamic": "quantize = { dynamic = true }",
    "cortex-m": "quantize = {}",
    "cortex-m, int16": 'quantize = { activations = "int16" }',
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", PYTHON)
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))


def _profile(folder: Path, function: str, more: str = "") -> Path:
    (folder / "lm.py").write_text(MODEL)
    profile = folder / "product.toml"
    profile.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
        f'[[models]]\nname = "lm"\nsource = "lm.py:{function}"\n{more}\n'
    )
    return profile


@pytest.mark.toolchain
@pytest.mark.parametrize("load", ["prelinked", "pte"])
def test_methods_in_turns_give_what_pytorch_gives(load: str, tmp_path: Path) -> None:
    need_toolchain("host", "zig")
    profile, out = _profile(tmp_path, "build", f'load = "{load}"'), tmp_path / "out"
    (tmp_path / "expected.py").write_text(EXPECTED)
    subprocess.run([PYTHON, "-W", "ignore", "expected.py"], cwd=tmp_path, check=True)
    for command in ("export", "build"):
        assert run([command, str(profile), "--out", str(out)]) == 0
    for scenario in ("turns.json", "out/exported/lm/scenario.json"):
        words = ["--out", str(out), "--scenario", str(tmp_path / scenario)]
        assert run(["run", str(profile), *words]) == 0
    plan = json.loads((out / "memory_plan.json").read_text())
    methods = {m["method"] for m in plan["models"][0]["methods"]}
    assert {"get_max_seq_len", "get_scale"} <= methods
    assert run(["test", str(profile), "--out", str(out)]) == 0


@pytest.mark.toolchain
@pytest.mark.parametrize("load", ["prelinked", "pte"])
def test_buffers_get_each_others_values(load: str, tmp_path: Path) -> None:
    """ExecuTorch drops a write whose value is another buffer, or writes too early."""
    need_toolchain("host", "zig")
    profile = _profile(tmp_path, "delay", f'load = "{load}"')
    (tmp_path / "expected.py").write_text(DELAYED)
    subprocess.run([PYTHON, "-W", "ignore", "expected.py"], cwd=tmp_path, check=True)
    words = ["--out", str(tmp_path / "out")]
    assert run(["build", str(profile), *words]) == 0
    words += ["--scenario", str(tmp_path / "turns.json")]
    assert run(["run", str(profile), *words]) == 0


@pytest.mark.toolchain
@pytest.mark.parametrize("function", ["build", "average"])
@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_methods_keep_their_state(name: str, function: str, tmp_path: Path) -> None:
    need_toolchain("host", "zig")
    lowering = name.partition(",")[0]
    more = f'lowering = "{lowering}"\n{QUANTIZED[name]}'
    profile, out = _profile(tmp_path, function, more), tmp_path / "out"
    for command in ("export", "build"):
        assert run([command, str(profile), "--out", str(out)]) == 0
    scenario = out / "exported" / "lm" / "scenario.json"
    words = ["--out", str(out), "--scenario", str(scenario)]
    assert run(["run", str(profile), *words]) == 0
    if function == "average":  # calibration does not change where the state begins
        before = np.load(scenario.with_name("out1.npy"))
        assert np.abs(before - 1.0).max() < 0.02
        now, again = (np.load(scenario.with_name(f"out{n}.npy")) for n in (3, 4))
        assert np.abs(now - again).max() < 0.02 < np.abs(now - before).max()


@pytest.mark.parametrize("more", ["", "quantize = {}"])
def test_delegates_do_not_make_constants_of_state(more: str, tmp_path: Path) -> None:
    """XNNPACK runs in ExecuTorch's own runtime."""
    profile, out = _profile(tmp_path, "build", f'lowering = "xnnpack"\n{more}'), "out"
    assert run(["export", str(profile), "--out", str(tmp_path / out)]) == 0
    (tmp_path / "runtime.py").write_text(RUNTIME)
    folder = tmp_path / out / "exported" / "lm"
    done = subprocess.run(
        [PYTHON, "-W", "ignore", str(tmp_path / "runtime.py")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    names = ["prefill", "decode", "peek", "position", "memory", "reset"]
    assert done.stdout.split() == names, done.stderr


RUNTIME = """\
import json
import numpy as np
import torch
from executorch.runtime import Runtime, Verification

program = Runtime.get().load_program(
    open("model.pte", "rb").read(), verification=Verification.Minimal
)
# Loading a method later would begin the state anew.
methods = {name: program.load_method(name) for name in program.method_names}
for call in json.load(open("scenario.json"))["runs"]:
    inputs = [torch.from_numpy(np.load(i["file"])) for i in call["inputs"]]
    found = methods[call["method"]].execute(inputs)
    for value, entry in zip(found, call["outputs"], strict=True):
        if entry["kind"] == "tensor":
            np.testing.assert_allclose(np.asarray(value), np.load(entry["file"]), 1e-4)
    print(call["method"])
"""


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        ("unknown", ['Lm has no method "prefil"', 'did you mean "prefill"?']),
        ("buffer", ['Lm has no method "keys"', "found: attend, decode, memory, "]),
        ("arguments", ["cannot run its example inputs", "method: decode", "token"]),
        ("kind", ['found: int as inputs of "decode"', "a tuple of arguments, or one"]),
        ("sample", ["as a calibration sample", "(method, inputs)"]),
        ("shapes", ["found: tuple of 1 as dynamic_shapes", "a dict by method"]),
        ("constant", ['constant_methods["decode"]', "a name that no method"]),
        ("constants", ['dict in constant_methods["facts"]', "numbers, texts and"]),
    ],
)
def test_what_is_wrong_is_named(
    function: str, texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = _profile(tmp_path, function)
    assert run(["export", str(profile), "--out", str(tmp_path / "out")]) == 4
    said = capsys.readouterr().err
    assert 'error[bad-callable]: model "lm": ' in said
    assert said.count("error[") == 1
    for text in texts:
        assert text in said
