"""Memory-planning problems and plans as files: CSV in the format of MiniMalloc, and pictures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from html import escape

from orchestrator.errors import Diagnostic, SourceSpan, UsageError
from orchestrator.planner.blocks import Block, BlockPlan
from orchestrator.printable import printable

# Memory-planning problems and plans as CSV, in the format of MiniMalloc.
#
# Source: github.com/google/minimalloc, README; `alignment` is ours.

_NEEDED = ("id", "lower", "upper", "size")
_COLUMNS = (*_NEEDED, "alignment")
# A double, with which the picture computes, has each such number exactly.
_MOST_NUMBER = 1 << 48
_EXAMPLE = "the first line is id,lower,upper,size and may add alignment"


def read_blocks(text: str, *, file: str) -> tuple[Block, ...]:
    """Blocks of a CSV file, in its order.

    Args:
        text: Lifetimes are from `lower` to `upper`, upper ends exclusive; columns may
            come in any order, an `offset` is not read.
        file: As messages name it.

    Raises:
        UsageError: The first line that is wrong.
    """
    lines = text.splitlines()
    rows = csv.reader(io.StringIO(text), strict=True)
    blocks: list[Block] = []
    seen: dict[str, int] = {}
    columns: list[str] | None = None
    try:
        for row in rows:
            line = rows.line_num
            if not row:
                continue
            at = SourceSpan(file=file, line=line, text=lines[line - 1])
            if columns is None:
                columns = _header([cell.strip() for cell in row], at)
                continue
            block = _block(columns, [cell.strip() for cell in row], at)
            if block.name in seen:
                raise _wrong(
                    f'id "{block.name}" is used twice',
                    at,
                    ("first", f"line {seen[block.name]}"),
                    "give each block an id of its own",
                )
            seen[block.name] = line
            blocks.append(block)
    except csv.Error as error:
        at = SourceSpan(file=file, line=rows.line_num)
        raise _wrong(
            "invalid CSV", at, ("found", str(error)), "write one block per line"
        ) from error
    if columns is None:
        raise _wrong(
            "the file is empty",
            SourceSpan(file=file),
            ("expected", "a line of column names, then one line per block"),
            _EXAMPLE,
        )
    return tuple(blocks)


def _header(columns: list[str], at: SourceSpan) -> list[str]:
    wrong = [c for c in columns if c not in (*_COLUMNS, "offset")]
    missing = [c for c in _NEEDED if c not in columns]
    twice = sorted({c for c in columns if columns.count(c) > 1})
    for names, what in (
        (wrong, "unknown column"),
        (missing, "no column"),
        (twice, "more than one column"),
    ):
        if names:
            raise _wrong(
                f"{what} {', '.join(names)}",
                at,
                ("known", ", ".join((*_COLUMNS, "offset"))),
                _EXAMPLE,
            )
    return columns


def _block(columns: list[str], row: list[str], at: SourceSpan) -> Block:
    if len(row) != len(columns):
        raise _wrong(
            f"{len(row)} cells where the first line has {len(columns)}",
            at,
            ("columns", ",".join(columns)),
            "write one cell per column",
        )
    cells = dict(zip(columns, row, strict=True))

    def number(column: str, least: int) -> int:
        cell = cells[column]
        # int() also takes digits of other scripts, and underscores.
        digits = cell.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len("1" * 18)):
            raise _wrong(
                f"{column} is not a whole number",
                at,
                ("found", f'"{cell}"'),
                "write decimal digits only",
            )
        value = int(cell)
        if not least <= value <= _MOST_NUMBER:
            raise _wrong(
                f"{column} is out of range",
                at,
                ("found", cell),
                f"write a number from {least} to {_MOST_NUMBER}",
            )
        return value

    lower, upper = number("lower", -_MOST_NUMBER), number("upper", -_MOST_NUMBER)
    if upper <= lower:
        raise _wrong(
            "the block is never live",
            at,
            ("found", f"from {lower} to {upper}"),
            "upper is exclusive: write at least lower + 1",
        )
    alignment = number("alignment", 1) if "alignment" in cells else 1
    if alignment & (alignment - 1):
        raise _wrong(
            "alignment is not a power of two",
            at,
            ("found", str(alignment)),
            "write 1, 2, 4, 8, 16 or a greater power of two",
        )
    return Block(
        name=cells["id"],
        first=lower,
        last=upper - 1,
        size_bytes=number("size", 0),
        alignment=alignment,
    )


def _wrong(message: str, where: SourceSpan, note: tuple[str, str], hint: str) -> UsageError:
    return UsageError(
        Diagnostic(code="bad-blocks", message=message, where=where, notes=(note,), hint=hint)
    )


def write_blocks(blocks: Sequence[Block], plan: BlockPlan) -> str:
    """The blocks with their offsets, in the order of the blocks."""
    aligned = any(block.alignment != 1 for block in blocks)
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow([*_NEEDED, *(["alignment"] if aligned else []), "offset"])
    for block, offset in zip(blocks, plan.offsets, strict=True):
        life = (block.first, block.last + 1)
        alignment = [block.alignment] if aligned else []
        out.writerow([block.name, *life, block.size_bytes, *alignment, offset])
    return text.getvalue()


# A picture of a memory plan: time to the right, addresses upwards.

# Pixels; the picture scales, as it has a viewBox.
_WIDTH, _HEIGHT = 960, 540
_LEFT, _TOP, _RIGHT, _BOTTOM = 90, 48, 24, 56
_TICKS = 6
# At 11 pixels of a sans-serif font.
_LABEL_WIDTH = 7
"""Estimated width of a character of a block's name, in pixels."""
_LABEL_HEIGHT = 14
_HUES = 12
_NICE = (1, 2, 5, 10)

