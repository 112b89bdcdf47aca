"""Inputs that come by rows: the bits of the whole run, however rows are pushed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from tests.application import run_application
from tests.conftest import CORPUS
from tests.product import Product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

CASE: Final = CORPUS / "kws_dscnn_int8_m4"
MODELS: Final = {
    "whole": 'load = "prelinked"\nio = { quantized = true }',
    "linked": 'load = "prelinked"\nio = { quantized = true, input0 = { rows = 3 } }',
    "pixels": 'load = "prelinked"\nio = { quantized = true, input0 = { dtype = "uint8",'
    " rows = 2 } }",
    "floats": 'load = "prelinked"\nio = { input0 = { rows = 49 } }',
    "loaded": "",
}
"""By name: what the profile says of it. The last one is loaded: tables are wide."""
MOST_BYTES: Final = {"linked": 5_900, "pixels": 5_900}
"""Arenas; the whole input and output of a layer take 16,000."""


def _profile(folder: Path, models: dict[str, str]) -> Product:
    (folder / "model.pte").write_bytes((CASE / "model.pte").read_bytes())
    parts = [
        'schema = 1\nname = "rows"',
        '[target]\ncpu = "host"\ntoolchain = "zig"',
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]',
        *(
            f'[[models]]\nname = "{name}"\npath = "model.pte"\n{text}'
            for name, text in models.items()
        ),
    ]
    profile = folder / "rows.toml"
    profile.write_text("\n\n".join(parts) + "\n")
    return Product(profile=profile, out=folder / "out")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Product:
    need_toolchain("host", "zig")
    product = _profile(tmp_path_factory.mktemp("rows"), MODELS)
    assert product.run("build") == 0
    return product


def test_run_pushes_the_rows(host: Product, tmp_path: Path) -> None:
    outputs = {}
    for model in MODELS:
        folder = tmp_path / model
        given = ("--input", str(CASE / "in0.npy"), "--output-dir", str(folder))
        assert host.run("run", "--model", model, *given, "--no-build") == 0
        outputs[model] = np.load(folder / "out0.npy")
    assert np.array_equal(outputs["linked"], outputs["whole"])
    assert np.array_equal(outputs["pixels"], outputs["whole"])
    assert np.array_equal(outputs["floats"], outputs["loaded"])


def test_arenas_hold_some_rows(host: Product) -> None:
    plan = json.loads((host.out / "memory_plan.json").read_text())
    arenas = {
        x["model"]: m["arenas"][0]["size_bytes"] for x in plan["models"] for m in x["methods"]
    }
    for model, most in MOST_BYTES.items():
        assert arenas[model] <= most < arenas["whole"]


def test_plans_are_listed(
    host: Product, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last one is what the product has, which has rows from the caller."""
    capsys.readouterr()
    assert host.run("memory", "--pareto", "--json") == 0
    plans = json.loads(capsys.readouterr().out)["choices"]
    assert [*plans] == [f"{name} forward" for name in MODELS if name != "loaded"]
    document = json.loads((host.out / "memory_plan.json").read_text())
    arenas = {
        x["model"]: m["arenas"][0]["size_bytes"] for x in document["models"] for m in x["methods"]
    }
    for model in MOST_BYTES:
        assert plans[f"{model} forward"][-1]["arena_bytes"] == arenas[model]
    picture = tmp_path / "plans.svg"
    assert host.run("memory", "--pareto", "--svg", str(picture)) == 2
    assert "error[usage]: --svg draws one method" in capsys.readouterr().err
    assert host.run("memory") == 0
    assert "linked forward arena 1: 16,000 -> " in capsys.readouterr().out


