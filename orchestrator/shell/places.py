"""Read files of a place that others write: a folder, HTTP, S3 or another URL of fsspec.

Whoever has the place may let a connection wait, send one byte a second or without end,
or put a pipe in the place of a file. So a file has a limit, and a request ends when
nothing arrives, or too little; what it waited for is left behind.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from threading import Event, Thread
from typing import IO, Any, Final

from orchestrator.errors import ToolchainError
from orchestrator.shell.distribution import pip_install

# Chosen by hand: enough to hide the delay of a network, and a place need not serve
# hundreds.
_AT_ONCE: Final = 16
"""Files that are on their way."""
# 256 KiB: also what is read of the body of an error of S3. Without that limit a server
# filled some 500 MiB a second until the time was over (docs/fleet.md names it,
# tests/integration/test_published_s3.py holds it).
_CHUNK_BYTES: Final = 1 << 18
_FIRST_FAILURE: Final = 300
"""First status code of HTTP whose body says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long a request may take, whatever it is about; docs/fleet.md has the numbers.

    Args:
        silent_s: Nothing arrives; connecting included.
        total_s: All of it ...
        bytes_per_s: ... and a second more whenever so much arrived; 0 for no more time.
    """

    # Chosen by hand; docs/fleet.md promises them,
    # tests/integration/test_hostile_places.py holds them.
    silent_s: float = 10.0
    total_s: float = 30.0
    bytes_per_s: int = 64 << 10


class _Request:
    """What has arrived, as the reader says, and how long the caller waits for more."""

    def __init__(self, waits: Waits) -> None:
        self.found: dict[str, bytes] = {}
        self.problem: Exception | None = None
        self.ended = Event()
        self._waits = waits
        # Not the clock of the wall, which a machine sets while it builds.
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
            # A large file may take longer than `total_s`, as long as it keeps coming; a
            # place that sends a byte a second does not get that time.
            more_s = self._bytes / waits.bytes_per_s if waits.bytes_per_s else 0
            slow_s = self._begin + waits.total_s + more_s - now
            silent_s = self._last + waits.silent_s - now
            self._is_over = min(silent_s, slow_s) <= 0
            if self._is_over and silent_s <= 0:
                what = "nothing more arrived" if self._bytes else "no answer"
                raise TimeoutError(f"{what} for {waits.silent_s:g} s")
            if self._is_over:
                came = f"{self._bytes:,} bytes in {now - self._begin:.0f} s"
                raise TimeoutError(f"too slow: {came}")
            self.ended.wait(min(silent_s, slow_s))
        if self.problem is not None:
            raise self.problem
        return self.found


def is_s3(url: str) -> bool:
    """Whether a URL names a place in S3."""
    return url.startswith(("s3://", "s3a://"))


def shown(text: str) -> str:
    """A URL, or a text with one, without user and password."""
    return re.sub("://[^/]*@", "://", text)


def unusable(url: str, found: str, hint: str) -> ToolchainError:
    """The error about a place that cannot be used."""
    return ToolchainError.of(
        "published-unusable",
        f"{shown(url)} cannot be used for published objects",
        found=shown(found),
        hint=hint,
    )


def place_at(url: str, waits: Waits) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. Raises ToolchainError."""
    if url.startswith(("redis://", "rediss://")):
        found = "fsspec has no file system for Redis"
        hint = "use a folder, HTTP or S3; objects alone can come from a Redis by ccache,"
        raise unusable(url, found, f"{hint} see docs/fleet.md")
    # `_Request` ends what is silent, and says so; where it cannot, the libraries do.
    # One second later than ours, whose message says what was waited for; libraries
    # raise errors of their own.
    silent_s = waits.silent_s + 1
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415

        options: dict[str, Any] = {}
        if url.startswith(("http://", "https://")):
            from aiohttp import ClientTimeout  # noqa: PLC0415

            options["client_kwargs"] = {
                "timeout": ClientTimeout(sock_connect=silent_s, sock_read=silent_s),
                # Bytes are counted as they come: gzip makes gigabytes of few.
                "auto_decompress": False,
                "headers": {"Accept-Encoding": "identity"},
            }
        elif is_s3(url):
            # It tries again five times by itself, and so does s3fs around it.
            options["config_kwargs"] = {
                # Ours is one try: a build goes on without the place and says so once.
                "retries": {"max_attempts": 0},
                "connect_timeout": silent_s,
                "read_timeout": silent_s,
                "http_session_cls": _session_of_short_errors(),
            }
        place, root = url_to_fs(url, **options)
    except (ImportError, ValueError) as error:
        extra = "s3" if is_s3(url) else "fleet"
        raise unusable(url, str(error), pip_install(extra)) from error
    return place, str(root).rstrip("/")


