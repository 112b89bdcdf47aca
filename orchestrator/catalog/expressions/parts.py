"""Parts of expressions: the kind of what they give, and how it is computed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.catalog.cmsis_nn import Backend
from orchestrator.catalog.expressions.syntax import shown
from orchestrator.catalog.expressions.values import (
    ISAS,
    ExpressionError,
    Kind,
    Number,
    Range,
    Undecided,
    Value,
    every,
    same_number,
    same_numbers,
    settled,
)
from orchestrator.core.dtype import DTYPE_GROUPS, ScalarType
from orchestrator.core.operator import ArgKind

LIMIT = 2**63

Call = Mapping[str, Value]
"""What is known of a call: its arguments by name, and `isa`."""
Numeric = Callable[[Call], Number]
Numbers = Callable[[Call], tuple[Number, ...]]
Truth = Callable[[Call], bool]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an expression: the kind of what it gives, and how."""

    kind: Kind
    run: Callable[[Call], Value]


KINDS = {
    ArgKind.TENSOR: Kind.TENSOR,
    ArgKind.TENSOR_LIST: Kind.TENSORS,
    ArgKind.INT: Kind.NUMBER,
    ArgKind.FLOAT: Kind.SCALAR,
    ArgKind.SCALAR: Kind.SCALAR,
    ArgKind.BOOL: Kind.TRUTH,
    ArgKind.STRING: Kind.TEXT,
    ArgKind.INT_LIST: Kind.NUMBERS,
    ArgKind.FLOAT_LIST: Kind.SCALARS,
}
ARITHMETIC: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
ORDER: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _same_scalar(a: Value, b: Value) -> bool:
    first, second = settled(a), settled(b)
    if isinstance(first, Range) or isinstance(second, Range):
        return same_number(first, second)
    return first == second


EQUAL: Mapping[Kind, Callable[..., bool]] = {
    Kind.NUMBER: same_number,
    Kind.NUMBERS: same_numbers,
    Kind.SCALAR: _same_scalar,
    Kind.ISA: operator.eq,
    Kind.DTYPE: operator.eq,
    Kind.TEXT: operator.eq,
    Kind.TRUTH: operator.eq,
}
"""Kinds that can be compared."""


def known(call: Call, name: str) -> Value:
    """An argument. Raises Undecided."""
    if name not in call:
        raise Undecided(f"{name} is known only when the program runs")
    return call[name]


DTYPES: Mapping[str, Part] = {
    **{d.name: Part(Kind.DTYPE, lambda _, d=d: d) for d in ScalarType},  # type: ignore[misc]  # mypy knows no types of defaults
    **{
        name: Part(Kind.DTYPES, lambda _, group=group: group)  # type: ignore[misc]
        for name, group in DTYPE_GROUPS.items()
    },
}


def constant(node: ast.expr, value: object) -> Part:
    """A literal."""
    match value:
        case bool():
            return Part(Kind.TRUTH, lambda _: value)
        case int() if value < LIMIT:
            return Part(Kind.NUMBER, lambda _: value)
        case str():
            if value not in tuple(ISAS):
                names = ", ".join(ISAS)
                raise ExpressionError(f'"{value}" is no ISA, known are {names}')
            named = Backend(value)
            return Part(Kind.ISA, lambda _: named)
    raise ExpressionError(f"{shown(node)} cannot be written here")


def negative(number: Numeric) -> Part:
    """A number with the other sign."""
    return Part(Kind.NUMBER, lambda call: -number(call))


def logic(truths: list[Truth], *, is_and: bool) -> Part:
    """Whether all hold, or any; one that decides makes up for what is not known."""

    def run(call: Call) -> bool:
        return every([lambda t=t: t(call) is is_and for t in truths]) is is_and  # type: ignore[misc]  # mypy knows no types of defaults

    return Part(Kind.TRUTH, run)
