"""A program from outside that loops forever ends, at the instruction it reports."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.method.passes import PASSES
from orchestrator.program.encode import write_program
from orchestrator.program.program import JumpFalseCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import BoolValue
from tests.conftest import CORPUS, model_bytes
from tests.product import Product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

_PROFILE = """\
schema = 1
name = "bounded"
[target]
cpu = "host"
toolchain = "zig"
[memory]
planner = "keep"
[passes]
skip = {passes}
"""
_MODEL = """
[[models]]
name = "{name}"
path = "{path}"
max_instructions = {limit}
"""
_APPLICATION = """
#include <stdio.h>
#include <stdint.h>
#include "bounded.h"

#define CHECK(what) if (!(what)) return printf("line %d\\n", __LINE__), 1

static _Alignas(16) uint8_t program[4096];

int main(int count, char** arguments) {
  CHECK(count == 2);
  FILE* file = fopen(arguments[1], "rb");
  CHECK(file != NULL);
  const uint32_t size = (uint32_t)fread(program, 1, sizeof program, file);
  fclose(file);
  CHECK(BOUNDED_ENOUGH_FORWARD_MAX_INSTRUCTIONS == 2);
  uint32_t at = 0;
  CHECK(bounded_enough_forward_run_at(&at) == ORCH_OK);
  CHECK(bounded_short_forward_run_at(&at) == ORCH_INSTRUCTION_LIMIT);
  CHECK(at == 1);
  CHECK(bounded_enough_forward_load(program, size) == ORCH_OK);
  CHECK(bounded_enough_forward_run_at(&at) == ORCH_INSTRUCTION_LIMIT);
  CHECK(at == 0);
  CHECK(bounded_enough_forward_run() == ORCH_INSTRUCTION_LIMIT);
  CHECK(bounded_usual_forward_load(program, size) == ORCH_OK);
  CHECK(bounded_usual_forward_run() == ORCH_INSTRUCTION_LIMIT);
  CHECK(bounded_enough_forward_load(NULL, 0) == ORCH_OK);
  CHECK(bounded_enough_forward_run() == ORCH_OK);
  return 0;
}
"""


def _endless() -> bytes:
    """Multiply, then again from the start: as many values and instructions, no end."""
    program = read_program(model_bytes("add_mul"), file="m.pte")
    (method,) = program.methods
    never = len(method.values) - 1
    method = replace(
        method,
        values=(*method.values[:never], BoolValue(False)),  # noqa: FBT003
        instructions=(method.instructions[0], JumpFalseCall(condition=never, destination=0)),
    )
    return bytes(write_program(replace(program, methods=(method,))))


def test_a_run_ends_at_its_limit(tmp_path: Path) -> None:
    need_toolchain("host", "zig")
    compiler = need_tool("gcc", "cc")
    path = CORPUS / "add_mul" / "model.pte"
    (tmp_path / "model.pte").write_bytes(path.read_bytes())
    models = [
        _MODEL.format(name=name, path="model.pte", limit=limit)
        for name, limit in (("enough", 2), ("short", 1))
    ]
    usual = _MODEL.format(name="usual", path="model.pte", limit="")
    usual = usual.replace("max_instructions = \n", "")
    profile = tmp_path / "bounded.toml"
    # The memory is what the program asks for, as another one needs it.
    head = _PROFILE.format(passes=json.dumps(list(PASSES)))
    profile.write_text("".join([head, *models, usual]))
    product = Product(profile=profile, out=tmp_path / "out")
    assert product.run("build") == 0
    (tmp_path / "endless.pte").write_bytes(_endless())
    (tmp_path / "main.c").write_text(_APPLICATION)
    program = tmp_path / "application"
    subprocess.run(
        [
            *(compiler, "-std=c11", "-no-pie", f"-I{product.out / 'include'}"),
            *(tmp_path / "main.c", product.out / "libbounded.a", "-o", program),
        ],
        check=True,
    )
    done = subprocess.run(
        [program, tmp_path / "endless.pte"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout
