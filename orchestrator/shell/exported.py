"""The cache of programs made from Python code, found by everything that affects them.

An entry is valid for a request if every file that was read has the same content now,
the folders that were listed have the same names in them, and every distribution used
is installed unchanged. Contents are read again only where size, times or inode
changed. Paths in an entry are relative to the folder of the code, unless they have
nothing in common with it.

Entries of other machines are found in the same way, but distributions are compared by
version: their metadata names folders of the machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from orchestrator.core.bounds import SizeBound
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.shell.cache import file_digest
from orchestrator.shell.files import lazy_file, write_atomic
from orchestrator.shell.stamp import State, state_of

PROGRAM = "model.pte"
EXPORTS = "exports"
"""Folder of all entries, in a cache."""
_ENTRY = "entry.json"
# Both limits chosen by hand; entries go by when they were last used.
_MOST_ENTRIES = 8
"""Entries of one request: a user may switch between several branches."""
_MOST_REQUESTS = 64
"""Requests in the cache: programs may be large."""
_CHANGED = "changed meanwhile"
"""In the place of a digest: no file has it."""
# Linux stamps files with its coarse clock, which lags by up to a tick: 4 ms at
# CONFIG_HZ=250. A file that changes just after the start may so have a time before it.
_CLOCK_NS = 5_000_000
"""How far times of files lag behind the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A Python distribution that was used: its version, its metadata file's digest."""

    version: str
    record: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A comparison with plain lowering: equal graphs, and its processor time."""

    stages: int
    tosa_flatbuffers: int
    seconds_plain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """The results of the export process that an entry keeps.

    Args:
        arrays: Files with inputs and outputs of the model.
        warnings: (code, text) of each.
        seconds: Processor time.
        ledger: Records of the passes of accelerated lowering.
        python: Version of its Python.
        verified: The comparison with plain lowering, if it was made.
        decomposed: Calls of operators without a kernel that were replaced, by operator.
        asked: By operator that was asked for: whether it had a kernel.
        bounds: By method: sizes that its inputs may have.
    """

    arrays: tuple[str, ...]
    warnings: tuple[tuple[str, str], ...]
    seconds: float
    ledger: dict[str, Any] | None
    python: str
    verified: Verified | None = None
    decomposed: dict[str, int] = field(default_factory=dict)
    asked: dict[str, bool] = field(default_factory=dict)
    bounds: dict[str, tuple[SizeBound, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult(_Made):
    """The results of the export process; paths are absolute.

    Args:
        files: Files that it read, the code first.
        folders: Folders that it listed.
        distributions: Distributions that it used, by name.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]
    distributions: dict[str, Distribution]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFailure:
    """The diagnostic of a failed export process."""

    code: str
    message: str
    notes: tuple[tuple[str, str], ...]
    hint: str


