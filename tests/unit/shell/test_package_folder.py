"""Folders of packages: nothing is written, or removed, through a link."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import UsageError
from orchestrator.shell.package_folder import MARKER, write_package

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"a.txt": b"a", "src/b.txt": b"b"}


@pytest.mark.parametrize("link", ["out", "out/package", "out/package/src"])
def test_links_to_folders_are_refused(link: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "out" / "package"
    if link.endswith("src"):
        write_package(folder, {"a.txt": b"a"})
    (tmp_path / link).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / link).symlink_to(outside)
    with pytest.raises(UsageError) as caught:
        write_package(folder, FILES)
    (problem,) = caught.value.diagnostics
    assert problem.code == "not-a-package"
    assert str(tmp_path / link) in problem.message
    assert problem.notes == (("found", f"it leads to {outside}"),)
    assert not [*outside.iterdir()]


def test_a_relative_folder_below_a_link_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "packages").symlink_to("outside")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        write_package(type(tmp_path)("packages/rust/p"), FILES)
    assert not [*(tmp_path / "outside").iterdir()]


def test_a_record_removes_nothing_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    write_package(folder, FILES)
    mine = tmp_path / "mine"
    mine.write_bytes(b"a")
    record = json.loads((folder / MARKER).read_text())
    record["made"]["../mine"] = record["made"]["a.txt"]
    (folder / MARKER).write_text(json.dumps(record))
    with pytest.raises(UsageError) as caught:
        write_package(folder, FILES)
    assert "is damaged" in caught.value.diagnostics[0].message
    assert mine.read_bytes() == b"a"
