"""A client of GDB's remote protocol against a server that is written for this test."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from orchestrator.shell import gdb_remote
from orchestrator.shell.gdb_remote import Remote, RemoteError, TooSlowError, connected
from tests.gdb_server import Server, framed, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def remote_of(server: Server) -> Iterator[Remote]:
    with served(server) as port, connected("127.0.0.1", port) as remote:
        yield remote


# Every byte that packets escape, across blocks of two sizes and a piece in RAM.
FIRST = (0x8000010, 16)
PARTS = ((0x8000010, bytes(range(256)) * 10), (0x20000100, b"}#$*" * 9))


def test_flash_is_erased_in_whole_blocks_and_written() -> None:
    server, done = Server(), list[int]()
    with remote_of(server) as remote:
        remote.program(PARTS, done.append)
        for begin, data in PARTS:
            assert remote.read(begin, len(data)) == data
    assert server.erased == [(0x8000000, 0x1000)]
    assert server.memory[0x8000000] == server.memory[0x8000A10] == 0xFF
    assert server.memory[0x8001000] == 0x5A  # the block behind is as it was
    assert done == sorted(done)
    assert done[-1] == sum(len(data) for _, data in PARTS)


def test_questions_are_no_longer_than_the_server_takes() -> None:
    server = Server()
    with remote_of(server) as remote:
        remote.program(PARTS, lambda _: None)
        remote.read(0x20000000, 999)
    assert max(map(len, server.asked)) <= 0x60


def test_a_damaged_packet_is_asked_for_again() -> None:
    server = Server()
    with remote_of(server) as remote:
        server.damage = 1
        for _ in range(2):
            assert remote.read(0x20000000, 4) == bytes(4)
    assert server.refused == 1


def test_repeated_digits_are_read() -> None:
    with remote_of(Server()) as remote:
        # "0", five more of them, "78": four bytes, low byte first.
        assert remote.register(7, 4) == int.from_bytes(bytes.fromhex("00000078"), "little")


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        (lambda r: r.read(0x100, 4), "no memory at 0x00000100: E01"),
        (lambda r: r.write(0x8000000, b"a"), "no memory to write at 0x08000000: E02"),
        (lambda r: r.register(3, 4), "no register 3"),
        (lambda r: r.register(7, 8), "no register 7 of 8 bytes: 00000078"),
        (lambda r: r.set_register(3, 1, 4), "register 3 is not set: the server cannot do that"),
    ],
)
def test_what_a_server_cannot_do(asks: Callable[[Remote], object], says: str) -> None:
    with remote_of(Server()) as remote, pytest.raises(RemoteError, match=says):
        asks(remote)


def test_a_target_that_ran_says_unasked_that_it_halts() -> None:
    """As QEMU does to who connects."""

    class Running(Server):
        def packets(self, question: bytes) -> Iterator[bytes]:
            if question.startswith(b"qSupported"):
                yield framed(b"T02thread:01;")
            yield from super().packets(question)

    with remote_of(server := Running()) as remote:
        remote.program(PARTS, lambda _: None)
        assert remote.read(*FIRST) == PARTS[0][1][:16]
    assert server.erased  # the memory map was asked for


def test_notifications_are_passed_over() -> None:
    class Notifying(Server):
        def packets(self, question: bytes) -> Iterator[bytes]:
            yield b"%Stop:T05thread:p1.-1;#00"  # its "-" does not ask for a packet again
            yield from super().packets(question)

    with remote_of(server := Notifying()) as remote:
        assert remote.read(0x20000000, 4) == bytes(4)
    assert server.asked.count(b"m20000000,4") == 1


def _write_and_read(remote: Remote) -> None:
    remote.program(PARTS, lambda _: None)
    remote.read(*FIRST)


ENTRY = b'<memory type="flash" start="1" length="1"'


@pytest.mark.parametrize(
    ("asked", "answers", "says"),
    [
        (b"qXfer:memory-map", b"m", "a memory map without an end"),
        (b"qXfer:memory-map", b"m" + bytes(300_000), "a memory map without an end"),
        (b"qXfer:memory-map", b"l0" + b"*~" * 500_000, "an answer without an end"),
        # No bytes of it begin a flash that ends: a search is quick.
        (b"qXfer:memory-map", b"l" + ENTRY * 25_000, "no memory to write at 0x08000010: E02"),
        (b"m8000010", b"0" + b"*~" * 500_000, "an answer without an end"),
        (b"m8000010", b"O41", "no memory at 0x08000010: O41"),
    ],
)
def test_giant_answers(asked: bytes, answers: bytes, says: str) -> None:
    class Giant(Server):
        def reply(self, question: bytes) -> bytes:
            return answers if question.startswith(asked) else super().reply(question)

    start = time.monotonic()
    with remote_of(Giant()) as remote, pytest.raises(RemoteError, match=says):
        _write_and_read(remote)
    assert time.monotonic() - start < 5


def test_a_console_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Talking(Server):
        def packets(self, question: bytes) -> Iterator[bytes]:
            while question.startswith(b"qRcmd"):
                yield framed(b"O41")
            yield from super().packets(question)

    with remote_of(Talking()) as remote:
        monkeypatch.setattr(gdb_remote, "_ANSWER_S", 0.2)
        with pytest.raises(RemoteError, match="reset halt prints without an end"):
            remote.monitor("reset halt")


def test_many_slow_answers_have_a_limit_together() -> None:
    class Slow(Server):
        def reply(self, question: bytes) -> bytes:
            time.sleep(0.02 * question.startswith(b"m"))
            return super().reply(question)

    with remote_of(Slow()) as remote:
        remote.allow(0.2)
        with pytest.raises(TooSlowError, match=r"it takes longer than 0\.2 s"):
            remote.read(0x20000000, 0x1000)


@pytest.mark.parametrize(
    "said",
    [
        b"",  # it closes
        b"hello",
        b"$OK#00" * 3,
        b"$" + b"x" * 100,
        b"-" * 10,
        bytes(range(256)) * 100,
    ],
)
def test_what_is_no_server(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gdb_remote, "_ANSWER_S", 0.3)

    def serve(listener: socket.socket) -> None:
        stream, _ = listener.accept()
        with stream:
            stream.recv(100)
            stream.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        with pytest.raises(RemoteError), connected("127.0.0.1", listener.getsockname()[1]):
            pass


def test_an_answer_without_an_end_takes_bounded_memory() -> None:
    def serve(listener: socket.socket) -> None:
        stream, _ = listener.accept()
        with stream:
            stream.sendall(b"$")
            try:
                while True:
                    stream.sendall(b"x" * 65536)
            except OSError:
                return

    start = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        port = listener.getsockname()[1]
        with (
            pytest.raises(RemoteError, match="an answer without an end"),
            connected("127.0.0.1", port),
        ):
            pass
    assert time.monotonic() - start < 5


def test_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(RemoteError, match="no answer from"), connected("127.0.0.1", port):
        pass


@pytest.mark.parametrize("host", ["a..b", "a" * 80])
def test_what_is_no_name_of_a_host(host: str) -> None:
    with pytest.raises(RemoteError, match="no answer from"), connected(host, 1):
        pass
