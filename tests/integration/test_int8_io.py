"""Inputs and outputs as int8 and uint8: the bits of the float program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from orchestrator.core.border import Quantization
from orchestrator.running.values import dequantized, quantized
from tests.application import run_application
from tests.integration.workspace import ROOT
from tests.product import Product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

MODEL: Final = ROOT / "examples/digits/digits_int8.pte"
MODELS: Final = {
    "plain": "",
    "linked": "quantized = true",
    "pixels": 'output0 = "int8"\ninput0 = { dtype = "uint8", reuse = false }',
}
"""By name: what the profile says of inputs and outputs."""


def _profile(folder: Path, io: dict[str, str], *, planner: str = "best") -> Product:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        'schema = 1\nname = "ends"',
        '[target]\ncpu = "host"\ntoolchain = "zig"',
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]',
        f'[memory]\nplanner = "{planner}"',
    ]
    for name, text in io.items():
        for load in ("pte", "prelinked"):
            own = f"{name}_{load[:3]}"
            lines.append(f'[[models]]\nname = "{own}"\npath = "model.pte"\nload = "{load}"')
            if text:
                lines.append(f"[models.io]\n{text}")
    (folder / "model.pte").write_bytes(MODEL.read_bytes())
    profile = folder / "ends.toml"
    profile.write_text("\n\n".join(lines) + "\n")
    return Product(profile=profile, out=folder / "out")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Product:
    need_toolchain("host", "zig")
    product = _profile(tmp_path_factory.mktemp("ends"), MODELS)
    assert product.run("build") == 0
    return product


@pytest.fixture(scope="module")
def ends(host: Product) -> dict[str, Quantization]:
    """Quantization of the input and of the output."""
    document = json.loads((host.out / "product.json").read_text())
    (method,) = [m for m in document["methods"] if m["model"] == "linked_pre"]
    return {
        side: Quantization(**method[f"{side}s"][0]["quantization"]) for side in ("input", "output")
    }


def _run(host: Product, model: str, given: np.ndarray, folder: Path, *expect: str) -> np.ndarray:
    np.save(folder / "given.npy", given)
    options = ["--model", model, "--input", str(folder / "given.npy")]
    options += ["--output-dir", str(folder), "--no-build", *expect]
    assert host.run("run", *options) == 0
    found: np.ndarray = np.load(folder / "out0.npy")
    return found


def _images() -> np.ndarray:
    random = np.random.default_rng(7)
    return random.uniform(-2, 17, (4, 1, 1, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("load", ["pte", "pre"])
def test_bits_are_those_of_the_float_program(
    host: Product, ends: dict[str, Quantization], load: str, tmp_path: Path
) -> None:
    for image in _images():
        wanted = _run(host, f"plain_{load}", image, tmp_path)
        numbers = quantized(image, ends["input"])
        pixels = (numbers.astype(np.int16) + 128).astype(np.uint8)
        for model, given in (
            ("linked", image),
            ("linked", numbers),
            ("pixels", image),
            ("pixels", pixels),
        ):
            out = _run(host, f"{model}_{load}", given, tmp_path)
            assert out.dtype == np.int8
            assert np.array_equal(dequantized(out, ends["output"]), wanted)
        np.save(tmp_path / "wanted.npy", wanted)
        exact = ["--expect", str(tmp_path / "wanted.npy"), "--atol", "0", "--rtol", "0"]
        _run(host, f"linked_{load}", image, tmp_path, *exact)


def test_an_array_of_another_dtype_is_refused(
    host: Product, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "given.npy", np.zeros((1, 1, 8, 8), np.uint8))
    options = ["--model", "linked_pre", "--input", str(tmp_path / "given.npy")]
    assert host.run("run", *options, "--no-build") == 2
    assert "expected: float32 or int8 [1, 1, 8, 8]" in capsys.readouterr().err


def test_quantize_calls_are_gone(host: Product) -> None:
    plan = json.loads((host.out / "memory_plan.json").read_text())
    arenas = {
        x["model"]: m["arenas"][0]["size_bytes"] for x in plan["models"] for m in x["methods"]
    }
    report = json.loads((host.out / "report.json").read_text())
    for of in report["prelink"]:
        is_plain = of["model"].startswith("plain")
        passes = {p["name"]: p for p in of["passes"]}
        assert passes["quantized_io"]["changed"] is not is_plain
        if not is_plain:
            calls = passes["quantized_io"]
            assert calls["before"]["calls"] - calls["after"]["calls"] == 2
    assert arenas["linked_pre"] <= arenas["plain_pre"]


_APPLICATION = """
#include <stdio.h>
#include <string.h>
#include "ends.h"

