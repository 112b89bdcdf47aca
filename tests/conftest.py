"""What tests of several folders share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings

# Hooks.
from tests.case_counts import pytest_terminal_summary  # noqa: F401
from tests.together import pytest_collection_modifyitems, pytest_configure, pytest_unconfigure  # noqa: F401

if TYPE_CHECKING:
    import pytest

# Every run sees the same examples, enough to notice a law that broke. The other profile
# looks for more: `--hypothesis-profile thorough`. Tests of laws leave the number to it.
settings.register_profile("same", max_examples=50, derandomize=True, deadline=None, database=None)
settings.register_profile(
    "thorough", max_examples=1000, deadline=None, database=None, print_blob=True
)
settings.load_profile("same")

CORPUS = Path(__file__).parent / "data" / "corpus"
"""Real programs and what ExecuTorch's own tools say of them; see its README."""

CASES = tuple(sorted(p.parent.name for p in CORPUS.glob("*/case.json")))
"""Names of all cases of the corpus."""


def model_bytes(case: str) -> bytes:
    """The program of a case."""
    return (CORPUS / case / "model.pte").read_bytes()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Goldens change only on request."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite expected texts: tests/golden, schema/, docs/profile.md, and"
        " figures that pages show",
    )
    parser.addoption(
        "--kills", type=int, default=8, metavar="COUNT", help="builds to kill at random moments"
    )
    parser.addoption(
        "--mutants",
        type=int,
        default=0,
        metavar="COUNT",
        help="damaged programs to compare reader and device loader on; 0: a few",
    )
