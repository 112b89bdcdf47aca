"""A method whose calls run by rows, in the smallest arena."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from orchestrator.method.linked import LinkedCall
from orchestrator.method.rows.cuts import Segments
from orchestrator.method.rows.found import UnknownNetworkError, network_of
from orchestrator.method.rows.phases import with_phases_apart
from orchestrator.method.rows.verify import problems_of_rows
from orchestrator.method.rows.write import method_by_rows

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.rows.costs import Core
    from orchestrator.method.rows.found import Found


class RowsProofError(Exception):
    """The plan by rows is wrong: an internal error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRows:
    """A method by rows, and its arena.

    Args:
        method: The method.
        memory_id: Of the arena.
        arena_bytes: Its size.
        least_bytes: No arena with these segments can be smaller.
    """

    method: LinkedMethod
    memory_id: int
    arena_bytes: int
    least_bytes: int


def by_rows(
    method: LinkedMethod,
    *,
    arena_bytes: int,
    core: Core,
    max_slowdown: float | None = None,
) -> ByRows | None:
    """The method in the smallest arena that rows allow; None if that is none smaller.

    Args:
        method: With planned memory, and prepared calls.
        arena_bytes: Of the arena that it needs.
        core: What it runs on.
        max_slowdown: By which part a run may become slower, about; None: any.

    Raises:
        UnknownNetworkError: Its input cannot come by rows, as the profile wants.
        RowsProofError: The plan is wrong.
    """
    is_given = any(port.rows for port in method.io.ports)
    method = with_phases_apart(method)
    try:
        found = network_of(method, core)
    except UnknownNetworkError:
        if is_given:
            raise
        return None
    segments = Segments(found.network)
    whole = sum(layer.whole for layer in found.network.layers)
    most_setup = inf if max_slowdown is None else max_slowdown * whole
    limit = segments.least_limit(most_setup)
    if limit == inf:
        raise UnknownNetworkError(needs_all(method, found))
    if limit >= arena_bytes and not is_given:
        return None
    plan = segments.smallest(limit, most_setup)
    if plan.arena_bytes >= arena_bytes and not is_given:
        return None
    problems = problems_of_rows(found.network, plan)
    if problems:
        raise RowsProofError("; ".join(problems))
    return ByRows(
        method=method_by_rows(method, found, plan),
        memory_id=found.memory_id,
        arena_bytes=plan.arena_bytes,
        least_bytes=plan.least_bytes,
    )


def needs_all(method: LinkedMethod, found: Found) -> str:
    """What needs all of an input at once that should come by rows."""
    for layer, numbers in zip(found.network.layers, found.calls, strict=True):
        if not layer.by_rows:
            call = method.instructions[numbers[0]]
            name = call.operator if isinstance(call, LinkedCall) else "an instruction"
            return f"{name} needs all of its input at once"
    return "it is an output, too"
