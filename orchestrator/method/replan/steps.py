"""What each instruction of a method does with planned memory.

One form for methods of programs and for linked ones, so that both are planned and
proved by the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.catalog.scratch_arguments import is_scratch
from orchestrator.method.linked import LinkedCall
from orchestrator.program.interface import TENSOR_LISTS
from orchestrator.program.program import (
    DelegateCall,
    JumpFalseCall,
    KernelCall,
    MoveCall,
)
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from orchestrator.core.operator import OperatorName, OpSchema
    from orchestrator.method.linked import LinkedInstruction, LinkedMethod
    from orchestrator.program.program import Instruction, Method
    from orchestrator.program.values import Value

_VIEW: Final = "executorch_prim::et_view.default"
_ROW: Final = "executorch_prim::et_copy_index.tensor"
_COPIES: Final = ("aten::copy_.default", "aten::copy_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One instruction. All numbers are value indices of tensors.

    Args:
        reads: What it looks at.
        fills: What it writes whole, as far as a tensor of that size goes.
        changes: What it writes and looks at: state, what is changed in place, what a
            delegate gets.
        grows: What it writes a part of; other parts have been or will be written by
            instructions like it.
        same: Of a view: what has to stay where it is beside the base. Nothing is
            written if it lies there.
        moved: What a move may have put in the place of a value it looks at.
        next: Steps that can come after it; their count is the end of the run.
    """

    reads: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()
    changes: tuple[int, ...] = ()
    grows: tuple[int, ...] = ()
    same: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    next: tuple[int, ...]

    @property
    def touches(self) -> tuple[int, ...]:
        """Every value, each once."""
        found = (*self.reads, *self.fills, *self.changes, *self.grows, *self.same)
        return tuple(dict.fromkeys((*found, *self.moved)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A method as its memory sees it.

    Args:
        values: Every slot.
        steps: In the order of the instructions.
        inputs: Tensors that are written before a run.
        outputs: Tensors that are read after it.
        kept: Tensors that a move may have put in the place of an output.
        replaced: Values that moves replace.
        is_known: Whether it is known what every instruction does. If not, nothing may
            be moved.
    """

    values: tuple[Value, ...]
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    kept: tuple[int, ...]
    replaced: frozenset[int]
    is_known: bool


def method_subject(method: Method, schemas: Mapping[OperatorName, OpSchema]) -> Subject:
    """The subject that a program's method is.

    Args:
        method: The method.
        schemas: Of the operators that have a kernel.
    """
    maker = _Maker(method.values, method.instructions)
    steps = []
    for index, instruction in enumerate(method.instructions):
        match instruction:
            case KernelCall(operator=operator, args=args):
                schema = schemas.get(method.operators[operator])
                steps.append(maker.call(index, schema, args))
            case DelegateCall(args=args, scratch_count=count):
                split = len(args) - count
                step = maker.step(index, changes=args[:split], fills=args[split:])
                steps.append(step)
            case JumpFalseCall(condition=condition, destination=destination):
                steps.append(maker.jump(index, condition, destination))
            case MoveCall(source=source):
                steps.append(maker.move(index, source))
            case _:  # freeing does nothing
                steps.append(Step(next=(index + 1,)))
    return maker.subject(steps, method.inputs, method.outputs)


def linked_subject(
    method: LinkedMethod, schemas: Mapping[OperatorName, OpSchema]
) -> Subject:
    """The subject that a linked method is; arguments as for `method_subject`."""
    maker = _Maker(method.values, method.instructions)
    steps = []
    for index, instruction in enumerate(method.instructions):
        match instruction:
            case LinkedCall(operator=operator, args=args):
                steps.append(maker.call(index, schemas.get(operator), args))
            case JumpFalseCall(condition=condition, destination=destination):
                steps.append(maker.jump(index, condition, destination))
            case _:
                steps.append(maker.move(index, instruction.source))
    return maker.subject(steps, method.inputs, method.outputs)


class _Maker:
    def __init__(
        self,
        values: tuple[Value, ...],
        instructions: Sequence[Instruction | LinkedInstruction],
    ) -> None:
        self._values = values
        self._sources = _sources(instructions)
        self._is_known = True

    def subject(
        self, steps: list[Step], inputs: Iterable[int], outputs: Iterable[int]
    ) -> Subject:
        moved = set(self._sources)
        writes = (w for s in steps for w in (*s.changes, *s.grows))
        # A write through a move's target would go where the move decides.
        known = self._is_known and moved.isdisjoint(writes)
        given = self._tensors(inputs)
        got = self._tensors(outputs)
        return Subject(
            values=self._values,
            steps=tuple(steps),
            inputs=given,
            outputs=got,
            kept=self._behind(got),
            replaced=frozenset(moved),
            is_known=known and moved.isdisjoint(given),
        )

    def jump(self, index: int, condition: int, destination: int) -> Step:
        reads = self._tensors((condition,))
        return Step(
            reads=reads,
            moved=self._behind(reads),
            next=tuple(dict.fromkeys((index + 1, destination))),
        )

    def move(self, index: int, source: int) -> Step:
        """Memory stays as it is; reads of the target look behind the move."""
        return self.step(index, reads=(source,))

    def step(
        self,
        index: int,
        *,
        reads: Iterable[int] = (),
        fills: Iterable[int] = (),
        changes: Iterable[int] = (),
        grows: Iterable[int] = (),
        same: Iterable[int] = (),
    ) -> Step:
        looks, written = self._tensors(reads), self._tensors(fills)
        changed = self._tensors(changes)
        return Step(
            reads=looks,
            fills=written,
            changes=changed,
            grows=self._tensors(grows),
            same=self._tensors(same),
            moved=self._behind((*looks, *changed)),
            next=(index + 1,),
        )

    def call(self, index: int, schema: OpSchema | None, args: tuple[int, ...]) -> Step:
        if schema is None or len(args) < len(schema.arguments):
            self._is_known = False
            return self.step(index, changes=args)
        name = str(schema.name)
        if name == _VIEW:
            return self._view(index, args)
        pairs = (*zip(args, schema.arguments, strict=False),)
        outs = [value for value, argument in pairs if argument.is_out]
        reads = [v for v, a in pairs if not a.is_out and not is_scratch(a)]
        if name == _ROW:
            return self.step(index, reads=reads, grows=outs)
        fills = [v for v, a in pairs if is_scratch(a)]
        results = args[len(schema.arguments) :]
        if "out" in schema.name.overload or name in _COPIES or not outs:
            fills += [*outs, *results]
            outs = []
        return self.step(index, reads=reads, fills=fills, changes=outs)

    def _view(self, index: int, args: tuple[int, ...]) -> Step:
        base, out = args[0], args[-1]
        one, other = self._values[base], self._values[out]
        beside = (
            isinstance(one, TensorValue)
            and isinstance(other, TensorValue)
            and one.allocation is not None
            and one.allocation == other.allocation
            and base not in self._sources
        )
        if beside:
            return self.step(index, reads=(base,), same=(out,))
        return self.step(index, reads=(base,), fills=(out,))

    def _tensors(self, indices: Iterable[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self._items(indices)))

    def _items(self, indices: Iterable[int]) -> Iterator[int]:
        for index in indices:
            value = self._values[index]
            items = value.items if isinstance(value, TENSOR_LISTS) else (index,)
            for item in items:
                if item >= 0 and isinstance(self._values[item], TensorValue):
                    yield item

    def _behind(self, indices: Iterable[int]) -> tuple[int, ...]:
        found = (s for i in indices for s in sorted(self._sources.get(i, ())))
        return tuple(dict.fromkeys(found))


def _sources(
    instructions: Sequence[Instruction | LinkedInstruction],
) -> dict[int, set[int]]:
    """By value that is moved to: all that may have come there."""
    found: dict[int, set[int]] = {}
    for move in instructions:
        if isinstance(move, MoveCall):
            found.setdefault(move.target, set()).add(move.source)
    grown = True
    while grown:
        grown = False
        for sources in found.values():
            count = len(sources)
            sources.update({s for x in sources for s in found.get(x, ())})
            grown = grown or len(sources) > count
    return found
