"""What of models is in flash once, though several of them have it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.core.lazy_bytes import Bytes
    from orchestrator.method.linked import LinkedMethod
    from orchestrator.program.program import Program


def constants_of(methods: Iterable[LinkedMethod]) -> tuple[Bytes, ...]:
    """Distinct constants of a model's methods, in order of first use."""
    return tuple(dict.fromkeys(d for m in methods for d in m.constants))


def own_constants(linked: Mapping[str, Iterable[LinkedMethod]]) -> dict[str, tuple[Bytes, ...]]:
    """By model: its constants that no model before it has."""
    seen: dict[Bytes, None] = {}
    found = {}
    for name, methods in linked.items():
        found[name] = tuple(d for d in constants_of(methods) if d not in seen)
        seen |= dict.fromkeys(found[name])
    return found


def same_programs(programs: Mapping[str, Program], linked: Collection[str]) -> dict[str, str]:
    """By loaded model: the first one with the same program and the same constants.

    Args:
        programs: By model name.
        linked: Names of prelinked models, which have none in flash.
    """
    first: dict[tuple[Bytes, ...], str] = {}
    return {
        name: first.setdefault((p.data, *(e.data for e in p.external)), name)
        for name, p in programs.items()
        if name not in linked
    }
