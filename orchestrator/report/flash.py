"""The flash of a product as a tree, and its treemap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import squarify

from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.measure.size import SizeReport
from orchestrator.report import svg
from orchestrator.report.facts import MethodFacts, ReportFacts

_HEIGHT: Final = 430
_HEADER: Final = 18
_GAP: Final = 2.0
_LABEL_HEIGHT: Final = 13
_OPENS: Final = ' data-o="1"'
_HIDDEN: Final = ' style="display:none"'
"""The third level shows when its parent is opened."""
_MOST: Final = 60
"""Most parts that are drawn of one; the rest is drawn as one."""

GROUPS: Final = (
    ("Kernels", "kernel", (Kind.KERNEL, Kind.KERNEL_TABLE, Kind.DELEGATE)),
    ("Runtime", "runtime", (Kind.RUNTIME,)),
    ("API", "api", (Kind.API,)),
    ("Start-up and run application", "platform", (Kind.APPLICATION, Kind.PLATFORM)),
    (
        "Toolchain and rest",
        "rest",
        (*(Kind.MEMORY_FUNCTIONS, Kind.TOOLCHAIN, Kind.CONSTANTS), *(Kind.OTHER, Kind.PADDING)),
    ),
)
"""Title, class, and kinds of contributors; models come before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Bytes of flash with a name.

    Args:
        name: Short.
        size_bytes: Those of its parts together.
        kind: Class that decides its colour.
        parts: The largest first.
        note: More about it.
    """

    name: str
    size_bytes: int
    kind: str
    parts: tuple[Cell, ...] = ()
    note: str = ""


def flash_tree(facts: ReportFacts) -> Cell:
    """All flash of the firmware: models with weights by layer, then code by part."""
    size = facts.size
    groups = [
        _model(facts, c.name, c.flash_bytes)
        for c in size.contributors
        if c.kind is Kind.MODEL and c.flash_bytes
    ]
    for title, kind, kinds in GROUPS:
        cells = [
            Cell(
                name=c.name if c.kind is not Kind.KERNEL_TABLE else "kernel table",
                size_bytes=c.flash_bytes,
                kind=kind,
                parts=_symbols(size, c.kind, c.name, c.flash_bytes, kind),
            )
            for c in size.contributors
            if c.kind in kinds and c.flash_bytes
        ]
        if cells:
            groups.append(_parent(title, kind, cells))
    return _parent("flash", "rest", groups)


def _parent(name: str, kind: str, cells: Iterable[Cell], note: str = "") -> Cell:
    parts = tuple(sorted(cells, key=lambda c: (-c.size_bytes, c.name)))
    total = sum(c.size_bytes for c in parts)
    return Cell(name=name, size_bytes=total, kind=kind, parts=parts, note=note)


def _with_rest(cells: Sequence[Cell], total: int, rest: str, kind: str) -> tuple[Cell, ...]:
    """Cells and what is left of the total; none if they cannot be parts of it."""
    known = sum(c.size_bytes for c in cells)
    if not cells or known > total:
        return ()
    left = [Cell(name=rest, size_bytes=total - known, kind=kind)]
    return tuple(
        sorted([*cells, *(left if total > known else [])], key=lambda c: (-c.size_bytes, c.name))
    )


def _symbols(size: SizeReport, kind: Kind, name: str, total: int, colour: str) -> tuple[Cell, ...]:
    flash = {s.name for s in size.sections if s.in_flash}
    cells = [
        Cell(name=s.name, size_bytes=s.size_bytes, kind=colour, note=s.object)
        for s in size.symbols
        if (s.kind, s.contributor) == (kind, name) and s.section in flash and s.size_bytes
    ]
    return _with_rest(cells, total, "other bytes", colour)


def _model(facts: ReportFacts, model: str, total: int) -> Cell:
    layers: list[Cell] = []
    seen: set[str] = set()
    for method in facts.methods:
        if method.model == model:
            layers += _layers(method, seen)
    is_prelinked = any(m.model == model and m.is_prelinked for m in facts.methods)
    rest = "alignment" if is_prelinked else "program"
    parts = _with_rest(layers, total, rest, "model")
    return Cell(name=model, size_bytes=total, kind="model", parts=parts, note="constants")


def _layers(method: MethodFacts, seen: set[str]) -> Iterator[Cell]:
    """Constants by the instruction that reads them first."""
    for step in method.steps:
        cells = []
        for tensor in method.weights(step):
            if tensor.data_id in seen or not tensor.size_bytes:
                continue
            seen.add(tensor.data_id)
            name = tensor.name or f"value {tensor.index}"
            cells.append(
                Cell(name=name, size_bytes=tensor.size_bytes, kind="model", note=tensor.text)
            )
        if cells:
            name = f"#{step.index} {svg.short(step.operator)}"
            yield _parent(name, "model", cells, step.source)


def treemap(facts: ReportFacts) -> str:
    """The treemap of flash as SVG."""
    tree = flash_tree(facts)
    total = tree.size_bytes
    picture = _Treemap(total)
    lines = list(picture.cells(tree.parts, (0, 0, svg.WIDTH, _HEIGHT), 1, ""))
    return svg.picture(
        lines,
        height=_HEIGHT,
        label=f"Treemap of {total:,} bytes of flash; a table of the same follows",
        kind="treemap",
    )


_Box = tuple[float, float, float, float]


class _Treemap:
    def __init__(self, total: int) -> None:
        self._total = max(total, 1)
        self._count: Counter[int] = Counter()

    def cells(self, cells: Sequence[Cell], box: _Box, level: int, path: str) -> Iterator[str]:
        """Rectangles of cells and their parts, in a box."""
        x, y, width, height = box
        cells = _limited([c for c in cells if c.size_bytes])
        if not cells or width <= 0 or height <= 0:
            return
        sizes = squarify.normalize_sizes([c.size_bytes for c in cells], width, height)
        found = squarify.squarify(sizes, x, y, width, height)
        for cell, place in zip(cells, found, strict=True):
            at = (place["x"], place["y"], place["dx"], place["dy"])
            yield from self._cell(cell, at, level, path)

    def _cell(self, cell: Cell, box: _Box, level: int, path: str) -> Iterator[str]:
        x, y, width, height = box
        label = f"{path} / {cell.name}" if path else cell.name
        percent = 100 * cell.size_bytes / self._total
        says = f"{label}: {cell.size_bytes:,} bytes of flash ({percent:.1f} %)"
        if cell.note:
            says += f", {cell.note}"
        first = not self._count.total()
        self._count[level] += 1
        opens = bool(cell.parts) and level < 3  # noqa: PLR2004
        role = "button" if opens else "img"
        numbers = " ".join(svg.number(v) for v in box)
        yield (
            f'<g class="cell k-{cell.kind} l{level}"{_HIDDEN if level > 2 else ""}'  # noqa: PLR2004
            f' data-b="{numbers}" data-l="{level}"'
            f'{_OPENS if opens else ""} role="{role}"'
            f' tabindex="{0 if first else -1}"'
            f' data-n="{svg.text(cell.name)}"><title>{svg.text(says)}</title>'
        )
        yield (
            f'<rect x="{svg.number(x)}" y="{svg.number(y)}"'
            f' width="{svg.number(width)}" height="{svg.number(height)}"/>'
        )
        if level < 3:  # noqa: PLR2004
            shown = svg.fitted(cell.name, width)
            if height < _LABEL_HEIGHT:
                shown = ""
            yield (
                f'<text x="{svg.number(x + 4)}" y="{svg.number(y + 12.5)}">{svg.text(shown)}</text>'
            )
        else:
            yield f'<text x="{svg.number(x + 4)}" y="{svg.number(y + 12.5)}"></text>'
        yield "</g>"
        if cell.parts and level < 3:  # noqa: PLR2004
            header = _HEADER if level == 1 and height > 2 * _HEADER else 0
            gap = min(_GAP, width / 8, height / 8) if level == 1 else 0
            inner = (
                x + gap,
                y + header + (0 if header else gap),
                width - 2 * gap,
                height - header - gap - (0 if header else gap),
            )
            yield from self.cells(cell.parts, inner, level + 1, label)


def _limited(cells: Sequence[Cell]) -> Sequence[Cell]:
    """At most `_MOST` cells: the smallest become one."""
    if len(cells) <= _MOST:
        return cells
    kept, rest = cells[: _MOST - 1], cells[_MOST - 1 :]
    total = sum(c.size_bytes for c in rest)
    name = f"{len(rest)} smaller parts"
    joined = Cell(name=name, size_bytes=total, kind=rest[0].kind)
    return sorted([*kept, joined], key=lambda c: (-c.size_bytes, c.name))
