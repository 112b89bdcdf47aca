"""`orchestrator scratch`: scratch memory of a product, and tables of sizes."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Final

from orchestrator.build import inputs, open_build, table
from orchestrator.catalog.operator_page import cmsis_nn_sizes
from orchestrator.cli.commands.named_files import read_text
from orchestrator.cli.commands.options import project_of
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, UsageError
from orchestrator.scratch import product_scratch
from orchestrator.scratch.table import check_tables, scratch_json, scratch_text

_TABLE: Final = "a table of scratch sizes (CSV)"


def run(args: Namespace, console: Console) -> ExitCode:
    """Show scratch memory of a product, or compare tables with CMSIS-NN's sizes."""
    if (args.profile is None) == (not args.check):
        raise UsageError.wrong(
            "scratch needs either a profile or --check with tables",
            "run `orchestrator scratch --help` to see its options",
        )
    if args.check:
        return _check(args.check, console)
    return _show(args, console)


def _show(args: Namespace, console: Console) -> ExitCode:
    project = project_of(args)
    with console.progress() as reporter:
        build = open_build(project, console.shell(reporter))
        target, programs = build[inputs.TARGET], build[inputs.PROGRAMS]
        resolution, isa = build[table.RESOLVE], target.isa.name
    needs = product_scratch(programs, resolution, isa)
    cmsis_nn = product_scratch(
        programs, resolution, isa, sizes=lambda kernel: cmsis_nn_sizes(kernel.schema)
    )
    name = project.profile.name
    title = f"{target.cpu.name} ({isa}), sizes in bytes"
    none = f"{name}: no kernel needs scratch memory"
    text = scratch_text(needs, cmsis_nn)
    return console.result(
        {
            "profile": name,
            "cpu": target.cpu.name,
            "isa": isa,
            "calls": scratch_json(needs, cmsis_nn),
        },
        f"{title}\n\n{text}" if text else none,
    )


def _check(paths: list[Path], console: Console) -> ExitCode:
    rows = check_tables({str(path): read_text(path, wanted=_TABLE) for path in paths})
    return console.result(
        {"tables": [{"file": file, "rows": count} for file, count in rows.items()]},
        "\n".join(f"{file}: {count} rows agree" for file, count in rows.items()),
    )
