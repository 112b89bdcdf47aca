"""Build folders: their mark, the names that builds made, one process at a time.

A file marks a build folder and records the names that builds made in it. Everything
else in the folder is the user's, and so is a folder without the mark.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from orchestrator.errors import Diagnostic, ToolchainError, UsageError
from orchestrator.shell.files import DISK, Files, read_file, write_atomic, write_if_changed
from orchestrator.shell.stamp import STAMP_NAME, shared_file

MARKER = ".orchestrator.json"
LOCK = ".lock"
WORK = ".work"
STORE = ".out"
"""Folder of published sets, each in its own folder."""
CURRENT = "current"
"""Link to the set that is published."""
EXPORTED = "exported"
"""Link to the set of exported models."""
EVALUATIONS = "evaluations"
"""Folder in the work folder with the outputs of `evaluate`."""
OVER_BUDGET = "over_budget"
"""Folder in the work folder with the reports of a build that exceeds its budget."""
VARIANTS = "variants"
"""Folder in the work folder that holds build folders of variants."""
_SHOWN_NAMES = 5
# os.access asks for the real user, files are written by the effective one: they differ
# under sudo and setuid, where the answer would be wrong.
_EFFECTIVE = os.access in os.supports_effective_ids


@contextmanager
def exclusive(folder: Path) -> Iterator[int]:
    """Lock a build folder, making and marking it; other builds wait.

    Processes that inherit the descriptor hold the lock until they end.

    Yields:
        The descriptor that holds the lock.

    Raises:
        UsageError: As `claim`, or a link lies in the work folder (`link-in-the-way`).
        ToolchainError: The system cannot lock files (`unsupported-system`).
    """
    while True:
        claim(folder)
        # `claim` first: the lock is a file in the folder, and nothing may be written to
        # one that turns out to be the user's.
        with _locked(folder) as lock:
            if lock is None:
                continue  # `clean` removed what we waited for
            refuse_links(folder)
            yield lock
            return


@contextmanager
def _locked(folder: Path) -> Iterator[int | None]:
    """The lock of a folder; None if the file was replaced while we waited."""
    try:
        import fcntl  # noqa: PLC0415  # Windows has none
    except ImportError as error:
        raise _no_locks() from error
    path = folder / LOCK
    # Nothing is written to it: it might be a hard link to a file of the user.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        lock = os.open(path, flags, 0o666)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error
    try:
        # flock, not lockf: it belongs to the open file, which ninja and the compilers
        # inherit, so that they hold it if this process is killed. lockf would belong to
        # this process alone, and the next build would start beside compilers that still
        # write.
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = None
        with suppress(OSError):
            # Whoever had the lock may have been `clean`, which removes the file: a lock
            # on a file that has no name any more excludes nobody.
            found = path.lstat()
        same = found is not None and os.path.samestat(found, os.fstat(lock))
        yield lock if same else None
    finally:
        os.close(lock)


def claim(folder: Path) -> None:
    """Make and mark a build folder, unless it is one already.

    Raises:
        UsageError: It is neither empty nor a build folder (`not-a-build-folder`), or
            something else has the name of a file of ours (`link-in-the-way`). Nothing
            was written.
        OSError: It cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise _not_a_folder(folder) from error
    _check_own(folder)
    # All that can refuse the folder comes before the first write to it.
    if not is_build_folder(folder):
        if not _is_empty(folder):
            raise _not_ours(folder)
        _mark(folder, ())
    elif not (folder / MARKER).exists():
        _mark(folder, _own_links(folder))
    elif not os.access(folder, os.W_OK, effective_ids=_EFFECTIVE):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def is_build_folder(folder: Path) -> bool:
    """Whether it is marked, or was made before builds marked their folders."""
    if (folder / MARKER).exists():
        return True
    # Folders from before the mark (decision 0012) have an empty lock and a work folder
    # with files.
    lock = folder / LOCK
    is_lock = lock.is_file() and lock.stat().st_size == 0
    return is_lock and (folder / WORK).is_dir() and not _is_empty(folder / WORK)


