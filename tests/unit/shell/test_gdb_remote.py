"""A client of GDB's remote protocol against a server that is written for this test."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from orchestrator.shell import gdb_remote
from orchestrator.shell.gdb_remote import Remote, RemoteError, connected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAP = b"""<?xml version="1.0"?><memory-map>
<memory type="ram" start="0x20000000" length="0x1000"/>
<memory type="flash" start="0x8000000" length="0x800">
  <property name="blocksize">0x200</property></memory>
<memory type="flash" start="0x8000800" length="0x1000"><property name="blocksize">0x800</property>
</memory></memory-map>"""


class Server:
    """Memory behind a port, with flash that must be erased before it is written."""

    def __init__(self) -> None:
        self.memory = {**dict.fromkeys(range(0x20000000, 0x20001000), 0)}
        self.memory |= dict.fromkeys(range(0x8000000, 0x8001800), 0x5A)
        self.erased: list[tuple[int, int]] = []
        self.asked: list[bytes] = []
        self.damage = 0

    def reply(self, question: bytes) -> bytes:
        if question.startswith(b"qXfer:memory-map"):
            at, size = _numbers(question.rpartition(b":")[2])
            part = MAP[at : at + size]
            return (b"m" if at + size < len(MAP) else b"l") + part.replace(b"}", b"}]")
        if question[:1] == b"m":
            at, size = _numbers(question[1:])
            if at not in self.memory:
                return b"E01"
            return bytes(self.memory[at + i] for i in range(size)).hex().encode()
        if question.startswith((b"M", b"vFlash")):
            return self._write(question)
        return {
            b"qSupported": b"PacketSize=60;qXfer:memory-map:read+",
            b"p7": b'0*"78',  # run-length: 0000 and 78
            b"?": b"S05",
        }.get(question.partition(b":")[0], b"")

    def _write(self, question: bytes) -> bytes:
        kind, _, rest = question.partition(b":")
        if kind == b"vFlashErase":
            at, size = _numbers(rest)
            self.erased.append((at, size))
            self.memory |= dict.fromkeys(range(at, at + size), 0xFF)
        elif kind == b"vFlashWrite":
            address, _, data = rest.partition(b":")
            if any(self.memory[int(address, 16) + i] != 0xFF for i in range(len(data))):
                return b"E.not erased"
            self.memory |= {int(address, 16) + i: b for i, b in enumerate(data)}
        elif kind[:1] == b"M":
            at, _ = _numbers(kind[1:])
            if at < 0x20000000:
                return b"E02"  # flash takes no plain writes
            self.memory |= {at + i: b for i, b in enumerate(bytes.fromhex(rest.decode()))}
        return b"OK"


def _numbers(text: bytes) -> list[int]:
    return [int(number, 16) for number in text.split(b",")]


def _serve(listener: socket.socket, server: Server) -> None:
    stream, _ = listener.accept()
    came = b""
    with stream:
        while data := stream.recv(4096):
            came += data
            while b"#" in came and len(came) >= came.index(b"#") + 3:
                begin, end = came.index(b"$"), came.index(b"#")
                body, digits = came[begin + 1 : end], came[end + 1 : end + 3]
                came = came[end + 3 :]
                assert int(digits, 16) == sum(body) % 256
                question, plain = b"", iter(body)
                for byte in plain:
                    question += bytes([next(plain) ^ 0x20 if byte == 0x7D else byte])
                server.asked.append(question)
                answer = server.reply(question)
                whole = b"+$%s#%02x" % (answer, sum(answer) % 256)
                if server.damage:
                    server.damage -= 1
                    stream.sendall(whole[:-1] + b"?")
                    assert stream.recv(1) == b"-"
                stream.sendall(whole)
                assert stream.recv(1) == b"+"


@contextmanager
def served(server: Server) -> Iterator[int]:
    """The server at a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, server), daemon=True).start()
        yield listener.getsockname()[1]


@contextmanager
def remote_of(server: Server) -> Iterator[Remote]:
    with served(server) as port, connected("127.0.0.1", port) as remote:
        yield remote


# Every byte that packets escape, across blocks of two sizes and a piece in RAM.
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
        assert remote.read(0x20000000, 4) == bytes(4)


def test_repeated_digits_are_read() -> None:
    with remote_of(Server()) as remote:
        # "0", five more of them, "78": four bytes, low byte first.
        assert remote.register(7) == int.from_bytes(bytes.fromhex("00000078"), "little")


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        (lambda r: r.read(0x100, 4), "no memory at 0x00000100: E01"),
        (lambda r: r.write(0x8000000, b"a"), "no memory to write at 0x08000000: E02"),
        (lambda r: r.register(3), "no register 3"),
        (lambda r: r.set_register(3, 1, 4), "register 3 is not set: the server cannot do that"),
    ],
)
def test_what_a_server_cannot_do(asks: Callable[[Remote], object], says: str) -> None:
    with remote_of(Server()) as remote, pytest.raises(RemoteError, match=says):
        asks(remote)


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
