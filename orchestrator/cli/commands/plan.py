"""`orchestrator plan`: what would be built, and why; no compiler is needed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Pipeline, load
from orchestrator.build.exporting import pending_exports
from orchestrator.build.ledger import prelink_ledger, prelink_lines
from orchestrator.build.selecting import product_resolution
from orchestrator.cli.commands.arenas import arena_lines, arenas_json
from orchestrator.errors import ExitCode, ToolchainError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Print target, models, kernels, memory and stages."""
    pipeline = Pipeline(load(args.profile), BuildOptions(out=args.out))
    if pending := pending_exports(pipeline):
        _show_pending(pipeline, pending, console)
        return ExitCode.OK
    plan = pipeline.check()
    if _toolchain(pipeline) is not None:
        plan = pipeline.plan(with_toolchain=True)
    for text in pipeline.warnings(plan):
        console.talk(text)
    resolution = product_resolution(pipeline, plan)
    memory = pipeline.memory(plan)
    steps = [*pipeline.export_steps, *((s.label, s.reason) for s in plan.stages)]
    stages = [
        {"stage": label, "runs": bool(reason), "reason": reason}
        for label, reason in steps
    ]
    console.document(
        {
            **_target(pipeline),
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
            "prelink": [asdict(m) for m in prelink_ledger(pipeline, plan)],
            "arenas": arenas_json(memory),
            "stages": stages,
        }
    )
    origins = {
        m.name: f", from {m.written}:{m.source.function} for {m.lowering}"
        for m in pipeline.profile.models
        if m.source is not None
    }
    lines = [*_head(pipeline), "", "models"]
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
    if ledger := prelink_lines(pipeline, plan):
        lines += ["", "passes", *(f"  {line}" for line in ledger)]
    lines += ["", "stages", *_stage_lines(steps)]
    console.data("\n".join(lines))
    return ExitCode.OK


def _toolchain(pipeline: Pipeline) -> str | None:
    """Version of the compiler; None if it is not installed."""
    try:
        return pipeline.toolchain.version
    except ToolchainError:
        return None


def _named(pipeline: Pipeline) -> str:
    found = _toolchain(pipeline)
    return found or f"{pipeline.target.toolchain} (not installed)"


def _target(pipeline: Pipeline) -> dict[str, object]:
    """What is known without the models, for programs."""
    target = pipeline.target
    return {
        "profile": pipeline.profile.name,
        "cpu": target.cpu.name,
        "isa": target.isa.name,
        "board": target.board.name if target.board else None,
        "toolchain": _named(pipeline),
        "optimize": target.optimize,
        "models": [m.name for m in pipeline.profile.models],
    }


def _head(pipeline: Pipeline) -> list[str]:
    """The same for people."""
    target = pipeline.target
    board = f" on {target.board.name}" if target.board else ""
    return [
        f"profile    {pipeline.profile.name}",
        f"target     {target.cpu.name} ({target.isa.name}){board},"
        f" optimized for {target.optimize}",
        f"toolchain  {_named(pipeline)}",
        f"outputs    {pipeline.folder}",
    ]


_OF_MODELS = ("kernels", "missing", "arena_bytes", "state_bytes", "prelink", "arenas")
"""Keys of the document that nobody knows before the models are exported."""


def _show_pending(
    pipeline: Pipeline, pending: Mapping[str, str], console: Console
) -> None:
    """Print what is known while models are still Python: a plan runs no code."""
    steps = [
        (f"export {model.name}", pending.get(model.name, ""))
        for model in pipeline.profile.models
        if model.source is not None
    ]
    console.document(
        {
            **_target(pipeline),
            **dict.fromkeys(_OF_MODELS),
            "stages": [
                {"stage": label, "runs": bool(reason), "reason": reason}
                for label, reason in steps
            ],
        }
    )
    console.data(
        "\n".join(
            [
                *_head(pipeline),
                "",
                "stages",
                *_stage_lines(steps),
                "  The other stages, kernels and memory are known once the models are"
                " exported:",
                f"  `orchestrator export {pipeline.profile.file}` does that.",
            ]
        )
    )


def _stage_lines(steps: Sequence[tuple[str, str]]) -> list[str]:
    return [
        f"  {label:<24} {'runs: ' + reason if reason else 'known'}"
        for label, reason in steps
    ]
