"""Firmware that asks by halting, behind a GDB server: what it may ask, and how long."""

from __future__ import annotations

import struct
import time
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from orchestrator.build import on_device
from orchestrator.build.on_device import Image, flash, halted
from orchestrator.errors import MismatchError, OrchestratorError, ToolchainError
from orchestrator.running.device import Device, device_of
from orchestrator.shell import gdb_remote, process
from tests.gdb_server import Server, served

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REQUEST = 0x8000040
BLOCK = 0x20000100
STACK = 0x20001000
PROGRAM, ALLOCATED, EXECUTABLE = 1, 2, 4
# Weights lie before the vectors, as in a board with two flashes.
SECTIONS = (
    (b".weights", 0x8000000, ALLOCATED, b"1234"),
    (b".vectors", 0x8000020, ALLOCATED, struct.pack("<II", STACK, REQUEST | 1)),
    (b".text", REQUEST, ALLOCATED | EXECUTABLE, b"\xab\xbe"),
)
OPEN, WRITE0, WRITE, READ, EXIT = 0x01, 0x04, 0x05, 0x06, 0x20


def _elf() -> bytes:
    """An ELF file for Arm with these sections."""
    names = b"\0" + b"".join(name + b"\0" for name, *_ in SECTIONS)
    contents, headers = b"", bytes(40)
    for name, address, flags, data in SECTIONS:
        at = 52 + len(contents)
        fields = (names.index(name), PROGRAM, flags, address, at, len(data), 0, 0, 1, 0)
        headers += struct.pack("<10I", *fields)
        contents += data
    headers += struct.pack("<10I", 0, 3, 0, 0, 52 + len(contents), len(names), 0, 0, 1, 0)
    contents += names
    count = len(headers) // 40
    head = b"\x7fELF\1\1\1" + bytes(9) + struct.pack("<HHI", 2, 40, 1)
    head += struct.pack(
        "<IIIIHHHHHH", REQUEST | 1, 0, 52 + len(contents), 0, 52, 0, 0, 40, count, count - 1
    )
    return head + contents + headers


class Board(Server):
    """Firmware that asks the same again and again."""

    def __init__(self, operation: int, argument: int = BLOCK, fields: tuple[int, ...] = ()) -> None:
        super().__init__()
        for _, address, _, data in SECTIONS:
            self.memory |= {address + i: b for i, b in enumerate(data)}
        self.put(BLOCK, struct.pack(f"<{len(fields)}I", *fields))
        self.registers = {0: operation, 1: argument, 13: 0, 15: 0}
        self.stops, self.halts_at = b"T05", REQUEST
        self.slow_s = 0.0

    def put(self, address: int, data: bytes) -> None:
        self.memory |= {address + i: b for i, b in enumerate(data)}

    def reply(self, question: bytes) -> bytes:
        if question == b"c":
            self.registers[15] = self.halts_at
            return self.stops
        if question[:1] == b"p":
            return struct.pack("<I", self.registers[int(question[1:], 16)]).hex().encode()
        if question[:1] == b"P":
            number, _, digits = question[1:].partition(b"=")
            if number != b"0":  # it always asks for the same
                value = int.from_bytes(bytes.fromhex(digits.decode()), "little")
                self.registers[int(number, 16)] = value
            return b"OK"
        if question[:1] == b"m":
            time.sleep(self.slow_s)
        return super().reply(question)


def _run(
    board: Board, folder: Path, timeout_s: float = 0.5, request: bytes = b"ORQ1"
) -> tuple[int | None, bytes, bytes]:
    """Status, response and text of a firmware; None if it did not end in time."""
    file, response, output = folder / "firmware.elf", BytesIO(), BytesIO()
    file.write_bytes(_elf())
    with served(board) as port:
        device = _device(port)
        with halted(device, file, request, response, output, timeout_s=timeout_s) as wait:
            end, status = time.monotonic() + timeout_s, None
            while status is None and time.monotonic() < end:
                status = wait(0.01)
    return status, response.getvalue(), output.getvalue()


def _device(port: int) -> Device:
    return device_of(f"gdb:127.0.0.1:{port}")


@pytest.fixture(autouse=True)
def _server_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_device, "connected", gdb_remote.connected)
    monkeypatch.setattr(gdb_remote, "_RESET_S", 0.0)


