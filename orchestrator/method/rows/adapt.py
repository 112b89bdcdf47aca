"""Prelinked models by rows, with the arenas that they then need."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Final

from orchestrator.core.border import Border, IoPort, border_of, with_border
from orchestrator.method.linked import LinkedMethod
from orchestrator.method.passes.border import BorderError
from orchestrator.method.passes.passes import drop_values
from orchestrator.method.passes.prepare_calls import slots_first
from orchestrator.method.replan import Adapted
from orchestrator.method.rows.costs import Core
from orchestrator.method.rows.found import UnknownNetworkError
from orchestrator.method.rows.fuse import by_rows
from orchestrator.planner.policy import Fusing

_HINT: Final = "leave rows out, so that the input is whole"


def with_rows(
    adapted: Adapted, core: Core, *, fusing: Fusing | None = None, most_step: float = inf
) -> Adapted:
    """The model with every method by rows that then needs a smaller arena.

    Methods whose input comes by rows, or with calls that have to be split, are among
    them anyway.

    Args:
        adapted: Linked methods with planned memory, and prepared calls.
        core: What it runs on.
        fusing: How far other methods may be; None: not at all.
        most_step: Instructions that a call may take, about, where it can be split.

    Raises:
        BorderError: An input cannot come by rows, as the profile wants.
    """
    methods, linked, arenas = [], [], []
    for method, program, facts in zip(
        adapted.linked or (), adapted.program.methods, adapted.arenas, strict=True
    ):
        port = next((p for p in method.io.ports if p.rows), None)
        found = None
        if len(facts) == 1 and (fusing or port is not None or most_step < inf):
            try:
                found = by_rows(
                    method,
                    arena_bytes=facts[0].size_bytes,
                    core=core,
                    max_slowdown=fusing.max_slowdown if fusing else None,
                    max_again=fusing.max_again if fusing else 0,
                    most_step=most_step,
                    is_fused=fusing is not None or port is not None,
                )
            except UnknownNetworkError as error:
                assert port is not None  # noqa: S101  # else there is no error
                raise _problem(port, method, str(error)) from None
        elif port is not None:
            raise _problem(port, method, "its tensors do not lie in one arena")
        if found is None:
            linked.append(method)
            methods.append(program)
            arenas.append(facts)
            continue
        made = slots_first(drop_values(found.method))
        if port is not None:
            made = replace(made, borders=_borders(made, port))
        linked.append(made)
        sizes = list(program.arena_bytes)
        sizes[found.memory_id] = found.arena_bytes
        methods.append(replace(program, arena_bytes=tuple(sizes)))
        arena = replace(
            facts[0],
            size_bytes=found.arena_bytes,
            lower_bound_bytes=found.least_bytes,
            planner=f"rows, {found.again} calls again" if found.again else "rows",
        )
        arenas.append((arena,))
    return replace(
        adapted,
        program=replace(adapted.program, methods=tuple(methods)),
        linked=tuple(linked),
        arenas=tuple(arenas),
    )


def _borders(method: LinkedMethod, port: IoPort) -> tuple[Border, ...]:
    """Borders with the rows of an input."""
    old = border_of(method.borders, port.index, is_input=True)
    new = replace(old or Border(is_input=True, index=port.index), rows=port.rows)
    return with_border(method.borders, new)


def _problem(port: IoPort, method: LinkedMethod, found: str) -> BorderError:
    return BorderError(port, method.name, found, _HINT, wish=f"come in {port.rows} rows at a time")
