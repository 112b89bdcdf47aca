"""`run --profile` on the host, and trace hooks of a product's own."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from orchestrator.build.firmware import carry_out
from orchestrator.program.program import JumpFalseCall, KernelCall, MoveCall
from orchestrator.program.reader import read_program
from orchestrator.running.product import read_product
from orchestrator.running.protocol import decode_response
from orchestrator.running.scenario import read_scenario
from tests.conftest import CORPUS
from tests.integration.workspace import Workspace, write_product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping

PRIM_OPS = CORPUS.parent / "prim_ops"
SCENARIO = CORPUS / "kws_dscnn_fp32" / "case.json"
TRACED = "[trace]\nenable = true\n"
HOOKS = frozenset({"orch_trace_ticks", "orch_trace_record"})

pytestmark = pytest.mark.toolchain


def _operators(model: Path) -> Mapping[str, int]:
    """How often each operator stands in the only method of a model."""
    (method,) = read_program(model.read_bytes(), file="model.pte").methods
    return Counter(
        str(method.operators[i.operator]) for i in method.instructions if isinstance(i, KernelCall)
    )


def _profile(w: Workspace, *arguments: str) -> dict[str, Any]:
    done = w.run(*("run", "--json", "--profile", "--scenario", str(SCENARIO)), *arguments)
    assert done.code == 0, done.out + done.err
    document: dict[str, Any] = json.loads(done.out)
    assert document["ok"]
    assert len(document["calls"]) == len(json.loads(SCENARIO.read_text())["runs"])
    return document


def test_times_of_every_operator(w: Workspace) -> None:
    w.build()  # where it lies now
    before = w.state()
    document = _profile(w, "--passes", "3")
    assert w.state() == before
    costs = document["profile"]
    assert set(costs) == {
        *("unit", "passes", "runs", "operators", "executor", "total", "load"),
        "instructions",
    }
    runs = len(document["calls"])
    assert (costs["unit"], costs["passes"], costs["runs"]) == ("ns", 3, runs)
    expected = {
        name: count * runs for name, count in _operators(w.out / "models" / "model.pte").items()
    }
    assert {o["operator"]: o["calls"] for o in costs["operators"]} == expected
    rows = [*costs["operators"], costs["executor"]]
    assert all(row["total"] > 0 for row in rows)
    assert sum(row["total"] for row in rows) == costs["total"]
    assert sum(row["percent"] for row in rows) == pytest.approx(100)
    for row in costs["operators"]:
        assert row["per_call"] == row["total"] / row["calls"]
    assert sorted(costs["operators"], key=lambda o: -o["total"]) == costs["operators"]
    assert costs["load"]["calls"] == 1
    assert costs["load"]["total"] > 0
    assert {i["model"] for i in costs["instructions"]} == {"model"}
    # Convolutions are nearly all of it, by any clock.
    assert costs["operators"][0]["operator"] == "aten::convolution.out"


def test_a_second_profile_compiles_nothing(w: Workspace) -> None:
    arguments = ("run", "--profile", "--passes", "1", "--scenario", str(SCENARIO))
    first = w.run(*arguments)
    assert first.code == 0, first.err
    # What has hooks in it, and nothing else.
    assert first.compiled == {
        *("src/runtime/src/executor.cpp", "src/runtime/app/runner.cpp"),
        "gen/src/api.cpp",
    }
    second = w.run(*arguments)
    assert second.code == 0, second.err
    assert second.steps == set()
    head, *rows = second.out.split("\n\n")[1].splitlines()
    assert head.split() == ["operator", "calls", "us", "%", "per", "call"]
    names = [row.partition("  ")[0] for row in rows]
    assert names[-3:] == ["executor, tracing", "total", "load"]
    assert set(names[:-3]) == set(_operators(w.out / "models" / "model.pte"))


def test_a_build_of_another_profile_is_not_measured(w: Workspace) -> None:
    w.edit("product.toml", '[dtypes]\nselect = "all"\n')
    arguments = ("run", "--json", "--profile", "--scenario", str(SCENARIO))
    done = w.run(*arguments, "--no-build")
    assert done.code == 2
    (problem,) = json.loads(done.out)["diagnostics"]
    assert problem["code"] == "stale-build"


def test_a_product_that_is_not_whole_is_not_measured(w: Workspace) -> None:
    (w.out / "report.json").unlink()
    arguments = ("run", "--json", "--profile", "--scenario", str(SCENARIO))
    done = w.run(*arguments, "--no-build")
    assert done.code == 2
    (problem,) = json.loads(done.out)["diagnostics"]
    assert problem["code"] == "not-built"
    assert w.run(*arguments).code == 0  # it is built first


def test_passes_are_of_a_profile(w: Workspace) -> None:
    done = w.run("run", "--json", "--passes", "2", "--scenario", str(SCENARIO))
    assert done.code == 2
    (problem,) = json.loads(done.out)["diagnostics"]
    assert problem["message"] == "--passes requires --profile"


def test_hooks_see_every_instruction_in_the_order_of_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Jumps, moves and frees as well: the events are a walk through the method."""
    need_toolchain("host", "zig")
    libraries = '[kernels]\nlibraries = ["portable", "prim_ops"]\n'
    write_product(tmp_path, extra=TRACED + libraries)
    w = Workspace(folder=tmp_path, capsys=capsys)
    shutil.copyfile(PRIM_OPS / "model.pte", w.model)
    w.build()
    product = read_product((w.out / "product.json").read_text())
    scenario = PRIM_OPS / "scenario.json"
    calls = read_scenario(
        scenario.read_text(),
        file=str(scenario),
        product=product,
        read_bytes=lambda path: Path(path).read_bytes(),
    ).calls
    firmware = (w.out / "firmware.elf").resolve()
    answer = carry_out(product, firmware, calls, timeout_s=60)
    program = read_program((w.out / "models" / "model.pte").read_bytes(), file="model.pte")
    kinds = set()
    for call, result in zip(calls, decode_response(answer.response, calls), strict=True):
        instructions = program.method(call.method.name).instructions
        assert result.trace is not None
        walked = [index for index, _ in result.trace.events]
        assert walked[0] == 0
        for here, there in pairwise([*walked, len(instructions)]):
            found = instructions[here]
            kinds.add(type(found))
            jump = found.destination if isinstance(found, JumpFalseCall) else here + 1
            assert there in (here + 1, jump)
        assert result.trace.run_ticks >= sum(t for _, t in result.trace.events)
    assert {KernelCall, JumpFalseCall, MoveCall} <= kinds


