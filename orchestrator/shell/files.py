"""Files: bounded reads, atomic writes, writes only where something changes.

Nothing here follows a link in the place of a file or folder that is to be written.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

from orchestrator.core.lazy_bytes import CHUNK_BYTES, LARGE, Bytes, LazyBytes, chunks_of, settled
from orchestrator.errors import ModelError, UsageError
from orchestrator.shell.stamp import State, state_of

# From decision 0019: 1 MiB, 4 MiB, 16 MiB, 2 GiB. Lists of operators take seconds per
# MiB to read, and none has more than one; a flatbuffer has 32-bit signed offsets, so
# that no program exceeds 2 GiB. tests/unit/test_input_limits.py holds them.
MOST_PROFILE_BYTES = 1 << 20
MOST_LIST_BYTES = 4 << 20
MOST_TEXT_BYTES = 16 << 20
MOST_BYTES = 2 << 30
"""Limits for a profile, a list of operators or kernels, any other text, a program or
its data: far above any real size."""

_UNUSABLE = (
    (stat.S_ISDIR, errno.EISDIR, "a folder"),
    (stat.S_ISFIFO, errno.EINVAL, "a pipe"),
    (stat.S_ISSOCK, errno.EINVAL, "a socket"),
    (stat.S_ISCHR, errno.EINVAL, "a device"),
    (stat.S_ISBLK, errno.EINVAL, "a device"),
)


def read_file(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Bytes of a file that the user named, possibly by mistake.

    Args:
        path: Must be a regular file: a device may never end, a pipe may never start.
            Or the name of what `remember_pipe` has read, where no file has it.
        most_bytes: A larger file is not read.

    Raises:
        OSError: It cannot be read; `strerror` says why.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        if path in _pipes:
            return _pipes[path][1]
        raise
    for is_kind, number, kind in _UNUSABLE:
        if is_kind(found.st_mode):
            raise OSError(number, f"it is {kind}, not a file", str(path))
    # By the size that the file system says, before a byte is read.
    if found.st_size > most_bytes:
        sizes = f"{found.st_size:,} bytes, more than {most_bytes:,}"
        raise OSError(errno.EFBIG, sizes, str(path))
    return path.read_bytes()


_pipes: dict[Path, tuple[int, bytes]] = {}
"""What pipes gave, with their inodes."""


def remember_pipe(path: Path, descriptor: int) -> None:
    """Read all that a pipe gives, a profile: only once, as it gives nothing twice.

    Args:
        path: A name under which `read_file` finds it from now on.
        descriptor: Of the pipe.

    Raises:
        OSError: It is closed, a terminal, or gives too much.
    """
    # /dev/fd/63 names another pipe in the next process substitution of the same shell.
    inode = os.fstat(descriptor).st_ino
    if path in _pipes and _pipes[path][0] == inode:
        return
    if os.isatty(descriptor):
        raise OSError(errno.EINVAL, "it is a terminal, not a pipe or a file", str(path))
    chunks, size = [], 0
    while chunk := os.read(descriptor, CHUNK_BYTES):
        chunks.append(chunk)
        size += len(chunk)
        if size > MOST_PROFILE_BYTES:
            what = f"more than {MOST_PROFILE_BYTES:,} bytes"
            raise OSError(errno.EFBIG, what, str(path))
    _pipes[path] = inode, b"".join(chunks)


class FileBytes(LazyBytes):
    """Bytes of a file, which stays as it is while it is read.

    Each piece is read from the file, and none is kept: a mapping of it would end the
    process with a signal if the file became shorter.

    Args:
        path: Of the file.
        state: As it was found, see `state_of`.
        begin: First byte.
        end: End, exclusive.
    """

    __slots__ = ("_begin", "_end", "_path", "_state")

    def __init__(self, path: str, state: State, begin: int, end: int) -> None:
        super().__init__()
        self._path = path
        self._state = state
        self._begin = begin
        self._end = end

    def __len__(self) -> int:
        return self._end - self._begin

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `LazyBytes`.

        Raises:
            ModelError: The file is not what it was.
        """
        return self._read(CHUNK_BYTES)

    def __bytes__(self) -> bytes:
        return b"".join(self._read(len(self)))

    def _read(self, most_bytes: int) -> Iterator[bytes]:
        try:
            # Unbuffered: a buffer would read ahead, and then hide that the file
            # changed.
            with open(self._path, "rb", buffering=0) as file:  # noqa: PTH123
                file.seek(self._begin)
                left = len(self)
                while left:
                    chunk = file.read(min(left, most_bytes))
                    # After each piece: what was read before the change is right, what
                    # comes after it may not be.
                    if not chunk or state_of(self._path) != self._state:
                        raise self._changed("its size, its time or the file is another")
                    left -= len(chunk)
                    yield chunk
        except OSError as error:
            raise self._changed(reason_of(error)) from error

    def _changed(self, found: str) -> ModelError:
        return ModelError.of(
            "changed-file",
            f"{self._path} changed while it was read",
            found=found,
            hint="run the command again when nothing writes the file",
        )

    def part(self, begin: int, end: int) -> Bytes:
        """See `LazyBytes`."""
        found = FileBytes(self._path, self._state, self._begin + begin, self._begin + end)
        return settled(found)

    def __reduce__(self) -> tuple[Callable[..., FileBytes], tuple[str, State, int, int, str]]:
        return _same_file, (self._path, self._state, self._begin, self._end, self._sha256)


