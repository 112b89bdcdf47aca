"""Instances of a model: each has its state, all share weights and kernels."""

from __future__ import annotations

import json
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

# A counter that begins with 5, and how far two of them are.
APPLICATION: Final = """
#include <stdio.h>
#include "product.h"
int main(void) {
  const unsigned order[] = {0, 0, 1, 0, 1};
  const float in[PRODUCT_COUNTER_FORWARD_INPUT0_COUNT] = {1, 2};
  int64_t count[1] = {0};
  float sums[PRODUCT_COUNTER_FORWARD_OUTPUT1_COUNT];
  unsigned i;
  for (i = 0; i < 5; ++i) {
    int status = product_counter_forward(order[i], in, count, sums);
    printf("%u %d %d\\n", order[i], status, (int)count[0]);
  }
  printf("%d %d\\n", product_counter_forward(2, in, count, sums), ORCH_NOT_FOUND);
  printf("%d\\n", product_counter_forward_input0(2) == 0);
  printf("%d ", RESTART(0));
  printf("%d", product_counter_forward(0, in, count, sums));
  printf(" %d", (int)count[0]);
  printf(" %d", product_counter_1_forward(in, count, sums));
  printf(" %d %d\\n", (int)count[0], PRODUCT_COUNTER_INSTANCES);
  return 0;
}
"""
EXPECTED: Final = "0 0 6\n0 0 7\n1 0 6\n0 0 8\n1 0 7\n6 6\n1\n0 0 6 0 8 2\n"
RESTART: Final = {
    "prelinked": "product_counter_forward_reset(i)",
    "pte": "product_counter_forward_load(i, 0, 0)",
}


@pytest.mark.parametrize("load", RESTART)
def test_instances_have_their_own_state(load: str, tmp_path: Path) -> None:
    need_toolchain("host", "gnu")
    for case in ("counter", "mlp"):
        shutil.copyfile(CORPUS / case / "model.pte", tmp_path / f"{case}.pte")
    text = (
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "gnu"\n'
        f'[[models]]\nname = "counter"\npath = "counter.pte"\nload = "{load}"\n'
        "instances = 2\n"
        # Two models of the same weights that are no instances of one.
        f'[[models]]\nname = "mlp"\npath = "mlp.pte"\nload = "{load}"\n'
        f'[[models]]\nname = "twin"\npath = "mlp.pte"\nload = "{load}"\n'
    )
    product = Product(profile=tmp_path / "product.toml", out=tmp_path / "out")
    product.profile.write_text(text)
    assert product.run("build", "--quiet") == 0
    kinds = {
        (c["kind"], c["name"]): c["flash_bytes"]
        for c in json.loads((product.out / "report.json").read_text())["contributors"]
    }
    models = {n: b for (kind, n), b in kinds.items() if kind == "model" and b}
    assert models.keys() == {"counter_0", "mlp"}
    for language, standard in (("c", "c99"), ("c++", "c++11")):
        source = tmp_path / "main.c"
        source.write_text(APPLICATION)
        command = [need_tool("gcc"), "-x", language, f"-std={standard}", str(source)]
        warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
        macro = f"-DRESTART(i)={RESTART[load]}"
        linked = ["-x", "none", str(product.out / "libproduct.a"), "-no-pie"]
        include = f"-I{product.out / 'include'}"
        subprocess.run(
            [*command, *warnings, macro, include, *linked, "-o", tmp_path / "main"], check=True
        )
        ran = subprocess.run([tmp_path / "main"], capture_output=True, check=True)
        assert ran.stdout.decode() == EXPECTED


def test_a_model_cannot_have_the_name_of_an_instance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", tmp_path / "mic.pte")
    profile = tmp_path / "product.toml"
    profile.write_text(
        'schema = 1\nname = "product"\ntarget.cpu = "host"\n'
        '[[models]]\npath = "mic.pte"\ninstances = 2\n'
        '[[models]]\nname = "mic_1"\npath = "mic.pte"\n'
    )
    assert Product(profile=profile, out=tmp_path / "out").run("check") == 3
    assert 'two models are named "mic_1"' in capsys.readouterr().err
    profile.write_text(profile.read_text().replace("instances = 2", "instances = 0"))
    assert Product(profile=profile, out=tmp_path / "out").run("check") == 3
    assert "an integer from 1 to 64" in capsys.readouterr().err
