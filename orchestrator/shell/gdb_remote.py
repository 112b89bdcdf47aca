"""A client of GDB's remote protocol, which debug probes and emulators serve.

Source: GDB manual, appendix E, Remote Serial Protocol.
"""

from __future__ import annotations

import math
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

# Seconds, chosen by hand: sectors of 128 KiB of an STM32 take up to 4 s (RM0090), and erasing is
# one question.
_ANSWER_S: Final = 5.0
_ERASE_S: Final = 120.0
_RESET_S: Final = 1.0
_LARGEST: Final = 1 << 20
"""Bytes of an answer, of which no server needs more."""
_CHUNK: Final = 1024
"""Bytes of memory in one question, unless the server takes less."""
_TRIES: Final = 3
_ESCAPED: Final = b"#$*}"
_FLASH: Final = re.compile(
    rb'<memory\s+type="flash"\s+start="(\w+)"\s+length="(\w+)"[^<>]*>'
    rb'\s*<property\s+name="blocksize">\s*(\w+)\s*<'
)
_STOP: Final = re.compile(rb"T|S[0-9a-f]{2}$")
"""What a server says of a target that has halted."""

Parts: TypeAlias = Sequence[tuple[int, bytes]]
"""Addresses, and what belongs there."""


class RemoteError(Exception):
    """The server is not there, or does not answer as it should; says what."""


class TooSlowError(RemoteError):
    """The server answers, but not in the time that all of it may take."""


@dataclass(frozen=True, slots=True)
class Flash:
    """A flash as the server describes it: addresses, and bytes of an erase block."""

    begin: int
    end: int
    block: int


@contextmanager
def connected(host: str, port: int, timeout_s: float = _ANSWER_S) -> Iterator[Remote]:
    """A connection to a server. The target is halted by it, and stays so.

    Raises:
        RemoteError: The connection is refused, or times out.
    """
    try:
        stream = socket.create_connection((host, port), timeout_s)
    # A port of more than 16 bits; a name that is none of a host.
    except (OSError, OverflowError, UnicodeError) as error:
        raise RemoteError(f"no answer from {host}:{port}: {error}") from error
    with stream:
        yield Remote(stream)