def _is_empty(folder: Path) -> bool:
    """Whether it holds only empty folders and the files that mark a build folder.

    A ninja that runs this build makes the folders of outputs first; another build may
    start at the same time.
    """
    for path in folder.iterdir():
        kind = path.lstat()
        if stat.S_ISDIR(kind.st_mode):
            if not _is_empty(path):
                return (folder / MARKER).exists()
        elif path.name != LOCK or kind.st_size or not stat.S_ISREG(kind.st_mode):
            return (folder / MARKER).exists()
    return True


def _check_own(folder: Path) -> None:
    """Reject other files under the names of ours."""
    for name, is_right in (
        (MARKER, stat.S_ISREG),
        (LOCK, stat.S_ISREG),
        (WORK, stat.S_ISDIR),
        (STORE, stat.S_ISDIR),
    ):
        path = folder / name
        with suppress(FileNotFoundError):
            if not is_right(path.lstat().st_mode):
                raise _in_the_way(path)
    path = folder / CURRENT
    if is_build_folder(folder) and os.path.lexists(path) and set_of(path) is None:
        raise _in_the_way(path)


def set_of(link: Path) -> str | None:
    """Name of the set in the store that our link points to; else None."""
    with suppress(OSError):
        # The text of the link, not what it resolves to: the set may be gone after a
        # kill, and the link is still ours.
        top, _, name = os.readlink(link).partition("/")  # noqa: PTH115
        if top == STORE and name and "/" not in name and name not in (".", ".."):
            return name
    return None


def refuse_links(folder: Path) -> None:
    """Reject links in the work folder: compilers would write through them.

    Raises:
        UsageError: There is one (`link-in-the-way`).
    """
    work = folder / WORK
    for path, folders, files in os.walk(work):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(path, name)):  # noqa: PTH114, PTH118
                raise _in_the_way(Path(path, name))
        if Path(path) == work / VARIANTS:
            folders.clear()  # build folders, which check themselves


def _mark(folder: Path, names: Iterable[str]) -> None:
    """Make a folder a build folder, unless another process just did."""
    path = folder / MARKER
    try:
        # Several builds may claim a new folder at once: mode x lets one of them write
        # the mark, and nobody replaces a record that has names
        # (tests/unit/shell/test_build_folder.py).
        with path.open("xb") as file:
            try:
                file.write(_record(names))
            except BaseException:
                path.unlink()
                raise
    except FileExistsError:
        return
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


def _record(names: Iterable[str]) -> bytes:
    text = json.dumps({"schema": 1, "made": sorted(names)}, indent=1)
    return f"{text}\n".encode()


def record_names(folder: Path, names: Iterable[str], *, files: Files = DISK) -> None:
    """Record the names of outputs that builds made in a folder."""
    data = _record(names)
    if (folder / MARKER).read_bytes() == data:
        return
    # In the store, from which the next build removes what is not published: a kill
    # leaves no file among the user's.
    temporary = folder / STORE / "record"
    files.remove(temporary)
    files.write(temporary, data)
    files.rename(temporary, folder / MARKER)


