"""Published places that stall, never end, or have pipes: builds go on without them."""

from __future__ import annotations

import gzip
import hashlib
import os
import resource
import socket
import threading
import time
from contextlib import chdir, contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.build.published import LIST, KnownLists, publish, published_at
from orchestrator.provenance.envelope import (
    OBJECTS_TYPE,
    PublishedList,
    read_object_list,
    read_private_key,
    sign,
)
from orchestrator.provenance.sbom import document_bytes
from orchestrator.shell.object_store import ObjectStore
from orchestrator.shell.places import Waits
from orchestrator.shell.settings import PUBLISHED as URL
from orchestrator.shell.settings import PUBLISHED_KEY as KEY
from tests.integration.test_published import OBJECTS, write_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WAITS: Final = Waits(silent_s=0.3)
BOUND_S: Final = 20.0
"""Far above `WAITS`, far below for ever: the machine may be busy."""
BOUND_BYTES: Final = 256 << 20

BOMB: Final = gzip.compress(bytes(16 << 20), 1) * 64
"""A gigabyte, in several parts."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with four objects that were published."""
    write_keys(tmp_path)
    monkeypatch.setenv(KEY, str(tmp_path / "ci.pub"))
    monkeypatch.setenv(URL, str(tmp_path / "place"))
    store = ObjectStore(tmp_path / "store")
    for key, outputs in OBJECTS.items():
        store.put(key, outputs)
    pem = (tmp_path / "ci.key").read_bytes()
    publish(store, (), str(tmp_path / "place"), pem, file="ci.key")
    return tmp_path / "place"


def _fetched(waits: Waits = WAITS) -> tuple[dict[str, dict[str, bytes]], list[str]]:
    """What a command gets of a place in three requests, and what it says about it."""
    notes: list[str] = []
    lists = KnownLists(waits)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.monotonic()
    here = published_at(lists, notes.append)
    assert here is not None
    found = dict(here.fetch(OBJECTS))
    again = published_at(lists, notes.append)
    assert again is not None
    assert dict(again.fetch(OBJECTS)) == found
    assert not again.exports("a" * 32)
    assert time.monotonic() - begin < BOUND_S
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown << 10 < BOUND_BYTES
    return found, notes


