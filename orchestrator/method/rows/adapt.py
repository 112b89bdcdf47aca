"""Prelinked models by rows, with the arenas that they then need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from orchestrator.core.border import Border, IoPort, border_of, with_border
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.border import BorderError
from orchestrator.method.passes.passes import drop_values
from orchestrator.method.passes.prepare_calls import slots_first
from orchestrator.method.replan import Adapted
from orchestrator.method.rows.again import RecomputedNetwork, plan_of, with_skips_again
from orchestrator.method.rows.extracted import (
    ExtractedNetwork,
    Segments,
    UnknownNetworkError,
    network_of,
)
from orchestrator.method.rows.network import Network
from orchestrator.method.rows.strips import with_phases_apart
from orchestrator.method.rows.verify import problems_of_rows
from orchestrator.method.rows.write import method_by_rows
from orchestrator.method.windows import Core
from orchestrator.planner.policy import Fusing

# A method whose calls run by rows, in the smallest arena.


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
    # No plan is smaller than its limit. Rows of the caller, or a limit of steps, need one anyway,
    # and a skip that is computed again may lower the limit.
    if limit >= arena_bytes and not must and not max_again:
        return None
    plan = segments.smallest(limit, most_setup)
    recomputed = RecomputedNetwork.of(found.network)
    if max_again:
        most_again = max_again * whole
        for made in with_skips_again(
            found.network, plan, most_setup=most_setup, most_again=most_again
        ):
            recomputed, plan = made
        found = with_twins(found, recomputed)
    if plan.arena_bytes >= arena_bytes and not must:
        return None
    problems = problems_of_rows(found.network, plan)
    if problems:
        raise RowsProofError("; ".join(problems))
    # Strips of bands are as long as the scratch memory of their segment allows, which is known only
    # now.
    found = found.with_rooms(method, plan.rooms)
    return ByRows(
        method=method_by_rows(method, found, plan),
        memory_id=found.memory_id,
        arena_bytes=plan.arena_bytes,
        least_bytes=plan.least_bytes,
        again=recomputed.calls,
    )


def with_twins(found: ExtractedNetwork, recomputed: RecomputedNetwork) -> ExtractedNetwork:
    """What was found of a method, with layers twice: the same calls, on new images."""
    network, twins = recomputed.network, recomputed.twins
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


def needs_all(method: LinkedMethod, found: ExtractedNetwork) -> str:
    """What needs all of an input at once that should come by rows."""
    for layer, numbers in zip(found.network.layers, found.calls, strict=True):
        if not layer.by_rows:
            call = method.instructions[numbers[0]]
            name = call.operator if isinstance(call, LinkedCall) else "an instruction"
            return f"{name} needs all of its input at once"
    return "it is an output, too"


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


# What a method can have: less RAM for more instructions, without what is worse.

# Points of `orchestrator memory --pareto`, chosen by hand; of MobileNetV1 on an M55 ten are left,
# as others are slower and no smaller.
_MOST_LIMITS: Final = 24
"""Limits that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A plan by rows.

    Args:
        arena_bytes: Of its arena.
        slowdown: By which part a run becomes slower, about.
        calls: How many there are.
        again: Calls of the method that are computed a second time.
    """

    arena_bytes: int
    slowdown: float
    calls: int
    again: int = 0


def choices_of(method: LinkedMethod, core: Core, max_again: float = 0) -> tuple[Choice, ...]:
    """Plans of a method, the smallest arena last; each is faster than all smaller ones.

    Args:
        method: With planned memory, and prepared calls.
        core: What it runs on.
        max_again: By which part a run may become slower as long skips are computed
            again; 0: none are.

    Raises:
        UnknownNetworkError: It cannot run by rows.
    """
    method = with_phases_apart(method)
    found = network_of(method, core)
    choices = choices_in(found.network, max_again)
    if not choices:
        raise UnknownNetworkError(needs_all(method, found))
    return choices


def choices_in(network: Network, max_again: float = 0) -> tuple[Choice, ...]:
    """The choices of a network; none if rows that the caller gives are needed at once."""
    segments = Segments(network)
    plan = plan_of(segments, inf)
    if plan is None:
        return ()
    made = [*_choices(network, segments)]
    if max_again:
        for recomputed, _ in with_skips_again(
            network, plan, most_setup=inf, most_again=max_again * network.whole_cost
        ):
            made += _choices(recomputed.network, Segments(recomputed.network), recomputed.calls)
    made.sort(key=lambda choice: (choice.slowdown, choice.arena_bytes))
    best: list[Choice] = []
    for choice in made:
        if not best or choice.arena_bytes < best[-1].arena_bytes:
            best.append(choice)
    return tuple(best)


def _choices(network: Network, segments: Segments, again: int = 0) -> Iterator[Choice]:
    """Plans of a network for some limits."""
    for limit in _some(segments.limits()):
        plan = segments.plan(limit)
        yield Choice(
            arena_bytes=plan.arena_bytes,
            slowdown=plan.setup / max(network.whole_cost, 1),
            calls=len(plan.moves),
            again=again,
        )


def _some(limits: Sequence[float]) -> list[float]:
    """As many limits as are tried, the first and the last among them."""
    count = min(len(limits), _MOST_LIMITS)
    return [limits[i * (len(limits) - 1) // max(count - 1, 1)] for i in range(count)]
