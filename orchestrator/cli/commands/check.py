"""`orchestrator check`: everything short of compiling."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from orchestrator.build import Build, Project, open_build, table
from orchestrator.build.product import check_product
from orchestrator.cli.commands.memory import arena_lines, arenas_json
from orchestrator.cli.commands.options import project_of
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode
from orchestrator.fleet.outcome import Kind
from orchestrator.memory.estimate import dynamic_costs
from orchestrator.method.effects import effects_of_linked, effects_of_method
from orchestrator.program.values import TensorValue
from orchestrator.shell.reporter import Reporter


def run(args: Namespace, console: Console) -> ExitCode:
    """Check profile, models, selection, kernels, dtypes and memory."""
    if not needs_profile(args, args.profile):
        return run_workspace(args, console, Kind.CHECK)
    project = project_of(args)
    with console.progress() as reporter:
        build = open_build(project, console.shell(reporter))
        document, text = examine(project, build, reporter)
    return console.result(document, text)


def examine(project: Project, build: Build, reporter: Reporter) -> tuple[dict[str, object], str]:
    """What is right about a product, as JSON and as text; reports its warnings.

    Raises:
        OrchestratorError: Every problem of the first stage that has any.
    """
    fits = check_product(build, reporter)
    resolution, memory = build[table.REPLAN].resolution, build[table.MEMORY]
    kernels = len(resolution.table_entries)
    ram = memory.arena_bytes + memory.state_bytes
    missing = [str(m) for m in resolution.missing]
    document: dict[str, object] = {
        "profile": project.profile.name,
        "ok": True,
        "fits": fits,
        "missing": missing,
        "kernels": kernels,
        "arena_bytes": memory.arena_bytes,
        "state_bytes": memory.state_bytes,
        "arenas": arenas_json(memory),
    }
    text = (
        f"{project.profile.name}:"
        f" {'everything but missing operators' if missing else 'everything'}"
        f" {'fits' if fits else 'may fit'}:"
        f" {kernels} kernels,"
        f" {ram:,} bytes of RAM for arenas and states"
        + "".join(f"\n  {line}" for line in arena_lines(memory))
    )
    costs = [*_dynamic_costs(build)]
    text += "".join(f"\n  {line}" for line in costs)
    if costs:
        text += "\n  sizes are those of Dim(max=...) at export: lower it, or fix them"
    return document, text


def _dynamic_costs(build: Build) -> Iterator[str]:
    """What dynamic sizes cost, a line for each dimension."""
    adapted = build[table.REPLAN]
    schemas = adapted.resolution.schemas
    for name, program in adapted.programs.items():
        for number, method in enumerate(program.methods):
            tensors = (v for v in method.values if isinstance(v, TensorValue))
            if not any(tensor.is_dynamic for tensor in tensors):
                continue  # effects of a long method take a while
            effects = (
                effects_of_linked(adapted.linked[name][number])
                if name in adapted.linked
                else effects_of_method(method, schemas)
            )
            for text in dynamic_costs(effects, method.bounds):
                yield f"{name} {method.name} {text}"
