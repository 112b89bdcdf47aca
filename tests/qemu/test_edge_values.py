"""Values at the edge: no dimensions, no elements, bounds, constants of every kind.

tests/data/edge_values has the programs and what ExecuTorch's runtime gives; what no
exporter writes, or no runtime of ExecuTorch's takes, is made here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from orchestrator.program.program import FreeCall, JumpFalseCall, MoveCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import (
    BoolValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorValue,
)
from tests import list_program
from tests.list_program import call, move, plan, tensor, value
from tests.product import Product
from tests.same_bits import check_same_bits
from tests.targets import EVERY_PAIR, FURTHER, with_toolchains
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from orchestrator.program.program import Method

DATA = Path(__file__).parents[1] / "data" / "edge_values"
SCENARIO = json.loads((DATA / "scenario.json").read_text())
TARGETS = [
    ("host", "zig", "pte"),
    ("host", "zig", "prelinked"),
    pytest.param("cortex-m4", "gnu", "pte", marks=pytest.mark.qemu),
    pytest.param("cortex-m4", "zig", "prelinked", marks=pytest.mark.qemu),
    pytest.param("cortex-m0plus", "zig", "pte", marks=pytest.mark.qemu),
    pytest.param("cortex-m0plus", "gnu", "prelinked", marks=pytest.mark.qemu),
    pytest.param("cortex-m3", "gnu", "pte", marks=pytest.mark.qemu),
    pytest.param("cortex-m3", "zig", "prelinked", marks=pytest.mark.qemu),
    pytest.param("cortex-m7", "zig", "pte", marks=pytest.mark.qemu),
    pytest.param("cortex-m7", "gnu", "prelinked", marks=pytest.mark.qemu),
    pytest.param("cortex-m33", "gnu", "pte", marks=pytest.mark.qemu),
    pytest.param("cortex-m33", "zig", "prelinked", marks=pytest.mark.qemu),
    pytest.param("cortex-m55", "zig", "pte", marks=pytest.mark.qemu),
    pytest.param("cortex-m55", "gnu", "prelinked", marks=pytest.mark.qemu),
    pytest.param("rv32imac", "zig", "pte", marks=pytest.mark.qemu),
    pytest.param("rv32imafc", "gnu", "prelinked", marks=pytest.mark.qemu),
    pytest.param("aarch64", "zig", "prelinked", marks=pytest.mark.qemu),
    *(
        pytest.param(cpu, toolchain, "pte", marks=pytest.mark.qemu)
        for cpu, toolchain in (with_toolchains(*FURTHER) if EVERY_PAIR else ())
    ),
]


def _methods(name: str) -> dict[str, Method]:
    program = read_program((DATA / f"{name}.pte").read_bytes(), file=name)
    return {method.name: method for method in program.methods}


def _kinds(method: Method) -> set[type]:
    return {type(v) for v in method.values}


def _tensors(method: Method, side: tuple[int, ...]) -> list[TensorValue]:
    values = (method.values[i] for i in side)
    return [v for v in values if isinstance(v, TensorValue)]


def test_programs_have_what_they_are_there_for() -> None:
    model = read_program((DATA / "model.pte").read_bytes(), file="model")
    plain = read_program((DATA / "plain.pte").read_bytes(), file="plain")
    assert model.header is not None
    assert plain.header is None
    methods = _methods("model")
    scalars = methods["scalars"]
    assert {t.sizes for t in _tensors(scalars, scalars.inputs)} == {()}
    assert {t.sizes for t in _tensors(scalars, scalars.outputs)} == {()}
    assert any(
        isinstance(v, TensorValue) and v.is_constant and v.sizes == () for v in scalars.values
    )
    empty = methods["empty"]
    assert {t.numel for t in _tensors(empty, empty.inputs)} == {0}
    assert {t.numel for t in _tensors(empty, empty.outputs)} == {0, 3}
    (rows,) = _tensors(methods["rows"], methods["rows"].inputs)
    assert rows.is_dynamic
    assert rows.sizes == (5, 3)
    lists = [v for v in methods["indexed"].values if isinstance(v, OptionalTensorListValue)]
    held = [methods["indexed"].values[i] for v in lists for i in v.items if i >= 0]
    assert any(-1 in v.items for v in lists) or NoneValue() in held
    assert _kinds(methods["fixed"]) >= {IntValue, DoubleValue, BoolValue, NoneValue}
    views = methods["views"]
    assert any(isinstance(v, IntListValue) and v.items for v in views.values)
    given = {
        (run["method"], len(np.load(DATA / run["inputs"][0]["file"])))
        for run in SCENARIO["runs"]
        if run["method"] == "rows"
    }
    assert given == {("rows", 2), ("rows", 5), ("rows", 1), ("rows", 0)}
    constants = {type(m.values[i]) for m in methods.values() for i in m.outputs}
    assert constants >= {IntValue, DoubleValue, BoolValue, StringValue, TensorValue}


def _jump(condition: int, destination: int) -> dict[str, Any]:
    return {
        "instr_args_type": "JumpFalseCall",
        "instr_args": {"cond_value_index": condition, "destination_instruction": destination},
    }


def _loop() -> bytes:
    """Adds y to x, n times: moves, a loop of jumps, and a tensor that is freed."""
    values = [
        tensor([2], 0),  # 0 x
        tensor([2], 16),  # 1 y
        value("Int", int_val=1),  # 2 n
        value("Int", int_val=0),  # 3 i
        value("Int", int_val=0),  # 4 zero
        value("Int", int_val=1),  # 5 one
        value("Bool", bool_val=False),  # 6 i < n
        value("Bool", bool_val=False),  # 7 false
        tensor([2], 32),  # 8 sum
        value("Int", int_val=1),  # 9 alpha
    ]
    free = {"instr_args_type": "FreeCall", "instr_args": {"value_index": 1}}
    instructions = [
        move(4, 3),
        call(0, 3, 2, 6),
        _jump(6, 7),
        call(1, 0, 1, 9, 8, 8),
        call(1, 8, 1, 4, 0, 0),
        call(2, 3, 5, 3),
        _jump(7, 1),
        call(1, 0, 1, 4, 8, 8),
        free,
    ]
    operators = ["executorch_prim::lt.Scalar", "aten::add.out"]
    operators.append("executorch_prim::add.Scalar")
    ports = ([0, 1, 2], [8, 3])
    return list_program.program(
        plan("loop", values, ports, instructions, operators, arena_bytes=[48])
    )


def test_the_loop_has_what_it_is_there_for() -> None:
    (method,) = read_program(_loop(), file="loop").methods
    kinds = [type(i) for i in method.instructions]
    assert {MoveCall, JumpFalseCall, FreeCall} <= {*kinds}
    # Back to the second instruction.
    assert JumpFalseCall(condition=7, destination=1) in method.instructions


def _scenario(folder: Path) -> dict[str, Any]:
    """The runs of the data, and the loop with nothing to do and with something."""
    for path in DATA.glob("*.npy"):
        shutil.copyfile(path, folder / path.name)
    runs = list(SCENARIO["runs"])
    x, y = np.array([1, -2], "f4"), np.array([0.5, 8], "f4")
    np.save(folder / "loop.x.npy", x)
    np.save(folder / "loop.y.npy", y)
    for n in (0, 3):
        np.save(folder / f"loop.sum{n}.npy", x + n * y)
        inputs = [{"kind": "tensor", "file": f"loop.{k}.npy"} for k in "xy"]
        runs.append(
            {
                "model": "loop",
                "method": "loop",
                "inputs": [*inputs, {"kind": "int", "value": n}],
                "outputs": [
                    {"kind": "tensor", "file": f"loop.sum{n}.npy"},
                    {"kind": "int", "value": n},
                ],
            }
        )
    return {**SCENARIO, "runs": runs}


def _product(folder: Path, cpu: str, toolchain: str, load: str) -> Product:
    for name in ("model", "plain"):
        shutil.copyfile(DATA / f"{name}.pte", folder / f"{name}.pte")
    (folder / "loop.pte").write_bytes(_loop())
    profile = folder / "edge.toml"
    profile.write_text(
        'schema = 1\nname = "edge"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n'
        + "".join(
            f'[[models]]\nname = "{n}"\npath = "{n}.pte"\nload = "{load}"\n'
            for n in ("model", "plain", "loop")
        )
    )
    return Product(profile=profile, out=folder / "out")


@pytest.mark.toolchain
@pytest.mark.parametrize(("cpu", "toolchain", "load"), TARGETS)
def test_outputs_are_executorchs(
    cpu: str, toolchain: str, load: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    product = _product(tmp_path, cpu, toolchain, load)
    assert product.run("build") == 0
    assert "warning" not in capsys.readouterr().err
    document = _scenario(tmp_path)
    scenario, outputs = tmp_path / "scenario.json", tmp_path / "outputs"
    scenario.write_text(json.dumps(document))
    code = product.run(
        *("run", "--json", "--scenario", str(scenario), "--output-dir", str(outputs))
    )
    said = capsys.readouterr()
    assert code == 0, said.err + said.out
    calls = json.loads(said.out)["calls"]
    assert [c["method"] for c in calls] == [r["method"] for r in document["runs"]]
    for done, wanted in zip(calls, document["runs"], strict=True):
        assert len(done["outputs"]) == len(wanted["outputs"])
        assert all(o["comparison"]["ok"] for o in done["outputs"])
    found = {path.name: path.read_bytes() for path in outputs.iterdir()}
    check_same_bits("edge values", found, f"{cpu} {toolchain} {load}")


APPLICATION = """\
#include <stdio.h>
#include <string.h>

