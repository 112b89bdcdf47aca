"""A model as its author thinks of it: values, buffers and what is done with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType

if TYPE_CHECKING:
    from collections.abc import Iterator

_S = ScalarType
FORMS: Final = {
    _S.Char: "i1",
    _S.Byte: "u1",
    _S.Short: "<i2",
    _S.Int: "<i4",
    _S.Long: "<i8",
    _S.Float: "<f4",
    _S.Double: "<f8",
    _S.Half: "<f2",
    _S.Bool: "?",
}
NHWC: Final = (0, 2, 3, 1)


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor. Its identity is the object's.

    Args:
        sizes: Logical sizes, outermost first.
        dtype: Element type.
        order: Its dim order.
        data: Items of a constant as they lie in memory.
        buffer: It is a buffer: this name. `data` is then what it begins with; None:
            zeros, and the program has no data for it.
    """

    sizes: tuple[int, ...]
    dtype: ScalarType
    order: tuple[int, ...]
    data: bytes | None = None
    buffer: str = ""

    @property
    def size_bytes(self) -> int:
        return int(np.prod(self.sizes, dtype=int)) * self.dtype.item_bytes


@dataclass(frozen=True, eq=False)
class Op:
    """A call; `args` are as the schema has them, with outputs at the end."""

    operator: str
    args: tuple[Any, ...]
    outs: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class View:
    """Another name of a value, with other sizes. `is_called`: by an instruction."""

    base: Value
    out: Value
    is_called: bool


@dataclass(frozen=True, eq=False)
class Store:
    """A value replaces what a buffer holds."""

    buffer: Value
    value: Value


@dataclass(frozen=True, eq=False)
class Put:
    """Values replace rows of a buffer; `rows` is a tensor of indices."""

    buffer: Value
    rows: Value
    values: Value


@dataclass(frozen=True, eq=False)
class Cond:
    """One of two blocks gives a value."""

    flag: Value
    blocks: tuple[Block, Block]
    out: Value


@dataclass(frozen=True, eq=False)
class Map:
    """A block is done for each row of a value; `out` has its results."""

    rows: Value
    row: Value
    block: Block
    out: Value


Statement = Op | View | Store | Put | Cond | Map


@dataclass(frozen=True, eq=False)
class Block:
    """Statements, and the value that they are for."""

    statements: tuple[Statement, ...]
    result: Value


@dataclass(frozen=True, eq=False)
class Method:
    """A method; outputs may be inputs, buffers, or one value twice."""

    name: str
    inputs: tuple[Value, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Model:
    """Methods over common buffers, and a session of calls: (method, inputs)."""

    methods: tuple[Method, ...]
    session: tuple[tuple[int, tuple[bytes, ...]], ...]
    traits: dict[str, bool] = field(default_factory=dict)


def read_of(statement: Statement) -> Iterator[Value]:
    """Values that a statement reads, without those of its blocks."""
    match statement:
        case Op():
            outs = set(map(id, statement.outs))
            for arg in statement.args:
                for item in arg if isinstance(arg, tuple) else (arg,):
                    if isinstance(item, Value) and id(item) not in outs:
                        yield item
        case View():
            yield statement.base
        case Store():
            yield statement.value
        case Put():
            yield from (statement.buffer, statement.rows, statement.values)
        case Cond():
            yield statement.flag
        case Map():
            yield statement.rows


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """Blocks inside a statement."""
    match statement:
        case Cond():
            return statement.blocks
        case Map():
            return (statement.block,)
    return ()


def uses_of(statements: tuple[Statement, ...]) -> Iterator[Value]:
    """Values that statements read, with those of their blocks."""
    for statement in statements:
        yield from read_of(statement)
        for block in blocks_of(statement):
            yield from uses_of(block.statements)
            yield block.result


def statements_of(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Statements, with those of their blocks."""
    for statement in statements:
        yield statement
        for block in blocks_of(statement):
            yield from statements_of(block.statements)
