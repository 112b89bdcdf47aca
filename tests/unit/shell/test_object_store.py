"""The store gives what was put in, or nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import ToolchainError
from orchestrator.shell import object_store as module
from orchestrator.shell.object_store import ObjectStore, object_store
from orchestrator.shell.settings import OBJECTS as VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

KEYS = [f"{number:x}" * 64 for number in range(8)]
OUTPUTS = {".o": b"object", ".su": b"stack"}


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "objects")


def _only(store: ObjectStore, pattern: str) -> Path:
    (found,) = (p for p in store.folder.glob(pattern) if p.is_file())
    return found


def test_what_was_put_is_what_is_got(store: ObjectStore) -> None:
    assert store.get(KEYS[0]) is None
    store.put(KEYS[0], OUTPUTS)
    store.put(KEYS[1], {".o": b"object"})
    assert store.get(KEYS[0]) == OUTPUTS
    assert store.get(KEYS[1]) == {".o": b"object"}
    assert store.damaged() == []
    # Equal bytes are there once.
    assert store.contents()[:2] == (2, 2)


@pytest.mark.parametrize("damage", [b"", b"objecT", b"object and more"])
def test_damaged_files_are_not_given(store: ObjectStore, damage: bytes) -> None:
    store.put(KEYS[0], {".o": b"object"})
    file = _only(store, "cas/*/*")
    file.write_bytes(damage)
    assert store.damaged() == [f"cas/{file.name}"]
    assert store.get(KEYS[0]) is None
    # It is made again.
    store.put(KEYS[0], {".o": b"object"})
    assert store.get(KEYS[0]) == {".o": b"object"}
    assert store.damaged() == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"key": "0", "files": {".o": "1"}}', "\x00", '{"files": {}}']
)
def test_damaged_entries_are_not_given(store: ObjectStore, text: str) -> None:
    store.put(KEYS[0], OUTPUTS)
    _only(store, "ac/*/*").write_text(text)
    assert store.get(KEYS[0]) is None
    assert store.damaged() == [f"ac/{KEYS[0]}"]


def test_an_entry_is_good_for_its_own_key_only(store: ObjectStore) -> None:
    store.put(KEYS[0], {".o": b"one"})
    store.put(KEYS[1], {".o": b"other"})
    one, other = (store.folder / "ac" / key[:2] / key for key in KEYS[:2])
    text = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(text)
    assert store.get(KEYS[0]) is None
    assert store.get(KEYS[1]) is None
    assert len(store.damaged()) == 2
    assert store.prune(1 << 20).entries == 0


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    store = ObjectStore(tmp_path / "file")
    store.put(KEYS[0], OUTPUTS)
    assert store.get(KEYS[0]) is None
    assert store.contents() == (0, 0, 0)


def test_a_full_disk_keeps_nothing(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_atomic", full)
    monkeypatch.setattr(module, "write_if_changed", full)
    store.put(KEYS[0], OUTPUTS)
    assert store.get(KEYS[0]) is None


def _store_of_age(folder: Path, limit_bytes: int) -> ObjectStore:
    """Objects of 1,000 bytes, the first ones used the longest time ago."""
    store = ObjectStore(folder, limit_bytes)
    for number, key in enumerate(KEYS):
        store.put(key, {".o": bytes([number]) * 1000})
        entry = store.folder / "ac" / key[:2] / key
        if entry.exists():
            os.utime(entry, (number + 1, number + 1))
    return store


def test_what_was_not_used_for_long_is_removed_first(tmp_path: Path) -> None:
    store = _store_of_age(tmp_path / "objects", 1 << 30)
    assert store.get(KEYS[0]) is not None  # which marks it as used
    size = store.contents().size_bytes // len(KEYS)
    assert store.prune(3 * size)[:2] == (3, 3)
    assert [k for k in KEYS if store.get(k)] == [KEYS[0], KEYS[-2], KEYS[-1]]
    assert store.prune(0) == (0, 0, 0)


def test_a_store_does_not_outgrow_its_limit(tmp_path: Path) -> None:
    store = _store_of_age(tmp_path / "objects", 5000)
    contents = store.contents()
    assert 0 < contents.size_bytes <= 5000
    assert store.get(KEYS[-1]) is not None


def test_the_environment_limits_it_or_turns_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "2 MiB")
    assert object_store() == ObjectStore(tmp_path / "objects", 2 << 20)
    monkeypatch.setenv(VARIABLE, "off")
    assert object_store() is None
    monkeypatch.setenv(VARIABLE, "much")
    with pytest.raises(ToolchainError, match="ORCHESTRATOR_OBJECTS is no size: 'much'"):
        object_store()


def test_a_key_is_claimed_by_one_process(store: ObjectStore) -> None:
    with store.claims() as claims:
        assert claims.take(KEYS[:3], 2) == {*KEYS[:2]}
        # Locks are of processes: another one is asked.
        assert _taken_elsewhere(store) == {*KEYS[2:]}
        claims.release()
        assert _taken_elsewhere(store) == {*KEYS}
        assert claims.wait(KEYS[4]) == {KEYS[4]}
        assert _taken_elsewhere(store) == {*KEYS} - {KEYS[4]}
    assert _taken_elsewhere(store) == {*KEYS}


def test_without_a_file_every_key_can_be_had(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = ObjectStore(tmp_path / "file" / "objects")
    with store.claims() as claims:
        assert claims.take(KEYS) == {*KEYS}
        assert claims.wait(KEYS[0]) == {KEYS[0]}
        claims.release()


def _taken_elsewhere(store: ObjectStore) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _TAKE, str(store.folder), *KEYS],
        capture_output=True,
        text=True,
        check=True,
    )
    return {*done.stdout.split()}


_TAKE = """
import sys
from pathlib import Path
from orchestrator.shell.object_store import ObjectStore
with ObjectStore(Path(sys.argv[1])).claims() as claims:
    print(*claims.take(sys.argv[2:]))
"""
