"""State without initial data, state of other methods, and programs whose plan is wrong.

Expected outputs are those of ExecuTorch's runtime; of `branches`, which ExecuTorch
computes wrong, those of PyTorch.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.integration.memory_programs import check_board, check_runs, memory_product, problems_of
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product

pytestmark = pytest.mark.toolchain

CASES = (
    *("branches", "shared_zeros", "state_constant", "state_late", "state_put"),
    *("state_rows", "state_zeros"),
)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Every program twice: loaded, and prelinked with a name that ends in `_p`."""
    need_toolchain("host", "zig")
    product = memory_product(tmp_path_factory.mktemp("kept"), CASES)
    assert product.run("build") == 0
    return product


@pytest.mark.parametrize("case", CASES)
def test_outputs_are_right(
    host: Product, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_runs(host, case, tmp_path, capsys)


@pytest.mark.qemu
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_firmware_gives_the_outputs_of_the_host(
    host: Product, cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_board(host, CASES, cpu, tmp_path, capsys)


def test_offsets_of_the_file_are_right_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "zig")
    product = memory_product(tmp_path / "keep", CASES[1:])
    with product.profile.open("a") as file:
        file.write('[memory]\nplanner = "keep"\n')
    assert product.run("build") == 0
    for case in CASES[1:]:
        check_runs(product, case, tmp_path / case, capsys)


def test_a_wrong_plan_is_not_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    product = memory_product(tmp_path, ["branches"])
    with product.profile.open("a") as file:
        file.write('[memory]\nplanner = "keep"\n')
    for problem in problems_of(product, capsys):
        assert problem["code"] == "unsound-plan"
        assert problem["notes"][0]["text"] == (
            "method forward: instruction 12 writes value 26 over value 18, which is"
            " read by instruction 18"
        )


def test_state_that_begins_with_zeros_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = memory_product(tmp_path, ["state_late", "state_put", "shared_zeros"])
    capsys.readouterr()
    assert product.run("check") == 0
    said = [x for x in capsys.readouterr().err.splitlines() if "without-data" in x]
    assert [line.split(":")[1] for line in said] == [
        f" model {name}{end}" for name in ("state_late", "shared_zeros") for end in ("", "_p")
    ]
    assert "value 6 of forward (32 bytes)" in said[0]
    assert "InitializedMutableBufferPass" in said[0]


def test_each_method_may_have_its_own_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"state_put": 'shared_state = "no"\n', "state_late": ""}
    product = memory_product(tmp_path, settings, settings=settings)
    assert product.run("check") == 0
    settings = {"state_late": 'shared_state = "yes"\n'}
    product = memory_product(tmp_path, settings, settings=settings)
    for problem in problems_of(product, capsys):
        assert problem["code"] == "state-not-shared"
        assert problem["notes"][0]["text"] == "no two methods have tensors in arena 2"


_APPLICATION = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "given.h"

#define CHECK(what) if (!(what)) return printf("line %d\\n", __LINE__), 1

/* Two runs from the first state on, and again after `anew`. */
#define TWICE(name, anew) \\
  CHECK(given_##name##_forward(in, one[0]) == ORCH_OK); \\
  CHECK(given_##name##_forward(in, one[1]) == ORCH_OK); \\
  CHECK(memcmp(one[0], one[1], sizeof one[0]) != 0); \\
  CHECK(anew == ORCH_OK); \\
  CHECK(given_##name##_forward(in, two[0]) == ORCH_OK); \\
  CHECK(given_##name##_forward(in, two[1]) == ORCH_OK); \\
  CHECK(memcmp(one, two, sizeof one) == 0)

int main(void) {
  float in[16], one[2][3], two[2][3], sum[6];
  for (int i = 0; i < 16; ++i) in[i] = 0.125f * (float)(i - 5);
  TWICE(state_late, given_state_late_forward_load(0, 0));
  TWICE(state_late_p, given_state_late_p_forward_reset());
  /* Loading or resetting one method begins the state of all that share it. */
  CHECK(given_state_zeros_put(in, sum) == ORCH_OK);
  CHECK(given_state_zeros_put_load(0, 0) == ORCH_OK);
  CHECK(given_state_zeros_add(in, sum) == ORCH_OK);
  CHECK(sum[0] == 2 * in[0] && sum[5] == 2 * in[5]);
  CHECK(given_state_zeros_p_put(in, sum) == ORCH_OK);
  CHECK(given_state_zeros_p_get_size_reset() == ORCH_OK);
  CHECK(given_state_zeros_p_add(in, sum) == ORCH_OK);
  CHECK(sum[0] == 4 * in[0]);
  CHECK(given_state_zeros_p_put_reset() == ORCH_OK);
  CHECK(given_state_zeros_p_add(in, sum) == ORCH_OK);
  CHECK(sum[0] == 2 * in[0] && sum[5] == 2 * in[5]);
  return 0;
}
"""


def test_state_begins_anew_with_zeros(host: Product, tmp_path: Path) -> None:
    compiler = need_tool("cc")
    (tmp_path / "main.c").write_text(_APPLICATION)
    program = tmp_path / "program"
    out = host.out
    subprocess.run(
        [
            *(compiler, "-no-pie", str(tmp_path / "main.c"), f"-I{out / 'include'}"),
            *(str(out / "libgiven.a"), "-lm", "-o", str(program)),
        ],
        check=True,
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
