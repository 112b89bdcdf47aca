"""Sizes that an export knows: constants of the header, and calls that refuse others."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from orchestrator.build import borders, methods
from orchestrator.core.bounds import SizeBound
from tests.conftest import CORPUS
from tests.integration.memory_programs import DATA
from tests.product import Product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.method.replan import Adapted

pytestmark = pytest.mark.toolchain

BOUNDS: Final = {"forward": (SizeBound(input=0, dim=0, least=2, step=3),)}
MODELS: Final = {
    "rows": CORPUS / "dynamic_batch" / "model.pte",
    "given": DATA / "given_rows" / "model.pte",
}
"""With inputs in an arena, and in memory of the caller."""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Both programs, loaded and prelinked, as if they had been exported here."""
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("bounds")
    text = 'schema = 1\nname = "b"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
    for name, path in MODELS.items():
        for end, load in (("", "pte"), ("_p", "prelinked")):
            text += f'[[models]]\nname = "{name}{end}"\npath = "{path}"\n'
            text += f'load = "{load}"\n'
    (folder / "b.toml").write_text(text)
    made = Product(profile=folder / "b.toml", out=folder / "out")
    plain = borders.with_bounds

    def known(adapted: Adapted, bounds: Mapping[str, tuple[SizeBound, ...]]) -> Adapted:
        assert not bounds
        return plain(adapted, BOUNDS)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(methods, "with_bounds", known)
        assert made.run("build") == 0
    return made


_APPLICATION: Final = """
#include <stdio.h>
#include "b.h"

#define CHECK(what) if (!(what)) return printf("%d rows, line %d\\n", n, __LINE__), 1

int main(void) {
  static float x[999], y[999];
  int32_t out[4];
  int n = 0;
  CHECK(B_ROWS@_FORWARD_INPUT0_DIM0_MIN == 2 && B_ROWS@_FORWARD_INPUT0_DIM0_STEP == 3);
  for (n = -3; n <= 8; ++n) {
    const orch_status want =
        n == 2 || n == 5 || n == 8 ? ORCH_OK : ORCH_INVALID_ARGUMENT;
    const int32_t sizes[4] = {n, COLUMNS, 0, 0}, own[4] = {n, 4, 0, 0};
    CHECK(b_rows@_forward(x, sizes, y, out) == want);
    CHECK(b_rows@_forward_run(sizes) == want);
    CHECK(b_rows@_forward_step(999, sizes) == want);
    CHECK(b_given@_forward(x, own, y, out) == want);
  }
  const int32_t more[2] = {11, COLUMNS};
  CHECK(b_rows@_forward(x, more, y, out) == ORCH_SHAPE_TOO_LARGE);
  return 0;
}
"""


@pytest.mark.parametrize("end", ["", "_p"])
def test_calls_refuse_other_sizes(product: Product, end: str, tmp_path: Path) -> None:
    compiler = need_tool("gcc", "clang")
    columns = np.load(CORPUS / "dynamic_batch" / "in0.npy").shape[1]
    source, program = tmp_path / "app.c", tmp_path / "app"
    text = _APPLICATION.replace("COLUMNS", str(columns))
    upper = text.replace("ROWS@", f"ROWS{end.upper()}").replace("@", end)
    source.write_text(upper)
    subprocess.run(
        [
            *(compiler, "-std=c11", "-Wall", "-Werror", "-no-pie"),
            *(f"-I{product.out}/include", str(source)),
            *(str(product.out / "libb.a"), "-o", str(program)),
        ],
        check=True,
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("as_it_is")
def test_run_names_the_sizes(
    product: Product, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.load(CORPUS / "dynamic_batch" / "in0.npy")
    for rows in (3, 5):
        np.save(tmp_path / "in0.npy", np.resize(x, (rows, x.shape[1])))
        value = {"kind": "tensor", "file": "in0.npy"}
        call = {"model": "rows", "method": "forward", "inputs": [value]}
        scenario = tmp_path / "scenario.json"
        tolerance = {"atol": 0, "rtol": 0}
        scenario.write_text(json.dumps({"runs": [call], "tolerance": tolerance}))
        capsys.readouterr()
        code = product.run("run", "--scenario", str(scenario))
        assert code == (0 if rows == 5 else 2)
        if code:
            sizes = f"[8, {x.shape[1]}], dimension 0 at least 2, in steps of 3"
            assert f"   = expected: float32 at most {sizes}\n" in capsys.readouterr().err
