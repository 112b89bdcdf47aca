"""`orchestrator targets`: the supported targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import ExitCode
from orchestrator.targets.boards import boards_of
from orchestrator.targets.cores import BOARDS, CPUS

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """List cores, their instruction sets, toolchains and boards."""
    del args
    boards = {cpu: [BOARDS[b] for b in boards_of(cpu, BOARDS)] for cpu in CPUS}
    console.document(
        {
            name: {
                "isas": list(cpu.isas),
                "default_isa": cpu.default_isa,
                "float_abi": cpu.float_abi,
                "toolchains": list(cpu.toolchains),
                "boards": {
                    b.name: {
                        r.name: {
                            "kind": r.kind,
                            "origin": r.origin,
                            "size_bytes": r.size_bytes,
                        }
                        for r in b.regions
                    }
                    for b in boards[name]
                },
            }
            for name, cpu in CPUS.items()
        }
    )
    lines = []
    for name, cpu in CPUS.items():
        isas = ", ".join(
            f"{isa} (default)" if isa == cpu.default_isa else isa for isa in cpu.isas
        )
        lines.append(f"{name}")
        lines.append(f"  isa        {isas}")
        lines.append(f"  toolchain  {', '.join(cpu.toolchains)}")
        for board in boards[name]:
            note = "" if board.emulator else "  (build only: no emulator)"
            lines.append(f"  board      {board.name}{note}")
            lines += [
                f"    {r.kind:<5} {r.name:<10} {r.size_bytes // 1024:>6,} KiB"
                f" at {r.origin:#010x}"
                for r in board.regions
            ]
    console.data("\n".join(lines))
    return ExitCode.OK
