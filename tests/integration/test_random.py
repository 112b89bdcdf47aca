"""Products that draw random numbers have a generator, which C programs can seed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.tools import need_tool

if TYPE_CHECKING:
    from tests.integration.workspace import Workspace

pytestmark = pytest.mark.toolchain

PROGRAM = """
#include <stdio.h>
#include "product.h"
int main(void) {
  product_random_seed(42);
  printf("%08x\\n", (unsigned)product_random_next());
  return 0;
}
"""


def test_a_program_seeds_the_generator(w: Workspace) -> None:
    header = w.out / "include" / "product.h"
    w.build()
    assert "random" not in header.read_text()
    w.edit("product.toml", '[operators]\ninclude = ["aten::rand.out"]\n')
    w.build()
    (w.folder / "main.c").write_text(PROGRAM)
    command = [need_tool("gcc", "clang"), "main.c", "-I", str(header.parent)]
    library = str(w.out / "libproduct.a")
    subprocess.run([*command, library, "-no-pie", "-o", "main"], cwd=w.folder, check=True)
    ran = subprocess.run([w.folder / "main"], capture_output=True, check=True)
    assert ran.stdout == b"c2f57bd6\n"
