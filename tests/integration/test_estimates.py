"""The estimate of `check`, held against what programs of the corpus take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.estimates import check_estimate
from tests.integration.test_corpus import RUNNABLE, corpus_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

LOOSE: Final = 1.9
"""Most that an estimate is of the truth, whatever dtypes a program has."""

PLACES: Final = (("cortex-m0plus", "gnu"), ("cortex-m4", "zig"), ("cortex-m55", "gnu"))
SOME: Final = (
    ("remainder_signs", "cortex-m0plus", "gnu"),
    ("integer_types", "cortex-m0plus", "gnu"),
    ("dynamic_sequence", "cortex-m4", "zig"),
    ("double_net", "cortex-m4", "zig"),
    ("dynamic_sequence", "cortex-m55", "gnu"),
)
"""Programs of several dtypes, or of another one than the first that was measured."""

pytestmark = pytest.mark.toolchain


def _hold(folder: Path, case: str, cpu: str, toolchain: str) -> None:
    need_toolchain(cpu, toolchain)
    product = corpus_product(folder, "corpus", [case], cpu=cpu, toolchain=toolchain)
    assert product.run("build") == 0
    check_estimate(product.profile, product.out, slack=(LOOSE, 0))


@pytest.mark.parametrize(("case", "cpu", "toolchain"), SOME)
def test_what_check_says_fits_links(case: str, cpu: str, toolchain: str, tmp_path: Path) -> None:
    """Flash of code and tables is no more than the estimate, and not far below."""
    _hold(tmp_path, case, cpu, toolchain)


@pytest.mark.nightly
@pytest.mark.parametrize("case", RUNNABLE)
@pytest.mark.parametrize(("cpu", "toolchain"), PLACES)
def test_every_program_of_the_corpus(case: str, cpu: str, toolchain: str, tmp_path: Path) -> None:
    _hold(tmp_path, case, cpu, toolchain)
