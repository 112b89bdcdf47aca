"""When `verify` compares a product with its program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.build import BuildOptions, checking, load
from orchestrator.build.checking import build_twice
from orchestrator.errors import Diagnostic, OrchestratorError, ToolchainError, UsageError
from tests.unit.build.fake_project import write_project
from tests.unit.build.fakes import FakeShell

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("kind", "codes", "is_error"),
    [
        (ToolchainError, ["no-emulator"], False),
        (ToolchainError, ["unsupported-system"], False),
        (UsageError, ["nothing-to-test"], False),
        (UsageError, ["bad-input", "bad-input"], True),
        (UsageError, ["nothing-to-test", "bad-input"], True),
        (ToolchainError, ["toolchain-missing"], True),
    ],
)
def test_only_what_cannot_run_here_is_not_compared(
    kind: type[OrchestratorError],
    codes: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_error: bool,
) -> None:
    error = kind([Diagnostic(code=code, message=f"not {code}") for code in codes])

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(checking, "need_equal", refuse)
    profile = load(write_project(tmp_path))
    fake = FakeShell()
    options = BuildOptions(out=tmp_path / "out")
    if is_error:
        with pytest.raises(kind) as raised:
            build_twice(profile, options, fake.shell)
        assert raised.value is error
        assert fake.reporter.notes == []
        return
    build_twice(profile, options, fake.shell)
    (note,) = fake.reporter.notes
    assert note == f"not compared with its program: not {codes[0]}"