class Remote:
    """A target behind a server.

    Args:
        stream: The connection.

    Raises:
        RemoteError: In all methods: the connection is lost, or the answer is none.
    """

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._came = bytearray()
        self.allow(math.inf)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        features = self.ask(b"qSupported:swbreak+;hwbreak+")
        size = re.search(rb"PacketSize=([0-9a-fA-F]{1,8})", features)
        # A question about memory has a head, and two digits for each byte.
        most = (int(size[1], 16) - 32) // 2 if size else _CHUNK
        self._chunk = max(min(most, _CHUNK), 16)
        self._has_map = b"qXfer:memory-map:read+" in features
        if b"qXfer:features:read+" in features:  # QEMU has single registers for those who ask
            self.ask(b"qXfer:features:read:target.xml:0,%x" % self._chunk)
        self._continue = b"vCont;c" if b";c" in self.ask(b"vCont?") else b"c"
        self.ask(b"?")

    def allow(self, seconds: float) -> None:
        """Give all further questions together so long: many slow answers take for ever."""
        self._allowed_s, self._deadline = seconds, time.monotonic() + seconds

    def ask(self, question: bytes, timeout_s: float = _ANSWER_S) -> bytes:
        """The answer to a question; empty if the server does not know it."""
        self.tell(question)
        return self._answered(question, timeout_s)

    def _answered(self, question: bytes, timeout_s: float) -> bytes:
        end = min(time.monotonic() + timeout_s, self._deadline)
        while (answer := self.answer(end - time.monotonic())) is not None:
            # QEMU says of a target that ran that it halts now, though nobody asked.
            if question == b"?" or not _STOP.match(answer):
                return answer
        if end == self._deadline:
            raise TooSlowError(f"it takes longer than {self._allowed_s:g} s")
        raise RemoteError(f"no answer to {shown(question)} in {timeout_s:g} s")

    def tell(self, packet: bytes) -> None:
        """Send a packet."""
        framed = b"$%s#%02x" % (packet, sum(packet) % 256)
        with _told():
            self._stream.sendall(framed)
        self._last, self._tries = framed, 0

    def answer(self, timeout_s: float) -> bytes | None:
        """The next packet; None if none comes in time."""
        deadline = time.monotonic() + timeout_s
        while (packet := self._packet()) is None:
            if len(self._came) > _LARGEST:
                raise RemoteError("an answer without an end")
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._stream.settimeout(left)
            with _told():
                try:
                    data = self._stream.recv(1 << 16)
                except TimeoutError:
                    return None
            if not data:
                raise RemoteError("the server has closed the connection")
            self._came += data
        return packet

    def _packet(self) -> bytes | None:
        """A packet of what came; what is none is passed over."""
        while (begin := self._came.find(b"$")) >= 0:
            self._again(self._came[:begin])
            del self._came[:begin]
            end = self._came.find(b"#")
            if end < 0 or len(self._came) < end + 3:
                return None
            body, digits = bytes(self._came[1:end]), bytes(self._came[end + 1 : end + 3])
            del self._came[: end + 3]
            is_whole = digits.lower() == b"%02x" % (sum(body) % 256)
            with _told():
                self._stream.sendall(b"+" if is_whole else b"-")
            if is_whole:
                return _decoded(body)
        self._again(self._came)
        self._came.clear()
        return None

    def _again(self, marks: bytearray) -> None:
        """Send the last packet again if the server asks for it."""
        if marks.startswith(b"-"):  # others are text of notifications
            self._tries += 1
            if self._tries > _TRIES:
                raise RemoteError("packets arrive damaged")
            with _told():
                self._stream.sendall(self._last)

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the target's memory."""
        found = bytearray()
        while len(found) < size:
            count = min(size - len(found), self._chunk)
            answer = self.ask(b"m%x,%x" % (address + len(found), count))
            try:
                data = bytes.fromhex(answer.decode("ascii"))
            except ValueError:  # also of bytes that are no ASCII
                data = b""
            if not data or len(data) > count:
                raise RemoteError(f"no memory at 0x{address + len(found):08X}: {shown(answer)}")
            found += data
        return bytes(found)

    def write(self, address: int, data: bytes) -> None:
        """Write to the target's memory."""
        for at in range(0, len(data), self._chunk):
            part = data[at : at + self._chunk]
            question = b"M%x,%x:%s" % (address + at, len(part), part.hex().encode())
            self._agreed(question, f"no memory to write at 0x{address + at:08X}")

    def register(self, number: int, width: int) -> int:
        """A register of so many bytes, by its number in the target's description."""
        answer = self.ask(b"p%x" % number)
        with suppress(ValueError):
            if len(data := bytes.fromhex(answer.decode("ascii"))) == width:
                return int.from_bytes(data, "little")
        raise RemoteError(f"no register {number} of {width} bytes: {shown(answer)}")

    def set_register(self, number: int, value: int, width: int) -> None:
        """Write a register of so many bytes."""
        digits = (value % (1 << 8 * width)).to_bytes(width, "little").hex().encode()
        self._agreed(b"P%x=%s" % (number, digits), f"register {number} is not set")

    def break_at(self, address: int, size: int) -> None:
        """Halt before an instruction of so many bytes, if the server can."""
        self.ask(b"Z1,%x,%x" % (address, size))

    def go(self) -> None:
        """Let the target run; `answer` gives why it halts."""
        self.tell(self._continue)

    def leave(self) -> None:
        """Let the target run on, without us."""
        with suppress(RemoteError):
            self.ask(b"D")

    def monitor(self, command: str) -> None:
        """Have the server carry out a command of its own, if it has that."""
        question = b"qRcmd," + command.encode().hex().encode()
        self.tell(question)
        deadline = time.monotonic() + _ANSWER_S
        # What it prints comes before its answer.
        while (answer := self._answered(question, _ANSWER_S)).startswith(b"O") and answer != b"OK":
            if time.monotonic() > deadline:
                raise RemoteError(f"{command} prints without an end")

    def reset(self, begin: Mapping[int, int], counter: int, width: int) -> None:
        """Reset the target, and halt before its first instruction.

        Args:
            begin: Registers by number, as they are then.
            counter: Number of the program counter.
            width: Bytes of a register.
        """
        # OpenOCD, pyOCD and J-Link; then QEMU, which resets after it answered.
        for command in ("reset halt", "system_reset"):
            self.monitor(command)
            deadline = time.monotonic() + _RESET_S
            while time.monotonic() < deadline:
                if self.register(counter, width) & ~1 == begin[counter] & ~1:
                    return
                time.sleep(_RESET_S / 20)
        # A boot loader comes first.
        for number, value in begin.items():
            self.set_register(number, value, width)

    def flashes(self) -> tuple[Flash, ...]:
        """What has to be erased before it is written; empty if the server does not say."""
        if not self._has_map:
            return ()
        text, answer = b"", b"m"
        deadline = time.monotonic() + _ERASE_S
        while answer.startswith(b"m"):
            answer = self.ask(b"qXfer:memory-map:read::%x,%x" % (len(text), self._chunk))
            text += answer[1:]
            if answer == b"m" or len(text) > _LARGEST or time.monotonic() > deadline:
                raise RemoteError("a memory map without an end")
        found = []
        for words in _FLASH.findall(text):
            with suppress(ValueError):
                begin, size, block = (int(word, 0) for word in words)
                found.append(Flash(begin, begin + size, max(block, 1)))
        return tuple(found)

    def program(self, parts: Parts, done: Callable[[int], None]) -> None:
        """Write a program; flash is erased first, in whole blocks.

        Args:
            parts: What goes where.
            done: Gets the number of bytes that were written so far.
        """
        erased: dict[int, int] = {}
        in_flash, others = [], [*parts]
        for flash in self.flashes():
            cut = [one for part in others for one in _cut(part, flash.begin, flash.end)]
            mine = [part for part in cut if flash.begin <= part[0] < flash.end]
            others = [part for part in cut if part not in mine]
            in_flash += mine
            for begin, data in mine:
                first = (begin - flash.begin) // flash.block
                last = (begin + len(data) - 1 - flash.begin) // flash.block
                for number in range(first, last + 1):
                    erased[flash.begin + number * flash.block] = flash.block
        for begin, size in _joined(erased):
            self._agreed(b"vFlashErase:%x,%x" % (begin, size), "flash is not erased", _ERASE_S)
        written = 0
        for begin, data in in_flash:
            for at in range(0, len(data), self._chunk):
                part = data[at : at + self._chunk]
                question = b"vFlashWrite:%x:%s" % (begin + at, _escaped(part))
                self._agreed(question, f"flash is not written at 0x{begin + at:08X}", _ERASE_S)
                done(written := written + len(part))
        if in_flash:
            self._agreed(b"vFlashDone", "flash is not written", _ERASE_S)
        for begin, data in others:
            self.write(begin, data)
            done(written := written + len(data))

    def _agreed(self, question: bytes, otherwise: str, timeout_s: float = _ANSWER_S) -> None:
        answer = self.ask(question, timeout_s)
        if answer != b"OK":
            raise RemoteError(f"{otherwise}: {shown(answer) or 'the server cannot do that'}")


