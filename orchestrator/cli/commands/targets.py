"""`orchestrator targets`: the supported targets."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from orchestrator.catalog.operator_page import counts, operator_rows
from orchestrator.cli.commands.named_files import shipped_kernels
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode
from orchestrator.plain_table import table_lines
from orchestrator.targets.boards import boards_of
from orchestrator.targets.cores import BOARDS, CPUS


def run(args: Namespace, console: Console) -> ExitCode:
    """List cores, their instruction sets, toolchains and boards; or operators."""
    if args.operators:
        return _operators(console)
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
                        r.name: {"kind": r.kind, "origin": r.origin, "size_bytes": r.size_bytes}
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
        isas = ", ".join(f"{isa} (default)" if isa == cpu.default_isa else isa for isa in cpu.isas)
        lines.append(f"{name}")
        lines.append(f"  isa        {isas}")
        lines.append(f"  toolchain  {', '.join(cpu.toolchains)}")
        for board in boards[name]:
            tried = f"tried on {board.tried_on}" if board.tried_on else "not tried on hardware"
            uart = ", UART" if board.uart else ""
            lines.append(f"  board      {board.name}  ({tried}{uart})")
            lines.append(f"    {board.description}")
            lines += [
                f"    {r.kind:<5} {r.name:<10} {r.size_bytes // 1024:>6,} KiB at {r.origin:#010x}"
                for r in board.regions
            ]
    console.data("\n".join(lines))
    return ExitCode.OK


def _operators(console: Console) -> ExitCode:
    """List the operators of all kernel libraries."""
    rows = operator_rows(shipped_kernels())
    console.document([asdict(row) for row in rows])
    head = ("operator", "library", "dtypes", "dim orders", "code for", "error")
    cells = [
        (r.operator, r.library, r.dtypes, r.dim_orders, ", ".join(r.isas), r.error) for r in rows
    ]
    console.data("\n".join(table_lines([head, *cells])))
    found = counts(rows)
    console.status("; ".join(f"{have} of {of} in {name}" for name, (have, of) in found.items()))
    return ExitCode.OK
