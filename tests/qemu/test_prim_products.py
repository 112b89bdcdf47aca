"""A program with prim ops on every target with every toolchain."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.integration.workspace import Workspace, write_product
from tests.targets import chosen_pairs, with_toolchains
from tests.tools import need_emulator, need_toolchain

DATA = Path(__file__).parents[1] / "data" / "prim_ops"
LIBRARIES = '[kernels]\nlibraries = ["portable", "prim_ops"]\n'
TARGETS = [*with_toolchains("host"), *chosen_pairs()]

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

_first: dict[str, bytes] = {}
"""Outputs of the first target that ran, by file."""


@pytest.mark.parametrize(("cpu", "toolchain"), TARGETS)
def test_outputs_are_executorchs(
    cpu: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the same bits on all targets."""
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    write_product(tmp_path, cpu=cpu, toolchain=toolchain, extra=LIBRARIES)
    shutil.copyfile(DATA / "model.pte", tmp_path / "model.pte")
    product = Workspace(folder=tmp_path, capsys=capsys)
    assert "warning" not in product.build().err
    outputs = tmp_path / "outputs"
    done = product.run(
        *("run", "--scenario", str(DATA / "scenario.json")), *("--output-dir", str(outputs))
    )
    assert done.code == 0, done.out + done.err
    assert done.out.count(" ok\n") == 20
    found = {path.name: path.read_bytes() for path in sorted(outputs.iterdir())}
    assert found == (_first or found)
    _first.update(found)