_HEAD = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" \
width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">
<style>
.block {{ stroke: #333; stroke-width: 0.5; }}
.grid {{ stroke: #ddd; }}
.axis {{ stroke: #333; }}
.peak {{ stroke: #c00; stroke-width: 1.5; stroke-dasharray: 6 3; }}
.name {{ font-size: 11px; pointer-events: none; }}
</style>
<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>
"""


def plan_svg(blocks: Sequence[Block], plan: BlockPlan, *, title: str) -> str:
    """Text of an SVG file; the same plan always gives the same text.

    Args:
        blocks: What was planned.
        plan: Offsets in their order.
        title: What is shown, for the first line.
    """
    return _HEAD + "\n".join(_Picture(blocks, plan).lines(title)) + "\n</svg>\n"


class _Picture:
    """Scales of one picture."""

    def __init__(self, blocks: Sequence[Block], plan: BlockPlan) -> None:
        self.blocks, self.plan = blocks, plan
        self.begin = min((b.first for b in blocks), default=0)
        self.end = max((b.last + 1 for b in blocks), default=1)
        self.top = max(plan.size_bytes, 1)

    def x(self, time: int) -> float:
        span = _WIDTH - _LEFT - _RIGHT
        return _LEFT + span * (time - self.begin) / (self.end - self.begin)

    def y(self, address: int) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * address / self.top

    def lines(self, title: str) -> Iterator[str]:
        """All that is drawn, from the back to the front."""
        plan = self.plan
        yield (
            f'<text x="{_LEFT}" y="20" font-size="14">{escape(printable(title))}:'
            f" {plan.size_bytes:,} bytes, at most {plan.peak_live_bytes:,} live"
            f" ({plan.gap_percent:.1f} % gap), {escape(plan.planner)}</text>"
        )
        yield from self._grid()
        for block, offset in zip(self.blocks, plan.offsets, strict=True):
            if block.size_bytes:
                yield from self._block(block, offset)
        yield from self._axes()
        if plan.peak_live_bytes:
            y = _number(self.y(plan.peak_live_bytes))
            yield (
                f'<line class="peak" x1="{_LEFT}" y1="{y}" x2="{_WIDTH - _RIGHT}"'
                f' y2="{y}"><title>most bytes live at one time:'
                f" {plan.peak_live_bytes:,}</title></line>"
            )
            yield (
                f'<text x="{_WIDTH - _RIGHT}" y="{_number(float(y) - 5)}" fill="#c00"'
                f' text-anchor="end">peak of live bytes</text>'
            )

    def _grid(self) -> Iterator[str]:
        for address in _ticks(0, self.top):
            y = _number(self.y(address))
            yield (f'<line class="grid" x1="{_LEFT}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}"/>')
            yield (
                f'<text x="{_LEFT - 8}" y="{_number(float(y) + 4)}"'
                f' text-anchor="end">{address:,}</text>'
            )
        for time in _ticks(self.begin, self.end):
            x = _number(self.x(time))
            yield (
                f'<text x="{x}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{time:,}</text>'
            )

    def _axes(self) -> Iterator[str]:
        floor, middle = _HEIGHT - _BOTTOM, (_TOP + _HEIGHT - _BOTTOM) // 2
        yield (f'<path class="axis" fill="none" d="M{_LEFT} {_TOP}V{floor}H{_WIDTH - _RIGHT}"/>')
        yield (
            f'<text x="{(_LEFT + _WIDTH - _RIGHT) // 2}" y="{_HEIGHT - 14}"'
            ' text-anchor="middle">time (instruction)</text>'
        )
        yield (
            f'<text transform="translate(18 {middle}) rotate(-90)"'
            ' text-anchor="middle">address (bytes)</text>'
        )

    def _block(self, block: Block, offset: int) -> Iterator[str]:
        x, right = self.x(block.first), self.x(block.last + 1)
        y, bottom = self.y(offset + block.size_bytes), self.y(offset)
        # A name decides the colour, so that it is the same in every picture.
        # 7 has no divisor in common with 12: names that differ by one in a letter get colours that
        # are far apart.
        hue = sum(block.name.encode()) * 7 % _HUES * (360 // _HUES)
        name = escape(printable(block.name))
        yield (
            f'<rect class="block" x="{_number(x)}" y="{_number(y)}"'
            f' width="{_number(right - x)}" height="{_number(bottom - y)}"'
            f' fill="hsl({hue},55%,78%)"><title>{name}: {block.size_bytes:,} bytes at'
            f" {offset:,}, instructions {block.first} to {block.last}</title></rect>"
        )
        if right - x >= _LABEL_WIDTH * (len(block.name) + 1) and bottom - y >= _LABEL_HEIGHT:
            yield (
                f'<text class="name" x="{_number((x + right) / 2)}"'
                f' y="{_number((y + bottom) / 2 + 4)}"'
                f' text-anchor="middle">{name}</text>'
            )


def _ticks(begin: int, end: int) -> range:
    """Round numbers from begin to end, some six."""
    power = 1
    while power * 10 * _TICKS <= end - begin:
        power *= 10
    step = next((n for n in _NICE if n * power * _TICKS >= end - begin), 10) * power
    return range(-(-begin // step) * step, end + 1, step)


def _number(value: float) -> str:
    """Hundredths of a pixel, without zeros at the end."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
