"""Objects by what they were compiled from, for all products of this machine.

`ac/<key>` names the files that a compile step gave, with their SHA-256; `cas/<sha256>`
has their bytes, once. Whatever is missing or damaged is compiled again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from orchestrator.core.spelling import parse_size
from orchestrator.errors import ToolchainError
from orchestrator.shell.cache import _DIGEST
from orchestrator.shell.files import write_atomic, write_if_changed
from orchestrator.shell.settings import OBJECTS, Settings, read_settings

# 1 GiB, chosen by hand; docs/reproducibility.md names it, $ORCHESTRATOR_OBJECTS changes
# it.
DEFAULT_BYTES: Final = 1 << 30
# Chosen by hand: shrinking reads every entry, so the next one should be far away.
_KEPT: Final = 0.8
"""Part of the limit that remains after the store outgrew it."""
# Seconds, chosen by hand: otherwise every read of an object would be a write of its
# time.
_FRESH_S: Final = 3600
"""An entry that was used within this time is not marked as used again."""
_OFFSET_DIGITS: Final = 15
"""Digits of a place in a file, whose offsets have 63 bits."""


class Contents(NamedTuple):
    """How much a store has."""

    entries: int
    files: int
    size_bytes: int


class Published(Protocol):
    """Objects from another machine; `fetch` returns only verified bytes."""

    def listed(self) -> Mapping[str, Mapping[str, str]]:
        """What steps give, by key: SHA-256 by suffix."""

    def fetch(self, keys: Iterable[str]) -> Mapping[str, dict[str, bytes]]:
        """What steps gave, by key: bytes by suffix; nothing for keys it lacks."""


# lockf, not flock, as only that locks single bytes. It belongs to the process: closing
# any descriptor of the file gives all claims back, so a process has one block of
# `claims` at a time. Tests: tests/integration/test_object_store.py.
class Claims:
    """Keys whose compile steps this process is about to run, so that others do not.

    Each key locks a byte of a file, so nothing is left to clean up. Where a file system
    has no locks, every key can be had by everyone: work is done twice, and is right.

    Args:
        file: Descriptor; None if there is no file.
    """

    def __init__(self, file: int | None) -> None:
        self._file = file

    def take(self, keys: Iterable[str], most: int | None = None) -> frozenset[str]:
        """Those of the keys that no other process has, up to a number."""
        taken = set[str]()
        for key in keys:
            if most is not None and len(taken) >= most:
                break
            if self._lock(key, waits=False):
                taken.add(key)
        return frozenset(taken)

    def wait(self, key: str) -> frozenset[str]:
        """The key, as soon as no other process has it. Have no other at that time."""
        self._lock(key, waits=True)
        return frozenset({key})

    def release(self) -> None:
        """Let others have all of them."""
        if self._file is not None:
            # At once, not key by key: nobody gets half of what was made together.
            with suppress(OSError, ImportError):
                import fcntl  # noqa: PLC0415  # Windows has none

                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _lock(self, key: str, *, waits: bool) -> bool:
        """Whether the key is ours."""
        try:
            import fcntl  # noqa: PLC0415  # Windows has none

            how = fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB)
            if self._file is not None:
                # 60 of the key's 256 bits: two keys with the same ones would wait for
                # each other, and no more.
                fcntl.lockf(self._file, how, 1, int(key[:_OFFSET_DIGITS], 16))
        except BlockingIOError:
            return False
        except (OSError, ImportError):
            return True  # no locks here
        return True


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A folder that processes write and read at once, without locks.

    Args:
        folder: Made when something is stored.
        limit_bytes: From there on, what was not used for the longest time is removed.
        published: Where `bring` gets objects from; None for none.
    """

    folder: Path
    limit_bytes: int = DEFAULT_BYTES
    published: Published | None = None

    def bring(self, keys: Iterable[str]) -> None:
        """Put what is published here, for keys that are unknown here."""
        if self.published is None:
            return
        # By the entry alone, without its digests: a damaged one is compiled here.
        missing = [key for key in keys if not self._entry(key).exists()]
        for key, outputs in self.published.fetch(missing).items():
            self.put(key, outputs)

    def get(self, key: str) -> dict[str, bytes] | None:
        """What a compile step gave: bytes by suffix, such as `.o`; None if unknown.

        Digests are checked.
        """
        entry = self._entry(key)
        try:
            found = {}
            for suffix, digest in _outputs(entry).items():
                data = self._file(digest).read_bytes()
                # Files are not synced (see `put`), and anybody with the user's rights
                # can change them: a wrong object would be linked without a word.
                if hashlib.sha256(data).hexdigest() != digest:
                    return None
                found[suffix] = data
            if time.time() - entry.stat().st_mtime > _FRESH_S:
                os.utime(entry)
        except (OSError, ValueError):
            return None
        return found

    def put(self, key: str, outputs: Mapping[str, bytes]) -> None:
        """Keep what a compile step gave. Nothing is kept if it cannot be written.

        Files need not survive a loss of power: their digests would not fit.
        """
        with suppress(OSError):
            # Files before the entry that names them: a reader at any moment finds all
            # of it or none.
            digests = {}
            size = 0
            for suffix, data in sorted(outputs.items()):
                digest = hashlib.sha256(data).hexdigest()
                digests[suffix] = digest
                # Which mends a damaged file.
                if write_if_changed(self._file(digest), data):
                    size += len(data)
            text = json.dumps({"key": key, "files": digests}).encode()
            write_atomic(self._entry(key), text, durable=False)
            self._grow(size + len(text))

    @contextmanager
    def claims(self) -> Iterator[Claims]:
        """Claims on keys, which end with the block, or with the process."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # It stays empty: bytes can be locked where a file has none.
            file = os.open(self.folder / "claims", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            yield Claims(None)
            return
        try:
            yield Claims(file)
        finally:
            os.close(file)

    def keys(self) -> Iterator[str]:
        """Keys that there are entries for, damaged ones as well."""
        return (path.name for path, _ in self._all("ac"))

    def contents(self) -> Contents:
        """How much there is."""
        entries = [*self._all("ac")]
        files = [*self._all("cas")]
        size = sum(state.st_size for _, state in (*entries, *files))
        return Contents(len(entries), len(files), size)

    def prune(self, limit_bytes: int) -> Contents:
        """Remove what is damaged, and what was not used for the longest time.

        Args:
            limit_bytes: Of all files together.

        Returns:
            What remains.
        """
        for name in self.damaged():
            kind, _, digest = name.partition("/")
            with suppress(OSError):
                (self.folder / kind / digest[:2] / digest).unlink()
        self._shrink(limit_bytes)
        return self.contents()

    def damaged(self) -> list[str]:
        """Names of files and entries that `get` would not accept."""
        found = []
        for path, _ in self._all("cas"):
            if hashlib.sha256(path.read_bytes()).hexdigest() != path.name:
                found.append(f"cas/{path.name}")
        for path, _ in self._all("ac"):
            digests: set[str] = set()
            with suppress(OSError, ValueError):
                digests = {*_outputs(path).values()}
            if not digests or not all(self._file(d).exists() for d in digests):
                found.append(f"ac/{path.name}")
        return sorted(found)

    def _entry(self, key: str) -> Path:
        return self.folder / "ac" / key[:2] / key

    def _file(self, digest: str) -> Path:
        return self.folder / "cas" / digest[:2] / digest

    def _all(self, kind: str) -> Iterator[tuple[Path, os.stat_result]]:
        for path in (self.folder / kind).glob("*/*"):
            with suppress(OSError):
                if _DIGEST.fullmatch(path.name):
                    yield path, path.stat()

    def _shrink(self, limit_bytes: int) -> None:
        """Remove what was not used for the longest time."""
        # A build that reads at the same time misses an object that is removed here, and
        # compiles it.
        by_use = sorted(self._all("ac"), key=lambda item: -item[1].st_mtime)
        sizes = {path.name: state.st_size for path, state in self._all("cas")}
        kept, used = 0, set[str]()
        for entry, state in by_use:
            digests: set[str] = set()
            with suppress(OSError, ValueError):
                digests = {*_outputs(entry).values()}
            new = sum(sizes.get(d, 0) for d in digests - used) + state.st_size
            if digests and digests <= sizes.keys() and kept + new <= limit_bytes:
                kept += new
                used |= digests
            else:
                with suppress(OSError):
                    entry.unlink()
        for digest in sizes.keys() - used:
            with suppress(OSError):
                self._file(digest).unlink()
        self._write_size(kept)

    def _grow(self, size_bytes: int) -> None:
        """Count what was added, about right, and remove what is too much."""
        known = 0
        with suppress(OSError, ValueError):
            # Two processes may overwrite each other's count: `_shrink` adds up what is
            # there.
            known = int((self.folder / "size").read_bytes())
        self._write_size(known + size_bytes)
        if known + size_bytes > self.limit_bytes:
            self._shrink(int(self.limit_bytes * _KEPT))

    def _write_size(self, size_bytes: int) -> None:
        with suppress(OSError):
            text = str(size_bytes).encode()
            write_atomic(self.folder / "size", text, durable=False)


def _outputs(entry: Path) -> dict[str, str]:
    """Digests by suffix. Raises OSError, ValueError."""
    match json.loads(entry.read_bytes()):
        # The name again inside: a copied or renamed entry is not taken for another
        # key's.
        case {"key": entry.name, "files": dict(files)} if files and all(
            isinstance(d, str) and _DIGEST.fullmatch(d) for d in files.values()
        ):
            return files
    raise ValueError


def object_store(settings: Settings | None = None) -> ObjectStore | None:
    """The store of a cache; None if `$ORCHESTRATOR_OBJECTS` is `off`.

    Args:
        settings: Those of the product; None where none is concerned.

    Raises:
        ToolchainError: The variable is neither a size nor `off`.
    """
    settings = settings or read_settings()
    text = settings.objects
    if text == "off":
        return None
    limit = parse_size(text) if text else DEFAULT_BYTES
    if limit is None:
        raise ToolchainError.of(
            "object-store-size",
            f"{OBJECTS} is no size: {text!r}",
            hint="write a size such as 512 MiB, or off",
        )
    return ObjectStore(settings.cache / "objects", limit)