@contextmanager
def _server(answer: Callable[[socket.socket, str], None]) -> Iterator[tuple[str, list[str]]]:
    """A server that answers each request as it wants; its URL, and what was asked."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(connection: socket.socket) -> None:
            with connection, suppress(OSError):  # the client may be gone
                connection.settimeout(BOUND_S)
                if not (request := connection.recv(1 << 16)):
                    return
                path = request.split()[1].decode()
                asked.append(path)
                answer(connection, path)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    one, _ = listening.accept()
                    threading.Thread(target=serve, args=(one,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://user:secret@127.0.0.1:{listening.getsockname()[1]}", asked
        listening.shutdown(socket.SHUT_RDWR)


def _head(size: int | None, *more: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", *more]
    if size is not None:
        lines.append(f"Content-Length: {size}")
    return "\r\n".join([*lines, "", ""]).encode()


def _until_closed(connection: socket.socket) -> None:
    connection.recv(1)


def _stalls(connection: socket.socket, _: str) -> None:
    _until_closed(connection)


def _stalls_after_headers(connection: socket.socket, _: str) -> None:
    connection.sendall(_head(1000))
    _until_closed(connection)


def _drips(connection: socket.socket, _: str) -> None:
    connection.sendall(_head(1000))
    while True:
        connection.sendall(b" ")
        time.sleep(0.05)


def _drips_headers(connection: socket.socket, _: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def _never_ends(connection: socket.socket, _: str) -> None:
    connection.sendall(_head(None))
    while True:
        connection.sendall(b" " * (1 << 20))


def _never_ends_in_chunks(connection: socket.socket, _: str) -> None:
    connection.sendall(_head(None, "Transfer-Encoding: chunked"))
    while True:
        connection.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")


def _headers_never_end(connection: socket.socket, _: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-More: yes\r\n" * 10_000)


def _continues_for_ever(connection: socket.socket, _: str) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def _is_a_bomb(connection: socket.socket, _: str) -> None:
    connection.sendall(_head(len(BOMB), "Content-Encoding: gzip") + BOMB)


def _is_cut(connection: socket.socket, _: str) -> None:
    connection.sendall(_head(1000) + b"{")


def _redirects(connection: socket.socket, path: str) -> None:
    connection.sendall(
        f"HTTP/1.1 302 Found\r\nLocation: {path}x\r\n"
        "Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
    )


def _fails(connection: socket.socket, _: str) -> None:
    connection.sendall(b"HTTP/1.1 500 \x1b[31mOh\r\n\r\n")
    while True:
        connection.sendall(b" " * (1 << 20))


HOSTILE: Final = (
    (_stalls, "no answer for 0.3 s", WAITS),
    (_stalls_after_headers, "no answer for 0.3 s", WAITS),
    (_drips_headers, "no answer for 0.3 s", WAITS),
    (_continues_for_ever, "no answer for 0.3 s", WAITS),
    (_drips, "too slow: ", Waits(total_s=0.3)),
    # These end by themselves, and a busy machine has its time.
    (_never_ends, "more than 16,777,216 bytes", Waits()),
    (_never_ends_in_chunks, "more than 16,777,216 bytes", Waits()),
    (_headers_never_end, "headers", Waits()),
    (_is_a_bomb, "is not an envelope, or it is damaged", Waits()),
    (_is_cut, "ClientPayloadError", Waits()),
    (_redirects, "TooManyRedirects", Waits()),
    (_fails, "ClientResponseError", Waits()),
)


CUT: Final = (_drips, _never_ends, _never_ends_in_chunks, _is_a_bomb)
"""What is read of them has the size of an object, and other bytes."""


@pytest.mark.parametrize(("answer", "said", "waits"), HOSTILE)
@pytest.mark.usefixtures("place")
def test_a_list_that_does_not_come(
    answer: Callable[[socket.socket, str], None],
    said: str,
    waits: Waits,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with _server(answer) as (url, asked):
        monkeypatch.setenv(URL, f"{url}/objects")
        found, notes = _fetched(waits)
        assert found == {}
        (note,) = notes
        here = url.replace("user:secret@", "")
        start = f"warning: published objects are not used: {here}/objects: "
        assert note.startswith(start)
        assert said in note
        assert "secret" not in note
        assert len({path.rstrip("x") for path in asked}) == 1


@pytest.mark.parametrize(("answer", "said", "waits"), HOSTILE)
def test_objects_that_do_not_come(
    place: Path,
    answer: Callable[[socket.socket, str], None],
    said: str,
    waits: Waits,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = (place / LIST).read_bytes()

    def after_the_list(connection: socket.socket, path: str) -> None:
        if path.endswith(LIST):
            connection.sendall(_head(len(data)) + data)
        else:
            answer(connection, path)

    with _server(after_the_list) as (url, asked):
        monkeypatch.setenv(URL, url)
        found, notes = _fetched(Waits() if answer in CUT else waits)
        assert found == {}
        # An object with other bytes is only not taken.
        assert len(notes) == (answer not in CUT)
        assert all(said in note for note in notes)
        assert sum(path.endswith(LIST) for path in asked) == 1


def test_a_slow_place_is_right_as_long_as_bytes_come(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(connection: socket.socket, path: str) -> None:
        data = (place / path.removeprefix("/")).read_bytes()
        connection.sendall(_head(len(data)))
        for at in range(0, len(data), len(data) // 8 + 1):
            time.sleep(0.02)
            connection.sendall(data[at : at + len(data) // 8 + 1])

    with _server(slowly) as (url, _):
        monkeypatch.setenv(URL, url)
        assert _fetched(Waits(silent_s=10, total_s=10, bytes_per_s=1)) == (OBJECTS, [])


def _as_fifo(path: Path) -> None:
    os.mkfifo(path)


def _as_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one, chdir(path.parent):
        one.bind(path.name)  # names of sockets are short


@pytest.mark.parametrize(
    "put",
    [
        _as_fifo,
        _as_socket,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("/dev/tty"),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to(path.name),
    ],
    ids=["fifo", "socket", "device", "terminal", "folder", "loop"],
)
@pytest.mark.parametrize("what", [LIST, "cas"])
def test_a_folder_with_what_is_no_file(place: Path, put: Callable[[Path], None], what: str) -> None:
    path = place / what
    if what == "cas":
        path = min((place / "cas").glob("*/*"))
    path.unlink()
    put(path)
    found, notes = _fetched(Waits())
    assert found == {}
    (note,) = notes
    assert str(path) in note


def test_a_folder_that_never_answers(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a file system whose server is gone."""
    never = threading.Event()

    def opened(*_: object) -> None:
        never.wait()

    monkeypatch.setattr("orchestrator.shell.places._regular_file", opened)
    found, (note,) = _fetched()
    assert found == {}
    assert note.endswith(f"{place}: no answer for 0.3 s")
    never.set()


