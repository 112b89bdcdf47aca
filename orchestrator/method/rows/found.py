"""The network of a method: its calls as layers, lives of its values as images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.access import Access
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.images import Axis
from orchestrator.method.rows.bands import (
    channels_of,
    image_of,
    may_write_over_input,
    pixels_of,
    planned_reads,
    windows_of,
)
from orchestrator.method.rows.copies import is_spread
from orchestrator.method.rows.costs import Core, costs_of, sums_cost, whole_cost
from orchestrator.method.rows.narrow import few_of
from orchestrator.method.rows.network import Image, Layer, Network, Window
from orchestrator.method.rows.over import over_of
from orchestrator.method.rows.strips import fitted_for_bands
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorValue

_KNOWN: Final = frozenset({Access.READS, Access.FILLS, Access.SCRATCH})
_PART: Final = frozenset({Access.READS, Access.UPDATES, Access.SCRATCH})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A method as a network.

    Args:
        network: The network.
        banded: The method with the calls that bands are made of, and more values.
        calls: By layer: the instructions that it is, several for a concatenation; two
            layers for an average of a whole image, sums and their averages. None for
            rows that the caller gives.
        reads: By layer: what it reads from the arena, by instruction and position of
            the argument.
        values: By image: a tensor like it.
        inputs: By input of the method: its image; None if it has no bytes.
        outputs: The same for outputs.
        memory_id: Of the arena.
    """

    network: Network
    banded: LinkedMethod
    calls: tuple[tuple[int, ...], ...]
    reads: tuple[tuple[tuple[int, int], ...], ...]
    values: dict[int, TensorValue]
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    memory_id: int

    def is_split(self, layer: int) -> bool:
        """Whether a layer is one of two for a call."""
        layers, born = self.network.layers, self.network.born
        makers = [born[image] for image, _ in layers[layer].reads]
        return layers[layer].accumulates or any(
            maker >= 0 and layers[maker].accumulates for maker in makers
        )

    def with_rooms(self, method: LinkedMethod, rooms: Mapping[int, int]) -> Found:
        """The same with strips as long as there is room, by layer, of this method."""
        of_calls: dict[int, int] = {}
        for layer, room in rooms.items():
            for number in self.calls[layer]:  # of several layers if computed twice
                of_calls[number] = min(of_calls.get(number, room), room)
        return replace(self, banded=fitted_for_bands(method, of_calls))


class UnknownNetworkError(Exception):
    """Something of the method cannot be planned by rows; says what."""


def network_of(method: LinkedMethod, core: Core) -> Found:
    """The network of a method.

    Args:
        method: With planned memory, and prepared calls.
        core: What it runs on.

    Raises:
        UnknownNetworkError: Something of it cannot be planned by rows.
    """
    arenas = method.arenas
    if len(arenas) != 1 or method.given:
        raise UnknownNetworkError("its tensors do not lie in one arena")
    if SHARED_ID in arenas or method.state:
        raise UnknownNetworkError("it has state")
    return _Builder(method, core).found(*arenas)