@contextmanager
def _told() -> Iterator[None]:
    """A connection that fails is a `RemoteError`."""
    try:
        yield
    except OSError as error:
        raise RemoteError(f"the connection is lost: {error}") from error


def _cut(part: tuple[int, bytes], *places: int) -> Iterator[tuple[int, bytes]]:
    """A part of a program as parts that cross none of some addresses."""
    begin, data = part
    for place in places:
        if begin < place < begin + len(data):
            yield begin, data[: place - begin]
            begin, data = place, data[place - begin :]
    yield begin, data


def _joined(blocks: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Blocks as few areas."""
    begin = end = -1
    for block in sorted(blocks):
        if block != end:
            if end > begin:
                yield begin, end - begin
            begin = block
        end = block + blocks[block]
    if end > begin:
        yield begin, end - begin


def _escaped(data: bytes) -> bytes:
    """Binary data in a packet."""
    return b"".join(b"}%c" % (b ^ 0x20) if b in _ESCAPED else b"%c" % b for b in data)


def _decoded(body: bytes) -> bytes:
    """A packet without escapes, and with what it repeats."""
    found = bytearray()
    at = 0
    while at < len(body):
        byte = body[at]
        if byte == ord("}") and at + 1 < len(body):
            at += 1
            found.append(body[at] ^ 0x20)
        elif byte == ord("*") and at + 1 < len(body) and found:
            at += 1
            found += found[-1:] * max(body[at] - 29, 0)
            if len(found) > _LARGEST:
                raise RemoteError("an answer without an end")
        else:
            found.append(byte)
        at += 1
    return bytes(found)


def shown(packet: bytes) -> str:
    """The begin of a packet, as text."""
    return packet[:40].decode("ascii", "backslashreplace")
