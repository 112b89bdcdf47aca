"""A picture of a memory plan: time to the right, addresses upwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from orchestrator.planner.blocks import Block, BlockPlan
from orchestrator.printable import printable

_WIDTH, _HEIGHT = 960, 540
_LEFT, _TOP, _RIGHT, _BOTTOM = 90, 48, 24, 56
_TICKS = 6
_LABEL_WIDTH = 7
"""Of a character of a block's name, in pixels, about."""
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
