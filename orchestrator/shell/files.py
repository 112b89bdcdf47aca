"""Files: atomic writes, writes only where something changes, links."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class WriteError(OSError):
    """A file cannot be written; named as the user knows it, not a temporary one."""

    def __init__(self, error: OSError, path: Path) -> None:
        super().__init__(error.errno, error.strerror or str(error), str(path))

    def __str__(self) -> str:
        return f"cannot write {self.filename}: {reason_of(self)}"


def reason_of(error: OSError) -> str:
    """What the system says, as the end of a sentence: `permission denied`."""
    said = error.strerror or str(error)
    return said[:1].lower() + said[1:]


def write_atomic(
    path: Path, data: bytes, *, executable: bool = False, durable: bool = True
) -> None:
    """Replace a file in one step: readers see the old bytes or the new ones.

    Args:
        path: Of the file; its folder is made.
        data: All its bytes.
        executable: Whoever may read it may run it.
        durable: Also after the machine loses power.

    Raises:
        WriteError: It cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            if executable:
                mode = os.fstat(file.fileno()).st_mode
                os.fchmod(file.fileno(), mode | (mode & 0o444) >> 2)
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise WriteError(error, path) from error
        raise


def write_if_changed(path: Path, data: bytes) -> bool:
    """Write a file unless it has these bytes; whether it was written.

    A file that keeps its bytes keeps its time, so that ninja sees no change. Bytes that
    a loss of power spoils are other bytes, and so are written again.
    """
    with suppress(OSError):
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            return False
    write_atomic(path, data, durable=False)
    return True


def link_to(link: Path, target: str) -> None:
    """Make `link` a symbolic link to `target`, in one step."""
    with suppress(OSError):
        if os.readlink(link) == target:  # noqa: PTH115  # Path.readlink normalises
            return
    link.parent.mkdir(parents=True, exist_ok=True)
    temporary = link.with_name(f".{link.name}.{os.getpid()}.tmp")
    with suppress(OSError):
        temporary.unlink()
    try:
        temporary.symlink_to(target)
        temporary.replace(link)
    except OSError as error:
        raise WriteError(error, link) from error


def check_writable(path: Path) -> None:
    """See whether `write_atomic` could write a file; nothing is left behind.

    Asking for permissions would not do: they are not all that there is (read-only and
    full file systems, access control lists).

    Raises:
        WriteError: It could not.
    """
    folder = next(p for p in path.absolute().parents if p.exists())
    temporary = folder / f".{path.name}.{os.getpid()}.tmp"
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        raise WriteError(error, path) from error
