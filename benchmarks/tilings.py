"""How many tilings of a full rectangle the planner solves, and in what time.

Blocks are cut out of a rectangle of time and bytes, so they fit without an unused byte,
but their offsets are forgotten. Families differ in the cuts and in how often cuts meet:
with few moments or few bytes, many blocks have equal ends or sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from time import process_time

from benchmarks.table import Cell, Findings, Goal, Table
from orchestrator.planner import plan_blocks
from orchestrator.planner.blocks import Block
from orchestrator.planner.verify_plan import check_plan

_SECONDS = 60.0
_INSTANCES = 10
_COLUMNS = ("family", "moments", "bytes", "instances", "solved", "CPU s", "at most")

_Rectangle = tuple[int, int, int, int]
"""From and to a moment, from and to a byte; ends are exclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Tilings that are made in one way.

    Args:
        moments: Length of the time.
        size_bytes: All the time.
        pinwheels: How often a rectangle is cut into five, in a way that no cut
            goes through; else it is cut in two.
        across: How often a cut in two is one at a moment.
        largest: Cut the largest rectangle; else one by chance, by its area.
        blocks: How many.
    """

    moments: int
    size_bytes: int
    pinwheels: float = 0.0
    across: float = 0.5
    largest: bool = False
    blocks: int = 300

    def draw(self, seed: int) -> list[Block]:
        """A tiling, its blocks in an order by chance."""
        random = Random(seed)  # noqa: S311  # not for secrets
        rectangles = [(0, self.moments, 0, self.size_bytes)]
        while len(rectangles) < self.blocks:
            areas = [(b - a) * (d - c) for a, b, c, d in rectangles]
            at = random.choices(range(len(areas)), areas)[0]
            if self.largest:
                at = areas.index(max(areas))
            spare = self.blocks - len(rectangles)
            rectangles[at : at + 1] = self._cut(random, rectangles[at], spare)
        random.shuffle(rectangles)
        return [
            Block(name=f"b{i}", first=a, last=b - 1, size_bytes=d - c, alignment=1)
            for i, (a, b, c, d) in enumerate(rectangles)
        ]

    def _cut(
        self, random: Random, rectangle: _Rectangle, spare: int
    ) -> list[_Rectangle]:
        """What comes of a rectangle; itself if it is too small."""
        a, b, c, d = rectangle
        if random.random() < self.pinwheels and _fits_five(b - a, d - c, spare):
            t, u = sorted(random.sample(range(a + 1, b), 2))
            x, y = sorted(random.sample(range(c + 1, d), 2))
            arms = [(a, t, c, y), (t, b, c, x), (u, b, x, d), (a, u, y, d)]
            if random.random() < 1 / 2:
                arms = [(a, u, c, x), (u, b, c, y), (t, b, y, d), (a, t, x, d)]
            return [*arms, (t, u, x, y)]
        if random.random() < self.across:
            if b - a == 1:
                return [rectangle]
            t = random.randrange(a + 1, b)
            return [(a, t, c, d), (t, b, c, d)]
        if d - c == 1:
            return [rectangle]
        x = random.randrange(c + 1, d)
        return [(a, b, c, x), (a, b, x, d)]


def _fits_five(time: int, size: int, spare: int) -> bool:
    """Whether there is room for a pinwheel: two cuts each way, four more blocks."""
    return min(time - 2, size - 2, spare - 3) > 0


FAMILIES = {
    "cut in two, long": Family(moments=1_000, size_bytes=1 << 20),
    "cut in two": Family(moments=200, size_bytes=1 << 20),
    "cut in two, short": Family(moments=100, size_bytes=1 << 20),
    "cut in two, evenly": Family(moments=200, size_bytes=1 << 18, largest=True),
    "mostly in time": Family(moments=400, size_bytes=10_000, across=0.8),
    "mostly in size": Family(moments=400, size_bytes=1 << 16, across=0.2),
    "cut in two, few bytes": Family(moments=100, size_bytes=1_000),
    "pinwheels": Family(moments=1_000, size_bytes=1 << 20, pinwheels=1.0),
    "half pinwheels": Family(moments=200, size_bytes=1 << 20, pinwheels=0.5),
    "half pinwheels, few bytes": Family(moments=400, size_bytes=4_096, pinwheels=0.5),
}


def measure(_repetitions: int) -> Findings:
    """Plan each tiling once: plans are the same in every run."""
    rows: list[tuple[Cell, ...]] = []
    all_solved = 0
    for name, family in FAMILIES.items():
        solved, seconds = 0, []
        for seed in range(_INSTANCES):
            blocks = family.draw(seed)
            begin = process_time()
            plan = plan_blocks(blocks, capacity_bytes=family.size_bytes)
            seconds.append(process_time() - begin)
            if problems := check_plan(blocks, plan):
                raise AssertionError(problems)
            fits = plan.size_bytes <= family.size_bytes
            solved += fits and seconds[-1] <= _SECONDS
        all_solved += solved
        rows.append(
            (
                *(name, family.moments, family.size_bytes, _INSTANCES, solved),
                *(sum(seconds) / len(seconds), max(seconds)),
            )
        )
    goal = Goal(
        name="tilings solved within a minute, part of all",
        found=all_solved / (_INSTANCES * len(FAMILIES)),
        limit=0.95,
        at_most=False,
    )
    note = f"{Family(moments=1, size_bytes=1).blocks} blocks; CPU s: mean of a family"
    table = Table(
        title="Tilings of a rectangle",
        columns=_COLUMNS,
        rows=tuple(rows),
        notes=(note,),
    )
    return Findings(tables=[table], goals=[goal])
