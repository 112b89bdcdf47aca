"""The pictures of the page as files of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from orchestrator.memory.plan import identifier
from orchestrator.report import svg
from orchestrator.report.arena import arena_picture
from orchestrator.report.facts import ReportFacts
from orchestrator.report.flash import treemap
from orchestrator.report.graph import drawn_methods, graph_picture
from orchestrator.report.memory_map import memory_map

KINDS: Final = ("flash", "memory", "arena", "graph")
_SCALE: Final = 2.0
"""Pixels of a PNG for each unit of the picture."""
_MOST_PIXELS: Final = 40_000_000
"""Of a PNG; larger pictures are drawn smaller."""
_PAPER: Final = "#ffffff"
_SANS: Final = (
    *("DejaVu Sans", "Noto Sans", "Liberation Sans", "Roboto", "Ubuntu", "Cantarell"),
    *("Arial", "Helvetica", "Segoe UI", "FreeSans", "Nimbus Sans"),
)
_MONO: Final = (
    *("DejaVu Sans Mono", "Noto Sans Mono", "Liberation Mono", "Roboto Mono"),
    *("Ubuntu Mono", "Menlo", "Consolas", "Courier New", "FreeMono", *_SANS),
)
"""Families to draw text with; the first that is installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture as text of SVG; `name` is its own, without a suffix."""

    name: str
    text: str


class NoFontsError(Exception):
    """None of the families of fonts is installed."""


def pictures(facts: ReportFacts, kind: str) -> Iterator[Picture]:
    """The pictures of one of `KINDS`: one for each arena, or for each method's graph.

    Raises:
        ImportError: The extra `pictures`, which graphs need, is not installed.
    """
    if kind == "flash":
        yield Picture(name=kind, text=svg.standalone(treemap(facts)))
    elif kind == "memory":
        yield Picture(name=kind, text=svg.standalone(memory_map(facts)))
    elif kind == "graph":
        for method in drawn_methods(facts):
            yield Picture(
                name=f"{method.model}-{identifier(method.name)}-graph",
                text=svg.standalone(graph_picture(facts, method)),
            )
    else:
        for method in facts.methods:
            for arena in method.arenas:
                yield Picture(
                    name=f"{method.model}-{identifier(method.name)}-arena{arena.plan.memory_id}",
                    text=svg.standalone(arena_picture(method, arena)),
                )


def png(picture: Picture, *, system_fonts: bool = True) -> bytes:
    """A picture as PNG, on white.

    Args:
        picture: It.
        system_fonts: Draw text with the fonts of the system.

    Raises:
        ImportError: The extra `pictures` is not installed.
        NoFontsError: There are no fonts.
    """
    import resvg_py  # noqa: PLC0415  # of an extra

    width, height = svg.size_of(picture.text)
    return resvg_py.svg_to_bytes(
        svg_string=picture.text,
        zoom=min(_SCALE, (_MOST_PIXELS / (width * height)) ** 0.5),
        background=_PAPER,
        skip_system_fonts=not system_fonts,
        sans_serif_family=_installed(_SANS, system_fonts=system_fonts),
        monospace_family=_installed(_MONO, system_fonts=system_fonts),
    )


@cache
def _installed(families: tuple[str, ...], *, system_fonts: bool) -> str:
    """The first family that draws a letter: text without a font is left out."""
    import resvg_py  # noqa: PLC0415  # of an extra

    def draw(letter: str, family: str) -> bytes:
        head = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
        text = f'<text y="15" font-family="{family}">{letter}</text>'
        return resvg_py.svg_to_bytes(
            svg_string=f"{head}{text}</svg>", skip_system_fonts=not system_fonts
        )

    for family in families:
        if draw("M", family) != draw("", family):
            return family
    raise NoFontsError
