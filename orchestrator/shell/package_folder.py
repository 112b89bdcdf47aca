"""Writes packages to folders, and never over files of the user.

As build folders, they are marked, and what is not in the record belongs to the user.
The record has a digest of each file: one that the user changed is the user's as well.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from orchestrator.errors import Diagnostic, UsageError
from orchestrator.shell.files import DISK, write_atomic, write_if_changed

MARKER: Final = ".orchestrator-package.json"
_SHOWN: Final = 5


def check_package_folder(folder: Path) -> None:
    """Refuse a folder that is no package, before a long build makes one for it.

    Raises UsageError, as `write_package` does.
    """
    _check_links(folder, ())
    _check(folder, {}, _record(folder))


def write_package(folder: Path, files: Mapping[str, bytes]) -> int:
    """Make a folder hold the files of a package, and remove those of the one before.

    Args:
        folder: New, empty, or of a package.
        files: By POSIX path.

    Returns:
        How many files changed.

    Raises:
        UsageError: The folder is not a package, or it or a folder in it is a link
            (`not-a-package`), or the user made or changed a file in it (`name-taken`).
            Nothing was written.
    """
    # Once for the folder, before the record in it is read, and once for all names: with
    # the record known.
    _check_links(folder, ())
    before = _record(folder)
    _check_links(folder, {*files, *before})
    new = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    _check(folder, new, before)
    folder.mkdir(parents=True, exist_ok=True)
    # Should this be killed, files of either package are ours.
    _mark(folder, {n: {*before.get(n, ()), *_one(new, n)} for n in {*before, *new}})
    changed = 0
    for name, data in sorted(files.items()):
        # Build systems compile again what has a new time.
        changed += write_if_changed(folder / name, data)
    for name in sorted(before.keys() - new.keys()):
        if _is_ours(folder / name, before[name]):  # else the user changed it
            DISK.unlink(folder / name)
            changed += 1
        _remove_empty((folder / name).parent, top=folder)
    # The first mark allows either package; this one what is there.
    _mark(folder, {name: {digest} for name, digest in new.items()})
    return changed


def _one(digests: Mapping[str, str], name: str) -> tuple[str, ...]:
    return (digests[name],) if name in digests else ()


def _mark(folder: Path, made: Mapping[str, Iterable[str]]) -> None:
    record = {name: sorted(digests) for name, digests in sorted(made.items())}
    text = json.dumps({"schema": 1, "made": record}, indent=1)
    write_atomic(folder / MARKER, f"{text}\n".encode())


def _record(folder: Path) -> dict[str, frozenset[str]]:
    """Digests of the files that we made, by path."""
    try:
        text = (folder / MARKER).read_bytes()
    except OSError:
        return {}
    try:
        made = json.loads(text)["made"]
        # The record decides what is removed, and anybody may have written it.
        if not any(name.startswith("/") or ".." in name.split("/") for name in made):
            return {name: frozenset(digests) for name, digests in made.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise UsageError.of(
        "not-a-package",
        f"{folder / MARKER} is damaged",
        hint="remove the folder, or choose another one with --out",
    )


def _check_links(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder that is a link, or has one on the way to a file of it.

    Links above it are the user's: a home may be one. Raises UsageError.
    """
    ways = {p for n in names for p in (folder / n).parents if folder in p.parents}
    if linked := sorted(path for path in {folder, *ways} if path.is_symlink()):
        raise UsageError.of(
            "not-a-package",
            f"cannot write through {linked[0]}, which is a link",
            found=f"it leads to {linked[0].readlink()}",
            hint="choose a folder without links with --out; nothing was changed",
        )


def _check(folder: Path, new: Mapping[str, str], before: Mapping[str, frozenset[str]]) -> None:
    """Reject a folder or file that we did not make. Raises UsageError."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise _not_a_package(folder, "not a folder")
    there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
    if there and MARKER not in there:
        more = len(there) - _SHOWN
        shown = ", ".join(there[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        raise _not_a_package(folder, shown)
    taken = [
        path
        for name in sorted(new)
        if os.path.lexists(path := folder / name)
        and not _is_ours(path, {*before.get(name, ()), new[name]})
    ]
    UsageError.raise_if([_taken(path) for path in taken])


def _is_ours(path: Path, digests: Iterable[str]) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest() in digests
    return False


def _remove_empty(folder: Path, *, top: Path) -> None:
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent


def _not_a_package(folder: Path, found: str) -> UsageError:
    return UsageError.of(
        "not-a-package",
        f"{folder} is not a package of Orchestrator, and not empty",
        found=found,
        hint="choose a new or empty folder with --out; nothing was changed",
    )


def _taken(path: Path) -> Diagnostic:
    return Diagnostic.of(
        "name-taken",
        f"cannot write {path}: it was not made or was changed since",
        expected="the file as `orchestrator package` wrote it",
        hint="move it away, or choose another folder with --out",
    )
