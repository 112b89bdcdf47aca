"""Inputs and outputs of every kind: through the API, and by `run`."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests import list_program
from tests.product import Product
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

X = np.arange(6, dtype="f4").reshape(2, 3)
Y = X * 2 - 3
Z = np.array([4, 5, 6], "f4")
NONE = {"kind": "none"}


def _tensor(name: str) -> dict[str, Any]:
    return {"kind": "tensor", "file": f"{name}.npy"}


def _scenario(n: int) -> dict[str, Any]:
    return {
        "tolerance": {"atol": 0, "rtol": 0},
        "runs": [
            {
                "method": "forward",
                "inputs": [
                    {
                        "kind": "tensor_list",
                        "items": [_tensor("x"), NONE, _tensor("y"), _tensor("z")],
                    },
                    {"kind": "int", "value": n},
                    {"kind": "int", "value": 3},
                    {"kind": "double", "value": 0.5},
                    {"kind": "bool", "value": True},
                    {"kind": "string", "value": "täxt"},
                    {"kind": "int_list", "value": [7, -9]},
                    {"kind": "double_list", "value": [0.5, -1]},
                    {"kind": "bool_list", "value": [True, False]},
                    NONE,
                ],
                "outputs": [
                    {"kind": "tensor_list", "items": [_tensor("sum"), NONE, _tensor("product")]},
                    {"kind": "tensor_list", "items": [_tensor("z"), NONE]},
                    {"kind": "int_list", "value": [7, -9, 1 << 62]},
                    {"kind": "double_list", "value": [0.25, 1e300, np.inf]},
                    {"kind": "bool_list", "value": [False, True, True]},
                    {"kind": "string", "value": "out"},
                    {"kind": "int", "value": n},
                    {"kind": "double", "value": -0.125},
                    {"kind": "bool", "value": False},
                    NONE,
                    {"kind": "tensor_list", "items": []},
                ],
            }
        ],
    }


def _product(folder: Path, *, cpu: str, toolchain: str, load: str) -> Product:
    (folder / "lists.pte").write_bytes(list_program.program(list_program.list_plan()))
    profile = folder / "lists.toml"
    profile.write_text(
        'schema = 1\nname = "lists"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n'
        f'[[models]]\nname = "m"\npath = "lists.pte"\nload = "{load}"\n'
    )
    arrays = {"x": X, "y": Y, "z": Z, "sum": X + 5 * Y, "product": X * Y}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "scenario.json").write_text(json.dumps(_scenario(5)))
    return Product(profile=profile, out=folder / "out")


TARGETS = [
    ("host", "zig", "pte"),
    ("host", "gnu", "prelinked"),
    pytest.param("cortex-m4", "gnu", "pte", marks=pytest.mark.qemu),
    pytest.param("cortex-m55", "zig", "prelinked", marks=pytest.mark.qemu),
]


@pytest.mark.parametrize(("cpu", "toolchain", "load"), TARGETS)
def test_run_gives_and_compares_every_kind(
    cpu: str, toolchain: str, load: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    product = _product(tmp_path, cpu=cpu, toolchain=toolchain, load=load)
    assert product.run("build") == 0
    assert "warning" not in capsys.readouterr().err
    scenario, outputs = tmp_path / "scenario.json", tmp_path / "outputs"
    code = product.run(
        *("run", "--json", "--scenario", str(scenario), "--output-dir", str(outputs))
    )
    said = capsys.readouterr()
    assert code == 0, said.err + said.out
    (call,) = json.loads(said.out)["calls"]
    found = call["outputs"]
    assert [o["kind"] for o in found] == [
        *("tensor_list", "tensor_list", "int_list", "double_list", "bool_list"),
        *("string", "int", "double", "bool", "none", "tensor_list"),
    ]
    assert all(o["comparison"]["ok"] for o in found)
    assert found[0]["items"] == [
        {"kind": "tensor", "dtype": "Float", "sizes": [2, 3]},
        {"kind": "none"},
        {"kind": "tensor", "dtype": "Float", "sizes": [2, 3]},
    ]
    assert found[1]["items"][0]["sizes"] == [3]
    assert found[2]["value"] == [7, -9, 1 << 62]
    assert found[3]["value"] == [0.25, 1e300, "inf"]
    assert found[4]["value"] == [False, True, True]
    assert sorted(path.name for path in outputs.iterdir()) == [
        *("out0.item0.npy", "out0.item2.npy", "out1.item0.npy"),
        *("out2.npy", "out3.npy", "out4.npy", "out5.txt"),
        *("out6.npy", "out7.npy", "out8.npy"),
    ]
    assert np.array_equal(np.load(outputs / "out0.item2.npy"), X * Y)
    assert np.load(outputs / "out2.npy").tolist() == [7, -9, 1 << 62]
    assert np.load(outputs / "out4.npy").tolist() == [False, True, True]


def test_what_differs_is_told_by_item(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("host", "zig")
    product = _product(tmp_path, cpu="host", toolchain="zig", load="pte")
    assert product.run("build") == 0
    wrong = X * Y
    wrong[1, 2] += 1
    np.save(tmp_path / "product.npy", wrong)
    document = _scenario(5)
    outputs = document["runs"][0]["outputs"]
    outputs[2]["value"][1] = -8
    outputs[4]["value"].pop()
    (tmp_path / "scenario.json").write_text(json.dumps(document))
    capsys.readouterr()
    scenario = str(tmp_path / "scenario.json")
    assert product.run("run", "--scenario", scenario) == 10
    said = capsys.readouterr().err
    assert "worst: element [2, 1, 2]: 35, expected 36" in said
    assert "worst: element [1]: -9, expected -8" in said
    assert "found: bool_list [false, true, true], expected bool_list [false, true]" in said
    assert said.count("run-mismatch") == 3


FIXED = [
    (2, {"kind": "int", "value": 4}, "int 4", "int 3"),
    (3, {"kind": "double", "value": 0.25}, "double 0.25", "double 0.5"),
    (4, {"kind": "bool", "value": False}, "bool false", "bool true"),
    (5, {"kind": "string", "value": "text"}, "string 'text'", "string 'täxt'"),
    (6, {"kind": "int_list", "value": [7, -9, 1]}, "int_list [7, -9, 1]", "int_list [7, -9]"),
]


def test_fixed_inputs_take_their_value_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "zig")
    product = _product(tmp_path, cpu="host", toolchain="zig", load="pte")
    assert product.run("build") == 0
    document = _scenario(5)
    inputs = document["runs"][0]["inputs"]
    for index, value, _, _ in FIXED:
        inputs[index] = value
    inputs[0]["items"][1] = _tensor("x")
    (tmp_path / "scenario.json").write_text(json.dumps(document))
    capsys.readouterr()
    scenario = str(tmp_path / "scenario.json")
    assert product.run("run", "--scenario", scenario) == 2
    said = capsys.readouterr().err
    assert said.count("was exported for another value of this input") == len(FIXED)
    for index, _, found, expected in FIXED:
        assert (
            f"   = at: runs[0].inputs[{index}]\n   = found: {found}\n   = expected: {expected}\n"
        ) in said
    assert "item 1: the input has the wrong kind for this method" in said


def test_command_line_gives_every_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("host", "zig")
    product = _product(tmp_path, cpu="host", toolchain="zig", load="pte")
    assert product.run("build") == 0
    files = [str(tmp_path / f"{name}.npy") for name in "xyz"]
    given = [f"{files[0]},none,{files[1]},{files[2]}", "5", "3", "0.5", "true"]
    given += ["täxt", "7,-9", "0.5,-1", "true,false", "none"]
    wanted = [
        f"{tmp_path / 'sum.npy'},none,{tmp_path / 'product.npy'}",
        *(f"{files[2]},none", f"7,-9,{1 << 62}", "0.25,1e300,inf"),
        *("false,true,true", "out", "5", "-0.125", "false", "none", ""),
    ]
    arguments = [a for g in given for a in ("--input", g)]
    arguments += [f"--expect={w}" for w in wanted]
    capsys.readouterr()
    code = product.run("run", "--method", "forward", *arguments)
    said = capsys.readouterr()
    assert code == 0, said.err
    assert said.out.count(" ok\n") == 11
    arguments[1] = arguments[1].rpartition(",")[0]
    assert product.run("run", "--method", "forward", *arguments) == 2
    assert "the list has the wrong length" in capsys.readouterr().err


APPLICATION = """\
#include <stdio.h>
#include <string.h>

