"""Products of a program with prim ops, against the outputs that ExecuTorch gives."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from orchestrator.program.prim_ops import PRIM_OPS
from tests.integration.workspace import Workspace, write_product
from tests.tools import need_emulator, need_toolchain

DATA = Path(__file__).parents[1] / "data" / "prim_ops"
LIBRARIES = '[kernels]\nlibraries = ["portable", "prim_ops"]\n'
PRIM = [
    "aten::_local_scalar_dense",
    "aten::sym_size.int",
    "executorch_prim::add.Scalar",
    "executorch_prim::et_view.default",
    "executorch_prim::floordiv.Scalar",
    "executorch_prim::gt.Scalar",
    "executorch_prim::mod.Scalar",
    "executorch_prim::mul.Scalar",
    "executorch_prim::sub.Scalar",
]


@pytest.fixture
def p(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    """A profile for the host with the program."""
    need_toolchain("host", "zig")
    write_product(tmp_path, extra=LIBRARIES)
    shutil.copyfile(DATA / "model.pte", tmp_path / "model.pte")
    return Workspace(folder=tmp_path, capsys=capsys)


@pytest.mark.toolchain
def test_a_product_gives_executorchs_outputs(p: Workspace) -> None:
    p.build()
    scenario = str(DATA / "scenario.json")
    done = p.run("run", "--scenario", scenario)
    assert done.code == 0, done.out + done.err
    assert done.out.count(" ok\n") == 20
    outputs = {name: data.decode(errors="replace") for name, data in p.outputs().items()}
    table = re.findall(r'\{"(\w+::[\w.]+)", ', outputs["gen/src/registered_kernels.cpp"])
    others = ["add.out", "mm.out", "permute_copy.out", "relu.out", "tanh.out"]
    assert table == sorted([*PRIM, *(f"aten::{name}" for name in others)])
    # One place in the registry for each, and a macro for each.
    header = outputs["gen/include/selected_max_kernel_num.h"]
    assert re.findall(r"KERNEL_NUM (\d+)", header) == [str(len(table))]
    macros = re.findall(r"INCLUDE_(\w+)", outputs["gen/include/selected_prim_ops.h"])
    assert sorted(macros) == sorted(
        re.sub("_+", "_", re.sub("[:.]+", "_", name)).upper() for name in table
    )


@pytest.mark.nightly
@pytest.mark.toolchain
@pytest.mark.qemu
def test_all_operators_bring_all_prim_ops(p: Workspace) -> None:
    """On a core whose objects of all kernels other tests have, too."""
    need_toolchain("cortex-m4", "gnu")
    need_emulator("cortex-m4")
    extra = LIBRARIES + "[operators]\nall = true\n"
    write_product(p.folder, cpu="cortex-m4", toolchain="gnu", extra=extra)
    shutil.copyfile(DATA / "model.pte", p.folder / "model.pte")
    p.build()
    outputs = p.outputs()
    header = outputs["gen/include/selected_prim_ops.h"].decode()
    assert header.count("#define INCLUDE_EXECUTORCH_PRIM_") == 25
    assert b"#define" not in outputs["gen/include/selected_max_kernel_num.h"]
    table = outputs["gen/src/registered_kernels.cpp"].decode()
    assert all(f'{{"{name}", "{PRIM_OPS[name]}"' in table for name in PRIM_OPS)
    done = p.run("run", "--scenario", str(DATA / "scenario.json"))
    assert done.code == 0, done.out + done.err
