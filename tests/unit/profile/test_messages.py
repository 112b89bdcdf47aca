"""Whole messages of bad profiles, held in tests/golden/messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import ExitCode, ProfileError
from orchestrator.profile import load_profile
from orchestrator.render import render_diagnostics

GOLDEN = Path(__file__).parents[2] / "golden" / "messages"
FILES = {"models/person.pte", "models/other.pte", "more/person.pte"}
FILES |= {"models/KWS-v2.0.pte"}


def _is_file(path: Path) -> bool:
    folder, _, rest = path.as_posix().partition("/../")
    return folder == "profiles" and rest in FILES


def _message(case: Path) -> str:
    """What the profile of the case says, as if its folder were `profiles`."""
    with pytest.raises(ProfileError) as caught:
        load_profile(
            Path("profiles/doorbell.toml"),
            text_of=lambda path: (case / path.name).read_text(encoding="utf-8"),
            is_file=_is_file,
            known_libraries=("portable", "quantized"),
        )
    assert caught.value.exit_code is ExitCode.PROFILE
    return render_diagnostics(caught.value.diagnostics)


@pytest.mark.parametrize("case", sorted(GOLDEN.iterdir()), ids=lambda case: case.name)
def test_message(case: Path, request: pytest.FixtureRequest) -> None:
    message = _message(case)
    expected = case / "expected.txt"
    if request.config.getoption("--update-golden", default=False):
        expected.write_text(message, encoding="utf-8")
    assert message == expected.read_text(encoding="utf-8")


def test_every_part_is_there() -> None:
    for case in GOLDEN.iterdir():
        with pytest.raises(ProfileError) as caught:
            load_profile(
                Path("profiles/doorbell.toml"),
                text_of=lambda path, case=case: (case / path.name).read_text(),  # type: ignore[misc]
                is_file=_is_file,
                known_libraries=("portable", "quantized"),
            )
        for problem in caught.value.diagnostics:
            assert problem.where
            assert problem.where.file.startswith("profiles/")
            assert problem.notes
            assert all(label and text for label, text in problem.notes)
            assert problem.hint
