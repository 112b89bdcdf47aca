"""The list of products is kept while nothing it follows from has changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.shell.stamp import Looked
from orchestrator.workspace import listing
from orchestrator.workspace.listing import read_listing
from orchestrator.workspace.product import Product, in_shard, product_shard

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "p" / "old").mkdir(parents=True)
    (tmp_path / "build").mkdir()
    path = tmp_path / "orchestrator.toml"
    path.write_text(
        'schema = 1\n[workspace]\nprofiles = ["p/*.toml"]\n[cache]\npath = "c"\n'
        'published = "../objects"\npublished_key = "ci.pub"\n'
        '[build]\nlauncher = "ccache"\n'
        '[matrix]\ncpus = ["host", "cortex-m4"]\n'
    )
    _profile(tmp_path / "p" / "a.toml")
    return path


def _profile(path: Path, text: str = "") -> None:
    path.write_text(f'schema = 1\nname = "{path.stem}"\n{text}')


def _names(file: Path) -> list[str]:
    return [product.name for product in read_listing(file, Looked()).products]


def _kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the list is read back."""
    with monkeypatch.context() as patch:
        patch.setattr(listing, "_read", lambda _: None)
        return read_listing(file, Looked()) is not None


def test_it_is_read_back_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _kept(file, monkeypatch)
    first = read_listing(file, Looked())
    assert _kept(file, monkeypatch)
    assert read_listing(file, Looked()) == first


@pytest.mark.parametrize(
    "change",
    [
        lambda root: _profile(root / "p" / "b.toml"),
        lambda root: _profile(root / "p" / "a.toml", 'target.cpu = "host"\n'),
        lambda root: (root / "p" / "a.toml").rename(root / "p" / "c.toml"),
        lambda root: _profile(root / "p" / "a.toml", "matrix.enable = false\n"),
    ],
)
def test_a_change_is_seen(file: Path, change: object) -> None:
    before = _names(file)
    change(file.parent)  # type: ignore[operator]
    after = _names(file)
    (file.parent / "build" / ".workspace.json").unlink()
    assert after == _names(file)
    if "c.toml" not in {p.name for p in (file.parent / "p").iterdir()}:
        assert after != before


def test_the_base_of_a_profile_is_one_of_its_files(file: Path) -> None:
    base = file.parent / "p" / "old" / "base.toml"
    base.write_text("schema = 1\n")
    _profile(file.parent / "p" / "a.toml", 'extends = "old/base.toml"\n')
    assert _names(file) == ["a-cortex-m4", "a-host"]
    base.write_text('schema = 1\ntarget.cpu = "host"\n')
    assert _names(file) == ["a"]


def test_a_base_that_comes_later_is_seen(file: Path) -> None:
    text = 'schema = 1\nname = "c"\nextends = "old/base.toml"\n'
    (file.parent / "p" / "b.toml").write_text(text)
    assert _names(file) == ["a-cortex-m4", "a-host", "b"]
    (file.parent / "p" / "old" / "base.toml").write_text("schema = 1\n")
    assert _names(file) == ["a-cortex-m4", "a-host", "c-cortex-m4", "c-host"]


def test_a_pattern_of_any_folders_is_looked_at_each_time(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(file.read_text().replace("p/*", "p/**/*"))
    assert len(_names(file)) == 2
    assert not _kept(file, monkeypatch)
    _profile(file.parent / "p" / "old" / "b.toml")
    assert len(_names(file)) == 4


def test_a_workspace_without_builds_stays_as_it_is(file: Path) -> None:
    (file.parent / "build").rmdir()
    _names(file)
    assert not (file.parent / "build").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"files": 1}'])
def test_a_damaged_list_is_made_again(file: Path, text: str) -> None:
    expected = _names(file)
    kept = file.parent / "build" / ".workspace.json"
    found = json.loads(kept.read_text())
    assert set(found) == {"environment", "products", "files"}
    kept.write_text(text)
    assert _names(file) == expected


def test_a_workspace_that_moved_is_listed_again(file: Path) -> None:
    expected = _names(file)
    moved = file.parent.rename(file.parent.with_name("moved"))
    assert _names(moved / "orchestrator.toml") == expected
    assert str(file.parent) not in (moved / "build" / ".workspace.json").read_text()


def test_shards_are_whole_and_stable() -> None:
    products = [Product(name=f"p{n}", profile=None) for n in range(300)]  # type: ignore[arg-type]
    shards = [in_shard(products, (i, 4)) for i in range(1, 5)]
    assert sorted(p.name for s in shards for p in s) == sorted(p.name for p in products)
    assert all(50 < len(shard) < 100 for shard in shards)
    assert in_shard(products, None) == tuple(products)
    # By name alone: these must never change.
    assert [product_shard(f"p{n}", 4) for n in range(8)] == [1, 3, 4, 2, 1, 4, 4, 3]
