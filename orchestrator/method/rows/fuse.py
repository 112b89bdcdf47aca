"""A method whose calls run by rows, in the smallest arena."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.rows.again import Twice, with_skips_again
from orchestrator.method.rows.costs import Core
from orchestrator.method.rows.cuts import Segments
from orchestrator.method.rows.found import Found, UnknownNetworkError, network_of
from orchestrator.method.rows.phases import with_phases_apart
from orchestrator.method.rows.verify import problems_of_rows
from orchestrator.method.rows.write import method_by_rows


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
        again: Calls of the method that it computes a second time.
    """

    method: LinkedMethod
    memory_id: int
    arena_bytes: int
    least_bytes: int
    again: int = 0


def by_rows(
    method: LinkedMethod,
    *,
    arena_bytes: int,
    core: Core,
    max_slowdown: float | None = None,
    max_again: float = 0,
    most_step: float = inf,
    is_fused: bool = True,
) -> ByRows | None:
    """The method in the smallest arena that rows allow; None if that is none smaller.

    Calls that take longer than a limit are split, whatever the arena is then.

    Args:
        method: With planned memory, and prepared calls.
        arena_bytes: Of the arena that it needs.
        core: What it runs on.
        max_slowdown: By which part a run may become slower, about; None: any.
        max_again: By which part of this, as it computes long skips again; 0: it
            computes none.
        most_step: Instructions that a call may take, about, if it can be split.
        is_fused: Whether operators may run interleaved; else calls are only split.

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
    found = replace(found, network=found.network.within(most_step))
    is_split = any(layer.most_rows for layer in found.network.layers)
    if not (is_fused or is_split):
        return None
    segments = Segments(found.network, is_fused=is_fused)
    whole = found.network.whole_cost
    most_setup = inf if max_slowdown is None else max_slowdown * whole
    limit = segments.least_limit(most_setup)
    if limit == inf:
        raise UnknownNetworkError(needs_all(method, found))
    must = is_given or is_split
    if limit >= arena_bytes and not must and not max_again:
        return None
    plan = segments.smallest(limit, most_setup)
    twice = Twice.of(found.network)
    if max_again:
        most_again = max_again * whole
        for made in with_skips_again(
            found.network, plan, most_setup=most_setup, most_again=most_again
        ):
            twice, plan = made
        found = with_twins(found, twice)
    if plan.arena_bytes >= arena_bytes and not must:
        return None
    problems = problems_of_rows(found.network, plan)
    if problems:
        raise RowsProofError("; ".join(problems))
    found = found.with_rooms(method, plan.rooms)
    return ByRows(
        method=method_by_rows(method, found, plan),
        memory_id=found.memory_id,
        arena_bytes=plan.arena_bytes,
        least_bytes=plan.least_bytes,
        again=twice.calls,
    )


def with_twins(found: Found, twice: Twice) -> Found:
    """What was found of a method, with layers twice: the same calls, on new images."""
    network, twins = twice.network, twice.twins
    values = {
        layer.out: found.values[found.network.layers[twin].out]
        for layer, twin in zip(network.layers, twins, strict=True)
    }
    return replace(
        found,
        network=network,
        calls=tuple(found.calls[twin] for twin in twins),
        reads=tuple(found.reads[twin] for twin in twins),
        values={**found.values, **values},
    )


def needs_all(method: LinkedMethod, found: Found) -> str:
    """What needs all of an input at once that should come by rows."""
    for layer, numbers in zip(found.network.layers, found.calls, strict=True):
        if not layer.by_rows:
            call = method.instructions[numbers[0]]
            name = call.operator if isinstance(call, LinkedCall) else "an instruction"
            return f"{name} needs all of its input at once"
    return "it is an output, too"
