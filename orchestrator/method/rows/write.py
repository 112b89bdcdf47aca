"""The calls of a plan by rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

from orchestrator.method.linked import LinkedCall, LinkedMethod, Prepared
from orchestrator.method.passes.joining import with_slots
from orchestrator.method.passes.packing.header import bytes_of
from orchestrator.method.passes.packing.kernels import packed_header
from orchestrator.method.places import Access, placed
from orchestrator.method.rows.bands import band_of, channels_of, pixels_of
from orchestrator.method.rows.copies import COPY, Images, copied_rows
from orchestrator.method.rows.costs import SUMS
from orchestrator.method.rows.extracted import with_narrow_kernels, with_scratch_saving
from orchestrator.method.rows.plan import Call, RowPlan, Slide
from orchestrator.method.rows.strips import header_position
from orchestrator.method.steps import GIVEN_ROWS, header_of
from orchestrator.method.windows import Rows
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.rows.extracted import ExtractedNetwork


# Headers as most steps have them: a step then changes none of their words.


def with_common_headers(method: LinkedMethod) -> LinkedMethod:
    """The method with the header in memory that most bands of a call have.

    Args:
        method: By rows.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    words: dict[int, tuple[int, ...]] = {}
    for number, call in enumerate(method.instructions):
        if not isinstance(call, LinkedCall) or call.prepared is None:
            continue
        header = header_of(method, call)
        if header is not None:
            words[number] = call.prepared.header or header
            slot = call.args[header_position(call)]
            groups[method.origins[number], call.function, slot].append(number)
    instructions = [*method.instructions]
    slots: dict[tuple[int, ...], int] = {}
    for numbers in groups.values():
        # Among equals the first one wins, as a counter keeps their order: the same bytes each time.
        ((common, _),) = Counter(words[number] for number in numbers).most_common(1)
        for number in numbers:
            call = method.call(number)
            at = header_position(call)
            if common not in slots:
                like = method.values[call.args[at]]
                method, (slots[common],) = with_slots(method, (like, bytes_of(common)))
            own = words[number]
            instructions[number] = replace(
                call,
                args=(*call.args[:at], slots[common], *call.args[at + 1 :]),
                prepared=replace(call.form, header=() if own == common else own),
            )
    return replace(method, instructions=tuple(instructions))


_WORD: Final = 4
_MEMORY: Final = (("input", 0), ("out", 1))
_ADDS: Final = (Access.READS, Access.UPDATES)
_FILLS: Final = (Access.READS, Access.FILLS)
_MOVE: Final = "orch::move_bytes", "orch::MoveCall"


def method_by_rows(method: LinkedMethod, found: ExtractedNetwork, plan: RowPlan) -> LinkedMethod:
    """The method with the calls and places of a plan.

    Args:
        method: With prepared calls.
        found: Its network.
        plan: A plan of it.
    """
    made = _Writer(method, found, plan).method()
    return with_common_headers(with_narrow_kernels(made, found.network.whole_cost))