class _Builder:
    """Follows values through a method: each time one is filled it is a new image."""

    def __init__(self, method: LinkedMethod, core: Core) -> None:
        self._method = method
        self._banded = fitted_for_bands(method)
        self._core = core
        self._values: dict[int, TensorValue] = {}
        self._now: dict[tuple[int, int], int] = {}  # by place: the image that is there
        self._layers: list[Layer] = []
        self._calls: list[tuple[int, ...]] = []
        self._reads: list[tuple[tuple[int, int], ...]] = []
        self._images: dict[int, Image] = {}

    def found(self, memory_id: int) -> Found:
        method = self._method
        places = method.places
        inputs = [self._filled(i) if i in places else None for i in method.inputs]
        for at, image in enumerate(inputs):
            if rows := method.io.port(at, is_input=True).rows:
                self._add((), (), self._given(image, rows))
        for numbers in self._groups():
            self._layer(numbers)
        outputs = [self._image(i) if i in places else None for i in method.outputs]
        kept = [inputs[border.index] for border in method.borders if border.is_kept]
        return Found(
            network=Network(
                images=self._images,
                layers=tuple(self._layers),
                inputs=frozenset(i for i in inputs if i is not None)
                - {layer.out for layer in self._layers},
                outputs=frozenset(i for i in (*outputs, *kept) if i is not None),
            ),
            banded=self._banded,
            calls=tuple(self._calls),
            reads=tuple(self._reads),
            values=self._values,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            memory_id=memory_id,
        )

    def _given(self, image: int | None, rows: int) -> Layer:
        """The layer of an input of which the caller gives some rows at a time."""
        if image is None or len(self._method.inputs) > 1:
            raise UnknownNetworkError("it is not the only input")
        count = self._images[image].rows
        if not 1 < count >= rows:
            is_image = count > 1
            raise UnknownNetworkError(
                f"it has {count} rows" if is_image else "it is not an image of batch 1"
            )
        return Layer(reads=(), out=image, given=rows)

    def _new(self, value: TensorValue) -> int:
        image = len(self._images)
        self._images[image] = image_of(value)
        self._values[image] = value
        return image

    def _filled(self, index: int) -> int:
        value, place = self._method.values[index], self._method.places[index]
        if not isinstance(value, TensorValue):
            raise UnknownNetworkError("it has values that are no tensors")
        image = self._new(value)
        # What it overlaps is gone.
        self._now = {
            (begin, end): other
            for (begin, end), other in self._now.items()
            if end <= place.begin or place.end <= begin
        }
        self._now[place.begin, place.end] = image
        return image

    def _image(self, index: int) -> int:
        place = self._method.places[index]
        image = self._now.get((place.begin, place.end))
        if image is None:
            raise UnknownNetworkError("it reads a part of a tensor, or several at once")
        return image

    def _groups(self) -> list[list[tuple[int, LinkedCall]]]:
        """The calls of each layer: several where they fill parts of a tensor."""
        groups: list[list[tuple[int, LinkedCall]]] = []
        origins, last = self._method.origins, None
        for number, call in enumerate(self._method.instructions):
            if not isinstance(call, LinkedCall):
                raise UnknownNetworkError("it has branches, or moves values")
            if call.prepared is None:
                raise UnknownNetworkError(f"{call.operator} is not prepared")
            accesses = Counter(call.accesses)
            this = origins[number], call.outs
            is_part = this == last and Access.UPDATES in accesses
            known = _PART if is_part else _KNOWN
            written = accesses[Access.FILLS] + accesses[Access.UPDATES]
            if written != 1 or not known.issuperset(accesses):
                raise UnknownNetworkError(f"{call.operator} is not prepared")
            if is_part:
                groups[-1].append((number, call))
            else:
                groups.append([(number, call)])
                last = this
        return groups

    def _layer(self, calls: list[tuple[int, LinkedCall]]) -> None:
        """Add the layers of some calls that fill a tensor."""
        method, core = self._method, self._core
        reads: list[tuple[int, int]] = []
        images: list[int] = []
        windows: list[Window] = []
        by_rows = True
        for number, call in calls:
            read = planned_reads(method, call)
            reads += [(number, position) for _, position in read]
            images += [self._image(index) for index, _ in read]
            found = windows_of(self._banded, self._banded.call(number))
            windows += found or ()
            by_rows = by_rows and found is not None
        by_rows = by_rows and bool(reads)  # rows of nothing are no rows
        first = calls[0][1]
        numbers = tuple(number for number, _ in calls)
        is_average = pixels_of(first) is not None and len(images) == 1
        if is_average:
            images = [self._sums(numbers, tuple(reads), images[0])]
        out = self._filled(next(i for i, a in first.arguments if a is Access.FILLS))
        count = self._images[out].rows
        if not by_rows:
            sizes = [self._images[image].rows for image in images]
            windows = [Axis(size=size, out=count, kernel=size) for size in sizes]
        banded = [self._banded.call(number) for number in numbers]
        self._add(
            numbers,
            tuple(reads),
            Layer(
                reads=tuple(zip(images, windows, strict=True)),
                out=out,
                scratch_bytes=sum(map(self._scratch_bytes, banded)),
                whole_scratch_bytes=sum(self._scratch_bytes(c) for _, c in calls),
                by_rows=by_rows,
                in_place=by_rows
                and len(calls) == 1
                and all(self._images[i] == self._images[out] for i in images)
                and may_write_over_input(method, first),
                costs=tuple(
                    cost for call in banded for cost in costs_of(self._banded, call, core, count)
                ),
                at_end=by_rows
                and reads[0][0] == numbers[0]
                and is_spread(first, (self._images[images[0]], self._images[out])),
                over=over_of(self._banded, banded[0], self._images[images[0]], self._images[out])
                if by_rows and len(banded) == len(images) == 1
                else None,
                few=few_of(self._banded, banded[0], core, count)
                if by_rows and len(banded) == 1
                else None,
                whole=0  # sums and averages are one call
                if is_average
                else sum(whole_cost(method, call, core, count) for _, call in calls),
            ),
        )

    def _scratch_bytes(self, call: LinkedCall) -> int:
        scratch = (i for i, access in call.arguments if access is Access.SCRATCH)
        return sum(self._banded.tensor(index).size_bytes for index in scratch)

    def _sums(
        self, numbers: tuple[int, ...], reads: tuple[tuple[int, int], ...], image: int
    ) -> int:
        """The layer that adds up the rows of an image; the image of its sums."""
        value = self._values[image]
        channels = channels_of(self._banded.call(numbers[0]))
        sums = self._new(replace(value, dtype=ScalarType.Int, sizes=(channels,), dim_order=(0,)))
        rows = self._images[image].rows
        self._add(
            numbers,
            reads,
            Layer(
                reads=((image, Axis(size=rows, out=1, kernel=rows)),),
                out=sums,
                accumulates=True,
                costs=(sums_cost(value.numel, rows, self._core),),
                whole=whole_cost(self._method, self._banded.call(numbers[0]), self._core, 1),
            ),
        )
        return sums

    def _add(
        self, calls: tuple[int, ...], reads: tuple[tuple[int, int], ...], layer: Layer
    ) -> None:
        if any(w.size > self._images[image].rows for image, w in layer.reads):
            raise UnknownNetworkError("it reads more rows of an image than it has")
        self._calls.append(calls)
        self._reads.append(reads)
        self._layers.append(layer)
