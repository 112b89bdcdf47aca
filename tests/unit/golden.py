"""Texts held in tests/golden/generated, rewritten only with --update-golden."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

GENERATED = Path(__file__).parents[1] / "golden" / "generated"


def check_golden(request: pytest.FixtureRequest, name: str, text: str) -> None:
    """Compare a text with the golden file of this name."""
    path = GENERATED / name
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} is not as held"