#define CHECK(what) if (!(what)) return printf("line %d\\n", __LINE__), 1
#define ZERO ENDS_PIXELS_@_FORWARD_INPUT0_ZERO_POINT

int main(void) {
  float image[64], wanted[10];
  int8_t numbers[64], out[10], again[10];
  uint8_t pixels[64];
  unsigned seed = 1;
  int round, i;
  for (round = 0; round < 50; ++round) {
    for (i = 0; i < 64; ++i) {
      seed = seed * 1664525u + 1013904223u;
      image[i] = (float)(seed >> 8) / 16777216.0f * 20.0f - 2.0f;
      numbers[i] = ends_linked_@_forward_input0_quantize(image[i]);
      pixels[i] = ends_pixels_@_forward_input0_quantize(image[i]);
      CHECK(pixels[i] == numbers[i] + 128);
    }
    CHECK(ends_plain_@_forward(image, wanted) == ORCH_OK);
    CHECK(ends_linked_@_forward(numbers, out) == ORCH_OK);
    for (i = 0; i < 10; ++i) {
      CHECK(ends_linked_@_forward_output0_dequantize(out[i]) == wanted[i]);
    }
    CHECK(ends_pixels_@_forward(pixels, again) == ORCH_OK);
    CHECK(memcmp(out, again, sizeof out) == 0);
    /* A run leaves the pixels as they are: it can run again. */
    for (i = 0; i < 3; ++i) {
      uint32_t instruction;
      CHECK(memcmp(ends_pixels_@_forward_input0(), pixels, sizeof pixels) == 0);
      memset(again, 0, sizeof again);
      CHECK((i == 1 ? ends_pixels_@_forward_run_at(&instruction)
                    : ends_pixels_@_forward_run()) == ORCH_OK);
      CHECK(memcmp(out, ends_pixels_@_forward_output0(), sizeof out) == 0);
    }
  }
  return 0;
}
"""


@pytest.mark.parametrize("load", ["pte", "pre"])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_an_application_quantizes_itself(
    host: Product, load: str, language: str, tmp_path: Path
) -> None:
    text = _APPLICATION.replace("PIXELS_@", f"PIXELS_{load.upper()}")
    text = text.replace("@", load)
    run_application(host, text, language, tmp_path, "-O2", "-w")


def test_a_plan_that_is_kept(tmp_path: Path) -> None:
    """Offsets stay, what is new comes behind them, and bits stay too."""
    need_toolchain("host", "zig")
    kept = _profile(tmp_path / "kept", MODELS, planner="keep")
    assert kept.run("build") == 0
    image = _images()[0]
    wanted = _run(kept, "plain_pre", image, tmp_path)
    document = json.loads((kept.out / "product.json").read_text())
    for method in document["methods"][2:]:
        out = _run(kept, method["model"], image, tmp_path)
        own = Quantization(**method["outputs"][0]["quantization"])
        assert np.array_equal(dequantized(out, own), wanted)


def test_what_cannot_be_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    product = _profile(tmp_path, {"net": 'output1 = "int8"'})
    assert product.run("check") == 4
    assert capsys.readouterr().err.startswith(
        f"""\
error[bad-io]: model "net_pte" has no output1
  --> {product.profile}:"""
    )
