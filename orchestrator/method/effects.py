"""What each instruction reads, writes, fills and aliases, and which can run next.

Passes, the planner, lower bounds and both proofs use these answers, for
methods of programs and for linked methods. `tests/integration/test_effects.py` compares
the answers with what kernels touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.method.linked import LinkedCall, LinkedInstruction, LinkedMethod
from orchestrator.method.places import Access, accesses
from orchestrator.program.interface import TENSOR_LISTS, moved_to
from orchestrator.program.program import (
    DelegateCall,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
)
from orchestrator.program.values import BoolValue, IntValue, TensorValue, Value

_VIEW: Final = "executorch_prim::et_view.default"
_COPY_INDEX: Final = "executorch_prim::et_copy_index.tensor"
_READING: Final = frozenset({Access.READS, Access.UPDATES})


@dataclass(frozen=True, kw_only=True)  # without slots, for what is cached
class Effect:
    """What an instruction does with tensors, which are named by value index.

    Args:
        reads: Tensors whose items it reads.
        fills: Tensors of which it writes every item; of a dynamic tensor, every item
            of its new size.
        updates: Tensors of which it may leave some items unchanged. Those that it
            also reads are in `reads`, too.
        scratch: Tensors whose contents are undefined before and after.
        views: Those of `fills` that have the memory of their base: no byte changes.
        moved: Tensors whose memory an earlier move may have given to one it reads.
        replaces: The target of a move, which gets the memory of the source.
        next: Indices of the instructions that can run next; the number of instructions
            means the end of the run.
    """

    reads: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()
    updates: tuple[int, ...] = ()
    scratch: tuple[int, ...] = ()
    views: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    replaces: tuple[int, ...] = ()
    next: tuple[int, ...]

    @cached_property
    def writes(self) -> tuple[int, ...]:
        """Every tensor that it may write, each once."""
        return tuple(dict.fromkeys((*self.fills, *self.updates, *self.scratch)))

    @cached_property
    def touches(self) -> tuple[int, ...]:
        """Every tensor that it reads or may write, each once."""
        return tuple(dict.fromkeys((*self.reads, *self.writes, *self.moved)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodEffects:
    """The effects of a method's instructions, inputs and outputs.

    Args:
        values: Values of the method.
        at: Effects by instruction.
        inputs: Tensors that the caller writes before a run.
        outputs: Tensors that the caller reads after it.
        moved: Tensors whose memory a move may have given to an output.
        is_known: Every call has a schema, and none writes where a move decides.
    """

    values: tuple[Value, ...]
    at: tuple[Effect, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    moved: tuple[int, ...]
    is_known: bool

    @property
    def replaced(self) -> frozenset[int]:
        """Targets of moves."""
        return frozenset(v for effect in self.at for v in effect.replaces)


def effects_of_method(method: Method, schemas: Mapping[OperatorName, OpSchema]) -> MethodEffects:
    """The effects of a program's method.

    Args:
        method: The method.
        schemas: Schemas of operators that have a kernel. Calls of others are assumed to
            write their results, and arguments that are the same values.
    """
    calls = [
        (method.operators[i.operator], i.args)
        for i in method.instructions
        if isinstance(i, KernelCall)
    ]
    maker = _Maker(method.values, method.instructions, calls, method.inputs)
    for instruction in method.instructions:
        match instruction:
            case KernelCall(operator=operator, args=args):
                name = method.operators[operator]
                schema = schemas.get(name)
                if schema is None or len(args) < len(schema.arguments):
                    maker.unknown_call(args)
                else:
                    maker.call(name, args, accesses(schema))
            case DelegateCall(args=args, scratch_count=count):
                # A program does not say which arguments a delegate reads or writes.
                both = (Access.UPDATES,) * (len(args) - count)
                maker.add(args, (*both, *(Access.SCRATCH,) * count))
            case FreeCall():
                maker.add((), ())
            case _:
                maker.control(instruction)
    return maker.effects(method.inputs, method.outputs)


def effects_of_linked(method: LinkedMethod) -> MethodEffects:
    """The effects of a linked method."""
    maker = _maker_of_linked(method)
    for instruction in method.instructions:
        match instruction:
            case LinkedCall(operator=name, args=args, accesses=how):
                maker.call(name, args, how)
            case _:
                maker.control(instruction)
    return maker.effects(method.inputs, (*method.outputs, *method.kept))


def effect_of_call(method: LinkedMethod, number: int) -> Effect:
    """The effect of one call of a linked method, as `effects_of_linked` has it."""
    call, maker = method.call(number), _maker_of_linked(method)
    maker.call(call.operator, call.args, call.accesses)
    return replace(maker.at[0], next=(number + 1,))


def _maker_of_linked(method: LinkedMethod) -> _Maker:
    linked = (i for i in method.instructions if isinstance(i, LinkedCall))
    calls = [(i.operator, i.args) for i in linked]
    return _Maker(method.values, method.instructions, calls, method.inputs)


class _Maker:
    """Builds the effects of a method, instruction by instruction."""

    def __init__(
        self,
        values: tuple[Value, ...],
        instructions: Sequence[Instruction | LinkedInstruction],
        calls: Sequence[tuple[OperatorName, tuple[int, ...]]],
        inputs: Iterable[int],
    ) -> None:
        self._values = values
        self._sources = _sources(instructions)
        self._counters = _counters(calls) - self._sources.keys()
        may_change = {*inputs, *self._sources, *(i for _, args in calls for i in args)}
        self._never = {
            i
            for i, value in enumerate(values)
            if value == BoolValue(value=False) and i not in may_change
        }
        self.at: list[Effect] = []
        self._is_known = True

    def effects(self, inputs: Iterable[int], outputs: Iterable[int]) -> MethodEffects:
        results = self._tensors(outputs)
        # A write to the target of a move goes to memory that the move chooses.
        decided = any(index in self._sources for e in self.at for index in e.writes)
        return MethodEffects(
            values=self._values,
            at=tuple(self.at),
            inputs=self._tensors(inputs),
            outputs=results,
            moved=self._behind(results),
            is_known=self._is_known and not decided,
        )

    def call(self, name: OperatorName, args: tuple[int, ...], how: Sequence[Access]) -> None:
        shows = str(name) == _VIEW and self._is_at(args[0], args[-1])
        if str(name) == _COPY_INDEX and not self._counts(args[2]):
            how = (Access.UPDATES, *how[1:])  # other rows keep their items
        self.add(args, how, views=args[-1:] if shows else ())

    def _counts(self, index: int) -> bool:
        """Whether a number is the counter of a loop over all rows, as `map` has one.

        It begins at 0, and calls write it that read it as well.
        """
        value = self._values[index]
        return isinstance(value, IntValue) and value.value == 0 and index in self._counters

    def unknown_call(self, args: tuple[int, ...]) -> None:
        """Add a call without schema; out variants repeat their outputs as results."""
        self._is_known = False
        # The result of an out variant stands last, and before it the same values as arguments.
        results = self._tensors(args[-1:]) or args[-1:]
        first = len(args) - 1 - len(results)
        count = len(results) if args[max(first, 0) : -1] == results else 0
        reads = (Access.READS,) * (len(args) - 1 - count)
        self.add(args, (*reads, *(Access.FILLS,) * (count + 1)))

    def control(self, instruction: MoveCall | JumpFalseCall) -> None:
        if isinstance(instruction, MoveCall):
            # No byte moves: reading the target reads the source (`moved`).
            target = (instruction.target,)
            self.add((instruction.source,), (Access.READS,), replaces=target)
        else:
            condition = instruction.condition
            self.add(
                (condition,),
                (Access.READS,),
                jump=(instruction.destination,),
                # Branches end so: a jump that is always taken.
                goes_on=condition not in self._never,
            )

    def add(
        self,
        args: tuple[int, ...],
        how: Sequence[Access],
        *,
        views: tuple[int, ...] = (),
        replaces: tuple[int, ...] = (),
        jump: tuple[int, ...] = (),
        goes_on: bool = True,
    ) -> None:
        used: dict[Access, list[int]] = {access: [] for access in Access}
        reads: list[int] = []
        # Calls of programs have results behind the arguments of the schema, which repeat the
        # outputs.
        for index, access in zip(args, how, strict=False):
            for item in self._items(index):
                used[access].append(item)
                if access in _READING:
                    reads.append(item)
        read = _once(reads)
        self.at.append(
            Effect(
                reads=read,
                fills=_once(used[Access.FILLS]),
                updates=_once(used[Access.WRITES] + used[Access.UPDATES]),
                scratch=_once(used[Access.SCRATCH]),
                views=views,
                moved=self._behind(read),
                replaces=self._tensors(replaces),
                next=_once((*((len(self.at) + 1,) if goes_on else ()), *jump)),
            )
        )

    def _is_at(self, base: int, view: int) -> bool:
        """Whether a view has the memory of its base, and no move replaces the base."""
        one, other = self._values[base], self._values[view]
        return (
            isinstance(one, TensorValue)
            and isinstance(other, TensorValue)
            and one.allocation is not None
            and one.allocation == other.allocation
            and base not in self._sources
        )

    def _tensors(self, indices: Iterable[int]) -> tuple[int, ...]:
        """Tensors among values and in lists, each once."""
        return _once(item for index in indices for item in self._items(index))

    def _items(self, index: int) -> tuple[int, ...]:
        """A tensor, or the tensors of a list; empty for anything else."""
        value = self._values[index]
        if isinstance(value, TensorValue):
            return (index,)
        if isinstance(value, TENSOR_LISTS):
            values = self._values
            return tuple(
                item for item in value.items if item >= 0 and isinstance(values[item], TensorValue)
            )
        return ()

    def _behind(self, indices: Iterable[int]) -> tuple[int, ...]:
        if not self._sources:
            return ()
        return _once(s for i in indices for s in sorted(self._sources.get(i, ())))


def _once(indices: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(indices))


def _counters(calls: Iterable[tuple[OperatorName, tuple[int, ...]]]) -> frozenset[int]:
    """Results of calls that all read them as well, `add.Scalar(i, 1, i)`."""
    counted, others = set[int](), set[int]()
    for name, args in calls:
        if args and str(name) != _COPY_INDEX:  # which has no result
            (counted if args[-1] in args[:-1] else others).add(args[-1])
    return frozenset(counted - others)


def _sources(instructions: Sequence[Instruction | LinkedInstruction]) -> dict[int, set[int]]:
    """By target of a move: every value that may have been moved there."""
    moves = [i for i in instructions if isinstance(i, MoveCall)]
    return dict(moved_to((move.source, move.target) for move in moves))
