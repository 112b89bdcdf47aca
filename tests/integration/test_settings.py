"""Settings of a workspace are those of its own products, and of no others."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from orchestrator.build.published import LIST
from orchestrator.cli.main import run
from orchestrator.shell.object_store import ObjectStore
from orchestrator.shell.settings import LAUNCHER
from orchestrator.shell.settings import OBJECTS as VARIABLE
from orchestrator.shell.settings import PUBLISHED as URL
from orchestrator.shell.settings import PUBLISHED_KEY as KEY
from tests.conftest import CORPUS
from tests.integration.test_published import OBJECTS, write_keys
from tests.product import compiled_objects
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = """\
schema = 1
name = "{name}"

[target]
cpu = "host"
toolchain = "gnu"

[[models]]
name = "model"
path = "../model.pte"
"""


def _workspace(folder: Path, cache: str, *names: str, more: str = "") -> None:
    """Write a workspace with a cache in it, and some products of one model."""
    folder.mkdir()
    (folder / "orchestrator.toml").write_text(
        f'schema = 1\n[workspace]\nprofiles = ["p-*.toml"]\n[cache]\npath = "{cache}"\n{more}'
    )
    for name in names:
        (folder / f"p-{name}.toml").write_text(PROFILE.format(name=name))


def _place(name: str, key: str) -> str:
    return f'published = "../{name}"\npublished_key = "../{key}.pub"\n'


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for workspaces, in which nothing of the user is set."""
    need_toolchain("host", "gnu")  # which notes compilers in the user's cache
    for name in (VARIABLE, LAUNCHER, URL, KEY, "ORCHESTRATOR_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", tmp_path / "model.pte")
    write_keys(tmp_path)
    return tmp_path


def _dead_place(folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / LIST)


@pytest.mark.toolchain
def test_two_workspaces_in_one_command(
    top: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = dict(os.environ)
    _workspace(top / "theirs", "c", "theirs")
    assert run(["build", "theirs/p-theirs.toml"]) == 0
    monkeypatch.chdir(top / "theirs")  # `cache` is about the workspace it is in
    assert run(["cache", "publish", "../place", "--key", "../ci.key"]) == 0
    monkeypatch.chdir(top)
    _dead_place(top / "dead")
    _workspace(top / "one", "c1", "one", more=_place("dead", "other"))
    _workspace(top / "two", "c2", "two", more=_place("place", "ci"))
    _workspace(top / "three", "c3", "three", more=_place("place", "other"))
    names = ("one", "two", "three")
    capsys.readouterr()
    assert run(["build", *(f"{name}/p-{name}.toml" for name in names)]) == 0
    said = capsys.readouterr().err
    warnings = [line for line in said.splitlines() if "warning" in line]
    assert len(warnings) == 2
    assert f"not used: {top}/one/../dead: " in warnings[0]
    assert f"not used: {top}/three/../place: " in warnings[1]
    assert "was not signed with this key" in warnings[1]
    made = {name: compiled_objects(top / "build" / name) for name in names}
    assert made["one"] == made["three"] > made["two"]
    keys = {
        name: {*ObjectStore(top / name / f"c{n}" / "objects").keys()}
        for n, name in enumerate(names, 1)
    }
    assert keys["one"]
    assert all(found == keys["one"] for found in keys.values())
    assert not (top / "user").exists()
    assert dict(os.environ) == before


@pytest.mark.toolchain
def test_workers_of_a_command_ask_a_place_once(
    top: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _dead_place(top / "dead")
    names = ("eins", "zwei")
    _workspace(top / "one", "c1", *names, more=_place("dead", "ci"))
    monkeypatch.chdir(top / "one")
    assert run(["build", "-j", "2"]) == 0
    said = capsys.readouterr().err
    assert said.count("warning: published objects are not used") == 1
    assert {*ObjectStore(top / "one" / "c1" / "objects").keys()}
    assert not (top / "user").exists()
    assert sorted(p.name for p in (top / "one").iterdir()) == [
        *("build", "c1", "orchestrator.toml"),
        *(f"p-{name}.{end}" for name in sorted(names) for end in ("lock", "toml")),
    ]


def test_cache_is_about_the_workspace_it_is_in(
    top: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _workspace(top / "one", "c1")
    store = ObjectStore(top / "one" / "c1" / "objects")
    for key, outputs in OBJECTS.items():
        store.put(key, outputs)
    assert run(["cache", "size"]) == 0
    assert capsys.readouterr().out.startswith(f"{top}/user/orchestrator/objects: 0 ")
    monkeypatch.chdir(top / "one")
    assert run(["cache", "size"]) == 0
    assert capsys.readouterr().out.startswith(f"{store.folder}: 4 objects")
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(top / "own"))
    assert run(["cache", "size"]) == 0
    assert capsys.readouterr().out.startswith(f"{top}/own/objects: 0 ")
