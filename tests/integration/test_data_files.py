"""Constants in data files: linked, found by name, and a reason to build."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CORPUS
from tests.integration.test_corpus import corpus_product, outputs_of
from tests.integration.workspace import Workspace, write_product
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

CASE = "external_constants"
PTD = CORPUS / CASE / "_default_external_constant.ptd"

pytestmark = pytest.mark.toolchain


@pytest.mark.qemu
@pytest.mark.parametrize("load", ["pte", "prelinked"])
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_firmware_finds_its_constants(
    cpu: str, load: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    product = corpus_product(tmp_path, "p", [CASE], load=load, cpu=cpu)
    assert product.run("build") == 0
    assert outputs_of(product, CASE, tmp_path, capsys)
    plan = json.loads((product.out / "memory_plan.json").read_text())
    report = json.loads((product.out / "report.json").read_text())
    # What is linked is counted as the model's.
    assert report["totals"]["model_bytes"] == plan["models"][0]["program_bytes"]


@pytest.fixture
def w(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    need_toolchain("host", "zig")
    write_product(tmp_path, case=CASE, extra='data = ["weights.ptd"]\n')
    shutil.copyfile(PTD, tmp_path / "weights.ptd")
    return Workspace(folder=tmp_path, capsys=capsys)


def test_a_data_file_that_changes_is_built_and_locked(w: Workspace) -> None:
    w.build()
    before, lock = w.outputs(), w.lock.read_text()
    assert w.build().stages == {}
    path = w.folder / "weights.ptd"
    data = bytearray(path.read_bytes())
    data[0x210] ^= 1  # an item of a constant
    path.write_bytes(bytes(data))
    stale = w.run("build", "--frozen")
    assert stale.code == 8
    assert "model weights.ptd" in stale.err
    assert "model" in w.build().stages["extract model"]
    assert w.outputs()["firmware.elf"] != before["firmware.elf"]
    changed = w.lock.read_text()
    assert changed != lock
    assert changed.count('"model weights.ptd"') == lock.count('"model weights.ptd"') == 1


def test_a_data_file_that_is_not_there_is_named(w: Workspace) -> None:
    (w.folder / "weights.ptd").unlink()
    done = w.run("check")
    assert done.code == 3
    assert 'error[missing-file]: there is no data file "weights.ptd"' in done.err


_APPLICATION = """
#include <stdio.h>
#include <stdlib.h>
#include "product.h"

int main(int count, char** arguments) {
  static float in[64], out[64];
  for (int i = 1; i < count; ++i) {
    FILE* file = fopen(arguments[i], "rb");
    char* program = aligned_alloc(16, 1 << 16);
    const size_t size = fread(program, 1, 1 << 16, file);
    const orch_status status = product_model_forward_load(program, (uint32_t)size);
    printf("%s ", orch_status_text(status));
    printf("%s\\n", orch_status_text(product_model_forward(in, out)));
  }
  return 0;
}
"""


def test_a_program_that_comes_later_finds_the_same_constants(w: Workspace) -> None:
    compiler = need_tool("gcc", "clang")
    w.build()
    built = w.out / "models" / "model.pte"
    program = built.read_bytes()
    lock = str(w.lock)
    assert program.count(b"linear.weight\0") + program.count(b"0.weight\0") > 0
    renamed = w.folder / "renamed.pte"
    renamed.write_bytes(program.replace(b".weight\0", b".wEight\0"))
    source = w.folder / "app.c"
    source.write_text(_APPLICATION)
    app = w.folder / "app"
    done = subprocess.run(
        [
            *(compiler, "-std=c11", "-no-pie", f"-I{w.out}/include", str(source)),
            *(str(w.out / "libproduct.a"), "-o", str(app)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run([app, built, renamed], capture_output=True, text=True, check=False)
    # After a refusal the linked program runs.
    assert done.stdout == "Ok Ok\nUnsupportedProgram Ok\n"
    from orchestrator.cli.main import run  # noqa: PLC0415

    assert run(["compat", lock, str(built)]) == 0
    w.capsys.readouterr()
    assert run(["compat", lock, str(renamed)]) == 12
    assert "unsupported-program" in w.capsys.readouterr().err
