"""`orchestrator check`: everything short of compiling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Pipeline, load
from orchestrator.build.selecting import product_resolution
from orchestrator.cli.commands.arenas import arena_lines, arenas_json
from orchestrator.errors import ExitCode

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Check profile, models, selection, kernels, dtypes and memory."""
    pipeline = Pipeline(load(args.profile), BuildOptions(out=args.out))
    pipeline.reporter = console.notes()
    plan = pipeline.check()
    kernels = len(product_resolution(pipeline, plan).table_entries)
    memory = pipeline.memory(plan)
    ram = memory.arena_bytes + memory.state_bytes
    missing = [str(m) for m in product_resolution(pipeline, plan).missing]
    for text in pipeline.warnings(plan):
        console.talk(text)
    console.document(
        {
            "profile": pipeline.profile.name,
            "ok": True,
            "missing": missing,
            "kernels": kernels,
            "arena_bytes": memory.arena_bytes,
            "state_bytes": memory.state_bytes,
            "arenas": arenas_json(memory),
        }
    )
    console.data(
        f"{pipeline.profile.name}:"
        f" {'everything but missing operators' if missing else 'everything'} fits:"
        f" {kernels} kernels,"
        f" {ram:,} bytes of RAM for arenas and states"
        + "".join(f"\n  {line}" for line in arena_lines(memory))
    )
    return ExitCode.OK
