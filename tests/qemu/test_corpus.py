"""Every program of the corpus that has its kernels, on the boards.

Which ones these are is worked out as on the host, see tests/integration/test_corpus.py.
Those that test_cases.py builds alone are left to it, int8 models to test_int8.py; all
others share one product per target and toolchain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.case_counts import count_case
from tests.integration.test_corpus import (
    ALONE,
    INT8,
    corpus_product,
    outputs_of,
    outputs_together,
)
from tests.same_bits import check_same_bits
from tests.targets import chosen_pairs
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.product import Product

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

TOGETHER = tuple(case for case in ALONE if case not in INT8)

Board = tuple[str, str, "Product", dict[str, dict[str, bytes]]]
"""Core, toolchain, product, and outputs by case."""


@pytest.fixture(scope="module", params=chosen_pairs(further=True), ids="-".join)
def board(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Board:
    """All these programs in one product, and the outputs of one run of it."""
    cpu, toolchain = request.param
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    folder = tmp_path_factory.mktemp("corpus")
    product = corpus_product(folder, "corpus", TOGETHER, cpu=cpu, toolchain=toolchain)
    assert product.run("build") == 0
    return cpu, toolchain, product, outputs_together(product, TOGETHER, folder)


@pytest.mark.parametrize("case", TOGETHER)
def test_program_runs_on_the_board(
    board: Board,
    case: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    """ExecuTorch's outputs within the tolerance, and the same bits on all targets."""
    cpu, toolchain, product, together = board
    outputs = together.get(case) or outputs_of(product, case, tmp_path, capsys)
    check_same_bits(case, outputs, f"{cpu} {toolchain}")
    count_case(record_property, case, cpu)
