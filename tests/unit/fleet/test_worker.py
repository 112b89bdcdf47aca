"""Workers outlive commands, and what a command says does not."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from orchestrator.build import Project, Shell
from orchestrator.fleet import task
from orchestrator.fleet.outcome import Kind
from orchestrator.fleet.task import Task, Worker
from orchestrator.shell.stamp import Looked
from orchestrator.workspace.listing import read_listing
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from orchestrator.fleet.outcome import Outcome


def test_each_command_has_the_settings_of_its_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ORCHESTRATOR_CACHE", "ORCHESTRATOR_PUBLISHED_KEY"):
        monkeypatch.delenv(name, raising=False)
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", tmp_path / "model.pte")
    worker = Worker(Shell())
    found = []

    def done(_: Kind, project: Project, shell: Shell, begun: Outcome) -> Outcome:
        settings = project.settings
        found.append((settings.cache.name, settings.published_key, shell.lists))
        return begun

    monkeypatch.setattr(task, "_done", done)

    def do(name: str, key: str, command: str) -> None:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "p.toml").write_text(
            'schema = 1\nname = "p"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
            '[[models]]\nname = "model"\npath = "../model.pte"\n'
        )
        file = folder / "orchestrator.toml"
        file.write_text(
            f'schema = 1\n[workspace]\nprofiles = ["p.toml"]\n'
            f'[cache]\npath = "{name}-cache"\npublished_key = "{key}.pub"\n'
        )
        (product,) = read_listing(file, Looked()).products
        outcome = worker.do(
            Task(kind=Kind.CHECK, workspace=file, product=product, command=tmp_path / command)
        )
        assert outcome.problems == ()

    do("one", "a", "first")
    do("one", "a", "first")
    do("one", "b", "second")
    do("two", "c", "second")
    assert [(cache, key) for cache, key, _ in found] == [
        ("one-cache", str(tmp_path / "one" / "a.pub")),
        ("one-cache", str(tmp_path / "one" / "a.pub")),
        ("one-cache", str(tmp_path / "one" / "b.pub")),
        ("two-cache", str(tmp_path / "two" / "c.pub")),
    ]
    lists = [one for *_, one in found]
    assert lists[0] is lists[1]
    assert len({*map(id, lists)}) == 3
