"""A GDB server for tests of its client: memory, and flash that must be erased first."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        """How many packets are sent damaged first."""
        self.refused = 0

    def packets(self, question: bytes) -> Iterator[bytes]:
        """What is sent for a question."""
        whole = framed(self.reply(question))
        if self.damage:
            self.damage -= 1
            yield whole[:-1] + b"?"
        yield whole

    def reply(self, question: bytes) -> bytes:
        """The answer to a question."""
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


def framed(packet: bytes) -> bytes:
    """A packet as it is sent."""
    return b"$%s#%02x" % (packet, sum(packet) % 256)


def _numbers(text: bytes) -> list[int]:
    return [int(number, 16) for number in text.split(b",")]


def _serve(listener: socket.socket, server: Server) -> None:
    stream, _ = listener.accept()
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    came = b""
    with stream, suppress(OSError):  # the client may leave at any time
        while data := stream.recv(4096):
            came += data
            while b"#" in came and len(came) >= came.index(b"#") + 3:
                begin, end = came.index(b"$"), came.index(b"#")
                body, digits = came[begin + 1 : end], came[end + 1 : end + 3]
                server.refused += came[:begin].count(b"-")
                came = came[end + 3 :]
                assert int(digits, 16) == sum(body) % 256
                question, plain = b"", iter(body)
                for byte in plain:
                    question += bytes([next(plain) ^ 0x20 if byte == 0x7D else byte])
                server.asked.append(question)
                stream.sendall(b"+")
                for packet in server.packets(question):
                    stream.sendall(packet)


@contextmanager
def served(server: Server) -> Iterator[int]:
    """The server at a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, server), daemon=True).start()
        yield listener.getsockname()[1]
