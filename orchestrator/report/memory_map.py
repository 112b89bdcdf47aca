"""Memories of a board with what lies in them, by address."""

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

# Units of the picture. By eye.
_LEFT, _RIGHT = 12, 12
_BAR, _ZOOM, _GAP, _CAPTION = 14, 40, 16, 20
_ZOOM_BELOW: Final = 0.6
"""A memory with less than this in use gets a second bar of the part in use."""
_CLASSES: Final = {
    Kind.MODEL: "model",
    Kind.KERNEL: "kernel",
    Kind.KERNEL_TABLE: "kernel",
    Kind.DELEGATE: "kernel",
    Kind.RUNTIME: "runtime",
    Kind.API: "api",
    Kind.APPLICATION: "platform",
    Kind.PLATFORM: "platform",
    Kind.ARENA: "arena",
    Kind.METHOD_STATE: "state",
    Kind.STACK: "stack",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """An output section, or bytes without one.

    Args:
        name: As the linker has it.
        begin: Its address.
        size_bytes: Of its bytes there.
        holds: Most of them: a class of the page.
        note: What contributes most.
    """

    name: str
    begin: int
    size_bytes: int
    holds: str
    note: str

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.begin + self.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory, with its sections by address.

    Args:
        name: Of the region; what is in it, on hosts.
        kind: `flash` or `ram`.
        begin: Its first address.
        size_bytes: Of the whole; on hosts, up to the last section.
        used_bytes: With gaps and load images.
        sections: In it.
        is_region: The board has it; on hosts the system chooses addresses.
    """

    name: str
    kind: str
    begin: int
    size_bytes: int
    used_bytes: int
    sections: tuple[Section, ...]
    is_region: bool

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.begin + self.size_bytes

    @property
    def percent(self) -> float:
        """How full it is."""
        return 100 * self.used_bytes / self.size_bytes if self.size_bytes else 0.0


def memories(facts: ReportFacts) -> tuple[Memory, ...]:
    """Memories of the board, or what a host's system loads."""
    size = facts.size
    found = dict[str, list[Section]]()
    holds, notes = _contents(facts)
    for section in sorted(size.sections, key=lambda s: (s.address, s.name)):
        kind = "ram" if section.in_ram and not section.in_flash else "flash"
        region = section.region or ("RAM" if section.in_ram else "loaded from the file")
        if facts.board is None:
            kind = "ram" if section.in_ram else "flash"
        found.setdefault(region, []).append(
            Section(
                name=section.name,
                begin=section.address,
                size_bytes=section.size_bytes,
                holds=holds.get(section.name, kind),
                note=notes.get(section.name, ""),
            )
        )
    if facts.board is None:
        return tuple(
            Memory(
                name=name,
                kind="ram" if name == "RAM" else "flash",
                begin=sections[0].begin,
                size_bytes=sections[-1].end - sections[0].begin,
                used_bytes=sum(s.size_bytes for s in sections),
                sections=tuple(sections),
                is_region=False,
            )
            for name, sections in found.items()
        )
    used = {r.name: r.used_bytes for r in size.regions}
    return tuple(
        Memory(
            name=region.name,
            kind=region.kind,
            begin=region.origin,
            size_bytes=region.size_bytes,
            used_bytes=used.get(region.name, 0),
            sections=tuple(found.get(region.name, ())),
            is_region=True,
        )
        for region in facts.board.regions
    )


def _contents(facts: ReportFacts) -> tuple[dict[str, str], dict[str, str]]:
    """By section: the class of most of its bytes, and its largest contributors."""
    counts = dict[str, Counter[tuple[Kind, str]]]()
    for part in facts.size.parts:
        here = counts.setdefault(part.section, Counter())
        here[part.kind, part.contributor] += max(part.flash_bytes, part.ram_bytes)
    holds, notes = {}, {}
    for name, here in counts.items():
        kinds = Counter[str]()
        for (kind, _), count in here.items():
            kinds[_CLASSES.get(kind, "rest")] += count
        holds[name] = min(kinds, key=lambda k: (-kinds[k], k))
        ranked = sorted(here.items(), key=lambda item: (-item[1], item[0]))
        notes[name] = ", ".join(who for (_, who), count in ranked[:3] if count)
    return holds, notes


def memory_map(facts: ReportFacts) -> str:
    """All memories as SVG."""
    lines: list[str] = []
    y = 4.0
    every = memories(facts)
    for number, memory in enumerate(every):
        y = _draw(lines, memory, y, is_first=number == 0)
    total = sum(m.used_bytes for m in every)
    return svg.picture(
        lines,
        height=y,
        label=f"Memory map: {len(every)} memories with {total:,} bytes in use;"
        " a table of the same follows",
        kind="memory",
    )


def _draw(lines: list[str], memory: Memory, y: float, *, is_first: bool) -> float:
    width = svg.WIDTH - _LEFT - _RIGHT
    what = memory.kind if memory.is_region else "addresses of the file"
    of = f" of {svg.bytes_text(memory.size_bytes)}" if memory.is_region else ""
    addresses = f"0x{memory.begin:08x} to 0x{memory.end - 1:08x}"
    lines.append(
        f'<text x="{_LEFT}" y="{svg.number(y + 13)}"><tspan class="head">'
        f'{svg.text(memory.name)}</tspan><tspan class="small" dx="10">{what},'
        f" {memory.used_bytes:,} bytes{of}"
        f"{f' ({memory.percent:.1f} %)' if memory.is_region else ''}</tspan></text>"
        + svg.label(svg.WIDTH - _RIGHT, y + 13, addresses, "small mono end")
    )
    y += _CAPTION
    end = max((s.end for s in memory.sections), default=memory.begin)
    share = (end - memory.begin) / max(memory.size_bytes, 1)
    zooms = bool(memory.sections) and share < _ZOOM_BELOW
    height = _BAR if zooms or not memory.sections else _ZOOM
    lines.append(svg.rect(_LEFT, y, width, height, "empty", radius=2))
    if not memory.sections:
        return y + height + _GAP
    if zooms:
        part = max(width * share, 2)
        below = y + _BAR + 12
        lines.append(
            svg.rect(_LEFT, y, part, _BAR, "used", radius=1)
            + f'<path class="lens" d="M{_LEFT} {svg.number(y + _BAR)}'
            f"L{_LEFT} {svg.number(below)}H{_LEFT + width}"
            f'L{svg.number(_LEFT + part)} {svg.number(y + _BAR)}Z"/>'
        )
        y = below
    scale = width / ((end if zooms else memory.end) - memory.begin or 1)
    for number, section in enumerate(memory.sections):
        lines += _section(memory, section, y, scale, is_first=is_first and not number)
    y += _ZOOM
    for address in (memory.begin, end if zooms else memory.end):
        anchor = "" if address == memory.begin else " end"
        x = _LEFT if address == memory.begin else svg.WIDTH - _RIGHT
        lines.append(svg.label(x, y + 13, f"0x{address:08x}", f"small mono{anchor}"))
    return y + 14 + _GAP


def _section(
    memory: Memory, section: Section, y: float, scale: float, *, is_first: bool
) -> Iterator[str]:
    x = _LEFT + (section.begin - memory.begin) * scale
    width = max(section.size_bytes * scale, 1)
    says = (
        f"{section.name}: {section.size_bytes:,} bytes from 0x{section.begin:08x} to"
        f" 0x{max(section.end - 1, section.begin):08x}"
    )
    if section.note:
        says += f", mostly {section.note}"
    yield (
        f'<g class="item k-{section.holds}" role="img"'
        f' tabindex="{0 if is_first else -1}">'
        f"<title>{svg.text(says)}</title>{svg.rect(x, y, width, _ZOOM)}"
    )
    if shown := svg.fitted(section.name, width):
        yield svg.label(x + 4, y + 16, svg.text(shown))
        size = svg.fitted(svg.bytes_text(section.size_bytes), width)
        yield svg.label(x + 4, y + 31, size, "small quiet")
    yield "</g>"


# The flash of a product as a tree, and its treemap.

# Units of the picture; gaps and heights of texts likewise. By eye.
_HEIGHT: Final = 430
_HEADER: Final = 18
_BAR_GAP: Final = 2.0
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
        # squarify wants areas that fill the box, and sorted sizes.
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
        yield svg.rect(x, y, width, height)
        fits = level < 3 and height >= _LABEL_HEIGHT  # noqa: PLR2004
        shown = svg.text(svg.fitted(cell.name, width)) if fits else ""
        yield f'<text x="{svg.number(x + 4)}" y="{svg.number(y + 12.5)}">{shown}</text>'
        yield "</g>"
        if cell.parts and level < 3:  # noqa: PLR2004
            header = _HEADER if level == 1 and height > 2 * _HEADER else 0
            gap = min(_BAR_GAP, width / 8, height / 8) if level == 1 else 0
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
