"""The pictures of the page as files of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.memory.plan import identifier
from orchestrator.report import svg
from orchestrator.report.arena import arena_picture
from orchestrator.report.flash import treemap
from orchestrator.report.memory_map import memory_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.report.facts import ReportFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An SVG file; `name` is that of the picture, without a suffix."""

    name: str
    text: str


def pictures(facts: ReportFacts, kind: str) -> Iterator[Picture]:
    """The pictures of a kind: `flash`, `memory`, or `arena` with one for each arena."""
    if kind == "flash":
        yield Picture(name=kind, text=svg.standalone(treemap(facts)))
    elif kind == "memory":
        yield Picture(name=kind, text=svg.standalone(memory_map(facts)))
    else:
        for method in facts.methods:
            for arena in method.arenas:
                yield Picture(
                    name=f"{method.model}-{identifier(method.name)}"
                    f"-arena{arena.plan.memory_id}",
                    text=svg.standalone(arena_picture(method, arena)),
                )