@dataclass(frozen=True, slots=True)
class _Failed:
    failure: ExportFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFacts(_Made):
    """The content of `entry.json`; paths are relative to the folder of the code.

    Args:
        files: Digest and state of each file that was read.
        folders: Digest of the names in each folder that was listed.
        records: By absolute path: digest and state of the metadata of distributions.
        distributions: Versions by name.
        program: Digest of the program.
        interpreter: Path of the Python that exported it, or would export it here.
        fetched: Whether another machine exported it.
    """

    files: dict[str, tuple[str, State]]
    folders: dict[str, str]
    records: dict[str, tuple[str, State]]
    distributions: dict[str, str]
    program: str
    interpreter: str
    fetched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What the Python of this machine has.

    Args:
        python: Its version.
        can_export: Whether it has what the lowering needs.
        distributions: Those of the ones asked for that it has, by name.
        folders: Where distributions are installed.
    """

    python: str
    can_export: bool
    distributions: dict[str, Distribution]
    folders: tuple[str, ...]


class PublishedExports(Protocol):
    """Exports of other machines; bytes are verified."""

    def exports(self, key: str) -> Sequence[Mapping[str, str]]:
        """The exports of a request, newest first: SHA-256 by name of each file."""

    def read(self, digests: Iterable[str]) -> Mapping[str, bytes]:
        """Bytes by digest, of those that are there."""


def read_installed(text: str) -> Installed | None:
    """Read what a Python says about itself; None if it is something else."""
    with suppress(ValidationError):
        return TypeAdapter(Installed).validate_json(text)
    return None


def read_result(path: Path) -> ExportResult | ExportFailure:
    """Read the results that the export process wrote."""
    adapter: TypeAdapter[ExportResult | _Failed] = TypeAdapter(ExportResult | _Failed)
    found = adapter.validate_json(path.read_bytes())
    return found.failure if isinstance(found, _Failed) else found


def _read_facts(path: Path) -> ExportFacts | None:
    """Read the facts of an entry; None if they are damaged."""
    with suppress(OSError):
        return _parse_facts(path.read_bytes())
    return None


def _parse_facts(data: bytes) -> ExportFacts | None:
    with suppress(ValidationError):
        return TypeAdapter(ExportFacts).validate_json(data)
    return None


@dataclass(frozen=True, slots=True)
class Entry:
    """A program with the facts of its export.

    Args:
        folder: Its folder, with the other files of the export.
        facts: The facts recorded beside it.
    """

    folder: Path
    facts: ExportFacts

    @property
    def program(self) -> Bytes:
        """The program. Raises OSError."""
        return lazy_file(self.folder / PROGRAM)


class ExportCache:
    """Entries of one request.

    Args:
        key: Digest of the request.
        base: Folder of the code.
        interpreter: The Python that exports.
        folder: Folder of all entries.
    """

    def __init__(self, key: str, *, base: Path, interpreter: str, folder: Path) -> None:
        self._key = key
        self._all = folder
        self._own = self._all / key
        self._base = base
        self._interpreter = interpreter

    def find(self, changed: Callable[[ExportFacts], str]) -> tuple[Entry | None, str]:
        """The valid entry, or the reason why there is none.

        Args:
            changed: What else changed since an entry was made, "" if nothing.
        """
        reasons = []
        for folder in self._folders():
            facts = _read_facts(folder / _ENTRY)
            if facts is None:
                reasons.append("the entry is damaged")
                continue
            reason, facts_now = self._compare(facts)
            if facts.interpreter != self._interpreter:
                reason = "another Python exports"
            reason = reason or changed(facts)
            entry = Entry(folder, facts_now)
            if not reason and _is_whole(entry):
                if facts_now != facts:
                    self._write_facts(folder, facts_now)
                with suppress(OSError):
                    # Times of folders are when they were last used, by which `_forget`
                    # chooses.
                    os.utime(self._own)
                    os.utime(folder)
                return entry, ""
            reasons.append(reason or "the program is damaged")
        return None, reasons[0] if reasons else "first export"

    def fetch(
        self,
        published: PublishedExports,
        *,
        changed: Callable[[ExportFacts], str],
        installed: Callable[[Iterable[str]], Installed | None],
    ) -> Entry | None:
        """The valid entry of another machine, which now is one of this machine as well.

        Args:
            published: Has them.
            changed: See `find`.
            installed: Looks for distributions, by name.
        """
        for files in published.exports(self._key):
            own = files.get(_ENTRY, "")
            facts = _parse_facts(published.read([own]).get(own, b""))
            # Another version of Orchestrator may have published the entry, with other
            # files.
            if facts is None or not {PROGRAM, *facts.arrays} <= files.keys():
                continue
            reason, facts = self._compare(facts)
            if reason or changed(facts):
                continue
            here = installed(facts.distributions)
            found = self._as_here(facts, here) if here else None
            if found is None:
                continue
            data = published.read(files.values())
            if all(digest in data for digest in files.values()):
                texts = {n: data[d] for n, d in files.items() if n != _ENTRY}
                if entry := self._take(found, texts):
                    return entry
        return None

    def _as_here(self, facts: ExportFacts, here: Installed) -> ExportFacts | None:
        """Facts of an entry on this machine; None if it would export something else.

        A Python that cannot export has no say in that, as long as nothing is installed.
        """
        if not here.can_export:
            # The names in site-packages: as soon as anything is installed there, this
            # entry has to be asked about anew (decision 0036).
            folders = {self._label(f): folder_digest(Path(f)) for f in here.folders}
            return replace(facts, folders=facts.folders | folders, interpreter=self._interpreter)
        versions = {name: one.version for name, one in here.distributions.items()}
        if (here.python, versions) != (facts.python, facts.distributions):
            return None
        return replace(
            facts, records=_records(here.distributions.values()), interpreter=self._interpreter
        )

    def _take(self, facts: ExportFacts, files: Mapping[str, bytes]) -> Entry | None:
        """Keep the files of another machine; None if that cannot be done."""
        with suppress(OSError), tempfile.TemporaryDirectory(prefix="orchestrator-export-") as name:
            made = Path(name) / "made"
            made.mkdir()
            for file, data in files.items():
                (made / file).write_bytes(data)
            if _is_whole(Entry(made, facts)):
                return self._keep(made, facts)
        return None

    def _folders(self) -> list[Path]:
        """Folders of entries, the newest first."""
        with suppress(OSError):
            found = [p for p in self._own.iterdir() if not p.name.startswith(".")]
            return sorted(found, key=lambda p: (-p.stat().st_mtime_ns, p.name))
        return []

    def _compare(self, facts: ExportFacts) -> tuple[str, ExportFacts]:
        """What changed, or ""; and the facts with current states of files."""
        states: dict[str, dict[str, tuple[str, State]]] = {}
        for kind, known in (("files", facts.files), ("records", facts.records)):
            states[kind] = {}
            for label, (digest, before) in known.items():
                path = str(self._path(label))
                state = state_of(path)
                # A checkout of another branch and back gives files new times and the
                # same content.
                if state != before and (not state or file_digest(Path(path)) != digest):
                    return self._change(kind, label, gone=not state), facts
                states[kind][label] = (digest, state)
        for label, digest in facts.folders.items():
            if folder_digest(self._path(label)) != digest:
                return f"{label} has other files", facts
        return "", replace(facts, files=states["files"], records=states["records"])

    def _change(self, kind: str, label: str, *, gone: bool) -> str:
        if kind == "records":
            name = Path(label).parent.name.removesuffix(".dist-info")
            return f"{name} is not installed any more" if gone else f"{name} changed"
        return f"{label} {'is gone' if gone else 'changed'}"

    def _path(self, label: str) -> Path:
        return Path(os.path.normpath(self._base / label))

    def paths(self, entry: Entry) -> list[str]:
        """Absolute paths of all files that the entry depends on."""
        facts = entry.facts
        labels = [*facts.files, *facts.records, *facts.folders]
        return [str(self._path(label)) for label in labels]

    def store(self, made: Path, result: ExportResult, *, since_ns: int) -> Entry:
        """Store the results of a process.

        Args:
            made: Folder with the program and other files; it is moved.
            result: Results of the process.
            since_ns: When it started. If files changed since, the entry is never valid
                and `find` skips it.
        """
        files: dict[str, tuple[str, State]] = {}
        changed = False
        for path in result.files:
            state = state_of(path)
            times = state[1:3]
            # Also if it was written before the process read it: nobody can tell which
            # content that was.
            changed = changed or max(times, default=since_ns) > since_ns - _CLOCK_NS
            files[self._label(path)] = (file_digest(Path(path)), state)
        if changed:
            # The program is good for this build, and for no other: the entry is kept,
            # as the build reads it from the cache, and never found.
            files[self._label(result.files[0])] = (_CHANGED, [])
        facts = ExportFacts(
            **{kept.name: getattr(result, kept.name) for kept in fields(_Made)},
            files=files,
            folders={self._label(p): folder_digest(Path(p)) for p in result.folders},
            records=_records(result.distributions.values()),
            distributions={n: d.version for n, d in result.distributions.items()},
            program=file_digest(made / PROGRAM),
            interpreter=self._interpreter,
        )
        return self._keep(made, facts)

    def _keep(self, made: Path, facts: ExportFacts) -> Entry:
        """Move a folder with the files of an export to its place."""
        self._write_facts(made, facts)
        identity = json.dumps([facts.files, facts.interpreter])
        folder = self._own / hashlib.sha256(identity.encode()).hexdigest()[:16]
        _put(made, folder)
        _forget(self._own, _MOST_ENTRIES)
        _forget(self._all, _MOST_REQUESTS)
        return Entry(folder, facts)

    def _label(self, path: str) -> str:
        # A path up to the root and down again says more about this machine than the
        # absolute one.
        if os.path.commonpath([path, self._base]) == os.sep:
            return path
        return Path(os.path.relpath(path, self._base)).as_posix()

    def _write_facts(self, folder: Path, facts: ExportFacts) -> None:
        with suppress(OSError):
            write_atomic(folder / _ENTRY, _facts_bytes(facts))


def _facts_bytes(facts: ExportFacts) -> bytes:
    return json.dumps(asdict(facts), indent=1).encode()


def exports_to_publish(cache: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """(key, bytes of each file by name) of all exports in a cache, oldest first.

    Equal exports have equal bytes: times and states of files are left out.
    """
    entries = [path.parent for path in cache.glob(f"{EXPORTS}/*/*/{_ENTRY}")]
    for folder in sorted(entries, key=lambda p: (p.stat().st_mtime_ns, p)):
        facts = _read_facts(folder / _ENTRY)
        if facts is None or facts.fetched or _CHANGED in {d for d, _ in facts.files.values()}:
            continue
        if not _is_whole(Entry(folder, facts)):
            continue
        facts = replace(
            facts,
            files={label: (digest, []) for label, (digest, _) in facts.files.items()},
            records={},
            interpreter="",
            fetched=True,
            # What differs from run to run would make each machine publish the same
            # export again.
            seconds=0.0,
            ledger=None,
            verified=None,
        )
        files = {name: folder / name for name in (PROGRAM, *facts.arrays)}
        with suppress(OSError):
            data = {name: path.read_bytes() for name, path in files.items()}
            yield folder.parent.name, {_ENTRY: _facts_bytes(facts), **data}


def _records(distributions: Iterable[Distribution]) -> dict[str, tuple[str, State]]:
    return {one.record: (one.sha256, state_of(one.record)) for one in distributions if one.record}


def _is_whole(entry: Entry) -> bool:
    with suppress(OSError):
        return file_digest(entry.folder / PROGRAM) == entry.facts.program
    return False


def folder_digest(path: Path) -> str:
    """Digest of the names in a folder; "" if there is none."""
    try:
        # Python makes `__pycache__` when it imports: each export would change a folder
        # that it listed.
        names = sorted(p.name for p in path.iterdir() if p.name != "__pycache__")
    except OSError:
        return ""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _put(made: Path, folder: Path) -> None:
    """Move a folder to its place in one step, replacing what was there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    mark = f"{os.getpid()}.{time.monotonic_ns()}"
    new, old = (folder.with_name(f".{folder.name}.{mark}.{n}") for n in ("new", "old"))
    # Two renames, as a folder cannot be renamed over one with files. A reader between
    # them finds no entry and exports by itself.
    shutil.move(made, new)  # copies if it is on another file system
    with suppress(OSError):
        folder.rename(old)
    new.rename(folder)
    os.utime(folder)
    shutil.rmtree(old, ignore_errors=True)


def started() -> int:
    """The current time in nanoseconds; files written before it have earlier times."""
    # So that a file that was written just before does not count as changed since.
    time.sleep(_CLOCK_NS / 1e9)
    return time.time_ns()


def _forget(folder: Path, most: int) -> None:
    """Remove the entries that were unused for longest."""
    with suppress(OSError):
        entries = sorted(folder.iterdir(), key=lambda p: -p.stat().st_mtime_ns)
        for old in entries[most:]:
            shutil.rmtree(old, ignore_errors=True)
