"""An arena over time: what lies where while a method runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from orchestrator.method.lifetimes import Lifetime, live_bytes
from orchestrator.report import svg
from orchestrator.report.facts import ArenaFacts, MethodFacts

# Units of the picture, 960 wide: margins, then heights of the plot, of the strip of
# live bytes below it, and of the texts between. By eye.
_LEFT, _RIGHT, _TOP = 84, 12, 30
_PLOT, _STRIP, _SPACE, _FOOT = 300, 60, 38, 34
# Chosen by hand: the page has the pictures of all arenas.
_MOST: Final = 800
"""Most tensors that are drawn: the largest."""
_LABEL_HEIGHT: Final = 14
_THIN: Final = 1.5
"""Height of the smallest block; its edge would hide a thinner one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """When most bytes of an arena are live, and how many."""

    step: int
    size_bytes: int


def peak_of(arena: ArenaFacts) -> Peak:
    """The first instruction at which most bytes are live."""
    most = Peak(step=-1, size_bytes=0)
    for step, count in live_bytes(arena.lives):
        if count > most.size_bytes:
            most = Peak(step=step, size_bytes=count)
    return most


def step_name(method: MethodFacts, index: int) -> str:
    """`before the run`, `#3 quantized_conv2d`, `after the run`."""
    if index < 0:
        return "before the run"
    if index >= len(method.steps):
        return "after the run"
    return f"#{index} {svg.short(method.steps[index].operator)}"


def arena_picture(method: MethodFacts, arena: ArenaFacts) -> str:
    """Lifetimes of the tensors of an arena, as SVG: time to the right, addresses up."""
    return _Picture(method, arena).text()


