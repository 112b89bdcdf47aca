"""A linked method: what passes change and images are made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, TypeAlias

from orchestrator.core.border import NO_IO, Border, ModelIo
from orchestrator.core.lazy_bytes import Bytes, chunks_of
from orchestrator.method.places import Place, Space, place_of, tensor_of
from orchestrator.planner.blocks import aligned
from orchestrator.program.caller import lacks_memory
from orchestrator.program.interface import TENSOR_LISTS
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import (
    BoolValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    TensorValue,
    Value,
)

if TYPE_CHECKING:
    from orchestrator.core.operator import OperatorName
    from orchestrator.core.rounding import WeightRounding
    from orchestrator.method.ledger import PassRecord
    from orchestrator.method.places import Access


INDEX_LISTS = (IntListValue, *TENSOR_LISTS)
"""Kinds of values whose items are value indices."""

Numbers: TypeAlias = "int | float | tuple[tuple[str, Numbers], ...]"
"""A number of 32 bits, or a struct: names of members, and what they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A struct of numbers that calls have in common, if theirs are equal.

    Args:
        struct: Qualified C++ name, declared beside the structs of calls.
        numbers: Names of its members, and what they are.
    """

    struct: str
    numbers: tuple[tuple[str, Numbers], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The struct that a prepared call gives its kernel.

    Args:
        struct: Qualified C++ name, declared in prepared.h of the kernel's library.
        memory: Names of its first members, pointers, and the argument of the call that
            each is to; None for a null pointer.
        shape: The next member, if there is one.
        numbers: Names of the other members, and what they are.
        header: Words of the header that the struct points to, where they are not those
            of the argument: in methods by rows.
    """

    struct: str
    memory: tuple[tuple[str, int | None], ...]
    shape: Shape | None = None
    numbers: tuple[tuple[str, Numbers], ...] = ()
    header: tuple[int, ...] = ()

    @property
    def all_numbers(self) -> tuple[tuple[str, Numbers], ...]:
        """Numbers of the struct, and of the shape that it shares."""
        return (*self.numbers, *(self.shape.numbers if self.shape else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedCall:
    """A kernel call.

    Args:
        operator: The operator that it computes.
        function: Qualified C++ name of the kernel.
        args: Value indices, in the kernel's order.
        accesses: How the kernel accesses each of them.
        names: What the schema calls them, where the kernel takes the arguments of the schema.
        outs: Values that it writes, with items of lists; scratch comes last.
        in_place: Positions of arguments that may be the same memory as the output, if
            they have its dtype, sizes and dim order.
        prepared: What the kernel gets instead of the arguments; then these are
            tensors, for their memory.
    """

    operator: OperatorName
    function: str
    args: tuple[int, ...]
    accesses: tuple[Access, ...]
    outs: tuple[int, ...]
    in_place: tuple[int, ...] = ()
    prepared: Prepared | None = None
    names: tuple[str, ...] = field(default=(), compare=False)

    @property
    def form(self) -> Prepared:
        """What a prepared call gives its kernel, where the caller knows that it is."""
        assert self.prepared is not None  # noqa: S101
        return self.prepared

    @property
    def arguments(self) -> tuple[tuple[int, Access], ...]:
        """Its arguments: values, and how the kernel accesses each."""
        return tuple(zip(self.args, self.accesses, strict=True))


LinkedInstruction = LinkedCall | MoveCall | JumpFalseCall


def written_by(instruction: LinkedInstruction) -> tuple[int, ...]:
    """Values that an instruction writes, with items of lists."""
    if isinstance(instruction, MoveCall):
        return (instruction.target,)
    return instruction.outs if isinstance(instruction, LinkedCall) else ()


def read_by(instruction: LinkedInstruction) -> tuple[int, ...]:
    """Arguments of an instruction, lists as such; of a move, its source."""
    if isinstance(instruction, LinkedCall):
        return instruction.args
    if isinstance(instruction, MoveCall):
        return (instruction.source,)
    return (instruction.condition,)


@dataclass(frozen=True, kw_only=True)  # without slots, for what is cached
class LinkedMethod:
    """A method whose calls have their kernels; it needs no loading.

    Args:
        model: Name of its model.
        name: Name of the method.
        values: All slots; a constant tensor has no allocation.
        instructions: In execution order; jumps name them by index.
        inputs: Value indices.
        outputs: Value indices.
        data: By value index: bytes of constant tensors, and initial bytes of
            mutable state.
        origins: By instruction: index of the program's instruction it comes from.
        passes: The ledger of passes; does not affect what the method computes.
        io: What the profile says of inputs and outputs.
        rounding: What it says of weights; None: they stay as they are.
        borders: Inputs and outputs that passes changed for it.
        by_rows: Whether calls compute some rows: they are then written as steps.
    """

    model: str
    name: str
    values: tuple[Value, ...]
    instructions: tuple[LinkedInstruction, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    data: tuple[tuple[int, Bytes], ...]
    origins: tuple[int, ...]
    passes: tuple[PassRecord, ...] = field(default=(), compare=False)
    io: ModelIo = NO_IO
    rounding: WeightRounding | None = None
    borders: tuple[Border, ...] = ()
    by_rows: bool = False

    @cached_property
    def places(self) -> dict[int, Place]:
        """By value index: places of all tensors that have bytes."""
        places = ((i, place_of(v, i)) for i, v in enumerate(self.values))
        return {i: place for i, place in places if place is not None}

    def tensor(self, index: int) -> TensorValue:
        """A value that is a tensor, as the caller knows."""
        return tensor_of(self.values[index])

    def call(self, number: int) -> LinkedCall:
        """An instruction that is a call, as the caller knows."""
        instruction = self.instructions[number]
        assert isinstance(instruction, LinkedCall)  # noqa: S101
        return instruction

    @cached_property
    def state(self) -> tuple[int, ...]:
        """Tensors whose bytes outlive a run."""
        values = enumerate(self.values)
        return tuple(i for i, v in values if isinstance(v, TensorValue) and v.is_state)

    @cached_property
    def contents(self) -> dict[int, Bytes]:
        """By value index: `data`."""
        return dict(self.data)

    @cached_property
    def ends(self) -> dict[Space, int]:
        """By space: the end of the last tensor there."""
        found: dict[Space, int] = {}
        for place in self.places.values():
            found[place.space] = max(found.get(place.space, 0), place.end)
        return found

    @property
    def arenas(self) -> frozenset[int]:
        """Memory ids of the arenas in which tensors have bytes."""
        return frozenset(memory_id for kind, memory_id in self.ends if kind == "arena")

    @property
    def arena_bytes(self) -> list[int]:
        """By memory id: the end of the last tensor there."""
        ids = range(max(self.arenas, default=0) + 1)
        return [self.ends.get(("arena", memory_id), 0) for memory_id in ids]

    def behind(self, space: Space, begin: int = 0) -> int:
        """The first offset behind all tensors of a space, aligned as another one."""
        return aligned(self.ends.get(space, 0), like=begin)

    def with_instructions(self, instructions: tuple[LinkedInstruction, ...]) -> Self:
        """The method with others, which come from the same of the program."""
        new = replace(self, instructions=instructions)
        # Places depend on values alone, and passes ask for them after each change of instructions.
        for name in ("places", "ends"):
            if name in vars(self):
                vars(new)[name] = vars(self)[name]
        return new

    def with_values(
        self, changed: Mapping[int, Value], data: Mapping[int, Bytes] = MappingProxyType({})
    ) -> Self:
        """The method with new values in some slots, and data of some of them.

        The rest stay the same objects. Slots behind the last one are added, in order.
        """
        added = len(changed.keys() - range(len(self.values)))
        values = [*self.values, *(NoneValue(),) * added]
        for index, value in changed.items():
            if value != values[index]:
                values[index] = value
        new = replace(self, values=tuple(values))
        if data:
            known = {**self.contents, **data}
            new = replace(new, data=tuple((i, known[i]) for i in sorted(known)))
        # Passes change a slot or two at a time, and ask for all places each time.
        places, ends = {**self.places}, {**self.ends}
        for index, value in changed.items():
            was, place = self.places.get(index), place_of(value, index)
            if was is not None and was.end == ends.get(was.space):
                ends = {}  # it may have been the last one there
            if place is None:
                places.pop(index, None)
                continue
            places[index] = place
            if ends:
                ends[place.space] = max(ends.get(place.space, 0), place.end)
        vars(new)["places"] = places
        if ends:
            vars(new)["ends"] = ends
        return new

    @cached_property
    def written(self) -> frozenset[int]:
        """Values that the caller, moves or calls write."""
        return self.received.union(*map(written_by, self.instructions))

    def used(self, *, prepared: bool) -> frozenset[int]:
        """Values that the API and instructions name, with the items of lists.

        Args:
            prepared: Whether arguments of prepared calls count, too.
        """
        found = {*self.named((*self.inputs, *self.outputs))}
        for instruction in self.instructions:
            if prepared or getattr(instruction, "prepared", None) is None:
                found.update(self.named(read_by(instruction)))
                found.update(written_by(instruction))
        return frozenset(found)

    def named(self, indices: Iterable[int]) -> Iterator[int]:
        """Values, and the items of lists among them."""
        for index in indices:
            # -1 stands for no tensor in a list of optional ones.
            if index >= 0:
                yield index
                value = self.values[index]
                if isinstance(value, INDEX_LISTS):
                    yield from self.named(value.items)

    @cached_property
    def slotless(self) -> frozenset[int]:
        """Values that only prepared calls use: these need no slots on the device."""
        return self.used(prepared=True) - self.used(prepared=False)

    @property
    def slots(self) -> int:
        """How many values have a slot: all before a last part without any."""
        # Instructions name slots by index: without renumbering them, only the last ones can go.
        count = len(self.values)
        while count and count - 1 in self.slotless:
            count -= 1
        return count

    @cached_property
    def received(self) -> frozenset[int]:
        """Inputs, and the tensors in inputs that are lists."""
        return self._with_items(self.inputs)

    @cached_property
    def returned(self) -> frozenset[int]:
        """What the caller reads after a run, with the tensors in lists."""
        return self._with_items((*self.outputs, *self.kept))

    @property
    def kept(self) -> tuple[int, ...]:
        """Inputs that a run leaves as they are."""
        return tuple(self.inputs[b.index] for b in self.borders if b.is_kept)

    def _with_items(self, indices: tuple[int, ...]) -> frozenset[int]:
        values = (self.values[index] for index in indices)
        lists = [v.items for v in values if isinstance(v, TENSOR_LISTS)]
        return frozenset(i for i in (*indices, *chain(*lists)) if i >= 0)

    @property
    def given(self) -> frozenset[int]:
        """Inputs and outputs in memory of the caller, whose pointers go into slots."""
        ends = {*self.inputs, *self.outputs} - self.contents.keys()
        return frozenset(i for i in ends if lacks_memory(self.values[i]))

    @property
    def has_constant_slots(self) -> bool:
        """Whether no slot changes: no moves, caller's pointers or written numbers."""
        moves = any(isinstance(i, MoveCall) for i in self.instructions)
        numbers = (IntValue, DoubleValue, BoolValue)
        return (
            not moves
            and not self.given
            and not any(isinstance(self.values[index], numbers) for index in self.written)
        )

    @property
    def has_initial_bytes(self) -> bool:
        """Whether slots, sizes or state are written before the first call."""
        state = (index for index, data in self.data if len(data))
        values = (self.values[index] for index in state)
        return (
            not self.has_constant_slots
            or self.dynamic_words > 0
            or any(isinstance(v, TensorValue) and v.is_planned for v in values)
        )

    @property
    def has_initial_zeros(self) -> bool:
        """Whether some state starts with zeros, which are in no table."""
        return any(len(data) and self.starts_with_zeros(index, data) for index, data in self.data)

    @property
    def dynamic_words(self) -> int:
        """32-bit words for capacities and sizes of tensors that may change size."""
        return sum(
            1 + len(value.sizes)
            for value in self.values
            if isinstance(value, TensorValue) and value.is_dynamic
        )

    def state_bytes(self, *, pointer_bytes: int, compact: bool) -> int:
        """RAM for changing slots and sizes; slots of `compact` tables are smaller.

        Source: size of `Value` in runtime/include/orch/value.h, which asserts it.
        """
        slots = 0 if self.has_constant_slots else self.slots
        pointers = 3 if compact else 4
        return slots * pointers * pointer_bytes + 4 * self.dynamic_words

    @property
    def constants(self) -> tuple[Bytes, ...]:
        """Distinct constants and initial states that go into flash."""
        return tuple(
            dict.fromkeys(
                data
                for index, data in self.data
                if len(data) and not self.starts_with_zeros(index, data)
            )
        )

    def starts_with_zeros(self, index: int, data: Bytes) -> bool:
        """Whether data is initial state that needs no flash.

        Args:
            index: Of a value.
            data: Its bytes.
        """
        value = self.values[index]
        is_state = isinstance(value, TensorValue) and value.allocation is not None
        return is_state and not any(map(any, chunks_of(data)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Linkage:
    """The linked methods of a program, or why it cannot be linked.

    Args:
        methods: In the program's order; not to be used if there are problems.
        problems: Reasons why calls cannot be linked.
        before: The methods before passes; empty if none ran.
    """

    methods: tuple[LinkedMethod, ...] = field(repr=False)
    problems: tuple[str, ...] = ()
    before: tuple[LinkedMethod, ...] = field(default=(), repr=False)
