"""What tests of several folders share."""

from __future__ import annotations

from pathlib import Path

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.load_profile("same")

CORPUS = Path(__file__).parent / "data" / "corpus"
"""Real programs and what ExecuTorch's own tools say of them; see its README."""

CASES = tuple(sorted(p.parent.name for p in CORPUS.glob("*/case.json")))
"""Names of all cases of the corpus."""


def model_bytes(case: str) -> bytes:
    """The program of a case."""
    return (CORPUS / case / "model.pte").read_bytes()