def test_the_stack_is_that_of_the_vectors_where_other_sections_lie_before_them() -> None:
    assert Image.of(_elf()).begin == {13: STACK, 15: REQUEST | 1}


@pytest.mark.parametrize(
    ("board", "status"),
    [
        (Board(EXIT, fields=(0x20026, 0)), 0),
        (Board(EXIT, fields=(0x20026, 0xFFFFFFFF)), 0xFFFFFFFF),
        (Board(EXIT, fields=(0x20023, 0)), 99),  # a fault
        (Board(0xDEADBEEF, 0xFFFFFFFF), None),
        (Board(READ, fields=(1, 0x20000200, 0xFFFFFFFF)), None),
        (Board(WRITE, fields=(2, 0x20000200, 0xFFFFFFFF)), None),
        (Board(WRITE, fields=(77, 0x20000200, 4)), None),
        (Board(OPEN, fields=(0, 99, 0xFFFFFFFF)), None),
    ],
)
def test_what_a_firmware_asks_for(board: Board, status: int | None, tmp_path: Path) -> None:
    found, response, _ = _run(board, tmp_path)
    assert (found, response) == (status, b"")
    assert board.registers[13] == STACK


def test_tensors_are_read_and_written_at_once(tmp_path: Path) -> None:
    """Images have more than 64 KiB, and the firmware asks once for each tensor."""
    tensor, at = bytes(range(256)) * 500, 0x20002000

    class Copying(Board):
        """Reads a tensor, writes it back, and ends."""

        def reply(self, question: bytes) -> bytes:
            if question.startswith(b"qSupported"):
                return b"PacketSize=1000"
            if question == b"c":
                after = {READ: (WRITE, 2, at), WRITE: (EXIT, 0x20026, 0)}
                operation, *fields = after.get(self.registers[0], (READ, 1, at))
                self.registers[0] = operation
                self.put(BLOCK, struct.pack("<III", *fields, len(tensor)))
            return super().reply(question)

    status, response, _ = _run(Copying(OPEN), tmp_path, 60, tensor)
    assert (status, response == tensor) == (0, True)


def test_what_a_firmware_writes_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_device, "_MOST_RESPONSE", 100)
    status, response, _ = _run(Board(WRITE, fields=(2, 0x20000200, 64)), tmp_path, 10)
    assert status == process.TOO_MUCH
    assert len(response) == 128


def test_what_a_firmware_says_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_device, "MOST_OUTPUT", 100)
    board = Board(WRITE0, 0x20000200)
    board.put(0x20000200, b"x" * 600)
    status, _, output = _run(board, tmp_path)
    assert (status, output) == (None, b"x" * 512)


def _other_firmware(board: Board) -> None:
    board.put(REQUEST, b"\0")


def _halt_elsewhere(board: Board) -> None:
    board.halts_at = BLOCK


def _other_stop(board: Board) -> None:
    board.stops = b"Fopen,1234/5,0,0"


def _slow(board: Board) -> None:
    board.slow_s = 0.3


@pytest.mark.parametrize(
    ("change", "error", "says", "hint"),
    [
        (_other_firmware, MismatchError, "has another firmware", "run `orchestrator flash`"),
        (_halt_elsewhere, ToolchainError, "has halted at 0x20000100", "look at the cable"),
        (_other_stop, ToolchainError, "no halt, but Fopen,1234", "look at the cable"),
        (_slow, ToolchainError, "takes longer than 0.5 s", "use a longer --timeout"),
    ],
)
def test_errors_say_what_to_do(
    change: Callable[[Board], None],
    error: type[OrchestratorError],
    says: str,
    hint: str,
    tmp_path: Path,
) -> None:
    board = Board(EXIT, fields=(0x20026, 0))
    change(board)
    with pytest.raises(error) as raised:
        _run(board, tmp_path)
    (found,) = raised.value.diagnostics
    assert says in " ".join([found.message, *(text for _, text in found.notes)])
    assert (found.hint or "").startswith(hint)


def test_flash_that_stores_nothing_is_noticed() -> None:
    class Broken(Board):
        def reply(self, question: bytes) -> bytes:
            return b"OK" if question.startswith(b"vFlash") else super().reply(question)

    board = Broken(EXIT)
    board.put(0x8000000, b"\xff")
    with (
        served(board) as port,
        pytest.raises(MismatchError, match="flash holds other bytes than were written"),
    ):
        flash(_device(port), Image.of(_elf()), lambda _: None, starts=False)
