"""Finished builds that tests of this folder copy and change."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.commands import run as run_command
from orchestrator.cli.main import run
from orchestrator.shell.settings import OBJECTS as VARIABLE
from tests.integration.workspace import Workspace, copy_native, use_native, write_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` takes whatever lies in the build folder."""
    monkeypatch.setattr(run_command, "make_current", lambda *_: None)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished build of the keyword-spotting model, to be copied, not changed."""
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("built") / "w"
    write_product(folder)
    copy_native(folder / "native")
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_native(monkeypatch, folder / "native")
        monkeypatch.setenv(VARIABLE, "off")
        arguments = [str(folder / "product.toml"), "--out", str(folder / "out")]
        assert run(["build", *arguments]) == 0
    return folder


@pytest.fixture
def w(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Workspace]:
    """A copy of the finished build, with times of files as they were.

    Tests see what ninja compiles, so no object is taken from other builds.
    """
    monkeypatch.setenv(VARIABLE, "off")
    shutil.copytree(built, tmp_path / "w", symlinks=True)
    use_native(monkeypatch, tmp_path / "w" / "native")
    yield Workspace(folder=tmp_path / "w", capsys=capsys)
    # Many copies would fill a small disk.
    shutil.rmtree(tmp_path / "w", ignore_errors=True)