#include "lists.h"

#define CHECK(what) do { if (!(what)) { puts(#what); return 1; } } while (0)

static char update[UPDATE_BYTES] __attribute__((aligned(16)));

static int load(const char* path) {
  FILE* file = fopen(path, "rb");
  size_t size = fread(update, 1, sizeof update, file);
  fclose(file);
  return (int)lists_m_forward_load(update, (uint32_t)size);
}

int main(int argc, char** argv) {
  const float x[6] = {0, 1, 2, 3, 4, 5}, y[6] = {-3, -1, 1, 3, 5, 7};
  const float z[4] = {4, 5, 6, 0};
  int32_t z_sizes[1] = {3}, out_sizes[1];
  float sum[6], product[6], out_z[4];
  int64_t ints[LISTS_M_FORWARD_OUTPUT2_COUNT], n;
  uint32_t ints_count, doubles_count, bools_count, length;
  const double* doubles;
  const uint8_t* bools;
  const char* text;
  double number;
  uint8_t truth;
  (void)argc;
  CHECK(lists_m_forward(x, y, z, z_sizes, 5, sum, product, out_z, out_sizes, ints,
                        &ints_count, &doubles, &doubles_count, &bools, &bools_count,
                        &text, &length, &n, &number, &truth) == 0);
  CHECK(sum[5] == 40 && product[5] == 35 && out_z[2] == 6 && out_sizes[0] == 3);
  CHECK(ints_count == 3 && ints[1] == -9 && ints[2] == (int64_t)1 << 62);
  CHECK(doubles_count == 3 && doubles[0] == 0.25 && doubles[1] == 1e300);
  CHECK(bools_count == 3 && !bools[0] && bools[2]);
  CHECK(length == 3 && memcmp(text, "out", 3) == 0);
  CHECK(n == 5 && number == -0.125 && !truth);

  memcpy(lists_m_forward_input0_item0(), x, sizeof x);
  memcpy(lists_m_forward_input0_item2(), y, sizeof y);
  memcpy(lists_m_forward_input0_item3(), z, sizeof z);
  CHECK(lists_m_forward_run(z_sizes, 2) == 0);
  CHECK(lists_m_forward_output0_item0()[5] == 19);
  CHECK(lists_m_forward_output0_item2()[5] == 35);
  CHECK(lists_m_forward_output1_item0()[1] == 5);
  CHECK(lists_m_forward_output2_count() == 3);
  CHECK(lists_m_forward_output2_item(0) == 7 && lists_m_forward_output2_item(3) == 0);
  CHECK(lists_m_forward_output3_count() == 3 && lists_m_forward_output3()[0] == 0.25);
  CHECK(lists_m_forward_output4_count() == 3 && lists_m_forward_output4()[1]);
  CHECK(lists_m_forward_output5_length() == 3);
  CHECK(memcmp(lists_m_forward_output5(), "out", 3) == 0);
  CHECK(lists_m_forward_output6() == 2 && lists_m_forward_output7() == -0.125);
  CHECK(!lists_m_forward_output8());

  z_sizes[0] = 5; /* one over the bound */
  CHECK(lists_m_forward_run(z_sizes, 2) == 11);
  z_sizes[0] = 4;
  CHECK(lists_m_forward_run(z_sizes, 2) == 0);

  CHECK(load(argv[1]) == 0); /* another double, the same interface */
  CHECK(lists_m_forward_run(z_sizes, 2) == 0 && lists_m_forward_output3()[0] == 8);
  CHECK(load(argv[2]) == 10); /* an item more in the list */
  CHECK(lists_m_forward_run(z_sizes, 2) == 0 && lists_m_forward_output3()[0] == 0.25);
  puts("done");
  return 0;
}
"""


def test_api_reaches_every_kind(tmp_path: Path) -> None:
    need_toolchain("host", "gnu")
    product = _product(tmp_path, cpu="host", toolchain="gnu", load="pte")
    # Programs that are loaded later come as they were exported, unplanned.
    with product.profile.open("a") as profile:
        profile.write('[memory]\nplanner = "keep"\n')
    assert product.run("build") == 0
    make = list_program
    (tmp_path / "other.pte").write_bytes(make.program(make.list_plan(third=8)))
    (tmp_path / "longer.pte").write_bytes(make.program(make.list_plan(more=1)))
    (tmp_path / "app.c").write_text(APPLICATION)
    shutil.copyfile(tmp_path / "app.c", tmp_path / "app.cpp")
    library = product.out / "liblists.a"
    for language, compiler in (("c", "gcc"), ("cpp", "g++")):
        program = tmp_path / f"app-{language}"
        subprocess.run(
            [
                *(need_tool(compiler), "-no-pie", "-Wall", "-Wextra", "-Werror"),
                *(f"-DUPDATE_BYTES={1 << 16}", f"-I{product.out / 'include'}"),
                *("-o", str(program), str(tmp_path / f"app.{language}"), str(library)),
            ],
            check=True,
        )
        done = subprocess.run(
            [program, tmp_path / "other.pte", tmp_path / "longer.pte"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "done\n")