def recorded_names(folder: Path) -> frozenset[str]:
    """Names of outputs that builds made in a folder."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        found = json.loads((folder / MARKER).read_bytes())["made"]
        return frozenset(name for name in found if isinstance(name, str))
    # A build was killed while it marked the folder.
    return frozenset(_own_links(folder))


def _own_links(folder: Path) -> Iterator[str]:
    return (p.name for p in folder.iterdir() if is_output(folder, p.name))


def is_output(folder: Path, name: str) -> bool:
    """Whether a name in the folder is a link that publishing made."""
    with suppress(OSError):
        text = os.readlink(folder / name)  # noqa: PTH115  # Path.readlink normalises
        return text == f"{CURRENT}/{name}" and "/" not in name
    return False


def check_names(folder: Path, names: Iterable[str]) -> None:
    """Check that publishing replaces only files that builds made.

    Raises:
        UsageError: A file of the user has one of the names (`name-taken`).
    """
    taken = [
        folder / name
        for name in sorted(names)
        if os.path.lexists(folder / name)
        and not is_output(folder, name)
        and not (_kind(folder / name) == "a folder" and _is_empty(folder / name))
    ]
    UsageError.raise_if([_taken(path) for path in taken])


def check_exported(folder: Path) -> None:
    """Check the same for exported models. Raises UsageError."""
    path = folder / EXPORTED
    if os.path.lexists(path) and set_of(path) is None:
        raise UsageError(_taken(path))


def check_lock(path: Path) -> None:
    """Check that the lock of a profile does not replace a folder or device.

    Raises:
        UsageError: It would (`name-taken`).
    """
    if os.path.lexists(path) and not path.is_file():
        raise UsageError.of(
            "name-taken",
            f"cannot write the lock {path}: it is not a file",
            found=_kind(path),
            hint="move it away",
        )


def remove_made(folder: Path) -> tuple[str, ...]:
    """Remove what builds made in a folder, and the folder if it is then empty.

    Returns:
        Names of the remaining files. The folder then stays a build folder.

    Raises:
        UsageError: It is not a build folder (`not-a-build-folder`).
    """
    if not folder.is_dir():
        raise _not_a_folder(folder)
    if not is_build_folder(folder):
        if _is_empty(folder):
            return ()
        raise _not_ours(folder)
    _check_own(folder)
    with _locked(folder) as lock:
        if lock is None:
            return ()  # another process just removed it
        left = _remove_made(folder)
    if not left:
        with suppress(OSError):  # a link to the folder, or the folder we are in
            folder.rmdir()
    return left


def _remove_made(folder: Path) -> tuple[str, ...]:
    # A record proves nothing by itself, as it can be edited: only links of the form
    # that publishing makes are removed.
    links = [name for name in recorded_names(folder) if is_output(folder, name)]
    links += [n for n in (EXPORTED, CURRENT) if set_of(folder / n) is not None]
    for name in (*links, STORE, WORK):
        DISK.remove(folder / name)
    left = tuple(sorted({p.name for p in folder.iterdir()} - {MARKER, LOCK}))
    # The mark goes after everything else, so that a `clean` that was killed can be
    # repeated; the lock goes last, as others wait for it.
    if left:
        write_atomic(folder / MARKER, _record(()))
    else:
        DISK.remove(folder / MARKER)
    DISK.remove(folder / LOCK)
    return left


def _kind(path: Path) -> str:
    """The kind of a path, in words."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"a link to {os.readlink(path)}"  # noqa: PTH115
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a file" if stat.S_ISREG(mode) else "a pipe, socket or device"


def _no_locks() -> ToolchainError:
    return ToolchainError.of(
        "unsupported-system",
        "this system cannot lock a build folder",
        found=sys.platform,
        expected="Linux",
        hint="on Windows, build in WSL 2",
    )


def _not_a_folder(folder: Path) -> UsageError:
    return UsageError.of(
        "not-a-build-folder",
        f"{folder} is {_kind(folder)}, not a build folder",
        expected="a folder",
        hint="choose another folder with --out",
    )


def _not_ours(folder: Path) -> UsageError:
    names = sorted(path.name for path in folder.iterdir())
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return UsageError.of(
        "not-a-build-folder",
        f"{folder} is not a build folder of Orchestrator, and not empty",
        found=shown + (f" and {more} more" if more > 0 else ""),
        hint="choose a new or empty folder with --out; nothing was changed",
    )


def _in_the_way(path: Path) -> UsageError:
    return UsageError.of(
        "link-in-the-way",
        f"{path} is {_kind(path)}, which no build made",
        expected="what builds make there, or nothing",
        hint="remove it, or choose another folder with --out",
    )


def _taken(path: Path) -> Diagnostic:
    return Diagnostic.of(
        "name-taken",
        f"cannot publish {path.name}: {path} was not made by a build",
        found=_kind(path),
        hint="move it away, or choose another folder with --out",
    )


# Build folders of variants of a product, which reuse its objects.
#
# They lie in the build's work folder and touch nothing that is published. A variant starts as a
# copy of ninja's folder, with the times of all files, so that ninja compiles only what differs;
# when the product was compiled again since, it is copied again. A copy gets its final name when
# it is complete; a variant's build is atomic, too.

