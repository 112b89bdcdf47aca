"""The order in which rows are made: those that the last layers of a segment need."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from orchestrator.method.passes.images import Axis

if TYPE_CHECKING:
    from orchestrator.method.rows.network import Layer, Network


class Step(NamedTuple):
    """A call for some rows of an output.

    Args:
        layer: Number of the layer.
        first: First row.
        last: Last row, inclusive.
        reads: For each image that the layer reads: first and last row, inclusive.
        over: The row of its only input where its output lies, as nothing reads that
            row any more; it may be one before the first. None if it lies elsewhere.
    """

    layer: int
    first: int
    last: int
    reads: tuple[tuple[int, int], ...]
    over: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it reads nothing of an image, as its windows see padding only."""
        return any(low > high for low, high in self.reads)

    def outermost(self, low: int) -> int:
        """The first row of a ring that it needs, of which it reads some from `low`."""
        return low if self.over is None else min(low, self.over)


class Schedule:
    """The steps of a segment: each makes the rows that it needs before.

    Args:
        network: The network.
        first: First layer.
        last: Last layer, inclusive.
        band: Rows that each call computes at most.
        descends: Whether it begins with the last rows.
    """

    def __init__(
        self, network: Network, first: int, last: int, band: int, *, descends: bool = False
    ) -> None:
        self._layers = network.layers
        self._band = band
        self._descends = descends
        self._makers = {network.layers[n].out: n for n in range(first, last + 1)}
        self._counts = {n: network.images[i].rows for i, n in self._makers.items()}
        self._made = dict.fromkeys(self._counts, 0)
        self.steps: list[Step] = []
        for number in range(last, first - 1, -1):
            while self._made[number] < self._counts[number]:
                self._make(number)

    def _make(self, number: int, until: int | None = None) -> None:
        """Make the next rows of a layer, up to some; all of one that adds up."""
        layer, begin = self._layers[number], self._made[number]
        if layer.accumulates:
            self._add_up(number)
            return
        end = min(begin + (layer.given or self._most(layer)), self._counts[number])
        if until is not None and not layer.given:
            end = min(end, until)
        low, high = self._rows(begin, end, self._counts[number])
        reads = []
        for image, window in layer.reads:
            rows = window.inputs(low, high)
            reads.append(rows)
            if rows[0] <= rows[1]:
                outermost = window.size - rows[0] if self._descends else rows[1] + 1
                # Where windows move on by a row at least, all that are made next are
                # needed: the last band ends early.
                is_least = isinstance(window, Axis) or rows[1] - rows[0] >= high - low
                self._need(image, outermost, is_least=is_least)
        self._made[number] = end
        self.steps.append(Step(number, low, high, tuple(reads)))

    def _add_up(self, number: int) -> None:
        ((image, window),) = self._layers[number].reads
        band = self._most(self._layers[number])
        for begin in range(0, window.size, band):
            end = min(begin + band, window.size)
            self._need(image, end)
            rows = self._rows(begin, end, window.size)
            self.steps.append(Step(number, 0, 0, (rows,)))
        self._made[number] = 1

    def _most(self, layer: Layer) -> int:
        """Rows that a call of a layer computes at most."""
        return min(self._band, layer.most_rows or self._band)

    def _need(self, image: int, count: int, *, is_least: bool = False) -> None:
        """Make the first rows of an image, or the last ones, if a layer makes it."""
        maker = self._makers.get(image)
        while maker is not None and self._made[maker] < count:
            self._make(maker, count if is_least else None)

    def _rows(self, begin: int, end: int, count: int) -> tuple[int, int]:
        """First and last row of those that come `begin`th to before `end`th."""
        if self._descends:
            return count - end, count - begin - 1
        return begin, end - 1
