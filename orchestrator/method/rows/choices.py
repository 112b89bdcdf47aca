"""What a method can have: less RAM for more instructions, without what is worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from orchestrator.method.linked import LinkedMethod
from orchestrator.method.rows.again import plan_of, with_skips_again
from orchestrator.method.rows.costs import Core
from orchestrator.method.rows.cuts import Segments
from orchestrator.method.rows.found import UnknownNetworkError, network_of
from orchestrator.method.rows.fuse import needs_all
from orchestrator.method.rows.network import Network
from orchestrator.method.rows.phases import with_phases_apart

_MOST: Final = 24
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
    """The same of a network; none if rows that the caller gives are needed at once."""
    segments = Segments(network)
    plan = plan_of(segments, inf)
    if plan is None:
        return ()
    made = [*_choices(network, segments)]
    if max_again:
        for twice, _ in with_skips_again(
            network, plan, most_setup=inf, most_again=max_again * network.whole_cost
        ):
            made += _choices(twice.network, Segments(twice.network), twice.calls)
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
    count = min(len(limits), _MOST)
    return [limits[i * (len(limits) - 1) // max(count - 1, 1)] for i in range(count)]
