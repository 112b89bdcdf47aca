"""Run calls on a firmware: as a process, in an emulator, or on a device."""

from __future__ import annotations

import errno
import os
import platform
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from orchestrator.build.on_device import MOST_OUTPUT, halted, kept, need_reach, open_serial
from orchestrator.errors import Diagnostic, MismatchError, ToolchainError
from orchestrator.measure.elf import build_id
from orchestrator.running.counting import COUNTS_FILE, EVENTS_FILE, CountPlan
from orchestrator.running.device import Device, Reach
from orchestrator.running.product import Product
from orchestrator.running.protocol import (
    CallResult,
    ResponseReader,
    decode_response,
    encode_request,
)
from orchestrator.running.values import Call
from orchestrator.running.wire import WireEnd
from orchestrator.shell import process
from orchestrator.shell.qemu_plugin import PLUGIN, counting_plugin
from orchestrator.shell.toolchain import find_emulator
from orchestrator.targets.boards import NO_SERIAL
from orchestrator.targets.cores import BOARDS

# Relative and short, as the firmware reads its command line into a small buffer.
# The runner has 64 bytes for all of its command line.
_REQUEST, _RESPONSE = "request.bin", "response.bin"
_OUTPUT = "output.txt"
# Seconds, chosen by hand: below what a person notices, and few wake-ups beside an
# emulator that takes a core.
_POLL_S = 0.01
_END_S = 2.0
"""How long an emulator may take to end after its firmware did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a firmware made of calls.

    Args:
        calls: In order.
        response: Its response; empty if it wrote none.
        counts: Counts of the emulator; "" without a counting plan.
    """

    calls: Sequence[Call]
    response: bytes
    counts: str = ""

    @property
    def results(self) -> tuple[CallResult, ...]:
        """What the response says. Raises MismatchError (`bad-response`)."""
        return decode_response(self.response, self.calls)


def carry_out(
    product: Product,
    firmware: Path,
    calls: Sequence[Call],
    *,
    timeout_s: float,
    plan: CountPlan | None = None,
    cache: Path | None = None,
    on: Device | None = None,
) -> Answer:
    """Run calls on a firmware.

    Args:
        product: The product it was built from.
        firmware: The program.
        calls: In order.
        timeout_s: Time limit of the run.
        plan: What the emulator counts; None on hosts.
        cache: Folder of the cache, for what counts; None for the user's.
        on: The device that has it; None: this machine, or an emulator.

    Raises:
        OrchestratorError: An input does not fit (`bad-input`), emulator or plugin is
            missing, the firmware failed (`firmware-failed`).
    """
    with tempfile.TemporaryDirectory(prefix="orchestrator-run-") as name:
        work = Path(name)
        (work / _REQUEST).write_bytes(encode_request(calls))
        command = (str(on),) if on else _command(product, firmware)
        if plan is not None:
            # A relative path: QEMU splits the option at commas, which paths may have.
            (work / PLUGIN).symlink_to(counting_plugin(cache))
            (work / EVENTS_FILE).write_bytes(plan.events)
            # A link beside the request gives a name without a comma; QEMU starts in
            # that folder.
            command = (*command, "-plugin", f"./{PLUGIN},{plan.arguments}")
        if on or product.via == "uart":
            start = _Start(product, firmware, command, work, on)
            done = _run_to_its_end(start, timeout_s)
        else:
            done = process.run(command, cwd=work, timeout_s=timeout_s)
        # QEMU exits with 1 for each error of its command line; a build without TCG
        # plugins names the option.
        if plan is not None and done.status == 1 and "plugin" in done.stderr.lower():
            raise _no_plugins(done, command)
        if done.status != 0:
            raise _failed(done, command)
        response, counts = b"", ""
        with suppress(OSError):
            response = (work / _RESPONSE).read_bytes()
        with suppress(OSError):
            counts = (work / COUNTS_FILE).read_text(errors="replace")
        return Answer(calls=calls, response=response, counts=counts)


def _command(product: Product, firmware: Path) -> tuple[str, ...]:
    emulator = product.emulator_on(platform.machine())
    program = find_emulator(emulator) if emulator else ()
    if not product.board:
        return (*program, str(firmware), _REQUEST, _RESPONSE)
    if product.via == "uart":
        at = program.index(NO_SERIAL[0])
        rest = program[at + len(NO_SERIAL) :]
        return (
            # At its end firmware restarts the board; for QEMU that is the end, too.
            *(*program[:at], "-serial", "stdio", "-no-reboot", *rest),
            *("-kernel", str(firmware)),
        )
    return (
        *program,
        "-semihosting-config",
        # target=native: files are opened by QEMU in its current folder, not by a
        # debugger. The first `arg` is the program's name, as argv[0].
        f"enable=on,target=native,arg=firmware,arg={_REQUEST},arg={_RESPONSE}",
        "-kernel",
        str(firmware),
    )