_APPLICATION = """
#include <stdio.h>
#include <string.h>
#include "rows.h"

#define CHECK(what) if (!(what)) return printf("line %d\\n", __LINE__), 1
#define ROWS ROWS_LINKED_FORWARD_INPUT0_ROWS
#define ROW ROWS_LINKED_FORWARD_INPUT0_ROW_COUNT

int main(void) {
  int8_t image[ROWS * ROW], wanted[12], out[12];
  uint8_t pixels[ROWS * ROW];
  unsigned seed = 1, round, i, row, count;
  for (round = 0; round < 8; ++round) {
    for (i = 0; i < sizeof image; ++i) {
      seed = seed * 1664525u + 1013904223u;
      image[i] = (int8_t)(seed >> 24);
      pixels[i] = (uint8_t)(image[i] + 128);
    }
    CHECK(rows_whole_forward(image, wanted) == ORCH_OK);
    /* All at once, in the function that copies. */
    CHECK(rows_linked_forward(image, out) == ORCH_OK);
    CHECK(memcmp(out, wanted, sizeof out) == 0);
    CHECK(rows_pixels_forward(pixels, out) == ORCH_OK);
    CHECK(memcmp(out, wanted, sizeof out) == 0);
    /* A run that is given up. */
    CHECK(rows_linked_forward_begin() == ORCH_OK);
    CHECK(rows_linked_forward_push_rows(image + ROW, 1 + round * 5) == ORCH_OK);
    CHECK(rows_linked_forward_finish() == ORCH_INVALID_ARGUMENT);
    /* Another number of rows each time; both methods at once. */
    CHECK(rows_linked_forward_begin() == ORCH_OK);
    CHECK(rows_pixels_forward_begin() == ORCH_OK);
    for (row = 0; row < ROWS; row += count) {
      seed = seed * 1664525u + 1013904223u;
      count = (seed >> 24) % (round + 1) + (round == 0);
      if (count > ROWS - row) count = ROWS - row;
      CHECK(rows_linked_forward_finish() == ORCH_INVALID_ARGUMENT);
      CHECK(rows_linked_forward_push_rows(image, ROWS - row + 1) ==
            ORCH_INVALID_ARGUMENT);
      CHECK(rows_linked_forward_push_rows(image + row * ROW, count) == ORCH_OK);
      CHECK(rows_pixels_forward_push_rows(pixels + row * ROW, count) == ORCH_OK);
    }
    CHECK(rows_linked_forward_push_rows(image, 1) == ORCH_INVALID_ARGUMENT);
    CHECK(rows_linked_forward_finish() == ORCH_OK);
    CHECK(rows_pixels_forward_finish() == ORCH_OK);
    CHECK(memcmp(rows_linked_forward_output0(), wanted, sizeof out) == 0);
    CHECK(memcmp(rows_pixels_forward_output0(), wanted, sizeof out) == 0);
  }
  return 0;
}
"""

_NOT_BEGUN = """
#include "rows.h"

int main() {
  int8_t image[ROWS_LINKED_FORWARD_INPUT0_COUNT] = {}, out[12];
  if (rows::linked::forward_finish() != ORCH_INVALID_ARGUMENT) return 1;
  if (rows::linked::forward_push_rows(image, 1) != ORCH_INVALID_ARGUMENT) return 2;
  if (rows::linked::forward(image, out) != ORCH_OK) return 3;
  if (rows::linked::forward_begin() != ORCH_OK) return 4;
  for (int row = 0; row < ROWS_LINKED_FORWARD_INPUT0_ROWS; ++row) {
    if (rows::linked::forward_push_rows(image, 1) != ORCH_OK) return 5;
  }
  if (rows::linked::forward_finish() != ORCH_OK) return 6;
  for (int i = 0; i < 12; ++i) {
    if (rows_linked_forward_output0()[i] != out[i]) return 7;
  }
  return 0;
}
"""


@pytest.mark.parametrize(
    ("text", "language"), [(_APPLICATION, "c"), (_NOT_BEGUN, "c++")], ids=["c", "c++"]
)
def test_an_application_pushes_rows(
    host: Product, text: str, language: str, tmp_path: Path
) -> None:
    run_application(host, text, language, tmp_path, "-O1", "-Wall", "-Wextra")


@pytest.mark.parametrize(
    ("io", "problem"),
    [
        ("input0 = { rows = 50 }", "found: it has 49 rows"),
        ("input0 = { rows = 4, reuse = false }", "cannot be kept and come by rows"),
        ("output0 = { rows = 4 }", "io.output0.rows is for inputs"),
        ("input0 = { rows = 0 }", "expected: an integer from 1 to 65535"),
    ],
)
def test_rows_that_cannot_come_are_an_error(
    io: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = _profile(tmp_path, {"net": f'load = "prelinked"\nio = {{ {io} }}'})
    assert product.run("check") in (3, 4)
    assert problem in capsys.readouterr().err


def test_a_loaded_model_has_its_input_as_a_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = _profile(tmp_path, {"net": "io = { input0 = { rows = 4 } }"})
    assert product.run("check") == 3
    assert capsys.readouterr().err == (
        "error[bad-choice]: models[0].io.input0.rows is for prelinked models\n"
        f"  --> {product.profile}:14\n"
        "   |\n"
        "14 | io = { input0 = { rows = 4 } }\n"
        '   = found: load = "pte"\n'
        '   hint: write load = "prelinked"\n'
    )
