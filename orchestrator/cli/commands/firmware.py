"""Run calls on a firmware: as a process, or in an emulator."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, MismatchError, ToolchainError
from orchestrator.running.counting import COUNTS_FILE
from orchestrator.running.protocol import encode_request
from orchestrator.shell import process
from orchestrator.shell.qemu_plugin import PLUGIN, counting_plugin
from orchestrator.shell.toolchain import find_emulator
from orchestrator.targets.cores import BOARDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.running.counting import CountPlan
    from orchestrator.running.product import Product
    from orchestrator.running.values import Call

# Relative and short, as the firmware reads its command line into a small buffer.
_REQUEST, _RESPONSE = "request.bin", "response.bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The results of a firmware's run.

    Args:
        response: Its response; empty if it wrote none.
        counts: Counts of the emulator; "" without a counting plan.
    """

    response: bytes
    counts: str = ""


def carry_out(
    product: Product,
    firmware: Path,
    calls: Sequence[Call],
    *,
    timeout_s: float,
    plan: CountPlan | None = None,
) -> Answer:
    """Run calls on a firmware.

    Args:
        product: The product it was built from.
        firmware: The program.
        calls: In order.
        timeout_s: Time limit of the run.
        plan: What the emulator counts; None on hosts.

    Raises:
        OrchestratorError: An input does not fit (`bad-input`), emulator or plugin is
            missing, the firmware failed (`firmware-failed`).
    """
    with tempfile.TemporaryDirectory(prefix="orchestrator-run-") as name:
        work = Path(name)
        (work / _REQUEST).write_bytes(encode_request(calls))
        command: tuple[str, ...] = (str(firmware), _REQUEST, _RESPONSE)
        if product.emulator:
            command = (
                *find_emulator(product.emulator),
                "-semihosting-config",
                f"enable=on,target=native,arg=firmware,arg={_REQUEST},arg={_RESPONSE}",
                "-kernel",
                str(firmware),
            )
        if plan is not None:
            # A relative path: QEMU splits the option at commas, which paths may have.
            (work / PLUGIN).symlink_to(counting_plugin())
            command = (*command, "-plugin", f"./{PLUGIN},{plan.arguments}")
        done = process.run(command, cwd=work, env=os.environ, timeout_s=timeout_s)
        if plan is not None and done.status == 1 and "plugin" in done.stderr.lower():
            raise _no_plugins(done, command)
        if done.status != 0:
            raise _failed(done, command)
        response, counts = b"", ""
        with suppress(OSError):
            response = (work / _RESPONSE).read_bytes()
        with suppress(OSError):
            counts = (work / COUNTS_FILE).read_text(errors="replace")
        return Answer(response=response, counts=counts)


def need_runnable(product: Product) -> None:
    """Reject a firmware that neither this machine nor an emulator can run.

    Raises:
        ToolchainError: Its board has no emulator (`no-emulator`).
    """
    if not product.board or product.emulator:
        return
    emulated = ", ".join(f"{b.name} ({b.cpu})" for b in BOARDS.values() if b.emulator)
    raise ToolchainError(
        Diagnostic(
            code="no-emulator",
            message=f"firmware for {product.board} can be built, but not run here",
            notes=(
                (
                    "found",
                    "[[memory.regions]] with addresses that its emulator lacks"
                    if BOARDS[product.board].emulator
                    else f"no emulator for {product.board}",
                ),
                ("known", emulated),
            ),
            hint="run it on the device, or build for a board that is emulated",
        )
    )


_MEANINGS = {
    process.TIMED_OUT: "it did not end within the time limit",
    process.NOT_STARTED: "it could not be started",
    3: "it rejected the request",
    4: "it could not write its response",
    99: "a hardware fault",
}


def _no_plugins(done: process.Finished, command: tuple[str, ...]) -> ToolchainError:
    return ToolchainError(
        Diagnostic(
            code="plugin-failed",
            message="this QEMU does not load the plugin that counts instructions",
            notes=(
                ("command", " ".join(command)),
                ("found", done.stderr.strip()[-2000:]),
            ),
            hint="install a QEMU that is built with TCG plugins, as distributions do",
        )
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
