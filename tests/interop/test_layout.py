"""Images in PyTorch's default layout, lowered for Cortex-M with the real packages."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import run
from orchestrator.method.link import reordered_reads
from orchestrator.program.reader import read_program
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
IMAGES = Path(__file__).with_name("image_nets.py")
VIEWS = Path(__file__).with_name("view_nets.py")
MOST_FLOAT_ERROR = 1e-5
MOST_ERROR = 0.1
"""A few steps of int8; items mixed up are far more."""

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", PYTHON)
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def _profile(folder: Path, names: list[str], lowering: str = "cortex-m", code: Path = CODE) -> Path:
    shutil.copyfile(code, folder / code.name)
    quantize = "quantize = {}\n" if lowering == "cortex-m" else ""
    path = folder / "product.toml"
    path.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "gnu"\n'
        + "".join(
            f'[[models]]\nname = "{name}"\nsource = "{code.name}:{name}"\n'
            f'lowering = "{lowering}"\n{quantize}'
            for name in names
        )
    )
    return path


def _exported(profile: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    assert run(["export", str(profile), "--json"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    return {model["model"]: model for model in models}


def _run(profile: Path, model: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> list[float]:
    """The largest error of each output of a model, against PyTorch."""
    folder = Path(model["program"]).parent
    words = ["run", str(profile), "--model", model["model"], "--json"]
    for array in (a for a in model["arrays"] if a.endswith(".npy")):
        flag = "--input" if array.startswith("in") else "--expect"
        words += [flag, str(folder / array)]
    capsys.readouterr()
    run(words)
    (call,) = json.loads(capsys.readouterr().out)["calls"]
    assert call["error"] == "Ok", model["model"]
    return [float(o["comparison"]["max_abs_error"]) for o in call["outputs"]]


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
        assert max(_run(profile, model, capsys)) <= MOST_ERROR, name
        copies = [text for text in model["warnings"] if BORDER in text]
        assert bool(copies) is is_copied, name
        left = [text for text in model["warnings"] if "to kernels for floats" in text]
        assert bool(left) is (name == KEPT), name


@pytest.mark.toolchain
def test_images_of_lines_and_layouts_of_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    names = ["lines_as_image", "lines", "gated", "extrema"]
    profile = _profile(tmp_path, names, code=IMAGES)
    exported = _exported(profile, capsys)
    assert run(["build", str(profile)]) == 0
    for name in names:
        assert max(_run(profile, exported[name], capsys)) <= MOST_ERROR, name


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


@pytest.mark.toolchain
def test_views_of_images_in_channels_last_layout_are_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    profile = _profile(tmp_path, ["chains", "small"], "portable", VIEWS)
    exported = _exported(profile, capsys)
    assert run(["build", str(profile)]) == 0
    assert "reordered-view" not in capsys.readouterr().err
    for name, outputs in (("chains", 24), ("small", 4)):
        found = _run(profile, exported[name], capsys)
        assert len(found) == outputs
        assert max(found) <= MOST_FLOAT_ERROR, name


def test_a_view_of_bytes_in_another_order_is_copied_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = _profile(tmp_path, ["split_view"], "portable")
    program = Path(_exported(profile, capsys)["split_view"]["program"])
    method = read_program(program.read_bytes(), file="model.pte").methods[0]
    assert reordered_reads(method) == ()
    assert "dim_order_ops::_clone_dim_order.out" in map(str, method.operators)


@pytest.mark.toolchain
def test_pads_follow_the_layout_that_the_padded_image_gets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An int8 softmax keeps the layout of its input; PyTorch's does not."""
    need_toolchain("host", "gnu")
    profile = _profile(tmp_path, ["pads", "more_pads", "pooled_pads"], code=IMAGES)
    exported = _exported(profile, capsys)
    assert run(["build", str(profile)]) == 0
    for name, model in exported.items():
        assert max(_run(profile, model, capsys)) <= MOST_ERROR / 10, name