#include "edge.h"

int main(void) {
  float x[18] = {0}, product[10], twice[30];
  int32_t sizes[2] = {5, 3}, product_sizes[2], twice_sizes[2];
  for (int rows = 7; rows >= 0; --rows) {
    sizes[0] = rows;
    orch_status status = edge_model_rows(x, sizes, product, product_sizes, twice,
                                         twice_sizes);
    if (status != (rows > 5 ? ORCH_SHAPE_TOO_LARGE : ORCH_OK)) return rows + 1;
    if (status == ORCH_OK && product_sizes[0] != rows) return 20;
  }
  sizes[0] = 5;
  sizes[1] = 4; /* the other dimension is bounded, too */
  if (edge_model_rows_run(sizes) != ORCH_SHAPE_TOO_LARGE) return 30;
  if (edge_model_number_output0() != 7 || edge_model_scale_output0() != -0.5) return 31;
  if (edge_model_name_output0_length() != 7) return 32;
  if (memcmp(edge_model_name_output0(), "edge \\xc3\\xa4", 7) != 0) return 33;
  if (!edge_model_flag_output0() || edge_model_sizes_output2() != -3) return 34;
  puts("done");
  return 0;
}
"""


@pytest.mark.toolchain
@pytest.mark.parametrize("load", ["pte", "prelinked"])
def test_one_over_the_bound_is_refused(load: str, tmp_path: Path) -> None:
    need_toolchain("host", "gnu")
    product = _product(tmp_path, "host", "gnu", load)
    assert product.run("build") == 0
    (tmp_path / "app.c").write_text(APPLICATION)
    program = tmp_path / "app"
    subprocess.run(
        [
            *(need_tool("gcc"), "-no-pie", "-Wall", "-Wextra", "-Werror"),
            *(f"-I{product.out / 'include'}", "-o", str(program)),
            *(str(tmp_path / "app.c"), str(product.out / "libedge.a")),
        ],
        check=True,
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n")
