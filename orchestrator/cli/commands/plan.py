"""`orchestrator plan`: what would be built, and why; no compiler is needed."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from orchestrator.build import Build, Project, inputs, open_build, prove, table
from orchestrator.build.engine import Unread
from orchestrator.build.product import export_steps
from orchestrator.cli.commands.memory import arena_lines, arenas_json
from orchestrator.cli.commands.options import project_of
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, ToolchainError
from orchestrator.method.passes.ledger_lines import ledger_lines


def run(args: Namespace, console: Console) -> ExitCode:
    """Print target, models, kernels, memory and stages."""
    project = project_of(args)
    with console.progress() as reporter:
        build = open_build(project, console.shell(reporter))
        pending = build[inputs.PENDING_EXPORTS]
        if not pending:
            prove(build)
            _ = build[table.GENERATE]
            # A plan needs no compiler: without one, stages that read it run.
            if _toolchain(build) is None:
                plan = build.replace({inputs.TOOLCHAIN: Unread()}).plan()
            else:
                plan = build.plan()
    if pending:
        _show_pending(project, build, pending, console)
        return ExitCode.OK
    for text in build[table.WARNINGS]:
        console.status(text)
    adapted, memory = build[table.REPLAN], build[table.MEMORY]
    resolution = adapted.resolution
    exports = export_steps(build[inputs.EXPORTED])
    steps = [*exports, *((s.label, s.reason) for s in plan.stages)]
    console.document(
        {
            **_target(project, build),
            "kernels": [
                {
                    "operator": str(operator.name),
                    "function": binding.kernel.function,
                    "library": binding.kernel.library,
                    "dtypes": sorted(d.name for d in binding.dtypes),
                }
                for operator in resolution.operators
                for binding in operator.bindings
            ],
            "missing": [str(m) for m in resolution.missing],
            "arena_bytes": memory.arena_bytes,
            "state_bytes": memory.state_bytes,
            "prelink": [asdict(m) for m in adapted.ledger],
            "arenas": arenas_json(memory),
            "stages": _stages(steps),
        }
    )
    origins = {
        m.name: f", from {m.written}:{m.source.function} for {m.lowering}"
        for m in project.profile.models
        if m.source is not None
    }
    lines = [*_head(project, build), "", "models"]
    for model in memory.models:
        lines.append(
            f"  {model.model:<24} {model.program_bytes:>9,} bytes of program"
            f"{origins.get(model.model, '')}"
        )
        lines += [
            f"    {method.method:<22} {sum(a.size_bytes for a in method.arenas):>9,}"
            f" bytes of arena, {method.state_bytes:,} of state"
            for method in model.methods
        ]
    lines += ["", "arenas", *(f"  {line}" for line in arena_lines(memory))]
    lines += ["", "kernels"]
    lines += [
        f"  {operator.name!s:<46} {binding.kernel.library},"
        f" {' '.join(sorted(d.name for d in binding.dtypes))}"
        for operator in resolution.operators
        for binding in operator.bindings
    ]
    if resolution.missing:
        lines += ["", "missing", *(f"  {m}" for m in resolution.missing)]
    if ledger := [*ledger_lines(adapted.ledger)]:
        lines += ["", "passes", *(f"  {line}" for line in ledger)]
    lines += ["", "stages", *_stage_lines(steps)]
    console.data("\n".join(lines))
    return ExitCode.OK


def _toolchain(build: Build) -> str | None:
    """Version of the compiler; None if it is not installed."""
    try:
        return build[inputs.TOOLCHAIN].version
    except ToolchainError:
        return None


def _shown_toolchain(build: Build) -> str:
    name = build[inputs.TARGET].toolchain
    return _toolchain(build) or f"{name} (not installed)"


def _target(project: Project, build: Build) -> dict[str, object]:
    """The facts that do not depend on models, as JSON."""
    target = build[inputs.TARGET]
    return {
        "profile": project.profile.name,
        "cpu": target.cpu.name,
        "isa": target.isa.name,
        "board": target.board.name if target.board else None,
        "toolchain": _shown_toolchain(build),
        "optimize": target.optimize,
        "models": [m.name for m in project.profile.models],
    }


def _head(project: Project, build: Build) -> list[str]:
    """The first lines of the text."""
    target = build[inputs.TARGET]
    board = f" on {target.board.name}" if target.board else ""
    return [
        f"profile    {project.profile.name}",
        f"target     {target.cpu.name} ({target.isa.name}){board}, optimized for {target.optimize}",
        f"toolchain  {_shown_toolchain(build)}",
        f"outputs    {project.folder}",
    ]


_MODEL_KEYS = ("kernels", "missing", "arena_bytes", "state_bytes", "prelink", "arenas")
"""Keys of the document that are unknown before the models are exported."""


def _show_pending(
    project: Project, build: Build, pending: Mapping[str, str], console: Console
) -> None:
    """Print what does not need the exported models: a plan runs no code of models."""
    steps = [
        (f"export {model.name}", pending.get(model.name, ""))
        for model in project.profile.models
        if model.source is not None
    ]
    console.result(
        {**_target(project, build), **dict.fromkeys(_MODEL_KEYS), "stages": _stages(steps)},
        "\n".join(
            [
                *_head(project, build),
                "",
                "stages",
                *_stage_lines(steps),
                "  The other stages, kernels and memory are known once the models are exported:",
                f"  `orchestrator export {project.profile.named}` does that.",
            ]
        ),
    )


def _stages(steps: Sequence[tuple[str, str]]) -> list[dict[str, object]]:
    return [{"stage": label, "runs": bool(reason), "reason": reason} for label, reason in steps]


def _stage_lines(steps: Sequence[tuple[str, str]]) -> list[str]:
    return [f"  {label:<24} {'runs: ' + reason if reason else 'known'}" for label, reason in steps]
