"""Firmware on a device: written by a debug probe, checked, and reached by it or over a UART."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final

from orchestrator.errors import Diagnostic, MismatchError, ToolchainError, UsageError
from orchestrator.measure.elf import ARM, ElfFile, loaded_bytes
from orchestrator.running.device import SERVERS, Device, Reach
from orchestrator.running.host_end import HostEnd
from orchestrator.running.product import Product
from orchestrator.running.semihosting import Semihost
from orchestrator.shell import process
from orchestrator.shell.gdb_remote import Remote, RemoteError, TooSlowError, connected, shown
from orchestrator.shell.toolchain import program_beside
from orchestrator.targets.boards import Board

# Seconds, chosen by hand: a probe's program looks for its probe, and connects.
_START_S: Final = 20.0
_STEP_S: Final = 0.1
_DRIVE_INFO: Final = "INFO_UF2.TXT"
"""A file that each such drive has. Source: microsoft/uf2, README."""
MOST_OUTPUT: Final = 1 << 20
"""Bytes of text that are kept; an error shows the last of them."""
_MOST_RESPONSE: Final = 1 << 30
"""Bytes; at 115,200 bits per second they take a day."""
_MOST_SITES: Final = 64
"""Requests of a firmware; more of these patterns are data."""


@dataclass(frozen=True, slots=True)
class _Core:
    """How a core asks for semihosting.

    Args:
        registers: Numbers of those with operation, argument, and program counter.
        request: The instruction.
        skip: Bytes to the one after it.
    """

    registers: tuple[int, int, int]
    request: bytes
    skip: int


# Numbers as in GDB's target descriptions org.gnu.gdb.arm.m-profile and org.gnu.gdb.riscv.cpu.
_ARM: Final = _Core((0, 1, 15), b"\xab\xbe", 2)
_STACK_POINTER: Final = 13
# `ebreak` between `slli x0, x0, 0x1f` and `srai x0, x0, 7`.
_RISCV: Final = _Core((10, 11, 32), b"\x73\x00\x10\x00", 4)


@dataclass(frozen=True, slots=True)
class Image:
    """What a firmware is in memory.

    Args:
        parts: Addresses, and the bytes there, in order.
        core: How it asks.
        width: Bytes of a register.
        begin: Registers after a reset.
        sites: Where it asks.
    """

    parts: tuple[tuple[int, bytes], ...]
    core: _Core
    width: int
    begin: dict[int, int]
    sites: tuple[int, ...]

    @classmethod
    def of(cls, firmware: bytes) -> Image:
        """The image of an ELF file that a build has made."""
        elf = ElfFile(firmware)
        core = _ARM if elf.machine == ARM else _RISCV
        parts = sorted(loaded_bytes(firmware))
        begin = {core.registers[2]: elf.entry}
        sites = []
        for section in elf.sections:
            if section.name == ".vectors":
                begin[_STACK_POINTER] = int.from_bytes(elf.contents(section)[:4], "little")
            data = elf.contents(section) if section.is_code else b""
            at = data.find(core.request)
            while at >= 0:
                sites += [section.address + at] if at % 2 == 0 else []
                at = data.find(core.request, at + 1)
        return cls(tuple(parts), core, elf.bits // 8, begin, tuple(sites[:_MOST_SITES]))

    def behind(self, board: Board) -> Image:
        """The image with the boot loader of a board in front: erasing may take that away."""
        boot = [(board.image_start, board.boot)] if board.boot else []
        return replace(self, parts=(*boot, *self.parts))

    @property
    def size_bytes(self) -> int:
        """Bytes to write."""
        return sum(len(data) for _, data in self.parts)


def ready_device(device: Device, board: Board | None, product: Product) -> Device:
    """A device that the command line names, with what the board says about it.

    Raises:
        UsageError: The product is for no board, or speaks in another way (`wrong-device`).
        ToolchainError: No program for its probe is here (`no-probe`).
    """
    if board is None:
        raise UsageError.of(
            "wrong-device",
            f"{product.profile} is not built for a board",
            hint="leave out --on, or build for a board",
        )
    if device.reach is Reach.PROBE:
        return _probe(device, board)
    if device.reach is Reach.UART and board.uart is not None:
        return replace(device, baud=board.uart.baud)
    return device


def need_reach(device: Device, product: Product) -> None:
    """Reject a device that is reached in another way than the firmware speaks.

    Raises:
        UsageError: It speaks by semihosting, or over a UART (`wrong-device`).
    """
    if device.reach is Reach.UF2:
        raise UsageError.of(
            "wrong-device",
            f"{device} takes firmware, and runs none",
            hint="flash it, then name the board's serial port: --on uart:PORT",
        )
    over_uart = device.reach is Reach.UART
    if over_uart != (product.via == "uart"):
        wanted = "uart" if over_uart else "semihosting"
        raise UsageError.of(
            "wrong-device",
            f"the firmware does not speak by {wanted}",
            found=product.via,
            expected=wanted,
            hint=f'write via = "{wanted}" in [target], build and flash it',
        )


def _probe(device: Device, board: Board) -> Device:
    parts = dict(board.probes)
    names = [device.place] if device.place else [*SERVERS]
    for name in names:
        if name in parts and program_beside(SERVERS[name][0]):
            return replace(device, place=name, part=parts[name])
    known = ", ".join(f"{name} ({SERVERS[name][0]})" for name in names if name in parts)
    raise ToolchainError.of(
        "no-probe",
        f"no program for a debug probe of {board.name} is here",
        expected=known or "pyocd, openocd or jlink in [probe] of the board's file",
        hint="install one, such as pip install 'pte-orchestrator[probe]', or start its GDB"
        " server and name that: --on gdb:HOST:PORT"
        if known
        else "start a GDB server and name it, --on gdb:HOST:PORT, or write a file for the board"
        " with [probe]: docs/targets.md",
    )


@contextmanager
def attached(device: Device) -> Iterator[Remote]:
    """A halted target behind a GDB server, which is started for a probe.

    Raises:
        ToolchainError: The server does not start, or does not answer (`probe-failed`).
    """
    with ExitStack() as stack:
        said: Callable[[], str] = str
        try:
            if device.reach is Reach.PROBE:
                server, said = _served(device, stack)
            else:
                server = device.server
            yield stack.enter_context(connected(*server))
        except RemoteError as error:
            notes = [("found", str(error)), *([("output", said())] if said() else [])]
            raise ToolchainError(
                Diagnostic(
                    code="probe-failed",
                    message=f"{device} fails",
                    notes=tuple(notes),
                    hint="use a longer --timeout, or a faster connection"
                    if isinstance(error, TooSlowError)
                    else "look at the cable, the power and the GDB server, which serves one"
                    " program at a time",
                )
            ) from error


def _served(device: Device, stack: ExitStack) -> tuple[tuple[str, int], Callable[[], str]]:
    """Start the GDB server of a probe: its address, and a function that reads its output."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orchestrator-probe-")))
    log = work / "output.txt"
    output = stack.enter_context(log.open("wb"))

    def said() -> str:
        return log.read_text(errors="replace").strip()[-2000:]

    name, *words = device.command(port)
    command = (program_beside(name) or name, *words)
    try:
        started = process.started(command, cwd=work, stdout=output, stderr=output, ask_first=True)
        server = stack.enter_context(started)
    except OSError as error:
        raise RemoteError(f"{name} does not start: {error}") from error
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), _STEP_S):
            return ("127.0.0.1", port), said
        time.sleep(_STEP_S)
    raise RemoteError(f"{name} does not serve GDB: {said() or 'it said nothing'}")