@cache  # fsspec keeps file systems by what they are given
def _session_of_short_errors() -> type:
    """Sessions of aiobotocore that read only the beginning of an answer that fails.

    It reads all of it by itself, to say what S3 answered.
    """
    from aiobotocore.httpsession import AIOHTTPSession  # noqa: PLC0415

    class Session(AIOHTTPSession):  # type: ignore[misc]  # has no types
        async def send(self, request: Any) -> Any:  # noqa: ANN401
            response = await super().send(request)
            if response.status_code >= _FIRST_FAILURE and request.stream_output:
                body = response.raw.content
                data = bytearray()
                while len(data) < _CHUNK_BYTES and (chunk := await body.readany()):
                    data += chunk
                response._content = bytes(data)  # noqa: SLF001  # as `content` does
                response.raw.close()
            return response

    return Session


def read_files(
    place: Any,  # noqa: ANN401  # fsspec
    limits: Mapping[str, int],
    waits: Waits,
) -> dict[str, bytes]:
    """Files of a place by path; those that it does not have are left out.

    Args:
        place: A file system of fsspec.
        limits: By path: most bytes of a file. A larger one is cut a byte later.
        waits: How long to wait.

    Raises:
        Exception: A file cannot be read: each kind of place has errors of its own.
        TimeoutError: Too little arrives.
    """
    request = _Request(waits)
    if {"http", "s3"}.isdisjoint(place.protocol):
        arguments = (place, limits, request)
        # It may never return: Python ends without waiting for it.
        # A read of a folder on a dead network drive cannot be interrupted.
        Thread(target=_read_each, args=arguments, daemon=True).start()
        return request.wait()
    # fsspec has one event loop for all of its asynchronous file systems, in a thread of
    # its own.
    reading = _read_all(place, limits, request)
    done = asyncio.run_coroutine_threadsafe(reading, place.loop)
    done.add_done_callback(lambda _: request.ended.set())
    try:
        return request.wait()
    finally:
        done.cancel()


async def _read_all(place: Any, limits: Mapping[str, int], request: _Request) -> None:  # noqa: ANN401
    turns = asyncio.Semaphore(_AT_ONCE)

    async def read(path: str, limit: int) -> None:
        async with turns:
            data = bytearray()
            # With a size fsspec makes no request of its own for it
            # (HTTPFileSystem.open_async; HEAD or a ranged GET). The stream is cut by us
            # in any case.
            stream = await place.open_async(path, "rb", size=limit)
            try:
                # A byte more than the limit: the caller sees that the file is too long,
                # and never holds more.
                while chunk := await stream.read(limit + 1 - len(data)):
                    data += chunk
                    request.arrived(len(chunk))
                request.found[path] = bytes(data)
            except FileNotFoundError:
                request.arrived(0)
            finally:
                # A connection that was read to its end has been given back.
                if stream.r is not None:
                    stream.r.close()
                await stream.close()

    try:
        async with asyncio.TaskGroup() as tasks:
            for path, limit in limits.items():
                tasks.create_task(read(path, limit))
    except ExceptionGroup as group:
        request.problem = group.exceptions[0]


def _read_each(place: Any, limits: Mapping[str, int], request: _Request) -> None:  # noqa: ANN401
    opened = _regular_file if "file" in place.protocol else place.open
    try:
        for path, limit in limits.items():
            data = bytearray()
            with suppress(FileNotFoundError), opened(path) as file:
                while chunk := file.read(min(limit + 1 - len(data), _CHUNK_BYTES)):
                    data += chunk
                    request.arrived(len(chunk))
                request.found[path] = bytes(data)
            request.arrived(0)
    except Exception as error:  # noqa: BLE001  # the caller raises it
        request.problem = error
    finally:
        request.ended.set()


def _regular_file(path: str) -> IO[bytes]:
    """An open file of a folder: a pipe may never start, a device may never end."""
    file = open(path, "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a file", path)
    return file


def _without_waiting(path: str, flags: int) -> int:
    # Opening a pipe that nobody writes to would wait for ever; the kind of the file is
    # known only once it is open. Windows has no O_NONBLOCK.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