# Chosen by hand: the bisection of `test` and what-ifs of `report` go back and forth
# between a few.
_KEPT = 4  # variants; each is a copy of the product's objects
_SEED = "seed"
_NOT_COPIED = (VARIANTS, EVALUATIONS, STAMP_NAME, shared_file(STAMP_NAME))


def variant_folder(work: Path, name: str) -> Path:
    """The build folder of a variant, ready for its build.

    Args:
        work: Work folder of the product, whose build folder is locked.
        name: Name of the variant; an existing folder is reused.
    """
    variants = work / VARIANTS
    folder = variants / hashlib.sha256(name.encode()).hexdigest()[:12]
    _seed(work, folder)
    _forget(variants, keep=folder)
    return folder


def _seed(work: Path, folder: Path) -> None:
    """Copy the product's folder for a variant, unless these objects were copied."""
    log = work / ".ninja_log"
    # ninja logs every compile and link step.
    mark = hashlib.sha256(log.read_bytes() if log.exists() else b"").hexdigest()
    seed = folder / _SEED
    if seed.is_file() and seed.read_text() == mark:
        return
    # A copy that was cut off would look current to ninja, object by object.
    staging = folder.with_name(f"{folder.name}.tmp")
    for old in (staging, folder):
        DISK.remove(old)
    claim(staging)
    copy_work(work, staging / WORK)
    (staging / _SEED).write_text(mark)
    staging.replace(folder)


def copy_work(work: Path, copy: Path) -> None:
    """Copy ninja's folder with the times of its files, so that objects stay current."""
    shutil.copytree(
        work,
        copy,
        symlinks=True,
        ignore=lambda path, _: list(_NOT_COPIED) if path == str(work) else [],
    )


def _forget(variants: Path, *, keep: Path) -> None:
    """Remove the oldest variants."""
    keep.touch()
    others = [path for path in variants.iterdir() if path != keep]
    others.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in others[_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


# Notes of a build in its work folder for the next one: stages' inputs and results.
#
# If notes are damaged, or from another program, stages just run again.

_OUTPUTS: Final = "outputs"


class BuildNotes:
    """Notes of the last finished build.

    Args:
        work: Work folder of the build.
    """

    def __init__(self, work: Path) -> None:
        self._stages = work / "stages.json"
        self._results = work / "results"

    @cached_property
    def _noted(self) -> dict[str, dict[str, str]]:
        with suppress(OSError, ValidationError):
            adapter = TypeAdapter(dict[str, dict[str, str]])
            return adapter.validate_json(read_file(self._stages), strict=True)
        return {}

    @property
    def outputs(self) -> str | None:
        """Identity of the outputs; None if unknown."""
        return self._noted.get(_OUTPUTS, {}).get("identity")

    def inputs(self, label: str) -> Mapping[str, str] | None:
        """Digests by label of what a stage depended on; None if it did not run."""
        return self._noted.get(label)

    def result(self, label: str, key: str) -> object | None:
        """The value that a stage made, if it was recorded under this key."""
        # If a file is damaged or not ours, the stage just runs again.
        with suppress(Exception):
            # A pickle runs code when it is read. This one is from a folder that only
            # builds of this user write; published objects are other files for that
            # reason (decision 0036).
            data = self._result_file(label).read_bytes()
            known, result = pickle.loads(data)  # noqa: S301  # ours
            return result if known == key else None
        return None

    def write(
        self,
        inputs: Mapping[str, Mapping[str, str]],
        results: Iterable[tuple[str, str, object]],
        *,
        outputs: str,
    ) -> None:
        """Replace the notes.

        Args:
            inputs: By label of a stage: digests by label.
            results: Label and key of a stage with its value.
            outputs: Identity of the outputs.

        Raises:
            OSError: They cannot be written.
        """
        for label, key, result in results:
            write_if_changed(self._result_file(label), pickle.dumps((key, result)))
        noted = {**inputs, _OUTPUTS: {"identity": outputs}}
        text = json.dumps(noted, indent=1, sort_keys=True, default=dict)
        write_atomic(self._stages, text.encode())

    def _result_file(self, label: str) -> Path:
        return self._results / f"{label.replace(' ', '-')}.pickle"
