"""Publishing outputs: a whole set becomes visible in one step.

The build folder holds links `NAME -> current/NAME`, and `current` is a link to the
folder of one finished build. Changing `current` is atomic, so whoever looks sees the
previous set or the new one, also after a kill at any moment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestrator.shell.files import link_to, write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CURRENT = "current"
STORE = ".out"
_ELF = b"\x7fELF"


def publish(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a set of files the outputs of a build folder.

    A set that is there already is not written again.

    Args:
        folder: The build folder.
        files: Bytes by POSIX path relative to the folder.
    """
    store = folder / STORE
    target = _free_or_equal(store, identity_of(files)[:16], files)
    # Only a set that is complete has its final name.
    if not target.is_dir():
        staging = store / f"{target.name}.tmp"
        shutil.rmtree(staging, ignore_errors=True)
        for name, data in files.items():
            is_program = data.startswith(_ELF)
            write_atomic(staging / name, data, executable=is_program)
            _keep_time(staging / name, data, before=folder / CURRENT / name)
        staging.replace(target)
    link_to(folder / CURRENT, f"{STORE}/{target.name}")
    names = {name.partition("/")[0] for name in files}
    for name in sorted(names):
        _remove_empty(folder / name)
        link_to(folder / name, f"{CURRENT}/{name}")
    _forget(folder, keep=target.name, names=names)


def _keep_time(path: Path, data: bytes, *, before: Path) -> None:
    """Give a file the time it had in the set before, if it has the same bytes.

    Builds that use it then see no change.
    """
    with suppress(OSError):
        if before.read_bytes() == data:
            found = before.stat()
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _free_or_equal(store: Path, name: str, files: Mapping[str, bytes]) -> Path:
    """A folder with just these bytes, or one that does not exist yet."""
    number = 0
    while True:
        target = store / (f"{name}-{number}" if number else name)
        if not target.is_dir() or _holds(target, files):
            return target
        number += 1


def _holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    try:
        return all((folder / n).read_bytes() == data for n, data in files.items())
    except OSError:
        return False


def _remove_empty(path: Path) -> None:
    """Remove a folder without files: ninja makes those of outputs before it starts us.

    One with files is left, and the system then refuses to put a link in its place.
    """
    if path.is_symlink() or not path.is_dir():
        return
    for inner in path.iterdir():
        _remove_empty(inner)
    with suppress(OSError):
        path.rmdir()


def _forget(folder: Path, *, keep: str, names: set[str]) -> None:
    """Remove sets that are no longer published, and links that lead nowhere."""
    for path in (folder / STORE).iterdir():
        if path.name != keep:
            shutil.rmtree(path, ignore_errors=True)
    for path in folder.iterdir():
        if path.is_symlink() and path.name not in names and path.name != CURRENT:
            with suppress(OSError):
                path.unlink()


def identity_of(files: Mapping[str, bytes]) -> str:
    """Digest of a set of files, by path and bytes."""
    identity = hashlib.sha256()
    for name in sorted(files):
        found = hashlib.sha256(files[name]).hexdigest()
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
