"""Publishing outputs: a whole set becomes visible in one step, and the lock with it.

The build folder holds links `NAME -> current/NAME`, and `current` is a link to the
folder of one finished build. Changing `current` is atomic, so readers see the
previous set or the new one, even after a kill at any moment. Steps that may fail, by a
full disk or a name that is taken, come before; an error leaves set and lock as they
were. Files left behind by a kill are removed by the next build of the folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from orchestrator.core.lazy_bytes import Bytes, sha256_of
from orchestrator.shell.build_folder import (
    CURRENT,
    EXPORTED,
    STORE,
    check_exported,
    check_lock,
    check_names,
    is_output,
    record_names,
    recorded_names,
    set_of,
)
from orchestrator.shell.files import DISK, Files, has_bytes
from orchestrator.shell.signals import undisturbed

_ELF = b"\x7fELF"
_NEW, _OLD = "new", "old"
"""Names in the store of the links that `current` is replaced by, and reset by."""


def publish(
    folder: Path,
    outputs: Mapping[str, Bytes],
    *,
    lock: Path | None = None,
    lock_data: bytes | None = None,
    files: Files = DISK,
) -> None:
    """Publish a set of files as the outputs of a build folder, and write the lock.

    A set that exists already is not written again.

    Args:
        folder: The build folder; it is marked, and this process has locked it.
        outputs: Bytes by POSIX path relative to the folder.
        lock: Path of the lock; the target of a link is replaced.
        lock_data: Its new bytes; None leaves it as it is.
        files: The file system.

    Raises:
        UsageError: A name is taken by something that no build made, or the lock is
            not a file (`name-taken`).
        OSError: A file cannot be written. Set and lock are as they were.
    """
    # All that can fail comes first: names that are taken, the set, the lock beside its
    # place, links of new outputs. Then one rename makes the set visible, and the next
    # one the lock (decision 0002).
    names = {name.partition("/")[0] for name in outputs}
    check_names(folder, names)
    if lock is not None:
        # The lock of a profile may be a link into another repository: the file there is
        # replaced, the link stays (decision 0012).
        lock = Path(os.path.realpath(lock))
        check_lock(lock)
    with ExitStack() as undo:
        target = _write_set(folder, outputs, CURRENT, files, undo)
        new_lock = None
        if lock is not None:
            new_lock = _write_lock(folder, lock, lock_data, files, undo)
        # Recorded before the links are made: a build killed in between leaves names
        # that `clean` knows.
        record_names(folder, recorded_names(folder) | names, files=files)
        for name in sorted(names):
            if not is_output(folder, name):
                _remove_empty(folder / name, files)
                undo.callback(_unlink_output, folder, name, files)
                files.link(folder / name, f"{CURRENT}/{name}")
        # The last thing that may fail for want of space.
        switch = _prepare_switch(folder, CURRENT, target, files, undo)
        # A signal between the two renames would give a set with the lock of another.
        # Only SIGKILL and a loss of power can come in between; the next build then
        # writes the lock.
        with undisturbed():
            switch()
            if lock is not None and new_lock is not None:
                files.rename(new_lock, lock)
            # From here on nothing is taken back: what follows is tidying.
            undo.pop_all()
            # What cannot be removed now is removed by the next build.
            with suppress(OSError):
                for name in sorted(recorded_names(folder) - names):
                    _unlink_output(folder, name, files)
                record_names(folder, names, files=files)
                _forget(folder, files)


def publish_exported(folder: Path, programs: Mapping[str, Bytes], *, files: Files = DISK) -> None:
    """Publish a set of files as `exported` of a build folder.

    Args:
        folder: The build folder; it is marked, and this process has locked it.
        programs: Bytes by POSIX path relative to `exported`.
        files: The file system.

    Raises:
        UsageError: No build made what is there now (`name-taken`).
        OSError: A file cannot be written. Nothing changed.
    """
    check_exported(folder)
    with ExitStack() as undo:
        target = _write_set(folder, programs, EXPORTED, files, undo)
        switch = _prepare_switch(folder, EXPORTED, target, files, undo)
        with undisturbed():
            switch()
            undo.pop_all()
            _forget_quietly(folder, files)


def _write_set(
    folder: Path, outputs: Mapping[str, Bytes], link: str, files: Files, undo: ExitStack
) -> str:
    """Write a set of files to the store unless it is there; returns its name."""
    store = folder / STORE
    # 64 of 256 bits, to keep paths short. A collision, or a set that somebody changed,
    # gets a number behind its name.
    name = _free_or_equal(store, identity_of(outputs)[:16], outputs)
    undo.callback(_forget_quietly, folder, files)
    if (store / name).is_dir():
        return name
    # Only a complete set gets its final name.
    staging = store / f"{name}.tmp"
    # Left by a build that was killed.
    files.remove(staging)
    for path in sorted({(staging / n).parent for n in outputs} | {staging}):
        files.make_folder(path)
    for output, data in outputs.items():
        # Products for the host are programs, which people start from the build folder.
        files.write(staging / output, data, executable=bytes(data[: len(_ELF)]) == _ELF)
        _keep_time(staging / output, data, before=folder / link / output)
    files.rename(staging, store / name)
    return name


def _keep_time(path: Path, data: Bytes, *, before: Path) -> None:
    """Give a file the time of its predecessor, if that has the same bytes.

    Builds that depend on it then see no change.
    """
    with suppress(OSError):
        if has_bytes(before, data):
            found = before.stat()
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _free_or_equal(store: Path, name: str, outputs: Mapping[str, Bytes]) -> str:
    """Name of a set with exactly these bytes, or a name that is free."""
    number = 0
    while True:
        found = f"{name}-{number}" if number else name
        path = store / found
        if not os.path.lexists(path) or _holds(path, outputs):
            return found
        number += 1


def _holds(path: Path, outputs: Mapping[str, Bytes]) -> bool:
    try:
        return not path.is_symlink() and all(
            has_bytes(path / n, data) for n, data in outputs.items()
        )
    except OSError:
        return False


def _write_lock(
    folder: Path, lock: Path, data: bytes | None, files: Files, undo: ExitStack
) -> Path | None:
    """Write the lock to a temporary file beside it, if it changes.

    Its name has a digest of the build folder, so that the next build of that folder
    removes what a killed build left.
    """
    # Builds of several folders may write locks side by side; each removes its own
    # leftovers only.
    place = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:8]
    temporary = lock.with_name(f".{lock.name}.{place}.tmp")
    try:
        if os.path.lexists(temporary):
            files.unlink(temporary)
        if data is None:
            return None
        undo.callback(_unlink, temporary, files)
        files.make_folder(lock.parent)
        files.write(temporary, data)
    except OSError as error:
        # Name the lock, not the temporary file.
        raise OSError(error.errno, error.strerror, str(lock)) from error
    return temporary


def _prepare_switch(
    folder: Path, name: str, target: str, files: Files, undo: ExitStack
) -> Callable[[], None]:
    """A function that points a link to a set in one step; undoing is one step, too."""
    link, store = folder / name, folder / STORE
    before = set_of(link)
    # Also the link back: undoing is then a rename, which needs no free block on a full
    # disk.
    for prepared, to in ((_NEW, target), (_OLD, before)):
        files.remove(store / prepared)
        if to is not None:
            files.link(store / prepared, f"{STORE}/{to}")

    def back() -> None:
        if set_of(link) == before:
            return
        with suppress(OSError):
            if before is None:
                files.unlink(link)
            else:
                files.rename(store / _OLD, link)

    def switch() -> None:
        if before != target:
            files.rename(store / _NEW, link)

    undo.callback(back)
    return switch


def _remove_empty(path: Path, files: Files) -> None:
    """Remove a folder without files: ninja makes folders of outputs beforehand."""
    if path.is_symlink() or not path.is_dir():
        return
    for inner in path.iterdir():
        _remove_empty(inner, files)
    files.remove_folder(path)


def _unlink_output(folder: Path, name: str, files: Files) -> None:
    if is_output(folder, name):
        _unlink(folder / name, files)


def _unlink(path: Path, files: Files) -> None:
    with suppress(OSError):
        files.unlink(path)


def _forget(folder: Path, files: Files) -> None:
    """Remove sets from the store that are not published."""
    keep = {set_of(folder / CURRENT), set_of(folder / EXPORTED)}
    for path in sorted((folder / STORE).iterdir()):
        if path.name not in keep:
            files.remove(path)


def _forget_quietly(folder: Path, files: Files) -> None:
    with suppress(OSError):
        _forget(folder, files)


def identity_of(outputs: Mapping[str, Bytes]) -> str:
    """Digest of a set of files, by path and bytes."""
    identity = hashlib.sha256()
    for name in sorted(outputs):
        found = sha256_of(outputs[name])
        identity.update(f"{name}\0{found}\n".encode())
    return identity.hexdigest()


def published_files(folder: Path) -> dict[str, bytes]:
    """Every published file by its POSIX path."""
    root = folder / CURRENT
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