def test_a_large_file_is_cut(place: Path) -> None:
    with (place / LIST).open("r+b") as file:
        file.truncate(1 << 40)
    found, (note,) = _fetched()
    assert found == {}
    assert "more than 16,777,216 bytes" in note


def test_a_key_that_is_a_pipe(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = place.parent / "pipe.pub"
    os.mkfifo(key)
    monkeypatch.setenv(KEY, str(key))
    found, (note,) = _fetched()
    assert found == {}
    assert "a pipe, not a file" in note


@pytest.mark.usefixtures("place")
def test_requests_of_a_command_share_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each answer takes 11 s, and a place has 30 s.
    monkeypatch.setattr("orchestrator.build.published.monotonic", count(0, 11).__next__)
    notes: list[str] = []
    here = published_at(KnownLists(), notes.append)
    assert here is not None
    found = [bool(here.fetch([key])) for key in OBJECTS]
    assert found == [True, True, True, False]
    (note,) = notes
    assert "too slow" in note


def test_processes_of_a_command_share_what_they_gave_up(place: Path, tmp_path: Path) -> None:
    (place / LIST).unlink()
    os.mkfifo(place / LIST)
    shared = tmp_path / "shared"
    shared.mkdir()
    notes: list[str] = []
    for _ in range(3):
        here = published_at(KnownLists(WAITS, shared), notes.append)
        assert here is not None
        assert here.fetch(OBJECTS) == {}
    assert len(notes) == 1


@pytest.mark.usefixtures("place")
def test_another_key_may_be_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists, notes = KnownLists(WAITS), list[str]()
    monkeypatch.setenv(KEY, str(tmp_path / "other.pub"))
    wrong = published_at(lists, notes.append)
    monkeypatch.setenv(KEY, str(tmp_path / "ci.pub"))
    right = published_at(lists, notes.append)
    assert wrong is not None
    assert right is not None
    assert wrong.fetch(OBJECTS) == {}
    assert right.fetch(OBJECTS) == OBJECTS
    assert len(notes) == 1


def test_a_list_without_sizes_names_nothing(place: Path, tmp_path: Path) -> None:
    """Those of older versions are published again, with sizes."""
    files = {".o": hashlib.sha256(b"object 0").hexdigest()}
    payload = document_bytes({"_type": OBJECTS_TYPE, "objects": {"0" * 64: files}})
    assert read_object_list(payload) == PublishedList()
    key = read_private_key((tmp_path / "ci.key").read_bytes(), file="ci.key")
    (place / LIST).write_bytes(sign(payload, key, file="ci.key"))
    assert _fetched() == ({}, [])
    counts, _ = publish(
        ObjectStore(tmp_path / "store"),
        (),
        str(place),
        (tmp_path / "ci.key").read_bytes(),
        file="ci.key",
    )
    assert counts == (4, 4)
    assert _fetched() == (OBJECTS, [])


@pytest.mark.parametrize("answer", [_stalls, _stalls_after_headers, _drips, _fails])
@pytest.mark.usefixtures("place")
def test_s3_that_does_not_answer(
    answer: Callable[[socket.socket, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    s3fs = pytest.importorskip("s3fs")
    s3fs.S3FileSystem.clear_instance_cache()
    with _server(answer) as (url, _):
        for name, value in (
            (URL, "s3://builds/objects"),
            ("AWS_ENDPOINT_URL", url.replace("user:secret@", "")),
            ("AWS_ACCESS_KEY_ID", "user"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ):
            monkeypatch.setenv(name, value)
        found, (note,) = _fetched(Waits(silent_s=1, total_s=2))
        assert found == {}
        assert "not used: s3://builds/objects: " in note
        # The beginning of an error says what it is; all of it would fill the memory.
        assert ("Internal Server Error" in note) == (answer is _fails)
    s3fs.S3FileSystem.clear_instance_cache()
