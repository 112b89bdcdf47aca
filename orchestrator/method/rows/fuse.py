"""A method whose calls run by rows, in the smallest arena."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from orchestrator.method.access import Access
from orchestrator.method.linked import LinkedCall, Prepared
from orchestrator.method.rows.bands import (
    Rows,
    band_header,
    band_numbers,
    header_of,
    image_of,
    windows_of,
)
from orchestrator.method.rows.cuts import Segments
from orchestrator.method.rows.network import Layer, Network, Window
from orchestrator.method.rows.plan import Call, plan_rows
from orchestrator.method.rows.verify import problems_of_rows
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import Allocation, TensorValue

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.rows.plan import RowPlan, Slide
    from orchestrator.program.values import Value

CALL: Final = 250
"""About how many instructions a call takes beside its loops."""
MOVE: Final = Prepared(struct="orch::MoveCall", memory=("input", "out"))
MOVE_FUNCTION: Final = "orch::move_bytes"


class RowsProofError(Exception):
    """The plan by rows is wrong: an internal error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRows:
    """A method by rows, and its arena.

    Args:
        method: The method.
        memory_id: Of the arena.
        arena_bytes: Its size.
        least_bytes: No arena with these segments can be smaller.
    """

    method: LinkedMethod
    memory_id: int
    arena_bytes: int
    least_bytes: int