def flash(device: Device, image: Image, done: Callable[[int], None], *, starts: bool) -> None:
    """Write a firmware, compare every byte, and reset the device.

    Args:
        device: Where it goes.
        image: The firmware.
        done: Gets the number of bytes that were written so far.
        starts: Whether it runs without a debugger. One that speaks by semihosting stays halted:
            without a debugger its requests are faults.

    Raises:
        ToolchainError: It cannot be written (`probe-failed`).
        MismatchError: Other bytes are there afterwards (`other-firmware`).
    """
    with attached(device) as remote:
        remote.program(image.parts, done)
        hint = "look whether the memory is there, and its write protection"
        _compare(remote, image, "flash holds other bytes than were written", hint)
        _reset(remote, image)
        if starts:
            remote.leave()


def copy_to_drive(device: Device, file: Path) -> int:
    """Copy a UF2 file to the drive of a boot loader; the bytes that were written.

    Raises:
        UsageError: The build has no such file, or the folder is no such drive (`wrong-device`).
        ToolchainError: The drive takes no file (`probe-failed`).
    """
    drive = Path(device.place)
    if not (drive / _DRIVE_INFO).is_file():
        raise UsageError.of(
            "wrong-device",
            f"{drive} is not the drive of a UF2 boot loader",
            expected=f"a folder with {_DRIVE_INFO}",
            hint="start the boot loader of the board, and mount its drive",
        )
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise UsageError.of(
            "wrong-device",
            f"the build has no {file.name}",
            hint='write images = ["uf2"] in [target]',
        ) from None
    try:
        with (drive / file.name).open("wb") as copy:
            copy.write(data)
            copy.flush()
            # The board restarts when it has the last block, and the drive is gone.
            with suppress(OSError):
                os.fsync(copy.fileno())
    except OSError as error:
        raise ToolchainError.of(
            "probe-failed",
            f"{device} takes no file",
            found=str(error),
            hint="look whether the drive is mounted, and may be written",
        ) from error
    return len(data)


