"""`orchestrator memory`: arenas, and what less RAM costs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from orchestrator.build import Build, inputs, open_build, table
from orchestrator.cli.commands.options import project_of
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, UsageError
from orchestrator.method.linked import LinkedMethod
from orchestrator.plain_table import table_lines
from orchestrator.shell.files import write_if_changed

if TYPE_CHECKING:
    from orchestrator.memory.plan import MemoryPlan
    from orchestrator.method.rows.adapt import Choice


# Arenas as text and as JSON.


def arena_lines(plan: MemoryPlan) -> Iterator[str]:
    """One line per arena that has bytes, or had some in the program."""
    for model in plan.models:
        for method in model.methods:
            for arena in method.own_arenas:
                if arena.size_bytes or arena.file_bytes:
                    yield f"{model.model} {method.method} {arena.text}"


def arenas_json(plan: MemoryPlan) -> list[dict[str, object]]:
    """Arenas as JSON; `file_bytes` is null where nothing was planned."""
    return [
        {
            "model": model.model,
            "method": method.method,
            "memory_id": arena.memory_id,
            "size_bytes": arena.size_bytes,
            "lower_bound_bytes": arena.peak_live_bytes,
            "gap_percent": round(arena.gap_percent, 2),
            "file_bytes": arena.file_bytes,
        }
        for model in plan.models
        for method in model.methods
        for arena in method.own_arenas
    ]


def run(args: Namespace, console: Console) -> ExitCode:
    """Print the arenas, or with --pareto what each method can have."""
    if args.svg is not None and not args.pareto:
        raise UsageError.wrong(
            "--svg requires --pareto", "`orchestrator report` draws the arenas of a build"
        )
    project = project_of(args)
    found: dict[str, tuple[Choice, ...]] = {}
    lines: list[str] = []
    with console.progress() as reporter:
        build = open_build(project, console.shell(reporter))
        plan = build[table.MEMORY]
        if args.pareto:
            for method in _methods(build):
                title = f"{method.model} {method.name}"
                reporter.working(f"plans of {title}")
                choices, reason = _choices(method, build)
                found[title] = choices
                lines += _shown(title, choices, reason)
    if args.svg is not None:
        _draw(args, found)
    return console.result(
        {"choices": {title: [*map(asdict, of)] for title, of in found.items()}}
        if args.pareto
        else {"arenas": arenas_json(plan)},
        "\n".join(lines if args.pareto else arena_lines(plan)),
    )


def _methods(build: Build) -> Iterator[LinkedMethod]:
    """Methods of prelinked models with whole tensors."""
    io = build[inputs.IO]
    whole = {
        name: replace(of, ports=tuple(replace(port, rows=0) for port in of.ports))
        for name, of in io.items()
    }
    # Choices are about plans by rows; what the profile chose among them must not decide
    # what there is to choose.
    other = build.replace({inputs.FUSING: None, inputs.IO: whole})
    for name, methods in other[table.REPLAN].linked.items():
        for method in methods:
            yield replace(method, io=io[name])


def _choices(method: LinkedMethod, build: Build) -> tuple[tuple[Choice, ...], str]:
    """Plans of a method; or none, and why."""
    from orchestrator.method.rows.adapt import choices_of  # noqa: PLC0415  # `check` needs none
    from orchestrator.method.rows.extracted import UnknownNetworkError  # noqa: PLC0415  # likewise
    from orchestrator.method.windows import Core  # noqa: PLC0415

    core = Core(build[inputs.TARGET].isa.name, build[inputs.FAST])
    try:
        fusing = build[inputs.FUSING]
        return choices_of(method, core, fusing.max_again if fusing else 0), ""
    except UnknownNetworkError as error:
        return (), str(error)


def _shown(title: str, choices: tuple[Choice, ...], reason: str) -> Iterator[str]:
    if reason:
        yield f"{title}: not by rows, {reason}"
        return
    yield f"{title}: bytes of arena, instructions about, calls"
    rows = [(f"  {c.arena_bytes:,}", f"{100 * c.slowdown:+.1f} %", _calls(c)) for c in choices]
    yield from table_lines(rows, right=(0, 1, 2))


def _calls(choice: Choice) -> str:
    return f"{choice.calls}" + f", {choice.again} again" * bool(choice.again)


def _draw(args: Namespace, found: dict[str, tuple[Choice, ...]]) -> None:
    from orchestrator.report.pictures import choices_svg  # noqa: PLC0415  # likewise

    drawn = {title: choices for title, choices in found.items() if choices}
    if len(drawn) != 1:
        raise UsageError.wrong(
            "--svg draws one method",
            "leave --svg out, or give a profile with one of them",
            found=", ".join(drawn) or "none that can run by rows",
        )
    ((title, choices),) = drawn.items()
    write_if_changed(args.svg, choices_svg(title, choices).encode())
