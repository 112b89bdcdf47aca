"""Whole messages of bad profiles, held in tests/golden/messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.render import render_diagnostics
from orchestrator.errors import Diagnostic, ExitCode, ProfileError
from orchestrator.profile.load import load_profile

GOLDEN = Path(__file__).parents[2] / "golden" / "messages"
CASES = sorted(case for case in GOLDEN.iterdir() if (case / "doorbell.toml").exists())
FILES = frozenset(
    {
        "profiles/../models/KWS-v2.0.pte",
        "profiles/../models/other.pte",
        "profiles/../models/person.pte",
        "profiles/../more/person.pte",
        "profiles/person.py",
        "profiles/Person-Net.py",
        "profiles/weights.bin",
    }
)


def _problems(case: Path) -> tuple[Diagnostic, ...]:
    """What is wrong with the case, as if its folder were `profiles`."""
    with pytest.raises(ProfileError) as caught:
        load_profile(
            Path("profiles/doorbell.toml"),
            text_of=lambda path: (case / path.name).read_text(encoding="utf-8"),
            is_file=lambda path: path.as_posix() in FILES,
            known_libraries=("portable", "quantized"),
        )
    assert caught.value.exit_code is ExitCode.PROFILE
    return caught.value.diagnostics


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_message(case: Path, request: pytest.FixtureRequest) -> None:
    message = render_diagnostics(_problems(case))
    expected = case / "expected.txt"
    if request.config.getoption("--update-golden", default=False):
        expected.write_text(message, encoding="utf-8")
    assert message == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_message_has_its_four_parts(case: Path) -> None:
    for problem in _problems(case):
        assert problem.where
        assert problem.where.file.startswith("profiles/")
        assert problem.notes
        assert all(label and text for label, text in problem.notes)
        assert problem.hint
