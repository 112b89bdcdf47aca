"""Images in PyTorch's default layout, lowered for Cortex-M with the real packages."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import run
from tests.tools import need_toolchain

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
CODE = Path(__file__).parents[1] / "data" / "layout" / "nets.py"
BORDER = "default layout, and each run copies to channels-last"
NETS = {
    # By name: whether an image is copied at the border. The programs of all networks
    # are in tests/data/layout; tests/qemu/test_layout.py runs them.
    "basic": True,
    "one_channel": False,
    "pixels": True,
    "view": True,
    "changes_view": False,
    "pixels_saved": False,
}
KEPT = "changes_view"
"""Changes a view of an image, and stays as it is."""
MOST_ERROR = 0.1
"""A few steps of int8; items mixed up are far more."""

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(
        not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"
    ),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", PYTHON)
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))


def _profile(folder: Path, names: list[str], lowering: str = "cortex-m") -> Path:
    shutil.copyfile(CODE, folder / CODE.name)
    quantize = "quantize = {}\n" if lowering == "cortex-m" else ""
    path = folder / "product.toml"
    path.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "gnu"\n'
        + "".join(
            f'[[models]]\nname = "{name}"\nsource = "{CODE.name}:{name}"\n'
            f'lowering = "{lowering}"\n{quantize}'
            for name in names
        )
    )
    return path


def _exported(
    profile: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    assert run(["export", str(profile), "--json"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    return {model["model"]: model for model in models}


@pytest.mark.toolchain
def test_firmware_gives_what_quantized_pytorch_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    profile = _profile(tmp_path, list(NETS))
    exported = _exported(profile, capsys)
    assert run(["build", str(profile)]) == 0
    for name, is_copied in NETS.items():
        model = exported[name]
        folder = Path(model["program"]).parent
        words = ["run", str(profile), "--model", name, "--json"]
        for array in model["arrays"]:
            flag = "--input" if array.startswith("in") else "--expect"
            words += [flag, str(folder / array)]
        capsys.readouterr()
        run(words)
        (call,) = json.loads(capsys.readouterr().out)["calls"]
        assert call["error"] == "Ok", name
        for output in call["outputs"]:
            error = float(output["comparison"]["max_abs_error"])
            assert error <= MOST_ERROR, f"{name}: {error}"
        copies = [text for text in model["warnings"] if BORDER in text]
        assert bool(copies) is is_copied, name
        left = [text for text in model["warnings"] if "left to portable" in text]
        assert bool(left) is (name == KEPT), name


def test_the_warning_names_model_and_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = _profile(tmp_path, ["basic"])
    capsys.readouterr()
    assert run(["export", str(profile)]) == 0
    assert (
        "warning[default-layout]: model basic: input 0 is in PyTorch's default layout,"
        " and each run copies to channels-last; to avoid the copy, write"
        " .to(memory_format=torch.channels_last) after the module and its example"
        " inputs\n"
    ) in capsys.readouterr().err


def test_a_view_of_bytes_in_another_order_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = _profile(tmp_path, ["split_view"], "portable")
    capsys.readouterr()
    assert run(["export", str(profile)]) == 4
    said = capsys.readouterr().err
    assert 'error[cannot-lower]: model "split_view": ExecuTorch would reorder' in said
    found = "[1, 8, 6, 6] with dim order [0, 2, 3, 1], viewed as [1, 2, 4, 6, 6]"
    assert f"   = found: {found}\n" in said
    assert f'   = at: File "{tmp_path / CODE.name}", line ' in said
