"""The target of a new profile: a core or a board, and a toolchain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.cli.questions import ask
from orchestrator.errors import ToolchainError, UsageError
from orchestrator.shell.toolchain import InstalledToolchains, Toolchains
from orchestrator.targets.cores import BOARDS, CPUS, resolve_target

if TYPE_CHECKING:
    from argparse import Namespace


HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTarget:
    """`board` is "" on hosts."""

    cpu: str
    board: str
    toolchain: str


def choose_target(args: Namespace, toolchains: Toolchains | None, *, asks: bool) -> NewTarget:
    """The target that options or answers choose; without them the host.

    Args:
        args: Has `cpu`, `board` and `toolchain`.
        toolchains: Installed ones; None for those of this machine.
        asks: Whether to ask for what no option chooses.

    Raises:
        UsageError: Options contradict each other.
    """
    cpu, board = args.cpu, args.board
    if asks and cpu is None and board is None:
        answer = ask("Core or board", default=HOST, choices=(*CPUS, *BOARDS))
        cpu, board = (answer, None) if answer in CPUS else (None, answer)
    if board is None:
        cpu = cpu or HOST
        board = CPUS[cpu].default_board or ""
    elif cpu is None:
        cpu = BOARDS[board].cpu
    elif cpu not in BOARDS[board].cpus:
        raise UsageError.of(
            "usage",
            f"board {board} does not run firmware for {cpu}",
            hint=f"leave out --cpu: the board has a {BOARDS[board].cpu}",
        )
    names = CPUS[cpu].toolchains
    toolchain = args.toolchain or _default(cpu, toolchains or InstalledToolchains())
    if asks and args.toolchain is None and len(names) > 1:
        toolchain = ask("Toolchain", default=toolchain, choices=names)
    return NewTarget(cpu=cpu, board=board, toolchain=toolchain)


def _default(cpu: str, toolchains: Toolchains) -> str:
    """The first toolchain that is installed, else the default one."""
    if cpu == HOST:
        return toolchains.name_for_host()
    names = CPUS[cpu].toolchains
    for name in names:
        target = resolve_target(cpu=cpu, isa=None, board=None, toolchain=name, optimize="size")
        try:
            toolchains.find(target, trust_cache=True)
        except ToolchainError:
            continue
        return name
    return names[0]