class _Picture:
    def __init__(self, method: MethodFacts, arena: ArenaFacts) -> None:
        self.method, self.arena = method, arena
        self.peak = peak_of(arena)
        self.end = len(method.steps) + 1
        lives = arena.lives
        self.size = max(arena.plan.size_bytes, max((v.end for v in lives), default=1))
        self.writers = {
            index: step
            for index, step in method.writers.items()
            if step >= 0 and method.tensors[index].role not in ("input", "state")
        }
        self.owners = self._owners()
        named = [(n, f"c{c}") for n, c in self.owners.items() if c < svg.COLOURS]
        if others := len(self.owners) - len(named):
            plural = "s" if others > 1 else ""
            named.append((f"{others} other{plural}", f"c{svg.COLOURS}"))
        end = svg.WIDTH - _RIGHT
        self.legend, top = svg.legend(named, left=_LEFT, right=end, top=_TOP)
        self.top = int(top)
        self.floor = self.top + _PLOT
        self.strip_floor = self.floor + _SPACE + _STRIP

    def _owners(self) -> dict[str, int]:
        """Number of the colour of each operator: that of the graph (`graph.js`)."""
        names = dict.fromkeys(svg.short(step.operator) for step in self.method.steps)
        here = dict.fromkeys(self._operator(life) for life in self.arena.lives)
        numbers = {name: n for n, name in enumerate(dict.fromkeys((*names, *here)))}
        return {name: min(numbers[name], svg.COLOURS) for name in here}

    def _writer(self, life: Lifetime) -> int | None:
        """The step that wrote the bytes; None for what was there before."""
        steps = self.method.steps
        if 0 <= life.first < len(steps) and life.index in steps[life.first].writes:
            return life.first
        step = self.method.writers.get(life.index, -1)
        is_given = self.method.tensors[life.index].role in ("input", "state")
        return None if step < 0 or is_given else step

    def _operator(self, life: Lifetime) -> str:
        step = self._writer(life)
        if step is None:
            role = self.method.tensors[life.index].role
            return role if role in ("input", "state") else "scratch or unused"
        return svg.short(self.method.steps[step].operator)

    def x(self, step: float) -> float:
        return _LEFT + (svg.WIDTH - _LEFT - _RIGHT) * (step + 1) / (self.end + 1)

    def y(self, address: float) -> float:
        return self.floor - _PLOT * address / self.size

    def text(self) -> str:
        method, plan = self.method, self.arena.plan
        label = (
            f"Arena {plan.memory_id} of {method.title} over time: {plan.size_bytes:,}"
            f" bytes, most live at {step_name(method, self.peak.step)}:"
            f" {self.peak.size_bytes:,}"
        )
        return svg.picture(self.lines(), height=self.strip_floor + _FOOT, label=label, kind="arena")

    def lines(self) -> Iterator[str]:
        yield from self._legend()
        yield from self._axes()
        lives = sorted(self.arena.lives, key=lambda v: (v.begin - v.end, v.first))
        # In the order of time, so that Tab and screen readers go through a run as it
        # happens.
        for number, life in enumerate(sorted(lives[:_MOST])):
            yield from self._block(life, is_first=number == 0)
        yield from self._axis()
        if (left_out := len(lives) - _MOST) > 0:
            says = f"the {left_out:,} smallest of {len(lives):,} lifetimes are not drawn"
            yield svg.label(svg.WIDTH - _RIGHT, self.strip_floor + 26, says, "small end")
        yield from self._live()
        yield from self._peak()

    def _legend(self) -> Iterator[str]:
        plan = self.arena.plan
        before = plan.file_bytes
        change = f", {before:,} in the program" if before not in (None, 0) else ""
        says = (
            f"{svg.text(self.method.title)}, arena {plan.memory_id}: {plan.size_bytes:,}"
            f" bytes{change}; {plan.gap_percent:.1f} % above the lower bound"
        )
        yield svg.label(_LEFT, 16, says, "head")
        yield from self.legend

    def _axes(self) -> Iterator[str]:
        for address in svg.ticks(0, self.size, binary=True):
            yield svg.grid_line(_LEFT, svg.WIDTH - _RIGHT, self.y(address), f"{address:,}")
        for step in svg.ticks(0, max(len(self.method.steps) - 1, 0)):
            yield svg.label(self.x(step + 0.5), self.floor + 15, f"{step}", "small mid")

    def _axis(self) -> Iterator[str]:
        """Over the blocks, whose edges would hide it."""
        right = svg.WIDTH - _RIGHT
        below = svg.label((_LEFT + right) // 2, self.strip_floor + 26, "instruction", "small mid")
        yield (
            f'<path class="axis" d="M{_LEFT} {self.top}V{self.floor}H{right}"/>{below}'
            f'<text class="small mid" transform="translate(12'
            f' {self.floor - _PLOT // 2}) rotate(-90)">bytes</text>'
        )

    def _block(self, life: Lifetime, *, is_first: bool) -> Iterator[str]:
        x, right = self.x(life.first), self.x(life.last + 1)
        y, bottom = self.y(life.end), self.y(life.begin)
        tensor = self.method.tensors[life.index]
        operator = self._operator(life)
        writer = self._writer(life)
        owner = operator
        if writer is not None:
            owner = f"written by {step_name(self.method, writer)}"
            if source := self.method.steps[writer].source:
                owner += f" ({source})"
        name = tensor.name or f"value {tensor.index}"
        says = (
            f"{name}: {tensor.text}, {tensor.size_bytes:,} bytes at {life.begin:,},"
            f" {owner}, live from {step_name(self.method, life.first)} to"
            f" {step_name(self.method, life.last)}"
        )
        block = f"block c{self.owners[operator]}"
        yield (
            f'<g class="item" role="img" tabindex="{0 if is_first else -1}">'
            f"<title>{svg.text(says)}</title>"
            f"{svg.rect(x, y, right - x, max(bottom - y, _THIN), block)}"
        )
        shape = "\u00d7".join(map(str, tensor.sizes))
        if bottom - y >= _LABEL_HEIGHT and (shown := svg.fitted(shape, right - x)):
            yield svg.label((x + right) / 2, (y + bottom) / 2 + 4, shown, "small mid")
        yield "</g>"

    def _live(self) -> Iterator[str]:
        """Live bytes at each instruction."""
        most = max(self.peak.size_bytes, 1)
        floor = self.strip_floor
        steps = "".join(
            f"H{svg.number(self.x(step))}V{svg.number(floor - _STRIP * count / most)}"
            for step, count in live_bytes(self.arena.lives)
        )
        yield (
            f'<path class="live" d="M{_LEFT} {floor}{steps}V{floor}Z"/>'
            + svg.label(_LEFT - 6, floor - _STRIP + 6, f"{self.peak.size_bytes:,}", "small end")
            + svg.label(_LEFT - 6, floor, "live", "small end")
        )

    def _peak(self) -> Iterator[str]:
        if not self.peak.size_bytes:
            return
        x = self.x(self.peak.step + 0.5)
        at, anchor = (x - 5, "end") if x > svg.WIDTH / 2 else (x + 5, "start")
        when = svg.text(step_name(self.method, self.peak.step))
        says = f"peak: {self.peak.size_bytes:,} bytes live, {when}"
        yield (
            f'<path class="peak" d="M{svg.number(x)} {self.top}V{self.floor}'
            f'm0 {_SPACE}V{self.strip_floor}"/>'
            + svg.label(at, self.floor + _SPACE - 3, says, f"small peak-text {anchor}")
        )
