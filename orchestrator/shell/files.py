"""Files: atomic writes, writes only where something changes, links."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


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
