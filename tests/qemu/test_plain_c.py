"""One file, every core: the int8 models of the corpus as lowered for plain C.

Each was exported for a core and for plain C: scratch sizes differ, and linear layers
for MVE hold sums of their weights in place of a bias. Both files give the same bits, on
the host and on every board.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import CORPUS
from tests.integration.test_corpus import RUNNABLE, corpus_product, outputs_of
from tests.qemu.test_corpus import BOARDS
from tests.same_bits import check_same_bits
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

CASES = [case for case in RUNNABLE if (CORPUS / case / "plain_c.pte").exists()]


@pytest.fixture(scope="module", params=[("host", "zig"), *BOARDS], ids="-".join)
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Product]:
    """A target, and a product of all of them for it."""
    cpu, toolchain = request.param
    need_toolchain(cpu, toolchain)
    if cpu != "host":
        need_emulator(cpu)
    product = corpus_product(
        tmp_path_factory.mktemp("plain"),
        "plain",
        CASES,
        cpu=cpu,
        toolchain=toolchain,
        file="plain_c.pte",
    )
    assert product.run("build") == 0
    return f"{cpu} {toolchain}", product


@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_the_core(
    built: tuple[str, Product],
    case: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target, product = built
    outputs = outputs_of(product, case, tmp_path, capsys)
    # The same name: what ran elsewhere, from either file, is compared with this.
    check_same_bits(case, outputs, f"plain C on {target}")


def test_there_are_such_models() -> None:
    assert len(CASES) == 7  # noqa: PLR2004 (kws_dscnn_int8_m0plus is one itself)
