"""Programs that are well formed, and that no exporter writes.

Tensors are planned on top of each other, calls go to any kernel there is with arguments
of the right kind, and calls, values and lists are used over and over. `damage.py`
changes bytes, and most of what comes of it is refused at the first look; of these
programs, most get as far as the kernels.

    python -m tests.fuzz.rearranged FOLDER COUNT [FIRST_SEED]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from orchestrator.core.operator import ArgKind
from orchestrator.program.encode import write_program
from orchestrator.program.program import JumpFalseCall, KernelCall, Method, MoveCall, Program
from orchestrator.program.reader import read_program
from orchestrator.program.values import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
)
from tests.conftest import CASES, model_bytes
from tests.cpp.support.native import linked_catalog
from tests.fuzz.loader_seeds import prim_op_seeds, retyped_seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.core.operator import Argument, OpSchema
    from orchestrator.program.values import Value

_MOST_BYTES: Final = 14_000
_NEVER_LOADED: Final = ("external_constants",)
"""Programs without their data: the device says nothing else of them."""
_INTS: Final = (-2, -1, 0, 1, 2, 3, 4, 7, 127, -128, 2**31, -(2**63))
_DOUBLES: Final = (-1.0, 0.0, 0.5, 1.0, 1e300, float("inf"), float("nan"))
_NUMBERS: Final[tuple[Value, ...]] = (*map(IntValue, _INTS), *map(DoubleValue, _DOUBLES))
_VALUES: Final[dict[ArgKind, tuple[Value, ...]]] = {
    ArgKind.INT: tuple(map(IntValue, _INTS)),
    ArgKind.FLOAT: tuple(map(DoubleValue, _DOUBLES)),
    ArgKind.BOOL: (BoolValue(False), BoolValue(True)),  # noqa: FBT003
    ArgKind.SCALAR: _NUMBERS,
    ArgKind.STRING: (StringValue("none"),),
    ArgKind.FLOAT_LIST: (DoubleListValue((1.0, 0.5)),),
    ArgKind.BOOL_LIST: (BoolListValue((True, False)),),
}


@cache
def programs() -> tuple[Program, ...]:
    """What is rearranged: the small programs that the tests of the loader have."""
    corpus = {c: model_bytes(c) for c in CASES if c not in _NEVER_LOADED}
    every = corpus | retyped_seeds() | prim_op_seeds()
    return tuple(
        read_program(data, file=name) for name, data in every.items() if len(data) <= _MOST_BYTES
    )


@cache
def _schemas() -> tuple[OpSchema, ...]:
    return tuple(
        {
            kernel.schema.name: kernel.schema
            for _, kernels in linked_catalog().libraries
            for kernel in kernels
        }.values()
    )


def rearranged(seed: int) -> bytes:
    """One of the programs, rearranged; how, the seed decides."""
    random = Random(seed)  # noqa: S311  # not for secrets
    program = random.choice(programs())
    number = random.randrange(len(program.methods))
    rearranging = _Rearranging(program.methods[number], random)
    for _ in range(random.randint(1, 5)):
        rearranging.change()
    methods = list(program.methods)
    methods[number] = rearranging.method
    return bytes(write_program(replace(program, methods=tuple(methods))))


class _Rearranging:
    """A method on its way."""

    def __init__(self, method: Method, random: Random) -> None:
        self.method = method
        self._random = random

    def change(self) -> None:
        """Make one change; which one is left to chance."""
        changes: Sequence[Callable[[], None]] = (
            self._overlap,
            self._overlap,
            self._overlap,
            self._redirect,
            self._redirect,
            self._share_arguments,
            self._share_items,
            self._repeat,
            self._move,
            self._jump,
        )
        self._random.choice(changes)()

    def _overlap(self) -> None:
        """Plan a tensor over another one, or a few bytes beside where that is."""
        planned = [
            (index, value)
            for index, value in enumerate(self.method.values)
            if isinstance(value, TensorValue) and value.allocation is not None
        ]
        if len(planned) < 2:  # two to overlap
            return
        (index, moved), (_, other) = self._random.sample(planned, 2)
        assert moved.allocation is not None
        assert other.allocation is not None
        item = moved.dtype.item_bytes
        memory_id = other.allocation.memory_id
        last = self.method.arena_bytes[memory_id] - moved.size_bytes
        if last < 0:
            return
        by = self._random.choice((0, 0, item, -item, moved.size_bytes // 2))
        offset = min(max(other.allocation.offset_bytes + by, 0), last) // item * item
        place = replace(moved.allocation, memory_id=memory_id, offset_bytes=offset)
        self._put(index, replace(moved, allocation=place))

    def _redirect(self) -> None:
        """Have a call go to any kernel there is, with arguments of the right kind."""
        found = self._calls()
        if not found:
            return
        number, _ = self._random.choice(found)
        schema = self._random.choice(_schemas())
        args = [self._argument(argument) for argument in schema.arguments]
        outs = [
            args[position] for position, argument in enumerate(schema.arguments) if argument.is_out
        ]
        result = schema.result
        if result is not None and result.kind is ArgKind.TENSOR_LIST and outs:
            args.append(self._add(TensorListValue(tuple(outs))))
        elif result is not None:
            args.append(outs[0] if outs else self._argument(result))
        operators = self.method.operators
        if schema.name not in operators:
            operators = (*operators, schema.name)
            self.method = replace(self.method, operators=operators)
        operator = operators.index(schema.name)
        self._put_instruction(number, KernelCall(operator=operator, args=tuple(args)))

    def _argument(self, argument: Argument) -> int:
        """A value for an argument: one of the method, or a new one."""
        random = self._random
        if argument.optional and random.randrange(3) == 0:
            return self._add(NoneValue())
        if argument.kind is ArgKind.TENSOR:
            return self._tensor(planned=argument.is_out)
        if argument.kind is ArgKind.TENSOR_LIST:
            items = [self._tensor() for _ in range(random.randint(1, 3))]
            if not argument.items_optional:
                return self._add(TensorListValue(tuple(items)))
            items = [i if random.randrange(3) else -1 for i in items]
            return self._add(OptionalTensorListValue(tuple(items)))
        if argument.kind is ArgKind.INT_LIST:
            few = random.choices(_INTS[1:8], k=random.randint(0, 4))
            numbers = [self._add(IntValue(number)) for number in few]
            return self._add(IntListValue(tuple(numbers)))
        return self._add(random.choice(_VALUES[argument.kind]))

    def _tensor(self, *, planned: bool = False) -> int:
        """Any tensor of the method; one that can be written if it has to be."""
        found = [
            index
            for index, value in enumerate(self.method.values)
            if isinstance(value, TensorValue) and (value.is_planned or not planned)
        ]
        return self._random.choice(found) if found else self._add(NoneValue())

    def _share_arguments(self) -> None:
        """Have a call take the arguments of another one, which stand there once."""
        found = self._calls()
        if not found:
            return
        number, call = self._random.choice(found)
        _, other = self._random.choice(found)
        self._put_instruction(number, replace(call, args=other.args))

    def _share_items(self) -> None:
        """Have a list take the items of another one, which stand there once."""
        kinds = (IntListValue, TensorListValue, OptionalTensorListValue)
        lists = [
            (index, value)
            for index, value in enumerate(self.method.values)
            if isinstance(value, kinds)
        ]
        if not lists:
            return
        index, value = self._random.choice(lists)
        same = [other for _, other in lists if type(other) is type(value)]
        self._put(index, self._random.choice(same))

    def _repeat(self) -> None:
        """Have an instruction stand there a few times more."""
        instructions = list(self.method.instructions)
        if not instructions:
            return
        at = self._random.randrange(len(instructions))
        instructions[at:at] = [instructions[at]] * self._random.randint(1, 20)
        self.method = replace(self.method, instructions=tuple(instructions))

    def _move(self) -> None:
        """Move a value to another one of its kind."""
        values = self.method.values
        if not values:
            return
        source = self._random.randrange(len(values))
        same = [i for i, v in enumerate(values) if _alike(v, values[source])]
        self._insert(MoveCall(source=source, target=self._random.choice(same)))

    def _jump(self) -> None:
        """Jump anywhere, also back, for a condition that a kernel may have set."""
        destination = self._random.randint(0, len(self.method.instructions))
        known = [i for i, v in enumerate(self.method.values) if isinstance(v, BoolValue)]
        condition = self._add(BoolValue(self._random.randrange(2) == 0))
        condition = self._random.choice([condition, *known])
        self._insert(JumpFalseCall(condition=condition, destination=destination))

    def _calls(self) -> list[tuple[int, KernelCall]]:
        return [
            (number, call)
            for number, call in enumerate(self.method.instructions)
            if isinstance(call, KernelCall)
        ]

    def _add(self, value: Value) -> int:
        self.method = replace(self.method, values=(*self.method.values, value))
        return len(self.method.values) - 1

    def _put(self, index: int, value: Value) -> None:
        values = list(self.method.values)
        values[index] = value
        self.method = replace(self.method, values=tuple(values))

    def _put_instruction(self, number: int, call: KernelCall) -> None:
        instructions = list(self.method.instructions)
        instructions[number] = call
        self.method = replace(self.method, instructions=tuple(instructions))

    def _insert(self, instruction: MoveCall | JumpFalseCall) -> None:
        instructions = list(self.method.instructions)
        at = self._random.randint(0, len(instructions))
        instructions.insert(at, instruction)
        self.method = replace(self.method, instructions=tuple(instructions))


def _alike(value: Value, other: Value) -> bool:
    if isinstance(value, TensorValue) and isinstance(other, TensorValue):
        return value.dtype == other.dtype and value.dim_order == other.dim_order
    return type(value) is type(other)


def write(folder: Path, first: int, count: int) -> list[Path]:
    """Write the programs of so many seeds, each to a file of its number."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{seed}.pte" for seed in range(first, first + count)]
    for seed, path in enumerate(paths, start=first):
        path.write_bytes(rearranged(seed))
    return paths


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to write them")
    parser.add_argument("count", type=int)
    parser.add_argument("first_seed", type=int, nargs="?", default=1)
    options = parser.parse_args()
    write(options.folder, options.first_seed, options.count)
