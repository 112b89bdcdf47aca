"""Every program of the corpus that has its kernels, on the boards.

Which ones these are is worked out as on the host, see tests/integration/test_corpus.py.
Those that test_cases.py builds alone are left to it, int8 models to test_int8.py; all
others share one product per target and toolchain. Where costs are held they are
prelinked, elsewhere loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.case_counts import count_case
from tests.costs import bytes_of, check_costs, costs_are_held
from tests.integration.test_corpus import ALONE, INT8, corpus_product, outputs_of, outputs_together
from tests.same_bits import check_same_bits
from tests.targets import chosen_pairs
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.product import Product

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

TOGETHER = tuple(case for case in ALONE if case not in INT8)

Board = tuple[str, str, "Product", dict[str, dict[str, bytes]], dict[str, int]]
"""Core, toolchain, product, and by case outputs and, where costs are held,
instructions."""


@pytest.fixture(scope="module", params=chosen_pairs(further=True), ids="-".join)
def board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Board:
    """All these programs in one product, and the outputs of one run of it."""
    cpu, toolchain = request.param
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    folder = tmp_path_factory.mktemp("corpus")
    held = costs_are_held(cpu, toolchain)
    product = corpus_product(
        folder,
        "corpus",
        TOGETHER,
        load="prelinked" if held else "pte",
        cpu=cpu,
        toolchain=toolchain,
    )
    assert product.run("build") == 0
    instructions: dict[str, int] = {}
    outputs = outputs_together(
        product, TOGETHER, folder, instructions=instructions if held else None
    )
    return cpu, toolchain, product, outputs, instructions


@pytest.mark.parametrize("case", TOGETHER)
def test_program_runs_on_the_board(  # noqa: PLR0917  # fixtures
    board: Board,
    case: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    """ExecuTorch's outputs within the tolerance, and the same bits on all targets."""
    cpu, toolchain, product, together, instructions = board
    outputs = together.get(case) or outputs_of(product, case, tmp_path, capsys)
    check_same_bits(case, outputs, f"{cpu} {toolchain}")
    count_case(record_property, case, cpu)
    if costs_are_held(cpu, toolchain):
        found = {"instructions": instructions.get(case, 0)}
        check_costs(request.config, cpu, f"{case} among others", found)


def test_product_is_as_large_as_held(board: Board, request: pytest.FixtureRequest) -> None:
    """Flash that programs need together: their kernels with all dtypes."""
    cpu, toolchain, product, *_ = board
    if costs_are_held(cpu, toolchain):
        check_costs(request.config, cpu, "all others", bytes_of(product))
