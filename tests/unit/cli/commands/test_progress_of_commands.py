"""Commands that may take long say what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.console import Console
from orchestrator.cli.main import run
from orchestrator.shell.reporter import Reporter
from tests.unit.build.fake_project import write_project
from tests.unit.build.fakes import FakeShell

if TYPE_CHECKING:
    from pathlib import Path


class _Steps(Reporter):
    """Notes the steps, and that they end."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.is_closed = False

    def working(self, text: str, number: int = 1, total: int = 1) -> None:
        assert 1 <= number <= total
        self.texts.append(text)

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("command", "steps"),
    [
        ("plan demo.toml", {"extract net", "resolve", "memory of net", "generate"}),
        ("check demo.toml", {"extract net", "resolve", "memory of net", "generate"}),
        ("build demo.toml", {"extract net", "memory of net", "measure", "lock"}),
        ("verify demo.toml", {"extract net", "measure"}),
        ("size demo.toml --optimize speed", {"compile", "measure"}),
        ("report demo.toml --svg memory", {"measure", "drawing memory"}),
        ("plumbing memory-plan blocks.csv", {"planning 1 block"}),
    ],
)
def test_steps_are_shown(
    command: str,
    steps: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_project(tmp_path)
    (tmp_path / "blocks.csv").write_text("id,lower,upper,size\na,0,1,8\n")
    monkeypatch.chdir(tmp_path)
    shell = FakeShell().shell
    if command.startswith("size"):
        assert run(["build", "demo.toml"], shell=shell) == 0
    found: list[_Steps] = []

    def reporter(_: Console, **__: object) -> _Steps:
        found.append(_Steps())
        return found[-1]

    # The fake firmware carries nothing out.
    monkeypatch.setattr("orchestrator.build.checking.need_equal", lambda *_: None)
    monkeypatch.setattr(Console, "reporter", reporter)
    assert run(command.split(), shell=shell) == 0, capsys.readouterr().err
    assert steps <= {text for one in found for text in one.texts}
    assert all(one.is_closed for one in found)