@dataclass(frozen=True, slots=True)
class _Start:
    """What starts a firmware.

    Args:
        product: Says how it reaches the host.
        firmware: The program.
        command: Starts it here.
        work: Folder with the request; gets the response.
        on: The device that has it, or None.
    """

    product: Product
    firmware: Path
    command: Sequence[str]
    work: Path
    on: Device | None


def _run_to_its_end(start: _Start, timeout_s: float) -> process.Finished:
    """Answer a firmware until it ends; its response is in the folder then."""
    deadline, status = time.monotonic() + timeout_s, None
    file = start.work / _OUTPUT
    with file.open("wb") as output, _running(start, output, timeout_s) as wait:
        while status is None:
            status = wait()
            if status is None and time.monotonic() > deadline:
                status = process.TIMED_OUT
    return process.Finished(status=status, stdout="", stderr=_end_of(file))


def _end_of(output: Path) -> str:
    """What a firmware and its emulator said last; a broken one may have said a lot."""
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - MOST_OUTPUT))
        return file.read(MOST_OUTPUT).decode(errors="replace")


@contextmanager
def _running(
    start: _Start, output: IO[bytes], timeout_s: float
) -> Iterator[Callable[[], int | None]]:
    """A started firmware: a function that waits a moment and gives its exit status, or None.

    Args:
        start: What is started.
        output: Gets what it says otherwise.
        timeout_s: How long a device may take to begin, and for one request.

    Raises:
        MismatchError: It does not start (`firmware-failed`).
        ToolchainError: Its device cannot be reached (`probe-failed`).
    """
    request = (start.work / _REQUEST).read_bytes()
    with ExitStack() as stack:
        response = stack.enter_context((start.work / _RESPONSE).open("wb", buffering=0))
        end = WireEnd(request, build_id(start.firmware.read_bytes()))
        if start.on and start.on.reach is Reach.UART:
            port = open_serial(start.on.place, start.on.baud)
            stack.callback(os.close, port)
            yield from _over(_Wire(port, port), end, response, output)
            return
        if start.on:
            wait = halted(start.on, start.firmware, request, response, output, timeout_s=timeout_s)
            yield partial(stack.enter_context(wait), _POLL_S)
            return
        over_wire = start.product.via == "uart"
        pipe = subprocess.PIPE if over_wire else None
        try:
            started = process.started(
                start.command,
                cwd=start.work,
                stdin=pipe or subprocess.DEVNULL,
                stdout=pipe or output,
                stderr=output,
            )
            firmware = stack.enter_context(started)
        except OSError as error:
            failed = process.Finished(status=process.NOT_STARTED, stdout="", stderr=str(error))
            raise _failed(failed, start.command) from error
        if not over_wire:
            yield partial(_waited, firmware)
            return
        assert firmware.stdin is not None  # noqa: S101  # as it was started
        assert firmware.stdout is not None  # noqa: S101
        os.set_blocking(firmware.stdin.fileno(), False)
        wire = _Wire(firmware.stdout.fileno(), firmware.stdin.fileno(), firmware)
        yield from _over(wire, end, response, output)


def _waited(firmware: process.Started) -> int | None:
    with suppress(subprocess.TimeoutExpired):
        return firmware.wait(_POLL_S)
    return None


@dataclass(frozen=True, slots=True)
class _Wire:
    """Descriptors of what comes from a UART and goes to it, and the emulator behind it."""

    source: int
    sink: int
    emulator: process.Started | None = None

    def receive(self) -> bytes:
        """What came in a moment. Raises OSError if a board was unplugged."""
        if not select.select([self.source], [], [], _POLL_S)[0]:
            return b""
        with suppress(BlockingIOError):
            if (data := os.read(self.source, 1 << 16)) or self.emulator:
                return data
            raise OSError(errno.ENODEV, "the port is gone")
        return b""

    def send(self, data: bytes) -> None:
        """Send what it takes. The rest is lost, as on any wire: the other end asks again."""
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(self.sink, data)

    def ended(self) -> int | None:
        """How the emulator has ended, if it has."""
        if self.emulator is None:
            return None
        # QEMU exits with 0 when firmware resets the board, and on SIGTERM.
        status = _waited(self.emulator)
        return process.RESTARTED if status == 0 else status


def _over(
    wire: _Wire, end: WireEnd, response: IO[bytes], output: IO[bytes]
) -> Iterator[Callable[[], int | None]]:
    """As `_running`, over a UART."""
    yield partial(_answered, wire, end, response, output)
    if not end.is_heard and wire.ended() is None:
        output.write(b"nothing on the wire is a firmware: is the [uart] of the board right?\n")