def _symbols(w: Workspace, source: str) -> set[str]:
    """Symbols of the object of a source, undefined ones included."""
    data = (w.out / ".work" / "obj" / f"{source}.o").read_bytes()
    table = ELFFile(io.BytesIO(data)).get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    return {symbol.name for symbol in table.iter_symbols()}


def test_without_the_table_there_is_nothing_of_hooks(w: Workspace) -> None:
    executor = "runtime/src/executor.cpp"
    assert not _symbols(w, executor) & HOOKS
    assert "trace" not in (w.out / "include" / "product.h").read_text()
    assert not (w.out / "include" / "orch" / "trace.h").exists()
    w.edit("product.toml", TRACED)
    w.build()
    assert _symbols(w, executor) >= HOOKS
    assert (w.out / "include" / "orch" / "trace.h").is_file()
    # The runner has hooks of its own, and tells what they saw.
    done = w.run("run", "--scenario", str(SCENARIO))
    assert done.code == 0, done.err
    # No variant is needed to measure.
    done = w.run("run", "--profile", "--passes", "2", "--scenario", str(SCENARIO))
    assert (done.code, done.steps) == (0, set())


APPLICATION = """\
#include <stdio.h>

#include "product.h"

static orch_ticks now;
static unsigned count, wrong;

orch_ticks product_trace_ticks(void) { return now += 5; }

void product_trace_record(uint32_t method, uint32_t instruction, orch_ticks begin,
                          orch_ticks end) {
  if (method != PRODUCT_MODEL_FORWARD_METHOD) ++wrong;
  if (instruction != count++) ++wrong;
  if (end - begin != 5) ++wrong;
}

int main(void) {
  if (product_model_forward_run() != ORCH_OK) return 2;
  printf("%u instructions, %u wrong\\n", count, wrong);
  return 0;
}
"""


def test_hooks_of_the_product(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("host", "gnu")
    compiler = need_tool("cc", "gcc", "clang")
    write_product(tmp_path, case="add_mul", toolchain="gnu", extra=TRACED)
    w = Workspace(folder=tmp_path, capsys=capsys)
    w.build()
    library = str(w.out / "libproduct.a")

    def link(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "app.c").write_text(text)
        return subprocess.run(
            [
                *(compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-no-pie"),
                *(str(tmp_path / "app.c"), "-I", str(w.out / "include"), library),
                *("-o", str(tmp_path / "app")),
            ],
            capture_output=True,
            text=True,
            check=False,
        )

    done = link(APPLICATION)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([tmp_path / "app"], capture_output=True, text=True, check=True)
    count = sum(_operators(w.out / "models" / "model.pte").values())
    assert said.stdout == f"{count} instructions, 0 wrong\n"

    # Hooks that nobody defines are an error of the linker, which names them.
    done = link('#include "product.h"\nint main(void) { return product_model_forward_run(); }\n')
    assert done.returncode != 0
    assert all(f"product_trace_{hook}" in done.stderr for hook in ("ticks", "record"))
