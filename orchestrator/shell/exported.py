"""Programs that were made of Python code, found again by everything that shaped them.

An entry holds for a request if every file that was read then has the same content now,
the folders that were listed have the same names, and every distribution that took part
is installed as it was. Contents are looked at again only where size, times or inode
changed. Paths in an entry are relative to the folder of the code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.shell.cache import cache_folder, file_digest
from orchestrator.shell.files import read_own_json, write_atomic
from orchestrator.shell.stamp import state_of

PROGRAM = "model.pte"
_ENTRY = "entry.json"
_MOST_ENTRIES = 8
"""Of one request, such as branches that somebody goes back and forth between."""
_MOST_REQUESTS = 64
_CLOCK_NS = 5_000_000
"""How far times of files lag behind the clock."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One program with what it was made of.

    Args:
        folder: Where it lies, with the other files of the export.
        facts: What `entry.json` says: `files`, `folders`, `records`, `distributions`,
            `python`, `program` (a digest), and what the process told.
    """

    folder: Path
    facts: dict[str, Any]

    @property
    def program(self) -> bytes:
        """The program. Raises OSError."""
        return (self.folder / PROGRAM).read_bytes()


class ExportCache:
    """Entries of one request.

    Args:
        key: Digest of the request.
        base: Folder of the code.
        folder: Where all entries are; None for the machine's cache.
    """

    def __init__(self, key: str, *, base: Path, folder: Path | None = None) -> None:
        self._all = folder or cache_folder() / "exports"
        self._own = self._all / key
        self._base = base

    def find(self) -> tuple[Entry | None, str]:
        """The entry that holds, or why none does."""
        entries = self._entries()
        if not entries:
            return None, "first export"
        reasons = []
        for entry in entries:
            reason, moved = self._difference(entry)
            if not reason and _is_whole(entry):
                if moved:
                    self._write_facts(entry.folder, entry.facts)
                with suppress(OSError):
                    os.utime(self._own)
                    os.utime(entry.folder)
                return entry, ""
            reasons.append(reason or "the program is damaged")
        return None, reasons[0]

    def _entries(self) -> list[Entry]:
        """Entries, the newest first."""
        found = []
        with suppress(OSError):
            folders = [p for p in self._own.iterdir() if not p.name.startswith(".")]
            folders.sort(key=lambda p: (-p.stat().st_mtime_ns, p.name))
            for folder in folders:
                facts = read_own_json(folder / _ENTRY)
                if isinstance(facts, dict):
                    found.append(Entry(folder, facts))
        return found

    def _difference(self, entry: Entry) -> tuple[str, bool]:
        """What is not as it was, or ""; and whether only times are not."""
        facts, moved = entry.facts, False
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            for kind in ("files", "records"):
                for label, known in facts[kind].items():
                    path = str(self._path(label))
                    state = state_of(path)
                    if state == known[1]:
                        continue
                    if not state or file_digest(Path(path)) != known[0]:
                        return self._change(kind, label, gone=not state), False
                    known[1] = state
                    moved = True
            for label, digest in facts["folders"].items():
                if folder_digest(self._path(label)) != digest:
                    return f"{label} has other files", False
            return "", moved
        return "the entry is damaged", False

    def _change(self, kind: str, label: str, *, gone: bool) -> str:
        if kind == "records":
            name = Path(label).parent.name.removesuffix(".dist-info")
            return f"{name} is not installed any more" if gone else f"{name} changed"
        return f"{label} {'is gone' if gone else 'changed'}"

    def _path(self, label: str) -> Path:
        return Path(os.path.normpath(self._base / label))

    def paths(self, entry: Entry) -> list[str]:
        """Absolute paths of everything that the entry depends on."""
        labels = [*entry.facts["files"], *entry.facts["records"]]
        return [str(self._path(n)) for n in (*labels, *entry.facts["folders"])]

    def store(self, made: Path, told: dict[str, Any], *, since_ns: int) -> Entry:
        """Keep what a process made.

        Args:
            made: Folder with the program and other files; it is moved.
            told: What the process said, with absolute paths.
            since_ns: When it started: an entry whose files changed since is of no use
                later, and will not be found.
        """
        files, changed = {}, False
        for path in told["files"]:
            state = state_of(path)
            times = state[1:3]
            changed = changed or max(times, default=since_ns) > since_ns - _CLOCK_NS
            files[self._label(path)] = (file_digest(Path(path)), state)
        distributions = told.pop("distributions")
        facts = {
            **told,
            "files": files,
            "folders": {
                self._label(p): folder_digest(Path(p)) for p in told["folders"]
            },
            "records": {
                d["record"]: (d["sha256"], state_of(d["record"]))
                for d in distributions.values()
                if d["record"]
            },
            "distributions": {n: d["version"] for n, d in distributions.items()},
            "program": file_digest(made / PROGRAM),
        }
        if changed:
            facts["files"][self._label(told["files"][0])] = ("changed meanwhile", [])
        self._write_facts(made, facts)
        name = hashlib.sha256(json.dumps(facts["files"]).encode()).hexdigest()[:16]
        folder = self._own / name
        _put(made, folder)
        _forget(self._own, _MOST_ENTRIES)
        _forget(self._all, _MOST_REQUESTS)
        return Entry(folder, json.loads(json.dumps(facts)))

    def _label(self, path: str) -> str:
        return Path(os.path.relpath(path, self._base)).as_posix()

    def _write_facts(self, folder: Path, facts: dict[str, Any]) -> None:
        text = json.dumps(facts, indent=1)
        with suppress(OSError):
            write_atomic(folder / _ENTRY, text.encode())


def _is_whole(entry: Entry) -> bool:
    with suppress(OSError):
        return file_digest(entry.folder / PROGRAM) == entry.facts.get("program")
    return False


def folder_digest(path: Path) -> str:
    """Digest of the names in a folder; "" if there is none."""
    try:
        names = sorted(p.name for p in path.iterdir() if p.name != "__pycache__")
    except OSError:
        return ""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _put(made: Path, folder: Path) -> None:
    """Move a folder to its place in one step; what was there goes."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    mark = f"{os.getpid()}.{time.monotonic_ns()}"
    new, old = (folder.with_name(f".{folder.name}.{mark}.{n}") for n in ("new", "old"))
    shutil.move(made, new)  # perhaps from another file system
    with suppress(OSError):
        folder.rename(old)
    new.rename(folder)
    os.utime(folder)
    shutil.rmtree(old, ignore_errors=True)


def started() -> int:
    """Now, in nanoseconds; files that were written before have earlier times."""
    time.sleep(_CLOCK_NS / 1e9)
    return time.time_ns()


def _forget(folder: Path, most: int) -> None:
    """Remove what was not used for longest."""
    with suppress(OSError):
        entries = sorted(folder.iterdir(), key=lambda p: -p.stat().st_mtime_ns)
        for old in entries[most:]:
            shutil.rmtree(old, ignore_errors=True)