def _answered(wire: _Wire, end: WireEnd, response: IO[bytes], output: IO[bytes]) -> int | None:
    """Answer what a firmware asks over a UART."""
    try:
        data = wire.receive()
    except OSError:
        return process.GONE
    if not data:
        return wire.ended()
    answer = end.receive(data)
    if not kept(end, response, output):
        return process.TOO_MUCH
    wire.send(answer)
    if end.status is not None and wire.emulator:
        # With its acknowledgement it ends, and QEMU with it.
        with suppress(subprocess.TimeoutExpired):
            wire.emulator.wait(_END_S)
    if end.is_other:
        raise MismatchError.of(
            "other-firmware",
            "the device has another firmware",
            hint="run `orchestrator flash` for the profile",
        )
    return process.RESTARTED if end.has_restarted else end.status


def results_as_they_come(
    product: Product,
    firmware: Path,
    calls: Sequence[Call],
    *,
    timeout_s: float,
    on: Device | None = None,
) -> Iterator[CallResult]:
    """Run calls on a firmware in one process; each result as soon as it is written.

    Args:
        product: The product it was built from.
        firmware: The program.
        calls: In order.
        timeout_s: How long one result may take.
        on: As for `carry_out`.

    Raises:
        OrchestratorError: As `carry_out`, and a damaged response (`bad-response`).
    """
    with tempfile.TemporaryDirectory(prefix="orchestrator-run-") as name:
        work = Path(name)
        (work / _REQUEST).write_bytes(encode_request(calls))
        command = (str(on),) if on else _command(product, firmware)
        reader = ResponseReader(calls)
        with (
            (work / _OUTPUT).open("wb") as output,
            _running(_Start(product, firmware, command, work, on), output, timeout_s) as wait,
            (work / _RESPONSE).open("rb", buffering=0) as file,
        ):
            deadline = time.monotonic() + timeout_s
            ended = None
            while ended is None:
                # What it wrote last may come after the read: its end has to be seen first.
                ended = wait()
                results = reader.add(file.read())
                yield from results
                if results:
                    # For each result anew: a data set of a million samples may take
                    # hours in all.
                    deadline = time.monotonic() + timeout_s
                elif ended is None and time.monotonic() > deadline:
                    ended = process.TIMED_OUT
        if ended != 0:
            said = _end_of(work / _OUTPUT)
            raise _failed(process.Finished(status=ended, stdout="", stderr=said), command)
        if reader.is_incomplete:
            raise reader.cut_off()


def need_runnable(product: Product, on: Device | None = None) -> None:
    """Reject a firmware that neither this machine, an emulator nor a device can run.

    Raises:
        ToolchainError: Its board has no emulator (`no-emulator`).
        UsageError: It does not speak as the device is reached (`wrong-device`).
    """
    if on:
        need_reach(on, product)
        return
    if not product.board or product.emulator:
        return
    emulated = ", ".join(f"{b.name} ({b.cpu})" for b in BOARDS.values() if b.emulator)
    raise ToolchainError.of(
        "no-emulator",
        f"firmware for {product.board} can be built, but not run here",
        found="[[memory.regions]] with addresses that its emulator lacks"
        if product.board in BOARDS and BOARDS[product.board].emulator
        else f"no emulator knows {product.board}",
        known=emulated,
        hint="run it on the device with --on, or build for a board that is emulated",
    )


_MEANINGS = {
    process.TIMED_OUT: "it did not end within the time limit",
    process.NOT_STARTED: "it could not be started",
    process.RESTARTED: "it restarted or was stopped before it had ended",
    process.GONE: "the serial port is gone",
    process.TOO_MUCH: "its response has more than 1 GiB",
    # Exit codes of runtime/app/runner.cpp; docs/runner-protocol.md lists them.
    3: "it rejected the request",
    4: "it could not write its response",
    99: "a hardware fault",
}


def _no_plugins(done: process.Finished, command: tuple[str, ...]) -> ToolchainError:
    return ToolchainError.of(
        "plugin-failed",
        "this QEMU does not load the plugin that counts instructions",
        command=" ".join(command),
        found=done.stderr.strip()[-2000:],
        hint="install a QEMU that is built with TCG plugins, as distributions do",
    )


def _failed(done: process.Finished, command: Sequence[str]) -> MismatchError:
    meaning = _MEANINGS.get(done.status, f"exit status {done.status}")
    notes = [("found", meaning), ("command", " ".join(command))]
    if done.stderr.strip():
        notes.append(("output", done.stderr.strip()[-2000:]))
    return MismatchError(
        Diagnostic(
            code="firmware-failed",
            message="the firmware did not finish",
            notes=tuple(notes),
            hint="use a longer --timeout, or look for an endless loop in the model"
            if done.status == process.TIMED_OUT
            else "see its output",
        )
    )
