"""Memories of a board with what lies in them, by address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.report import svg
from orchestrator.report.facts import ReportFacts

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
    lines.append(
        f'<text x="{_LEFT}" y="{svg.number(y + 13)}"><tspan class="head">'
        f'{svg.text(memory.name)}</tspan><tspan class="small" dx="10">{what},'
        f" {memory.used_bytes:,} bytes{of}"
        f"{f' ({memory.percent:.1f} %)' if memory.is_region else ''}</tspan></text>"
        f'<text class="small mono end" x="{svg.WIDTH - _RIGHT}"'
        f' y="{svg.number(y + 13)}">0x{memory.begin:08x} to 0x{memory.end - 1:08x}'
        "</text>"
    )
    y += _CAPTION
    end = max((s.end for s in memory.sections), default=memory.begin)
    share = (end - memory.begin) / max(memory.size_bytes, 1)
    zooms = bool(memory.sections) and share < _ZOOM_BELOW
    height = _BAR if zooms or not memory.sections else _ZOOM
    lines.append(
        f'<rect class="empty" x="{_LEFT}" y="{svg.number(y)}" width="{width}"'
        f' height="{height}" rx="2"/>'
    )
    if not memory.sections:
        return y + height + _GAP
    if zooms:
        part = max(width * share, 2)
        below = y + _BAR + 12
        lines.append(
            f'<rect class="used" x="{_LEFT}" y="{svg.number(y)}"'
            f' width="{svg.number(part)}" height="{_BAR}" rx="1"/>'
            f'<path class="lens" d="M{_LEFT} {svg.number(y + _BAR)}'
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
        lines.append(
            f'<text class="small mono{anchor}" x="{x}" y="{svg.number(y + 13)}">'
            f"0x{address:08x}</text>"
        )
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
        f"<title>{svg.text(says)}</title>"
        f'<rect x="{svg.number(x)}" y="{svg.number(y)}" width="{svg.number(width)}"'
        f' height="{_ZOOM}"/>'
    )
    if shown := svg.fitted(section.name, width):
        yield (
            f'<text class="small" x="{svg.number(x + 4)}" y="{svg.number(y + 16)}">'
            f"{svg.text(shown)}</text>"
        )
        size = svg.fitted(svg.bytes_text(section.size_bytes), width)
        yield (
            f'<text class="small quiet" x="{svg.number(x + 4)}"'
            f' y="{svg.number(y + 31)}">{size}</text>'
        )
    yield "</g>"
