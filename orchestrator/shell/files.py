"""Files: bounded reads, atomic writes, writes only where something changes, links."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MOST_PROFILE_BYTES = 1 << 20
MOST_LIST_BYTES = 4 << 20
MOST_TEXT_BYTES = 16 << 20
MOST_BYTES = 2 << 30
"""Of a profile, of a list of operators or kernels, of any other text, of a program or
its data: far more than any has."""

_UNUSABLE = (
    (stat.S_ISDIR, errno.EISDIR, "a folder"),
    (stat.S_ISFIFO, errno.EINVAL, "a pipe"),
    (stat.S_ISSOCK, errno.EINVAL, "a socket"),
    (stat.S_ISCHR, errno.EINVAL, "a device"),
    (stat.S_ISBLK, errno.EINVAL, "a device"),
)


def read_file(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Bytes of a file that somebody named, who may have meant something else.

    Args:
        path: Of a regular file. A device may never end, and a pipe never begin.
        most_bytes: A larger file is not read.

    Raises:
        OSError: It cannot be read; `strerror` says why.
    """
    found = path.stat()
    for is_kind, number, kind in _UNUSABLE:
        if is_kind(found.st_mode):
            raise OSError(number, f"it is {kind}, not a file", str(path))
    if found.st_size > most_bytes:
        sizes = f"{found.st_size:,} bytes, more than {most_bytes:,}"
        raise OSError(errno.EFBIG, sizes, str(path))
    return path.read_bytes()


def read_text_file(
    path: Path, *, encoding: str = "utf-8", most_bytes: int = MOST_TEXT_BYTES
) -> str:
    """The same for text, of which every line ends in a newline.

    Raises:
        OSError: It cannot be read; `strerror` says why.
        UnicodeDecodeError: It is not text in this encoding.
    """
    data = read_file(path, most_bytes=most_bytes)
    return io.TextIOWrapper(io.BytesIO(data), encoding=encoding).read()


def read_own_json(path: Path) -> object:
    """What an earlier run noted; None if it is missing, damaged or somebody else's."""
    with suppress(OSError, ValueError, RecursionError):
        return json.loads(read_text_file(path))
    return None


def write_atomic(
    path: Path, data: bytes, *, executable: bool = False, durable: bool = True
) -> None:
    """Replace a file in one step: readers see the old bytes or the new ones.

    Args:
        path: Of the file; its folder is made.
        data: All its bytes.
        executable: Whoever may read it may run it.
        durable: Also after the machine loses power.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            if executable:
                mode = os.fstat(file.fileno()).st_mode
                os.fchmod(file.fileno(), mode | (mode & 0o444) >> 2)
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
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
    temporary.symlink_to(target)
    temporary.replace(link)
