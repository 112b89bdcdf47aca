"""The host's end of semihosting: files, console and exit of a firmware that was halted.

Source: Arm, Semihosting for AArch32 and AArch64, release 2.0; RISC-V Semihosting 0.4.
"""

from __future__ import annotations

import time
from enum import IntEnum
from typing import Final, Protocol

from orchestrator.running.host_end import HostEnd


class Operation(IntEnum):
    """What runtime/platform/semihosting asks for."""

    OPEN = 0x01
    CLOSE = 0x02
    WRITE0 = 0x04
    WRITE = 0x05
    READ = 0x06
    GET_COMMAND_LINE = 0x15
    EXIT_EXTENDED = 0x20
    ELAPSED = 0x30


_BY_ITSELF: Final = 0x20026
"""ADP_Stopped_ApplicationExit: it ended as it wanted to."""
_FAULT: Final = 99
"""As in runtime/platform/host.h."""
_READS, _WRITES = 1, 2
"""Handles of request and response."""
_WRITE_MODES: Final = range(4, 12)
"""Numbers of the modes that write: `w` to `a+b` of `fopen`."""
_MOST_BYTES: Final = 1 << 26
"""Bytes of a tensor, written at once; more than boards have is damaged."""
_MOST_TEXT: Final = 512
_LINE: Final = b"firmware request.bin response.bin\0"


class Memory(Protocol):
    """The target's memory."""

    def read(self, address: int, size: int) -> bytes:
        """Bytes from an address on."""

    def write(self, address: int, data: bytes) -> None:
        """Write bytes from an address on."""


class Semihost(HostEnd):
    """Carries out what a firmware asks. It has a request and a response, and no other files.

    Args:
        request: What it reads.
        width: Bytes of a register.
    """

    def __init__(self, request: bytes, width: int) -> None:
        super().__init__(request)
        self._width = width

    def carry_out(self, operation: int, block: int, memory: Memory) -> int:
        """What an operation returns.

        Args:
            operation: Its number.
            block: Address of its arguments, or an argument.
            memory: Where they are.
        """
        match operation:
            case Operation.OPEN:
                _, mode, _ = self._fields(memory, block, 3)
                return _WRITES if mode in _WRITE_MODES else _READS
            case Operation.READ | Operation.WRITE:
                return self._moved(operation, memory, self._fields(memory, block, 3))
            case Operation.GET_COMMAND_LINE:
                return self._command_line(memory, block)
            case Operation.WRITE0:
                self._log += _text_at(memory, block)
            case Operation.EXIT_EXTENDED:
                reason, code = self._fields(memory, block, 2)
                self.status = code if reason == _BY_ITSELF else _FAULT
            case Operation.ELAPSED:
                memory.write(block, time.monotonic_ns().to_bytes(8, "little"))
            case Operation.CLOSE:
                pass
            case _:
                return self._failed
        return 0

    @property
    def _failed(self) -> int:
        return (1 << 8 * self._width) - 1

    def _moved(self, operation: int, memory: Memory, fields: tuple[int, ...]) -> int:
        """Bytes that were not read or written."""
        handle, address, size = fields
        is_read = operation == Operation.READ
        if handle != (_READS if is_read else _WRITES):
            return size
        if not is_read:
            if size > _MOST_BYTES:
                return size
            self._response += memory.read(address, size)
            return 0
        part = self.request_part(size)
        if part:
            memory.write(address, part)
        return size - len(part)

    def _command_line(self, memory: Memory, block: int) -> int:
        address, size = self._fields(memory, block, 2)
        if size < len(_LINE):
            return self._failed
        memory.write(address, _LINE)
        memory.write(block + self._width, (len(_LINE) - 1).to_bytes(self._width, "little"))
        return 0

    def _fields(self, memory: Memory, block: int, count: int) -> tuple[int, ...]:
        data, width = memory.read(block, count * self._width), self._width
        return tuple(
            int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(count)
        )


def _text_at(memory: Memory, address: int) -> bytes:
    """A text up to its NUL, or the most that is shown of one."""
    found = b""
    while b"\0" not in found and len(found) < _MOST_TEXT:
        found += memory.read(address + len(found), 4)
    return found.partition(b"\0")[0]
