"""A product that lacks a kernel its profile allows to be missing, on the host."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CORPUS
from tests.integration.workspace import Workspace, without_sigmoid, write_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

WARNING = "no kernel for aten::sigmoid.out with dtype Float, needed by"


@pytest.mark.toolchain
def test_methods_without_the_missing_operator_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "zig")
    write_product(tmp_path, case="multi_method", extra=without_sigmoid(tmp_path) + "[operators]\n")
    w = Workspace(folder=tmp_path, capsys=capsys)
    for file in (CORPUS / "multi_method").glob("*.npy"):
        shutil.copyfile(file, tmp_path / file.name)
    case = json.loads((CORPUS / "multi_method" / "case.json").read_text())
    assert w.run("check").code == 5

    w.edit("product.toml", 'allow_missing = ["sigmoid.out"]\n')
    for command in ("check", "plan", "build", "build"):  # the last has nothing to do
        done = w.run(command)
        assert done.code == 0, done.err
        assert f"warning[missing-kernel]: {WARNING}" in done.err
    outputs = w.outputs()
    for name in ("resolution.json", "report.json", "selected_operators.yaml"):
        assert b"aten::sigmoid.out" in outputs[name], name
    assert WARNING in w.run("size").out
    assert WARNING.encode() in outputs["include/product.h"]
    assert "the profile allows that" in w.run("why", "--not", "aten::sigmoid.out").out

    codes = {}
    for call in case["runs"]:
        scenario = tmp_path / "scenario.json"
        scenario.write_text(json.dumps({**case, "runs": [call]}))
        done = w.run("run", "--scenario", str(scenario))
        codes[call["method"]] = (done.code, "OperatorMissing" in done.out + done.err)
        hint = "hint: the profile allows aten::sigmoid.out to be missing; add what"
        assert (hint in done.err) is (done.code != 0)
    failed = codes.pop("decode")
    assert failed == (10, True)
    assert set(codes.values()) == {(0, False)}
