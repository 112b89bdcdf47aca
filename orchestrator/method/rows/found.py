"""The network of a method: its calls as layers, lives of its values as images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.access import Access
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.packing.convolution import Axis
from orchestrator.method.rows.bands import (
    image_of,
    pixels_of,
    setup_of,
    windows_of,
    work_of,
)
from orchestrator.method.rows.network import Image, Layer, Network
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod


_GIVEN: Final = -1
"""In the place of an instruction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A method as a network.

    Args:
        network: The network.
        calls: By layer: the instruction that it is; two layers for an average of a
            whole image, sums and their averages. -1 for rows that the caller gives.
        reads: By layer: positions of the arguments that it reads from the arena.
        values: By image: a tensor like it.
        inputs: By input of the method: its image; None if it has no bytes.
        outputs: The same for outputs.
        memory_id: Of the arena.
    """

    network: Network
    calls: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]
    values: dict[int, TensorValue]
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    memory_id: int

    def is_split(self, layer: int) -> bool:
        """Whether a layer is one of two for a call."""
        return self.calls.count(self.calls[layer]) > 1


class UnknownNetworkError(Exception):
    """Something of the method cannot be planned by rows; says what."""


def network_of(method: LinkedMethod, isa: str) -> Found:
    """The network of a method.

    Args:
        method: With planned memory, and prepared calls.
        isa: Instruction set of the core.

    Raises:
        UnknownNetworkError: Something of it cannot be planned by rows.
    """
    arenas = {space[1] for space in method.ends if space[0] == "arena"}
    if len(arenas) != 1 or method.given:
        raise UnknownNetworkError("its tensors do not lie in one arena")
    if SHARED_ID in arenas or any(
        isinstance(v, TensorValue) and v.is_mutable_state for v in method.values
    ):
        raise UnknownNetworkError("it has state")
    return _Builder(method, isa).found(arenas.pop())


class _Builder:
    """Follows values through a method: each time one is filled it is a new image."""

    def __init__(self, method: LinkedMethod, isa: str) -> None:
        self._method = method
        self._isa = isa
        self._values: dict[int, TensorValue] = {}
        self._now: dict[tuple[int, int], int] = {}  # by place: the image that is there
        self._layers: list[Layer] = []
        self._calls: list[int] = []
        self._reads: list[tuple[int, ...]] = []
        self._images: dict[int, Image] = {}

    def found(self, memory_id: int) -> Found:
        method = self._method
        places = method.places
        inputs = [self._filled(i) if i in places else None for i in method.inputs]
        for at, image in enumerate(inputs):
            if rows := method.io.port(at, is_input=True).rows:
                self._add(_GIVEN, (), self._given(image, rows))
        for number, call in enumerate(method.instructions):
            if not isinstance(call, LinkedCall):
                raise UnknownNetworkError("it has branches, or moves values")
            self._call(number, call)
        outputs = [self._image(i) if i in places else None for i in method.outputs]
        return Found(
            network=Network(
                images=self._images,
                layers=tuple(self._layers),
                inputs=frozenset(i for i in inputs if i is not None)
                - {layer.out for layer in self._layers},
                outputs=frozenset(i for i in outputs if i is not None),
            ),
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

    def _call(self, number: int, call: LinkedCall) -> None:
        """Add the layers of a call."""
        method = self._method
        arguments = list(zip(call.args, call.accesses, strict=True))
        fills = [index for index, access in arguments if access is Access.FILLS]
        known = {Access.READS, Access.FILLS, Access.SCRATCH}
        if (
            call.prepared is None
            or len(fills) != 1
            or not known.issuperset(call.accesses)
        ):
            raise UnknownNetworkError(f"{call.operator} is not prepared")
        positions = tuple(
            position
            for position, (index, access) in enumerate(arguments)
            if access is Access.READS
            and index in method.places
            and method.places[index].space[0] == "arena"
        )
        images = [self._image(call.args[position]) for position in positions]
        scratch = [method.values[i] for i, a in arguments if a is Access.SCRATCH]
        windows = windows_of(method, call)
        work = work_of(method, call, self._isa)
        pixels = pixels_of(call)
        if pixels is not None and len(images) == 1:
            images = [self._sums(number, call, positions, images[0], work)]
            work = 0
        out = self._filled(fills[0])
        count = self._images[out].rows
        needed = windows or [
            Axis(size=(r := self._images[i].rows), out=count, kernel=r) for i in images
        ]
        self._add(
            number,
            positions,
            Layer(
                reads=tuple(zip(images, needed, strict=True)),
                out=out,
                scratch_bytes=sum(
                    v.size_bytes for v in scratch if isinstance(v, TensorValue)
                ),
                by_rows=windows is not None,
                setup=setup_of(call, self._isa, work // count),
                work=work,
            ),
        )

    def _sums(
        self,
        number: int,
        call: LinkedCall,
        positions: tuple[int, ...],
        image: int,
        work: int,
    ) -> int:
        """The layer that adds up the rows of an image; the image of its sums."""
        value = self._values[image]
        channels = value.sizes[value.dim_order[-1]]
        sums = self._new(
            replace(value, dtype=ScalarType.Int, sizes=(channels,), dim_order=(0,))
        )
        rows = self._images[image].rows
        self._add(
            number,
            positions,
            Layer(
                reads=((image, Axis(size=rows, out=1, kernel=rows)),),
                out=sums,
                accumulates=True,
                setup=setup_of(call, self._isa, work // rows),
                work=work,
            ),
        )
        return sums

    def _add(self, number: int, positions: tuple[int, ...], layer: Layer) -> None:
        self._calls.append(number)
        self._reads.append(positions)
        self._layers.append(layer)
