"""Read files of a place that others write: a folder, HTTP, S3 or another URL of fsspec.

Whoever has the place may let a connection wait, send one byte a second or for ever, or
put a pipe in the place of a file. So the caller says how many bytes a file may have,
and a request ends when nothing comes or too little. What it waited for is left behind.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Any, Final

from orchestrator.errors import Diagnostic, ToolchainError
from orchestrator.shell.distribution import pip_install

if TYPE_CHECKING:
    from collections.abc import Mapping

_AT_ONCE: Final = 16
"""Files of a request that are on their way."""
_CHUNK_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long a place may take; docs/fleet.md has the numbers.

    Args:
        silent_s: Nothing arrives; connecting included.
        total_s: A whole request, however many files it is about ...
        bytes_per_s: ... and a second more for each so many bytes that arrived: a
            program of 100 MB takes its time. 0 for no more time.
    """

    silent_s: float = 10.0
    total_s: float = 30.0
    bytes_per_s: int = 64 << 10


class _Request:
    """What has arrived, told by who reads, and how long others wait for the rest."""

    def __init__(self, waits: Waits) -> None:
        self.found: dict[str, bytes] = {}
        self.problem: Exception | None = None
        self.ended = Event()
        self._waits = waits
        self._begin = self._last = time.monotonic()
        self._bytes = 0
        self._is_over = False

    def arrived(self, size_bytes: int) -> None:
        """Some bytes came. Raises TimeoutError where nobody waits any more."""
        if self._is_over:
            raise TimeoutError
        self._bytes += size_bytes
        self._last = time.monotonic()

    def wait(self) -> dict[str, bytes]:
        """Files by path, when all are there. Raises what reading them raised."""
        waits = self._waits
        while not self.ended.is_set():
            now = time.monotonic()
            more_s = self._bytes / waits.bytes_per_s if waits.bytes_per_s else 0
            silent_s = self._last + waits.silent_s - now
            slow_s = self._begin + waits.total_s + more_s - now
            if min(silent_s, slow_s) <= 0:
                self._is_over = True
                what = "no answer" if not self._bytes else "nothing arrived"
                if silent_s <= 0:
                    raise TimeoutError(f"{what} for {waits.silent_s:g} s")
                came = f"{self._bytes:,} bytes arrived in {now - self._begin:.0f} s"
                raise TimeoutError(f"too slow: {came}")
            self.ended.wait(min(silent_s, slow_s))
        if self.problem is not None:
            raise self.problem
        return self.found


def is_s3(url: str) -> bool:
    """Whether a URL names a place in S3."""
    return url.startswith(("s3://", "s3a://"))


def unusable(url: str, found: str, hint: str) -> ToolchainError:
    """The error about a place that cannot be used."""
    return ToolchainError(
        Diagnostic(
            code="published-unusable",
            message=f"{url} cannot be used for published objects",
            notes=(("found", found),),
            hint=hint,
        )
    )


def place_at(url: str, waits: Waits) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. Raises ToolchainError."""
    if url.startswith(("redis://", "rediss://")):
        found = "fsspec has no file system for Redis"
        hint = (
            "use a folder, HTTP or S3; objects alone can come from a Redis by ccache,"
        )
        raise unusable(url, found, f"{hint} see docs/fleet.md")
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415

        options: dict[str, Any] = {}
        if url.startswith(("http://", "https://")):
            from aiohttp import ClientTimeout  # noqa: PLC0415

            # `_Request` ends requests; this ends what it left behind.
            timeout = ClientTimeout(
                sock_connect=waits.silent_s, sock_read=waits.silent_s
            )
            # Bytes are counted as they come: a little of gzip may become gigabytes.
            session = {
                "timeout": timeout,
                "auto_decompress": False,
                "headers": {"Accept-Encoding": "identity"},
            }
            options = {"client_kwargs": session}
        elif is_s3(url):
            # It tries again five times by itself, and so does s3fs around it.
            once = {
                "connect_timeout": waits.silent_s,
                "read_timeout": waits.silent_s,
                "retries": {"max_attempts": 0},
            }
            options = {"config_kwargs": once}
        place, root = url_to_fs(url, **options)
    except (ImportError, ValueError) as error:
        extra = "s3" if is_s3(url) else "fleet"
        raise unusable(url, str(error), pip_install(extra)) from error
    return place, str(root).rstrip("/")


def read_files(
    place: Any,  # noqa: ANN401  # fsspec
    most_bytes: Mapping[str, int],
    waits: Waits,
) -> dict[str, bytes]:
    """Files of a place by path; those that it does not have are left out.

    Args:
        place: A file system of fsspec.
        most_bytes: By path: how many bytes are read. A larger file is cut there, one
            byte later.
        waits: How long to wait.

    Raises:
        Exception: A file cannot be read: each kind of place has errors of its own.
        TimeoutError: Too little arrives.
    """
    request = _Request(waits)
    if {"http", "s3"} & {*place.protocol}:
        done = asyncio.run_coroutine_threadsafe(
            _read_all(place, most_bytes, request), place.loop
        )
        done.add_done_callback(lambda _: request.ended.set())
        try:
            return request.wait()
        finally:
            done.cancel()
    # It may never return: Python ends without waiting for it.
    Thread(target=_read_each, args=(place, most_bytes, request), daemon=True).start()
    return request.wait()


async def _read_all(
    place: Any,  # noqa: ANN401
    most_bytes: Mapping[str, int],
    request: _Request,
) -> None:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def read(path: str, most: int) -> None:
        async with turns:
            stream = await place.open_async(path, "rb", size=most)
            data = bytearray()
            try:
                while len(data) <= most:
                    chunk = await stream.read(min(most + 1 - len(data), _CHUNK_BYTES))
                    request.arrived(len(chunk))
                    data += chunk
                    if not chunk:
                        break
                request.found[path] = bytes(data)
            except FileNotFoundError:
                request.arrived(0)
            finally:
                # One that was read to its end gave its connection back.
                if stream.r is not None:
                    stream.r.close()
                await stream.close()

    try:
        async with asyncio.TaskGroup() as tasks:
            for path, most in most_bytes.items():
                tasks.create_task(read(path, most))
    except ExceptionGroup as group:
        request.problem = group.exceptions[0]


def _read_each(
    place: Any,  # noqa: ANN401
    most_bytes: Mapping[str, int],
    request: _Request,
) -> None:
    opened = _regular_file if "file" in place.protocol else place.open
    try:
        for path, most in most_bytes.items():
            data = bytearray()
            with suppress(FileNotFoundError):
                with opened(path) as file:
                    while chunk := file.read(min(most + 1 - len(data), _CHUNK_BYTES)):
                        data += chunk
                        request.arrived(len(chunk))
                request.found[path] = bytes(data)
            request.arrived(0)
    except Exception as error:  # noqa: BLE001  # another thread raises it
        request.problem = error
    finally:
        request.ended.set()


def _regular_file(path: str) -> IO[bytes]:
    """An open file of a folder: a pipe may never start, a device may never end."""
    file = open(  # noqa: SIM115  # the caller closes it
        path, "rb", buffering=0, opener=lambda p, f: os.open(p, f | os.O_NONBLOCK)
    )
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a file", path)
    return file