def _reset(remote: Remote, image: Image) -> None:
    remote.reset(image.begin, image.core.registers[2], image.width)


def _compare(
    remote: Remote,
    image: Image,
    otherwise: str,
    hint: str = "run `orchestrator flash` for the profile",
) -> None:
    for address, data in image.parts:
        found = remote.read(address, len(data))
        if found != data:
            at = next(i for i in range(len(data)) if found[i] != data[i])
            raise MismatchError.of(
                "other-firmware",
                otherwise,
                found=f"0x{found[at]:02X} at 0x{address + at:08X}",
                expected=f"0x{data[at]:02X}",
                hint=hint,
            )


@contextmanager
def halted(
    device: Device,
    firmware: Path,
    request: bytes,
    response: IO[bytes],
    output: IO[bytes],
    *,
    timeout_s: float,
) -> Iterator[Callable[[float], int | None]]:
    """A firmware that runs behind a GDB server, and asks by halting.

    Args:
        device: Where it is.
        firmware: The same, as a file.
        request: What it reads.
        response: Gets what it writes.
        output: Gets what it says otherwise.
        timeout_s: How long it may take to begin, and to carry out one request.

    Returns:
        A function that waits for some seconds, and gives its exit status, or None.

    Raises:
        ToolchainError: The server does not answer (`probe-failed`).
        MismatchError: Another firmware is there (`other-firmware`).
    """
    image = Image.of(firmware.read_bytes())
    with attached(device) as remote:
        remote.allow(timeout_s)
        _compare(remote, image, f"{device} has another firmware")
        _reset(remote, image)
        # Where no debugger carries out semihosting, its instruction halts the core. A server that
        # does carry it out, or an emulator, halts before it.
        for site in image.sites:
            remote.break_at(site, image.core.skip)
        remote.go()
        host = Semihost(request, image.width)
        yield _Halted(remote, image, host, response, output, timeout_s).carry_out


@dataclass(frozen=True, slots=True)
class _Halted:
    """A firmware that asks by halting, and who answers."""

    remote: Remote
    image: Image
    host: Semihost
    response: IO[bytes]
    output: IO[bytes]
    timeout_s: float

    def carry_out(self, wait_s: float) -> int | None:
        """Carry out the next request; the exit status if it was the last."""
        remote, core, width = self.remote, self.image.core, self.image.width
        stop = remote.answer(wait_s)
        if stop is None or stop[:1] == b"O":
            return None
        if stop[:1] not in {b"T", b"S"}:
            said = shown(stop) or "nothing"
            raise RemoteError(f"no halt, but {said}: turn the server's own semihosting off")
        remote.allow(self.timeout_s)
        operation, argument, at = (remote.register(n, width) for n in core.registers)
        if remote.read(at, len(core.request)) != core.request:
            raise RemoteError(f"the firmware has halted at 0x{at:08X}")
        result = self.host.carry_out(operation, argument, remote)
        if not kept(self.host, self.response, self.output):
            return process.TOO_MUCH
        if self.host.status is None:
            remote.set_register(core.registers[0], result, width)
            remote.set_register(core.registers[2], at + core.skip, width)
            remote.go()
        return self.host.status


def kept(end: HostEnd, response: IO[bytes], output: IO[bytes]) -> bool:
    """Write down what a firmware wrote and said; whether a response has no more than it may."""
    response.write(end.taken())
    if output.tell() > MOST_OUTPUT:
        output.truncate(output.seek(0))
    output.write(end.said())
    output.flush()
    return response.tell() <= _MOST_RESPONSE


def open_serial(port: str, baud: int) -> int:
    """A serial port: eight bits, no parity, one stop bit, nothing translated.

    Raises:
        ToolchainError: It cannot be opened (`probe-failed`).
    """
    try:
        import termios  # noqa: PLC0415  # Windows has none
        import tty  # noqa: PLC0415
    except ImportError as error:
        raise _no_port(port, "this system has no serial ports of POSIX") from error
    speed = getattr(termios, f"B{baud}", None)
    if speed is None:
        raise _no_port(port, f"this system has no serial ports of {baud:,} bits per second")
    try:
        at = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            tty.setraw(at)
            settings = termios.tcgetattr(at)
            settings[2] |= termios.CLOCAL | termios.CREAD
            settings[4] = settings[5] = speed
            termios.tcsetattr(at, termios.TCSAFLUSH, settings)
        except BaseException:
            os.close(at)
            raise
    except (OSError, termios.error) as error:
        raise _no_port(port, str(error)) from error
    return at


def _no_port(port: str, found: str) -> ToolchainError:
    return ToolchainError.of(
        "probe-failed",
        f"cannot open {port}",
        found=found,
        hint="name the serial port of the board, as uart:/dev/ttyACM0",
    )