def _same_file(path: str, state: State, begin: int, end: int, sha256: str) -> FileBytes:
    """What was noted of a file, if it still is as it was.

    Raises:
        OSError: It is not.
    """
    if state_of(path) != state:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
    found = FileBytes(path, state, begin, end)
    found._sha256 = sha256  # noqa: SLF001  # its own
    return found


def lazy_file(path: Path, *, most_bytes: int = MOST_BYTES) -> Bytes:
    """The bytes of a file; those of a large one are read when they are needed.

    Raises:
        OSError: It cannot be read; `strerror` says why.
    """
    absolute = str(path.absolute())
    state = state_of(absolute)
    # `read_file` has all errors; small files are not worth a second open.
    if not state or not LARGE <= state[0] <= most_bytes or not path.is_file():
        return read_file(path, most_bytes=most_bytes)
    found = FileBytes(absolute, state, 0, state[0])
    with open(absolute, "rb"):  # noqa: PTH123  # it may be read
        return found


def read_text_file(
    path: Path, *, encoding: str = "utf-8", most_bytes: int = MOST_TEXT_BYTES
) -> str:
    """The text of a file; every line end becomes a newline.

    Raises:
        OSError: It cannot be read; `strerror` says why.
        UnicodeDecodeError: It is not text in this encoding.
    """
    data = read_file(path, most_bytes=most_bytes)
    return io.TextIOWrapper(io.BytesIO(data), encoding=encoding).read()


def read_own_json(path: Path) -> object:
    """Notes of an earlier run; None if missing, damaged or of another user."""
    with suppress(OSError, ValueError, RecursionError):
        return json.loads(read_text_file(path))
    return None


