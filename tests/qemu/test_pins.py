"""Tensors in a memory of their own choice, on a board that has two."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CORPUS
from tests.integration.workspace import Workspace
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

DTCM, SRAM = range(0x30000000, 0x31000000), range(0x31000000, 0x32000000)
"""Addresses on mps3-an547, as boards.py has them."""


def _product(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    case: str,
    load: str,
    toolchain: str,
    tensors: dict[str, str],
) -> Workspace:
    need_toolchain("cortex-m55", toolchain)
    shutil.copyfile(CORPUS / case / "model.pte", folder / "m.pte")
    (folder / "product.toml").write_text(
        'schema = 1\nname = "product"\n'
        f'[target]\ncpu = "cortex-m55"\ntoolchain = "{toolchain}"\n'
        '[kernels]\nlibraries = ["cortex_m", "portable"]\n'
        f'[[models]]\npath = "m.pte"\nregion = "sram"\nload = "{load}"\n'
        + "".join(
            f'[[models.tensors]]\ntensor = "{tensor}"\nregion = "{region}"\n'
            for tensor, region in tensors.items()
        )
    )
    return Workspace(folder=folder, capsys=capsys)


@pytest.mark.parametrize(
    ("case", "load", "toolchain"),
    [
        ("kws_dscnn_int8_m55", "pte", "gnu"),
        ("kws_dscnn_int8_m55", "prelinked", "zig"),
        ("views", "prelinked", "gnu"),
        ("kv_cache", "pte", "zig"),
    ],
)
def test_pinned_tensors_lie_there_and_outputs_stay(
    case: str, load: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_emulator("cortex-m55")
    product = _product(
        tmp_path,
        capsys,
        case=case,
        load=load,
        toolchain=toolchain,
        tensors={"input 0": "dtcm", "output 0": "dtcm"},
    )
    product.build()
    report = json.loads((product.out / "report.json").read_text())
    arenas = {s["name"][-1]: s["address"] for s in report["symbols"] if "_arena" in s["name"]}
    assert arenas["1"] in SRAM
    assert arenas["3"] in DTCM
    plan = json.loads((product.out / "memory_plan.json").read_text())
    (method,) = plan["models"][0]["methods"]
    first, _, own = method["arenas"]
    assert own["size_bytes"] == own["lower_bound_bytes"]
    assert first["size_bytes"] > 0
    done = product.run("run", "--scenario", str(CORPUS / case / "case.json"))
    assert done.code == 0, done.out + done.err


def test_a_tensor_without_a_place_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = _product(
        tmp_path,
        capsys,
        case="add_mul",
        load="pte",
        toolchain="zig",
        tensors={"input 3": "dtcm", "output 0": "sram"},
    )
    done = product.run("build")
    assert done.code == 6
    assert done.err == (
        'error[cannot-pin]: input 3 of model "m", method forward, cannot have a place'
        " of its own\n"
        f"  --> {product.profile}:13\n"
        "   |\n"
        '13 | tensor = "input 3"\n'
        "   = found: there is no input 3\n"
        "   hint: name another tensor, or place its whole arena with `regions`\n"
    )
    assert not (tmp_path / "product.lock").exists()
