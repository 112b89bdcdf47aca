"""From a kernel that fails on the device to the sentence that names it."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from tests.conftest import CORPUS
from tests.integration.workspace import Workspace, write_product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

FUNCTIONS = """\
- op: add.out
  kernels:
  - {arg_meta: null, kernel_name: mine::add_out}
  sources: [add.cpp]
"""
KERNEL = """\
#include "orch/kernel.h"
namespace mine {
orch::Error add_out(const orch::Args&) { return orch::Error::NotSupported; }
}
"""
APPLICATION = """\
#include <stdio.h>

#include "product.h"

static unsigned recorded;

orch_ticks product_trace_ticks(void) { return 0; }

void product_trace_record(uint32_t method, uint32_t instruction, orch_ticks begin,
                          orch_ticks end) {
  (void)method, (void)begin, (void)end;
  recorded = instruction + 1;
}

int main(void) {
  uint32_t instruction = 77;
  const orch_status status = product_model_forward_run_at(&instruction);
  printf("%d %lu %u\\n", (int)status, (unsigned long)instruction, recorded);
  return status == product_model_forward_run() ? 0 : 1;
}
"""


@pytest.mark.toolchain
def test_a_failed_instruction_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("host", "gnu")
    compiler = need_tool("cc", "gcc", "clang")
    extra = '[trace]\nenable = true\n[[kernels.custom]]\nname = "mine"\n'
    extra += 'functions = "mine/functions.yaml"\n'
    write_product(tmp_path, case="add_mul", toolchain="gnu", extra=extra)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "functions.yaml").write_text(FUNCTIONS)
    (tmp_path / "mine" / "add.cpp").write_text(KERNEL)
    (tmp_path / "app.c").write_text(APPLICATION)
    w = Workspace(folder=tmp_path, capsys=capsys)
    w.build()
    subprocess.run(
        [
            *(compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-no-pie"),
            *(str(tmp_path / "app.c"), "-I", str(w.out / "include")),
            *(str(w.out / "libproduct.a"), "-o", str(tmp_path / "app")),
        ],
        check=True,
    )
    said = subprocess.run([tmp_path / "app"], capture_output=True, text=True, check=True)
    status, instruction, recorded = said.stdout.split()
    # An instruction that fails is traced as well.
    assert int(recorded) == int(instruction) + 1

    words = ["decode", status, "--instruction", instruction]
    assert run([*words, "--profile", str(w.profile), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["name"], document["operator"]) == ("NotSupported", "aten::add.out")
    assert (document["model"], document["method"]) == ("model", "forward")
    assert document["sentence"] == (
        f'model "model", method "forward": instruction {instruction}, which calls'
        " aten::add.out, failed with NotSupported (12), a kernel has no code for its"
        " arguments: change the model so that it calls aten::add.out otherwise, or"
        " choose another library in [kernels.operators]"
    )
    assert run([*words, "--profile", str(w.profile)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == document["sentence"]

    # `run` says the same, and where the model is named.
    case = ("--scenario", str(CORPUS / "add_mul" / "case.json"))
    done = w.run("run", *case, "--json")
    assert done.code == 10
    said_by_run = json.loads(done.out)
    assert not said_by_run["ok"]
    (call,) = said_by_run["calls"]
    assert (call["error"], call["instruction"]) == ("NotSupported", int(instruction))
    assert call["failure"] == {**document, "where": f"{w.profile}:10"}
    done = w.run("run", *case)
    assert done.code == 10
    used = call["state_used_bytes"], call["state_bytes"]
    assert done.err.endswith(
        "error[device-error]: model.forward stopped on the device: NotSupported\n"
        f"  --> {w.profile}:10\n"
        "   |\n"
        '10 | path = "model.pte"\n'
        "   = at: call 0\n"
        "   = model: model\n"
        "   = method: forward\n"
        f"   = instruction: {instruction}, which calls aten::add.out\n"
        "   = error: NotSupported (12): a kernel has no code for its arguments\n"
        f"   = method state: {used[0]} of {used[1]} bytes used\n"
        "   hint: change the model so that it calls aten::add.out otherwise, or choose"
        " another library in [kernels.operators]\n"
    )