# The only way in which publishing changes a disk: tests/unit/shell/test_publish.py lets
# each operation fail in turn, and stops after each as a kill would. A step that
# bypasses this class is not in these tests.
class Files:
    """Operations that change the file system; each is one step that may fail."""

    def make_folder(self, path: Path) -> None:
        """Make a folder and those above it, unless they are there."""
        path.mkdir(parents=True, exist_ok=True)

    def write(self, path: Path, data: Bytes, *, executable: bool = False) -> None:
        """Write a new file durably: it survives a loss of power."""
        write_new(path, data, executable=executable, durable=True)

    def link(self, path: Path, text: str) -> None:
        """Make a new symbolic link."""
        path.symlink_to(text)

    def rename(self, old: Path, new: Path) -> None:
        """Rename in one step, replacing a file or link of that name."""
        old.replace(new)

    def unlink(self, path: Path) -> None:
        """Remove a file or a link."""
        path.unlink()

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        path.rmdir()

    def remove(self, path: Path) -> None:
        """Remove a file, folder or link; the target of a link stays."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


DISK = Files()
"""The file system that commands use."""


def remove_others(folder: Path, *, keep: Collection[Path]) -> None:
    """Remove files of a folder and of those below it, except some."""
    for path in folder.rglob("*"):
        if path.is_file() and path not in keep:
            path.unlink()


def write_new(path: Path, data: Bytes, *, executable: bool, durable: bool) -> None:
    """Write a new file; arguments are those of `write_atomic`."""
    with path.open("xb") as file:
        for chunk in chunks_of(data):
            file.write(chunk)
        file.flush()
        if executable:
            mode = os.fstat(file.fileno()).st_mode
            # Each x bit where there is an r bit: the user's umask decides for both.
            path.chmod(mode | (mode & 0o444) >> 2)
        if durable:
            # The folder is not synced: after a loss of power a rename may be undone,
            # and readers find the old file, never a half of the new one.
            os.fsync(file.fileno())


class WriteError(OSError):
    """A file cannot be written; names the user's path, not that of a temporary file."""

    def __init__(self, error: OSError, path: Path) -> None:
        # Nobody knows the temporary name, and it is gone.
        super().__init__(error.errno, error.strerror or str(error), str(path))

    def __str__(self) -> str:
        return f"cannot write {self.filename}: {reason_of(self)}"


def reason_of(error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read, as the end of a sentence: `permission denied`."""
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        return f"not text in UTF-8: byte 0x{byte:02x} at {error.start}"
    said = error.strerror or str(error)
    return said[:1].lower() + said[1:]


def remedy_for(error: OSError) -> str:
    """What to do about a file that cannot be read or written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free space on the disk, or name a place on another one"
    return "check path, permissions and free space"


def refused(error: OSError) -> UsageError:
    """What to say of a file that the system does not let us read or write."""
    file = error.filename2 or error.filename
    name = f"cannot access {os.fsdecode(file)}: " if file else ""
    said = str(error) if isinstance(error, WriteError) else f"{name}{reason_of(error)}"
    return UsageError.of("system-error", said, hint=remedy_for(error))


def write_atomic(
    path: Path, data: Bytes, *, executable: bool = False, durable: bool = True
) -> None:
    """Replace a file in one step: readers see the old bytes or the new ones.

    Args:
        path: Of the file; its folder is made. A link is replaced, not followed.
        data: All its bytes.
        executable: Everyone who may read it may run it.
        durable: It survives a loss of power.

    Raises:
        WriteError: It cannot be written.
    """
    # Beside the file, as rename works within one file system only; with the process's
    # number, as two commands may write one cache.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            temporary.unlink()
        write_new(temporary, data, executable=executable, durable=durable)
        temporary.replace(path)
    # Signals raise `Ended`, which is no Exception (shell/signals.py).
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise WriteError(error, path) from error
        raise


def has_bytes(path: Path, data: Bytes) -> bool:
    """Whether a file has exactly these bytes. Raises OSError."""
    if path.stat().st_size != len(data):
        return False
    with path.open("rb") as file:
        return all(file.read(len(chunk)) == chunk for chunk in chunks_of(data))


def write_if_changed(path: Path, data: Bytes) -> bool:
    """Write a file unless it has these bytes; returns whether it was written.

    A file that keeps its bytes keeps its time, so that ninja sees no change. It need
    not be durable: bytes that a loss of power damaged differ, and are written again.
    """
    with suppress(OSError):
        if has_bytes(path, data):
            return False
    write_atomic(path, data, durable=False)
    return True


def check_writable(path: Path) -> None:
    """Check whether `write_atomic` could write a file; leaves nothing behind.

    Checking permissions would not suffice: there are other causes (read-only and full
    file systems, access control lists).

    Raises:
        WriteError: It could not.
    """
    # `write_atomic` makes missing folders: whether it could depends on the last one
    # that is there.
    folder = next(p for p in path.absolute().parents if p.exists())
    temporary = folder / f".{path.name}.{os.getpid()}.tmp"
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        raise WriteError(error, path) from error
