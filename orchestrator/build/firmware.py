"""Run calls on a firmware: as a process, or in an emulator."""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import Diagnostic, MismatchError, ToolchainError
from orchestrator.running.counting import COUNTS_FILE, EVENTS_FILE, CountPlan
from orchestrator.running.product import Product
from orchestrator.running.protocol import (
    CallResult,
    ResponseReader,
    decode_response,
    encode_request,
)
from orchestrator.running.values import Call
from orchestrator.shell import process
from orchestrator.shell.qemu_plugin import PLUGIN, counting_plugin
from orchestrator.shell.toolchain import find_emulator
from orchestrator.targets.cores import BOARDS

# Relative and short, as the firmware reads its command line into a small buffer.
# The runner has 64 bytes for all of its command line.
_REQUEST, _RESPONSE = "request.bin", "response.bin"
_OUTPUT = "output.txt"
# Seconds, chosen by hand: below what a person notices, and few wake-ups beside an
# emulator that takes a core.
_POLL_S = 0.01


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
) -> Answer:
    """Run calls on a firmware.

    Args:
        product: The product it was built from.
        firmware: The program.
        calls: In order.
        timeout_s: Time limit of the run.
        plan: What the emulator counts; None on hosts.
        cache: Folder of the cache, for what counts; None for the user's.

    Raises:
        OrchestratorError: An input does not fit (`bad-input`), emulator or plugin is
            missing, the firmware failed (`firmware-failed`).
    """
    with tempfile.TemporaryDirectory(prefix="orchestrator-run-") as name:
        work = Path(name)
        (work / _REQUEST).write_bytes(encode_request(calls))
        command = _command(product, firmware)
        if plan is not None:
            # A relative path: QEMU splits the option at commas, which paths may have.
            (work / PLUGIN).symlink_to(counting_plugin(cache))
            (work / EVENTS_FILE).write_bytes(plan.events)
            # A link beside the request gives a name without a comma; QEMU starts in
            # that folder.
            command = (*command, "-plugin", f"./{PLUGIN},{plan.arguments}")
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
    return (
        *program,
        "-semihosting-config",
        # target=native: files are opened by QEMU in its current folder, not by a
        # debugger. The first `arg` is the program's name, as argv[0].
        f"enable=on,target=native,arg=firmware,arg={_REQUEST},arg={_RESPONSE}",
        "-kernel",
        str(firmware),
    )


def results_as_they_come(
    product: Product, firmware: Path, calls: Sequence[Call], *, timeout_s: float
) -> Iterator[CallResult]:
    """Run calls on a firmware in one process; each result as soon as it is written.

    Args:
        product: The product it was built from.
        firmware: The program.
        calls: In order.
        timeout_s: How long one result may take.

    Raises:
        OrchestratorError: As `carry_out`, and a damaged response (`bad-response`).
    """
    with tempfile.TemporaryDirectory(prefix="orchestrator-run-") as name:
        work = Path(name)
        (work / _REQUEST).write_bytes(encode_request(calls))
        response = work / _RESPONSE
        response.touch()
        command = _command(product, firmware)
        reader = ResponseReader(calls)
        with ExitStack() as stack:
            output = stack.enter_context((work / _OUTPUT).open("wb"))
            file = stack.enter_context(response.open("rb", buffering=0))
            try:
                firmware_process = stack.enter_context(
                    process.started(command, cwd=work, stdout=output, stderr=output)
                )
            except OSError as error:
                raise _failed(
                    process.Finished(status=process.NOT_STARTED, stdout="", stderr=str(error)),
                    command,
                ) from error
            deadline = time.monotonic() + timeout_s
            while True:
                # What the process wrote last may come after the read: its end has to be
                # seen first.
                ended = firmware_process.poll()  # before the last bytes are read
                results = reader.add(file.read())
                yield from results
                if results:
                    # For each result anew: a data set of a million samples may take
                    # hours in all.
                    deadline = time.monotonic() + timeout_s
                elif ended is None and time.monotonic() > deadline:
                    ended = process.TIMED_OUT
                if ended is not None:
                    break
                if not results:
                    time.sleep(_POLL_S)
        if ended != 0:
            text = (work / _OUTPUT).read_text(errors="replace")
            raise _failed(process.Finished(status=ended, stdout="", stderr=text), command)
        if reader.is_incomplete:
            raise reader.cut_off()


def need_runnable(product: Product) -> None:
    """Reject a firmware that neither this machine nor an emulator can run.

    Raises:
        ToolchainError: Its board has no emulator (`no-emulator`).
    """
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
        hint="run it on the device, or build for a board that is emulated",
    )


_MEANINGS = {
    process.TIMED_OUT: "it did not end within the time limit",
    process.NOT_STARTED: "it could not be started",
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


def _failed(done: process.Finished, command: tuple[str, ...]) -> MismatchError:
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
