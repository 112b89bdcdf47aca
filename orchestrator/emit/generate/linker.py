"""The linker script, filled from a board's memory map, and the CMake package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.emit.artifact import GeneratedFile
from orchestrator.emit.generate.render import render
from orchestrator.memory.plan import MemoryPlan

if TYPE_CHECKING:
    from orchestrator.targets.cores import Board, Region, Target


def linker_script(
    head: str, board: Board, memory: MemoryPlan, *, has_id: bool = False
) -> GeneratedFile:
    """A script for GNU ld and lld.

    Programs and arenas lie where the memory plan places them, code where the profile
    wants it; everything else is in the first flash and the first RAM region of the
    board. With `has_id`, the flash holds the linker's build id.
    """

    def access(region: Region) -> str:
        if region.kind == "flash":
            return "rx"
        # The start-up copies code into this RAM.
        return "rwx" if region == board.code_region else "rw"

    text = render(
        "firmware.ld",
        head=head,
        board=board,
        access=access,
        flash=next(r.name for r in board.regions if r.kind == "flash"),
        ram=next(r.name for r in board.regions if r.kind == "ram"),
        models=[p for p in memory.placements if p.section.startswith(".rodata")],
        arenas=[p for p in memory.placements if p.section.startswith(".bss")],
        alignment=memory.alignment,
        has_id=has_id,
    )
    return GeneratedFile("gen/firmware.ld", text)


def uart_header(head: str, board: Board) -> GeneratedFile:
    """What the runner needs to know of the UART that a board has."""
    text = render("uart.h", head=head, board=board, uart=board.uart)
    return GeneratedFile("gen/include/orch_uart.h", text)


def start_header(head: str, board: Board) -> GeneratedFile:
    """What start-up code writes to registers of a board first."""
    return GeneratedFile("gen/include/orch_start.h", render("start.h", head=head, board=board))


def cmake_config(profile: str, head: str, target: Target) -> GeneratedFile:
    """An imported library `orchestrator::<profile>` for projects that use CMake.

    All paths are relative to the file, so its text is the same on every machine.

    Args:
        profile: Name of the profile, and of the package.
        head: One line: generator and profile.
        target: Target of the build; a host's library is not position independent.
    """
    text = render("config.cmake", profile=profile, head=head, board=target.board)
    return GeneratedFile(f"cmake/{profile}Config.cmake", text)