def by_rows(method: LinkedMethod, *, arena_bytes: int) -> ByRows | None:
    """The method in the smallest arena that rows allow; None if that is none smaller.

    Args:
        method: With planned memory, and prepared calls.
        arena_bytes: Of the arena that it needs.
    """
    found = _network_of(method)
    if found is None:
        return None
    segments = Segments(found.network)
    limit = segments.least_peak()
    if limit >= arena_bytes:
        return None
    plan = plan_rows(found.network, segments.cuts(limit))
    if plan.arena_bytes >= arena_bytes:
        return None
    problems = problems_of_rows(found.network, plan)
    if problems:
        raise RowsProofError("; ".join(problems))
    return ByRows(
        method=_Writer(method, found, plan).method(),
        memory_id=found.memory_id,
        arena_bytes=plan.arena_bytes,
        least_bytes=plan.least_bytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A method as a network: a layer for each instruction.

    Args:
        network: Images are lives of values.
        reads: By layer: positions of the arguments that are read from the arena.
        values: By image: the value that it is in.
        memory_id: Of the arena.
    """

    network: Network
    reads: tuple[tuple[int, ...], ...]
    values: dict[int, int]
    memory_id: int


def _network_of(method: LinkedMethod) -> _Found | None:
    """The network of a method; None if something of it cannot be planned by rows."""
    arenas = {space[1] for space in method.ends if space[0] == "arena"}
    if len(arenas) != 1 or SHARED_ID in arenas or method.given:
        return None
    if any(isinstance(v, TensorValue) and v.is_mutable_state for v in method.values):
        return None
    if not all(isinstance(i, LinkedCall) for i in method.instructions):
        return None
    return _Builder(method).found(arenas.pop())


class _Builder:
    """Follows values through a method: each time one is filled it is a new image."""

    def __init__(self, method: LinkedMethod) -> None:
        self._method = method
        self._values: dict[int, int] = {}
        self._now: dict[tuple[int, int], int] = {}  # by place: the image that is there
        self._layers: list[Layer] = []
        self._reads: list[tuple[int, ...]] = []

    def found(self, memory_id: int) -> _Found | None:
        method = self._method
        inputs = frozenset(self._filled(i) for i in method.inputs if i in method.places)
        for call in method.instructions:
            assert isinstance(call, LinkedCall)  # noqa: S101  # of these alone
            if not self._add(call):
                return None
        outputs = [self._image(i) for i in method.outputs if i in method.places]
        if None in outputs:
            return None
        return _Found(
            network=Network(
                images={i: image_of(method.values[v]) for i, v in self._values.items()},
                layers=tuple(self._layers),
                inputs=inputs,
                outputs=frozenset(i for i in outputs if i is not None),
            ),
            reads=tuple(self._reads),
            values=self._values,
            memory_id=memory_id,
        )

    def _is_planned(self, index: int) -> bool:
        place = self._method.places.get(index)
        return place is not None and place.space[0] == "arena"

    def _filled(self, index: int) -> int:
        image = len(self._values)
        self._values[image] = index
        place = self._method.places[index]
        # What it overlaps is gone.
        self._now = {
            (begin, end): i
            for (begin, end), i in self._now.items()
            if end <= place.begin or place.end <= begin
        }
        self._now[place.begin, place.end] = image
        return image

    def _image(self, index: int) -> int | None:
        place = self._method.places[index]
        return self._now.get((place.begin, place.end))

    def _add(self, call: LinkedCall) -> bool:
        """Add a layer; False if the call cannot be one."""
        method = self._method
        if any(
            access not in (Access.READS, Access.FILLS, Access.SCRATCH)
            for access in call.accesses
        ):
            return False
        positions = tuple(
            n
            for n, (index, access) in enumerate(
                zip(call.args, call.accesses, strict=True)
            )
            if access is Access.READS and index >= 0 and self._is_planned(index)
        )
        fills = [
            index
            for index, access in zip(call.args, call.accesses, strict=True)
            if access is Access.FILLS
        ]
        images = [self._image(call.args[n]) for n in positions]
        if call.prepared is None or len(fills) != 1 or None in images:
            return False
        windows = windows_of(method, call)
        rows = [image_of(method.values[call.args[n]]).rows for n in positions]
        count = image_of(method.values[fills[0]]).rows
        scratch = [
            v.size_bytes
            for index, access in zip(call.args, call.accesses, strict=True)
            if access is Access.SCRATCH
            and isinstance(v := method.values[index], TensorValue)
        ]
        self._reads.append(positions)
        self._layers.append(
            Layer(
                reads=tuple(
                    (image, window)
                    for image, window in zip(
                        (i for i in images if i is not None),
                        windows or [Window(size=r, out=count, kernel=r) for r in rows],
                        strict=True,
                    )
                ),
                out=self._filled(fills[0]),
                scratch_bytes=sum(scratch),
                by_rows=windows is not None,
                setup=CALL,
            )
        )
        return True


class _Writer:
    """Writes the calls of a plan; values of bands have no slots."""

    def __init__(self, method: LinkedMethod, found: _Found, plan: RowPlan) -> None:
        self._method = method
        self._found = found
        self._plan = plan
        self._values = [*method.values]
        self._views: dict[tuple[object, ...], int] = {}
        self._constants: dict[bytes, int] = {}

    def method(self) -> LinkedMethod:
        method, found, plan = self._method, self._found, self._plan
        for image in (*found.network.inputs, *found.network.outputs):
            index = found.values[image]
            self._values[index] = self._placed(self._values[index], plan.offsets[image])
        instructions = []
        origins = []
        layer = 0
        for move in plan.moves:
            if isinstance(move, Call):
                layer = move.step.layer
                instructions.append(self._call(move))
            else:
                instructions.append(self._slide(move, layer))
            origins.append(method.origins[layer])
        return replace(
            method,
            values=tuple(self._values),
            instructions=tuple(instructions),
            origins=tuple(origins),
            data=(*method.data, *((i, d) for d, i in self._constants.items())),
        )

    def _call(self, call: Call) -> LinkedCall:
        step = call.step
        old = self._method.instructions[step.layer]
        assert isinstance(old, LinkedCall)  # noqa: S101  # layers are calls
        assert old.prepared is not None  # noqa: S101  # see `_add`
        layer = self._found.network.layers[step.layer]
        images = self._found.network.images
        args = list(old.args)
        for position, (image, _), (low, high), at in zip(
            self._found.reads[step.layer],
            layer.reads,
            step.reads,
            call.reads,
            strict=True,
        ):
            args[position] = self._view(
                args[position], images[image].rows, low, high, at
            )
        count = images[layer.out].rows
        for position, access in enumerate(old.accesses):
            if access is Access.FILLS:
                args[position] = self._view(
                    args[position], count, step.first, step.last, call.out
                )
            elif access is Access.SCRATCH:
                args[position] = self._moved(args[position], call.scratch)
        prepared = old.prepared
        if layer.by_rows and (step.first, step.last) != (0, count - 1):
            low, high = step.reads[0] if step.reads else (0, -1)
            rows = Rows(low=low, high=high, first=step.first, last=step.last)
            numbers = band_numbers(prepared.numbers, rows, {"out": images[layer.out]})
            prepared = replace(prepared, numbers=numbers)
            header = header_of(self._method, old)
            if header is not None:
                position = prepared.memory.index("header")
                args[position] = self._constant(
                    args[position], band_header(header, rows)
                )
        outs = tuple(
            index
            for index, access in zip(args, old.accesses, strict=True)
            if access is not Access.READS
        )
        return replace(old, args=tuple(args), outs=outs, prepared=prepared)

    def _slide(self, slide: Slide, layer: int) -> LinkedCall:
        old = self._method.instructions[layer]
        assert isinstance(old, LinkedCall)  # noqa: S101  # layers are calls
        value = self._values[self._found.values[slide.image]]
        image = self._found.network.images[slide.image]
        rows = slide.size_bytes // image.row_bytes
        args = tuple(
            self._view(self._found.values[slide.image], image.rows, 0, rows - 1, at)
            for at in (slide.source, slide.target)
        )
        assert isinstance(value, TensorValue)  # noqa: S101  # an image
        return replace(
            old,
            function=MOVE_FUNCTION,
            args=args,
            accesses=(Access.READS, Access.FILLS),
            outs=(args[1],),
            prepared=replace(MOVE, numbers=(("size_bytes", slide.size_bytes),)),
        )

    def _constant(self, index: int, data: bytes) -> int:
        """The value of a constant like another one."""
        if data not in self._constants:
            self._constants[data] = len(self._values)
            self._values.append(self._values[index])
        return self._constants[data]

    def _placed(self, value: Value, at: int) -> TensorValue:
        assert isinstance(value, TensorValue)  # noqa: S101  # an image
        place = Allocation(memory_id=self._found.memory_id, offset_bytes=at)
        return replace(value, allocation=place)

    def _add(self, value: TensorValue) -> int:
        key = (value.dtype, value.sizes, value.dim_order, value.allocation)
        if key not in self._views:
            self._views[key] = len(self._values)
            self._values.append(value)
        return self._views[key]

    def _moved(self, index: int, at: int) -> int:
        return self._add(self._placed(self._values[index], at))

    def _view(self, index: int, rows: int, low: int, high: int, at: int) -> int:
        """The value of some rows of a tensor."""
        value = self._method.values[index]
        assert isinstance(value, TensorValue)  # noqa: S101  # an image
        sizes = list(value.sizes)
        if rows > 1:
            sizes[value.dim_order[1]] = max(high - low + 1, 0)
        return self._add(replace(self._placed(value, at), sizes=tuple(sizes)))
