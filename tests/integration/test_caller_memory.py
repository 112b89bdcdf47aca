"""Inputs and outputs that a program does not plan lie in memory of the caller."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.program.reader import read_program
from tests.conftest import model_bytes
from tests.integration.memory_programs import check_board, check_runs, memory_product, problems_of
from tests.tools import need_tool, need_toolchain
from tests.unit.program.program_writer import program_json, write_program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product

pytestmark = pytest.mark.toolchain

CASES = ("given_inputs", "given_outputs", "given_returned", "given_rows")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Every program twice: loaded, and prelinked with a name that ends in `_p`."""
    need_toolchain("host", "zig")
    product = memory_product(tmp_path_factory.mktemp("given"), CASES)
    assert product.run("build") == 0
    return product


@pytest.mark.parametrize("case", CASES)
def test_outputs_are_executorchs(
    host: Product, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_runs(host, case, tmp_path, capsys)


@pytest.mark.qemu
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_firmware_has_memory_for_them(
    host: Product, cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = check_board(host, CASES, cpu, tmp_path, capsys)
    plan = json.loads((product.out / "memory_plan.json").read_text())
    most = max(m.get("caller_bytes", 0) for x in plan["models"] for m in x["methods"])
    (own,) = (p for p in plan["placements"] if p["section"].endswith("caller_memory"))
    assert own["size_bytes"] == most == 8 * 4 * 4 + 96 + 0


_APPLICATION = """
#include <stdio.h>
#include <string.h>
#include "given.h"

#define CHECK(what) if (!(what)) return printf("line %d\\n", __LINE__), 1

int main(void) {
  static float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {2, 2, 2, 2, 2, 2};
  float sum[6], again[6], same[6];
  uint32_t instruction = 7;
  /* Nothing was set: no null pointer is followed. */
  CHECK(given_given_returned@_forward_run() == ORCH_MEMORY_NOT_SET);
  CHECK(given_given_returned@_forward_run_at(&instruction) == ORCH_MEMORY_NOT_SET);
  CHECK(instruction == UINT32_MAX);
  CHECK(given_given_returned@_forward_set_input0(x) == ORCH_OK);
  CHECK(given_given_returned@_forward_set_input1(y) == ORCH_OK);
  CHECK(given_given_returned@_forward_run() == ORCH_MEMORY_NOT_SET);
  CHECK(given_given_returned@_forward_set_output1(sum) == ORCH_OK);
  CHECK(given_given_returned@_forward_set_output1((float*)((char*)sum + 2))
        == ORCH_MISALIGNED);
  CHECK(given_given_returned@_forward_run() == ORCH_OK);
  CHECK(sum[0] == 3 && sum[5] == 8);
  /* What is an input, or an output already, is read there. */
  CHECK(given_given_returned@_forward_output0() == x);
  CHECK(given_given_returned@_forward_output2() == sum);
  x[0] = 11; /* the pointers stay */
  CHECK(given_given_returned@_forward_run() == ORCH_OK && sum[0] == 13);
  /* All at once: what is returned is copied, and pointers are forgotten. */
  CHECK(given_given_returned@_forward(x, y, same, sum, again) == ORCH_OK);
  CHECK(memcmp(same, x, sizeof x) == 0 && memcmp(again, sum, sizeof sum) == 0);
  CHECK(given_given_returned@_forward_output0() == 0);
  CHECK(given_given_returned@_forward_run() == ORCH_MEMORY_NOT_SET);
  CHECK(given_given_returned@_forward(x, 0, same, sum, again) == ORCH_MEMORY_NOT_SET);
  CHECK(given_given_returned@_forward(x, (float*)((char*)y + 1), same, sum, again)
        == ORCH_MISALIGNED);
  /* Only inputs: outputs are in the arena. */
  CHECK(given_given_inputs@_forward_set_input0(x) == ORCH_OK);
  CHECK(given_given_inputs@_forward_set_input1(y) == ORCH_OK);
  CHECK(given_given_inputs@_forward_run() == ORCH_OK);
  CHECK(given_given_inputs@_forward_output0()[1] == 4);
  CHECK(given_given_inputs@_forward_output1()[1] == 4);
  CHECK(given_given_inputs@_forward_set_input1(0) == ORCH_OK);
  CHECK(given_given_inputs@_forward_run() == ORCH_MEMORY_NOT_SET);
  /* Only outputs. */
  memcpy(given_given_outputs@_forward_input0(), x, sizeof x);
  memcpy(given_given_outputs@_forward_input1(), y, sizeof y);
  CHECK(given_given_outputs@_forward_run() == ORCH_MEMORY_NOT_SET);
  CHECK(given_given_outputs@_forward(x, y, sum, again) == ORCH_OK && sum[1] == 4);
  /* Sizes that change: of the rows there are, nothing past them is written. */
  {
    float rows[8 * 4] = {0}, out[8 * 3];
    int32_t in_sizes[2] = {2, 4}, out_sizes[2] = {-1, -1};
    out[6] = 77;
    CHECK(given_given_rows@_forward(rows, in_sizes, out, out_sizes) == ORCH_OK);
    CHECK(out_sizes[0] == 2 && out_sizes[1] == 3 && out[6] == 77);
    in_sizes[0] = 9;
    CHECK(given_given_rows@_forward(rows, in_sizes, out, out_sizes)
          == ORCH_SHAPE_TOO_LARGE);
  }
  return 0;
}
"""


@pytest.mark.parametrize("end", ["", "_p"])
def test_an_application_gives_its_own_arrays(host: Product, end: str, tmp_path: Path) -> None:
    compiler = need_tool("gcc", "clang")
    source = tmp_path / "app.c"
    source.write_text(_APPLICATION.replace("@", end))
    program = tmp_path / "app"
    done = subprocess.run(
        [
            *(compiler, "-std=c11", "-w", "-no-pie"),
            *(f"-I{host.out}/include", str(source)),
            *(str(host.out / "libgiven.a"), "-o", str(program)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_setters_of_cpp_know_the_length(host: Product, tmp_path: Path) -> None:
    compiler = need_tool("g++", "clang++")
    for length, code in ((6, 0), (5, 1)):
        source = tmp_path / "app.cpp"
        source.write_text(
            f'#include "given.h"\nfloat x[{length}];\n'
            "orch_status f() { return given::given_inputs::forward_set_input0(x); }\n"
        )
        done = subprocess.run(
            [*(compiler, "-std=c++17", "-fsyntax-only"), *(f"-I{host.out}/include", str(source))],
            capture_output=True,
            check=False,
        )
        assert bool(done.returncode) == bool(code)


def test_a_view_that_is_not_planned_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = problems_of(memory_product(tmp_path, ["given_view"]), capsys)
    assert {p["code"] for p in found} == {"unsupported-program"}
    assert found[0]["message"] == (
        'model "given_view", method forward: tensors have no memory in the program\'s'
        " plan, and are neither inputs nor outputs"
    )
    assert found[0]["notes"] == [{"label": "found", "text": "values 4"}]


def test_an_output_that_a_branch_replaces_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = program_json("cond_branch")
    (method,) = program["execution_plan"]
    for index in method["outputs"]:
        method["values"][index]["val"]["allocation_info"] = None
    product = memory_product(tmp_path, ["given_view"])
    data = model_bytes("cond_branch")
    header = read_program(data, file="cond_branch").header
    assert header is not None
    constants = data[header.segment_base :][: header.segment_data_bytes]
    (tmp_path / "given_view.pte").write_bytes(write_program(program, constants))
    found = problems_of(product, capsys)
    assert {p["code"] for p in found} == {"unsupported-program"}
    assert found[0]["message"] == (
        'model "given_view", method forward: inputs or outputs in memory of the caller are moved'
    )
