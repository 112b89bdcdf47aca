"""`orchestrator flash`: write the built firmware to a device."""

from __future__ import annotations

from argparse import Namespace

from orchestrator.build import inputs, open_build
from orchestrator.build.judging import product_of
from orchestrator.build.on_device import Image, copy_to_drive, flash, ready_device
from orchestrator.cli.commands.current import make_current
from orchestrator.cli.commands.new_files import ask, can_ask
from orchestrator.cli.commands.options import project_of
from orchestrator.cli.console import Console
from orchestrator.cli.terminal import say
from orchestrator.errors import ExitCode, UsageError
from orchestrator.printable import printable
from orchestrator.running.device import Device, Reach
from orchestrator.targets.boards import Board


def run(args: Namespace, console: Console) -> ExitCode:
    """Say what goes where, ask, write, compare, and start the firmware."""
    if args.on.reach is Reach.UART:
        raise UsageError.wrong(
            "a serial port does not write flash", "name a GDB server or a probe with --on"
        )
    project = project_of(args)
    make_current(project, console)
    product = product_of(project)
    board = open_build(project)[inputs.TARGET].board
    device = ready_device(args.on, board, product)
    assert board is not None  # noqa: S101  # as the device is ready
    image = Image.of((project.folder / product.firmware).read_bytes()).behind(board)
    places = _places(image, board)
    if not args.yes:
        _confirm(product.profile, device, places)
    starts = product.via == "uart"
    size = image.size_bytes
    with console.progress() as reporter:
        reporter.working(f"writing to {device}")
        if device.reach is Reach.UF2:
            copy_to_drive(device, project.folder / "firmware.uf2")
        else:
            flash(device, image, lambda n: reporter.progress(n, size, "bytes"), starts=starts)
    written = [{"memory": m, "address": a, "bytes": n} for m, a, n in places]
    does = "it runs" if starts else f"`orchestrator run --on {device}` starts it"
    done = f"{size:,} bytes written to {device} and compared; {does}"
    if device.reach is Reach.UF2:
        done = f"firmware.uf2 copied to {device.place}, for the boot loader to write"
    console.result(
        {"profile": product.profile, "device": str(device), "written": written},
        f"{product.profile}: {done}\n",
    )
    return ExitCode.OK


def _places(image: Image, board: Board) -> list[tuple[str, int, int]]:
    """Memory, first address and bytes of what is written, one for each memory."""
    found: dict[str, tuple[int, int]] = {}
    for address, data in image.parts:
        name = next((r.name for r in board.regions if r.origin <= address < r.end), "memory")
        first, size = found.get(name, (address, 0))
        found[name] = min(first, address), size + len(data)
    return [(name, first, size) for name, (first, size) in found.items()]


def _confirm(profile: str, device: Device, places: list[tuple[str, int, int]]) -> None:
    """Ask before writing. Raises UsageError without a yes."""
    what = ", ".join(f"{size:,} bytes to {name} at 0x{at:08X}" for name, at, size in places)
    text = f"Write {profile} to {device}: {what}"
    if not can_ask():
        raise UsageError.of(
            "not-confirmed",
            "cannot ask for confirmation without a terminal",
            found=text,
            hint="add --yes",
        )
    say(f"{printable(text)}\n")
    if ask("Write it", default="no", choices=("yes", "no")) != "yes":
        raise UsageError.of(
            "not-confirmed", "nothing was written", found=text, hint="answer yes, or add --yes"
        )
