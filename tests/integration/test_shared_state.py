"""Methods of one program that share their mutable buffers."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.program.encode import write_program
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.integration.memory_programs import check_board, check_runs, memory_product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product

pytestmark = pytest.mark.toolchain

CASES = ("shared_cache", "shared_nameless")
STATE = 112


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Every program twice: loaded, and prelinked with a name that ends in `_p`."""
    need_toolchain("host", "zig")
    product = memory_product(tmp_path_factory.mktemp("shared"), CASES)
    assert product.run("build") == 0
    return product


@pytest.mark.parametrize("case", CASES)
def test_one_method_reads_what_another_wrote(
    host: Product, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As ExecuTorch's runtime, which gives all methods the same arenas."""
    check_runs(host, case, tmp_path, capsys)


@pytest.mark.qemu
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_firmware_gives_the_outputs_of_the_host(
    host: Product, cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = check_board(host, CASES, cpu, tmp_path, capsys)
    report = json.loads((product.out / "report.json").read_text())
    plan = json.loads((product.out / "memory_plan.json").read_text())
    # Of four models, each with three methods that share one arena.
    assert report["totals"]["arena_bytes"] >= plan["arena_bytes"]
    assert report["totals"]["arena_bytes"] < plan["arena_bytes"] + STATE


def test_the_shared_arena_counts_once(host: Product) -> None:
    plan = json.loads((host.out / "memory_plan.json").read_text())
    arenas = [
        (method["method"], arena)
        for model in plan["models"]
        for method in model["methods"]
        for arena in method["arenas"]
    ]
    own = sum(a["size_bytes"] for _, a in arenas if "shared" not in a)
    shared = [a for _, a in arenas if "shared" in a]
    assert all(a["shared"] == ["decode", "peek", "prefill"] for a in shared)
    assert all(a["size_bytes"] == STATE for a in shared)
    assert all(a["lower_bound_bytes"] == 100 for a in shared)
    assert len(shared) == 12
    assert plan["arena_bytes"] == own + 4 * STATE
    header = (host.out / "include" / "given.h").read_text()
    numbers = dict(re.findall(r"#define (\w+_BYTES) (\d+)", header))
    assert int(numbers["GIVEN_RAM_BYTES"]) == plan["arena_bytes"] + plan["state_bytes"]
    for method in ("DECODE", "PEEK", "PREFILL"):
        assert int(numbers[f"GIVEN_SHARED_CACHE_{method}_ARENA2_BYTES"]) == STATE
    total = header.partition("ORCH_ASSERT(GIVEN_RAM_BYTES")[2].partition(";")[0]
    assert total.count("+ GIVEN_SHARED_CACHE_DECODE_ARENA2_BYTES") == 1
    assert "+ GIVEN_SHARED_CACHE_PEEK_ARENA2_BYTES" not in total
    report = json.loads((host.out / "report.json").read_text())
    assert report["totals"]["arena_bytes"] - plan["arena_bytes"] < 12 * 16


_APPLICATION = """
#include <stdio.h>
#include <stdint.h>
#include "given.h"

#define CHECK(what) if (!(what)) return printf("line %d\\n", __LINE__), 1

int main(void) {
  static const float none[24];
  static const float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const int64_t rows[3] = {0, 1, 2}, row[1] = {5};
  float all[24], sum[4], one[4], count[1];
  /* Each call is the first one of its method: none begins the state anew. */
  CHECK(given_shared_cache@_prefill(ones, rows, sum) == ORCH_OK);
  CHECK(given_shared_cache@_peek(none, all) == ORCH_OK);
  CHECK(all[0] == 1.0f && all[11] == 1.0f && all[12] == 0.25f);
  CHECK(given_shared_cache@_decode(ones, row, one, count) == ORCH_OK);
  CHECK(count[0] == 6.0f); /* 2 at first, 3 by prefill, 1 by decode */
  CHECK(given_shared_cache@_peek(none, all) == ORCH_OK);
  CHECK(all[0] == 1.0f && all[20] == 1.0f && all[16] == 0.25f);
  LOAD
  return 0;
}
"""
_RESET = """
  /* So does resetting one that is prelinked. */
  CHECK(given_shared_cache_p_peek_reset() == ORCH_OK);
  CHECK(given_shared_cache_p_peek(none, all) == ORCH_OK);
  CHECK(all[0] == 0.25f && all[20] == 0.25f);
  CHECK(given_shared_cache_p_decode(ones, row, one, count) == ORCH_OK);
  CHECK(count[0] == 3.0f); /* 2 at first, 1 by decode */
"""
_LOAD = """
  /* Loading one anew begins the state of all of them anew. */
  CHECK(given_shared_cache_peek_load(0, 0) == ORCH_OK);
  CHECK(given_shared_cache_peek(none, all) == ORCH_OK);
  CHECK(all[0] == 0.25f && all[20] == 0.25f);
  CHECK(given_shared_cache_decode(ones, row, one, count) == ORCH_OK);
  CHECK(count[0] == 3.0f);
"""


@pytest.mark.parametrize("end", ["", "_p"])
def test_an_application_sees_one_state(host: Product, end: str, tmp_path: Path) -> None:
    text = _APPLICATION.replace("LOAD\n", _RESET if end else _LOAD)
    _check_application(host, text.replace("@", end), tmp_path)


_MIXED = """
#include <stdio.h>
#include <stdint.h>
#include "given.h"

#define CHECK(what) if (!(what)) return printf("line %d\\n", __LINE__), 1

int main(void) {
  static const float none[24];
  static const float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const int64_t rows[3] = {0, 1, 2}, row[1] = {5};
  float all[24], sum[4], one[4], count[1];
  int round;
  for (round = 0; round < 2; ++round) {
    CHECK(given_shared_cache@_peek(none, all) == ORCH_OK);
    CHECK(all[0] == 0.0f && all[20] == 0.0f);
    CHECK(given_shared_cache@_decode(ones, row, one, count) == ORCH_OK);
    CHECK(count[0] == 3.0f); /* 2 at first, 1 by decode */
    CHECK(given_shared_cache@_prefill(ones, rows, sum) == ORCH_OK);
    CHECK(given_shared_cache@_peek(none, all) == ORCH_OK);
    CHECK(all[0] == 1.0f && all[20] == 1.0f);
    CHECK(given_shared_cache@_peek_ANEW == ORCH_OK);
  }
  return 0;
}
"""


@pytest.mark.parametrize(("end", "anew"), [("", "load(0, 0)"), ("_p", "reset()")])
def test_state_begins_anew_with_and_without_data(end: str, anew: str, tmp_path: Path) -> None:
    """Of two buffers one has no data, the other has it only where `decode` names it."""
    need_toolchain("host", "zig")
    product = memory_product(tmp_path, ["shared_cache"])
    file = tmp_path / "shared_cache.pte"
    given = read_program(file.read_bytes(), file=str(file))
    methods = [
        replace(
            method,
            values=tuple(
                replace(value, data_buffer_index=0)
                if isinstance(value, TensorValue)
                and value.is_mutable_state
                and (method.name, value.extra and value.extra.qualified_name) != ("decode", "count")
                else value
                for value in method.values
            ),
        )
        for method in given.methods
    ]
    file.write_bytes(bytes(write_program(replace(given, methods=tuple(methods)))))
    assert product.run("build") == 0
    _check_application(product, _MIXED.replace("@", end).replace("ANEW", anew), tmp_path)


def _check_application(host: Product, text: str, tmp_path: Path) -> None:
    compiler = need_tool("gcc", "clang")
    source = tmp_path / "app.c"
    source.write_text(text)
    program = tmp_path / "app"
    done = subprocess.run(
        [
            *(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-no-pie"),
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
