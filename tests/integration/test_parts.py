"""Runs in parts: any number of instructions at a time gives the outputs of one run."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.conftest import CORPUS
from tests.product import Product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

CASES: Final = ("cond_branch", "scan_loop", "counter", "mlp")
"""Jumps, a loop, state, and calls alone."""
HEAD: Final = """
#include <stdio.h>
#include <string.h>
#include "product.h"

static uint8_t first[4096], second[4096];
static unsigned all;

/* Steps until the run is done; how many calls that took, 0 after an error. */
#define STEPS(model, n, calls) do {                              \\
    orch_status status = ORCH_NOT_DONE;                          \\
    for (calls = 0; status == ORCH_NOT_DONE; ++calls) {          \\
      status = product_##model##_forward_step(n);                \\
    }                                                            \\
    if (status != ORCH_OK) calls = 0;                            \\
  } while (0)

#define CHECK(model, MODEL, out) do {                                          \\
    unsigned n, calls;                                                         \\
    fill_##model();                           \\
    if (product_##model##_forward_run() != ORCH_OK) return 1;                  \\
    memcpy(first, product_##model##_forward_##out(), MODEL##_BYTES);           \\
    for (n = 0; n <= 40; n = n < 4 ? n + 1 : 40) {                             \\
      if (RESTART(model) != ORCH_OK) return 2;                                 \\
      fill_##model();                         \\
      if (product_##model##_forward_step(1) == ORCH_OK) return 3;              \\
      product_##model##_forward_cancel(); /* and from the beginning */         \\
      if (RESTART(model) != ORCH_OK) return 2;                                 \\
      fill_##model();                         \\
      STEPS(model, n, calls);                                                  \\
      if (n == 1) all = calls;                                                 \\
      if (n > 1 && calls != (all + n - 1) / n) printf("%u of %u\\n", calls, n); \\
      memcpy(second, product_##model##_forward_##out(), MODEL##_BYTES);        \\
      printf("%s %d\\n", #model, memcmp(first, second, MODEL##_BYTES));         \\
      if (n == 40) break;                                                      \\
    }                                                                          \\
  } while (0)

static void fill(void* input, uint32_t bytes) {
  uint32_t i;
  for (i = 0; i < bytes / 4; ++i) ((float*)input)[i] = (float)i * 0.25f - 1.0f;
}

#define FILL(NAME, name) fill(product_##name(), PRODUCT_##NAME##_BYTES)
"""
METHODS: Final = """
static void fill_cond_branch(void) {
  *product_cond_branch_forward_input0() = 1;
  FILL(COND_BRANCH_FORWARD_INPUT1, cond_branch_forward_input1);
}
static void fill_scan_loop(void) {
  FILL(SCAN_LOOP_FORWARD_INPUT0, scan_loop_forward_input0);
  FILL(SCAN_LOOP_FORWARD_INPUT1, scan_loop_forward_input1);
}
static void fill_counter(void) {
  FILL(COUNTER_FORWARD_INPUT0, counter_forward_input0);
}
static void fill_mlp(void) { FILL(MLP_FORWARD_INPUT0, mlp_forward_input0); }

/* What docs/runtime.md does between two steps. */
static unsigned kicks, stop_after;

static orch_status guarded(void) {
  orch_status status = ORCH_NOT_DONE;
  kicks = 0;
  while (status == ORCH_NOT_DONE) {
    ++kicks;
    if (kicks == stop_after) {
      product_mlp_forward_cancel();
      break;
    }
    status = product_mlp_forward_step(1);
  }
  return status;
}

int main(void) {
  if (product_mlp_forward_prepare() != ORCH_OK) return 4;
  CHECK(cond_branch, PRODUCT_COND_BRANCH_FORWARD_OUTPUT0, output0);
  CHECK(scan_loop, PRODUCT_SCAN_LOOP_FORWARD_OUTPUT0, output0);
  CHECK(counter, PRODUCT_COUNTER_FORWARD_OUTPUT0, output0);
  CHECK(mlp, PRODUCT_MLP_FORWARD_OUTPUT0, output0);
  fill_mlp();
  if (guarded() != ORCH_OK) return 5;
  all = kicks;
  for (stop_after = 1; stop_after <= all; ++stop_after) {
    fill_mlp();
    if (guarded() != ORCH_NOT_DONE || kicks != stop_after) return 6;
  }
  fill_mlp();
  if (guarded() != ORCH_OK || kicks != all || all < 2) return 7;
  memcpy(second, product_mlp_forward_output0(), PRODUCT_MLP_FORWARD_OUTPUT0_BYTES);
  if (memcmp(first, second, PRODUCT_MLP_FORWARD_OUTPUT0_BYTES) != 0) return 8;
  return 0;
}
"""
ROWS: Final = """
static void fill_kws(void) { FILL(KWS_FORWARD_INPUT0, kws_forward_input0); }

int main(void) {
  CHECK(kws, PRODUCT_KWS_FORWARD_OUTPUT0, output0);
  return all > 100 ? 0 : 9;
}
"""
RESTART: Final = {
    "prelinked": "product_##model##_forward_reset()",
    "pte": "product_##model##_forward_load(0, 0)",
}


@pytest.mark.parametrize("load", RESTART)
def test_parts_do_what_a_run_does(load: str, tmp_path: Path) -> None:
    need_toolchain("host", "gnu")
    text = 'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "gnu"\n'
    for case in CASES:
        shutil.copyfile(CORPUS / case / "model.pte", tmp_path / f"{case}.pte")
        text += f'[[models]]\npath = "{case}.pte"\nload = "{load}"\n'
    product = Product(profile=tmp_path / "product.toml", out=tmp_path / "out")
    product.profile.write_text(text)
    assert product.run("build", "--quiet") == 0
    ran = _ran(product, METHODS, load)
    assert ran.returncode == 0
    expected = [f"{case} 0" for case in CASES for _ in range(6)]
    assert ran.stdout.decode().splitlines() == expected


def test_parts_of_a_method_by_rows(tmp_path: Path) -> None:
    need_toolchain("host", "gnu")
    shutil.copyfile(CORPUS / "kws_dscnn_int8_m4" / "model.pte", tmp_path / "kws.pte")
    product = Product(profile=tmp_path / "product.toml", out=tmp_path / "out")
    product.profile.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "gnu"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        '[memory]\nfuse = "smallest"\n'
        '[[models]]\npath = "kws.pte"\nload = "prelinked"\n'
    )
    assert product.run("build", "--quiet") == 0
    ran = _ran(product, ROWS, "prelinked")
    assert ran.returncode == 0
    assert ran.stdout.decode().splitlines() == ["kws 0"] * 6


def _ran(product: Product, text: str, load: str) -> subprocess.CompletedProcess[bytes]:
    """What an application of a product prints."""
    folder = product.profile.parent
    source, program = folder / "main.c", folder / "main"
    source.write_text(HEAD + text)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-no-pie"]
    flags += [f"-DRESTART(model)={RESTART[load]}", f"-I{product.out / 'include'}"]
    library = str(product.out / "libproduct.a")
    command = [need_tool("gcc"), *flags, str(source), library, "-o", str(program)]
    subprocess.run(command, check=True)
    return subprocess.run([program], capture_output=True, check=False)
