"""Networks of lines become int8 as those of images do, and give the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli.main import run
from orchestrator.program.reader import read_program
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Sequence

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
CODE = Path(__file__).with_name("line_nets.py")
NETS = [
    *("gestures", "temporal", "inception", "autoencoder", "causal", "heart"),
    *("activated", "padded", "any_length", "pictures"),
    *("squeezed", "recurrent", "returned", "stream", "reduced", "reduced_images"),
]
KEPT = ["in_place", "changes_view"]
"""Their programs have floats: items that are set, and lines that stay lines."""
MOVES = (
    *("copy", "::cat.", "::flip.", "::full.", "::upsample_nearest"),
    *("::sym_size.", "executorch_prim::"),
)

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", PYTHON)
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(CODE, tmp_path / CODE.name)


def _profile(names: Sequence[str], cpu: str) -> Path:
    path = Path(f"{cpu}.toml")
    path.write_text(
        f'schema = 1\nname = "product"\n[target]\ncpu = "{cpu}"\ntoolchain = "gnu"\n'
        + "".join(
            f'[[models]]\nname = "{name}"\nsource = "{CODE.name}:{name}"\n'
            'lowering = "cortex-m"\nquantize = {}\nload = "prelinked"\n'
            for name in names
        )
    )
    return path


def _document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def _floats(program: str) -> list[str]:
    """Operators that are not of int8, but for those that move items."""
    found = read_program(Path(program).read_bytes(), file="model.pte")
    names = [str(name) for method in found.methods for name in method.operators]
    ours = ("cortex_m::", "dim_order_ops::")
    return [n for n in names if not n.startswith(ours) and not any(m in n for m in MOVES)]


@pytest.mark.toolchain
def test_lines_are_int8_and_give_what_quantized_pytorch_gives(
    capsys: pytest.CaptureFixture[str],
) -> None:
    need_toolchain("host", "gnu")
    profile = _profile([*NETS, *KEPT], "host")
    exported = _document(capsys, "export", str(profile))["models"]
    assert run(["build", str(profile)]) == 0
    for model in exported:
        name, folder = model["model"], Path(model["program"]).parent
        words = ["run", str(profile), "--model", name, "--atol", "0.1"]
        for array in (a for a in model["arrays"] if a.endswith(".npy")):
            flag = "--input" if array.startswith("in") else "--expect"
            words += [flag, str(folder / array)]
        assert _document(capsys, *words)["ok"], name
        if name in NETS:
            assert _floats(model["program"]) == [], name
            # Images in PyTorch's default layout are copied, and that is said.
            others = [w for w in model["warnings"] if "PyTorch's default layout" not in w]
            assert others == [], name


@pytest.mark.toolchain
def test_lines_cost_what_images_of_one_row_cost(capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("cortex-m4", "gnu")
    found = []
    for name in ("gestures", "gestures_as_images"):
        profile = _profile([name], "cortex-m4")
        (built,) = _document(capsys, "build", str(profile))["builds"]
        found.append((built["flash_bytes"], built["ram_bytes"]))
    lines, images = found
    assert all(one <= 1.01 * other for one, other in zip(lines, images, strict=True))


MODEL_CALLS = """
import numpy, torch, line_nets
net, *_ = line_nets.stream()
for call in range(4):
    x = torch.randn(1, 4, 6)
    numpy.save(f"in{call}.npy", x.numpy())
    numpy.save(f"out{call}.npy", net(x).detach().numpy())
"""


@pytest.mark.toolchain
def test_lines_in_buffers_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("host", "gnu")
    subprocess.run([PYTHON, "-c", MODEL_CALLS], check=True)
    runs = [
        {
            "method": "forward",
            "inputs": [{"kind": "tensor", "file": f"in{call}.npy"}],
            "outputs": [{"kind": "tensor", "file": f"out{call}.npy"}],
        }
        for call in range(4)
    ]
    scenario = {"tolerance": {"atol": 0.06, "rtol": 0.0}, "runs": runs}
    Path("scenario.json").write_text(json.dumps(scenario))
    profile = str(_profile(["stream"], "host"))
    assert _document(capsys, "run", profile, "--scenario", "scenario.json")["ok"]
