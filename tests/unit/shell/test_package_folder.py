"""Folders of packages: nothing is written, or removed, through a link."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import UsageError
from orchestrator.shell.package_folder import MARKER, check_package_folder, write_package

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"a.txt": b"a", "src/b.txt": b"b"}


@pytest.mark.parametrize("link", ["out/package", "out/package/src"])
def test_links_to_folders_are_refused(link: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "out" / "package"
    if link.endswith("src"):
        write_package(folder, {"a.txt": b"a"})
    (tmp_path / link).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / link).symlink_to(outside)
    if not link.endswith("src"):
        with pytest.raises(UsageError, match="which is a link"):
            check_package_folder(folder)
    with pytest.raises(UsageError) as caught:
        write_package(folder, FILES)
    (problem,) = caught.value.diagnostics
    assert problem.code == "not-a-package"
    assert str(tmp_path / link) in problem.message
    assert problem.notes == (("found", f"it leads to {outside}"),)
    assert not [*outside.iterdir()]


@pytest.mark.parametrize("absolute", [True, False])
def test_a_folder_may_lie_below_a_link(
    absolute: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to("disk")
    monkeypatch.chdir(tmp_path)
    out = type(tmp_path)("home/packages/p")
    assert write_package(tmp_path / out if absolute else out, FILES) == len(FILES)
    assert (tmp_path / "disk" / "packages" / "p" / "src" / "b.txt").is_file()


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