class _Writer:
    """Writes the calls of a plan; the tensors of bands have no slots."""

    def __init__(self, method: LinkedMethod, found: ExtractedNetwork, plan: RowPlan) -> None:
        self._method = found.banded
        self._whole = method
        self._found = found
        self._plan = plan
        self._values = [*found.banded.values]
        self._views: dict[TensorValue, int] = {}
        self._added: set[int] = set()

    def method(self) -> LinkedMethod:
        method, found, plan = self._method, self._found, self._plan
        pairs = [*zip(method.inputs, found.inputs, strict=True)]
        for index, image in pairs:
            if image is not None:
                self._values[index] = self._placed(image, plan.offsets[image])
        outputs = [
            index if image is None else self._at(image, plan.offsets[image])
            for index, image in zip(method.outputs, found.outputs, strict=True)
        ]
        instructions: list[LinkedCall] = []
        origins: list[int] = []
        for move in plan.moves:
            if isinstance(move, Call):
                layer = move.step.layer
                made = self._calls(move)
            else:
                layer = found.network.born[move.image]
                made = [self._slide(move, layer)]
            instructions += made
            origins += [method.origins[self._first(layer)]] * len(made)
        return replace(
            method,
            values=tuple(self._values),
            instructions=tuple(instructions),
            origins=tuple(origins),
            outputs=tuple(outputs),
            by_rows=True,
        )

    def _first(self, layer: int) -> int:
        """The first instruction of a layer."""
        # What the caller gives counts as a part of the first call.
        return next(iter(self._found.calls[layer]), 0)

    def _calls(self, call: Call) -> list[LinkedCall]:
        """The calls of a step."""
        layer = self._found.network.layers[call.step.layer]
        if layer.accumulates:
            return [self._add_up(call)]
        if layer.given:
            return [self._given(call)]
        if self._found.is_split(call.step.layer):
            return [self._from_sums(call)]
        made: list[LinkedCall] = []
        for number in self._found.calls[call.step.layer]:
            made += self._part(number, call, begins=not made)
        return made

    def _part(self, number: int, call: Call, *, begins: bool) -> list[LinkedCall]:
        """A call of a step; none if it fills nothing there.

        Args:
            number: The instruction that it is a band of.
            call: The step.
            begins: Whether no other call has written something of the output.
        """
        step, network = call.step, self._found.network
        layer, rows = network.layers[step.layer], (step.first, step.last)
        out = network.images[layer.out]
        is_whole = rows == (0, out.rows - 1)
        # A call for all rows stays as it was: its strips, and blocks of weights, are those for a
        # whole image.
        old = (self._whole if is_whole else self._method).call(number)
        prepared = old.form
        args, source, (low, high) = list(old.args), out, rows
        for (of, position), (image, _), (begin, end), at in zip(
            self._found.reads[step.layer], layer.reads, step.reads, call.reads, strict=True
        ):
            if of == number:
                args[position] = self._at(image, at, begin, end)
                source, low, high = network.images[image], begin, end
        accesses = list(old.accesses)
        room = self._plan.rooms.get(step.layer, inf)
        variant = network.scratch_saving_of(step.layer, rows[1] - rows[0] + 1, room)
        # Kernels for whole tensors read words of them.
        is_odd = any(at % _WORD for at in call.reads)
        assert variant is None or not variant.whole or not is_odd  # noqa: S101  # as one row
        for position, access in enumerate(accesses):
            if access in (Access.FILLS, Access.UPDATES):
                args[position] = self._at(layer.out, call.out, *rows)
                # Several calls fill a tensor: what the first one has written has to stay.
                accesses[position] = Access.FILLS if begins else Access.UPDATES
            elif access is Access.SCRATCH:
                value = self._method.tensor(args[position])
                if variant is not None:
                    value = replace(value, sizes=(variant.scratch_bytes,))
                args[position] = self._add(value, call.scratch)
        if not is_whole:
            band = Rows(low=low, high=high, first=rows[0], last=rows[1], count=out.rows)
            found = self._band(old, prepared, band, (source, out))
            if found is None:
                return []
            prepared = found
        new = _with(replace(old, accesses=tuple(accesses)), tuple(args), prepared)
        return [new if variant is None else with_scratch_saving(self._method, new)]

    def _band(
        self, old: LinkedCall, prepared: Prepared, rows: Rows, images: Images
    ) -> Prepared | None:
        """A call for some rows; None if it fills none of them."""
        if prepared.struct == COPY:
            copied = copied_rows(prepared, images)
            assert copied is not None  # noqa: S101  # its layer goes by rows
            return copied.band(prepared, (rows.first, rows.last), rows.low, images)
        header = packed_header(self._method, old)
        if header is not None:
            header = header.band(rows, images[1].row_bytes)
            if header is None:
                return None
        words = header.words() if header else ()
        return replace(prepared, numbers=band_of(prepared, rows), header=words)

    def _add_up(self, call: Call) -> LinkedCall:
        """Sums of some more rows."""
        step, network = call.step, self._found.network
        layer = network.layers[step.layer]
        ((image, _),) = layer.reads
        ((low, high),) = step.reads
        channels = channels_of(self._method.call(self._first(step.layer)))
        begins = step.layer not in self._added
        self._added.add(step.layer)
        return self._made(
            step.layer,
            ("orch::cortex_m::sum_rows", SUMS),
            (self._at(image, call.reads[0], low, high), self._at(layer.out, call.out)),
            _FILLS if begins else _ADDS,
            begins=int(begins),
            pixels=(high - low + 1) * network.images[image].row_bytes // channels,
            channels=channels,
        )

    def _from_sums(self, call: Call) -> LinkedCall:
        """Averages of sums."""
        layer = self._found.network.layers[call.step.layer]
        ((sums, _),) = layer.reads
        pixels = pixels_of(self._method.call(self._first(call.step.layer)))
        assert pixels is not None  # noqa: S101  # such calls alone are split
        return self._made(
            call.step.layer,
            ("orch::cortex_m::average_sums", "orch::cortex_m::AverageSumsCall"),
            (self._at(sums, call.reads[0]), self._at(layer.out, call.out)),
            pixels=pixels,
            channels=self._found.values[sums].sizes[0],
        )

    def _given(self, call: Call) -> LinkedCall:
        """Rows that the caller gives: a move from nowhere."""
        step, network = call.step, self._found.network
        out, rows = network.layers[step.layer].out, step.last - step.first + 1
        return self._made(
            step.layer,
            _MOVE,
            (self._at(out, call.out, step.first, step.last),),
            (Access.FILLS,),
            size_bytes=rows * network.images[out].row_bytes,
        )

    def _slide(self, slide: Slide, layer: int) -> LinkedCall:
        last = slide.size_bytes // self._found.network.images[slide.image].row_bytes - 1
        places = slide.source, slide.target
        return self._made(
            layer,
            _MOVE,
            tuple(self._at(slide.image, at, 0, last) for at in places),
            size_bytes=slide.size_bytes,
        )

    def _made(
        self,
        layer: int,
        kernel: tuple[str, str],
        args: tuple[int, ...],
        accesses: tuple[Access, ...] = _FILLS,
        **numbers: int,
    ) -> LinkedCall:
        """A call of a kernel, given with its struct, in place of those of a layer."""
        function, struct = kernel
        old = self._method.call(self._first(layer))
        prepared = Prepared(
            struct=struct,
            memory=_MEMORY if len(args) > 1 else GIVEN_ROWS,
            numbers=tuple(numbers.items()),
        )
        new = replace(old, function=function, accesses=accesses)
        return _with(new, args, prepared)

    def _placed(self, image: int, at: int) -> TensorValue:
        return placed(self._found.values[image], self._found.memory_id, at)

    def _at(self, image: int, at: int, low: int = 0, high: int | None = None) -> int:
        """The value of an image, or of some rows of it, that begin at an offset."""
        value = self._placed(image, at)
        rows = self._found.network.images[image].rows
        if rows > 1 and high is not None:
            sizes = list(value.sizes)
            # One where a band needs none: what is empty has no address.
            sizes[value.dim_order[1]] = max(high - low + 1, 1)
            value = replace(value, sizes=tuple(sizes))
        return self._add(value, at)

    def _add(self, value: TensorValue, at: int) -> int:
        new = placed(value, self._found.memory_id, at)
        # Bands at the same place are one value: one address in the tables of steps.
        if new not in self._views:
            self._views[new] = len(self._values)
            self._values.append(new)
        return self._views[new]


def _with(call: LinkedCall, args: tuple[int, ...], prepared: Prepared) -> LinkedCall:
    """The call with other arguments; what it writes follows from its accesses."""
    outs = tuple(
        index
        for index, access in zip(args, call.accesses, strict=True)
        if access is not Access.READS
    )
    return replace(call, args=args, outs=outs, prepared=prepared)
