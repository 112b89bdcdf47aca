"""Expressions for scratch sizes: bytes from arguments, shapes and ISA.

A small part of Python's own syntax. An expression is read and its kinds are checked
before any call is known; it can do nothing but compute.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from orchestrator.core.cmsis_nn import Backend
from orchestrator.core.operator import ArgKind
from orchestrator.core.scratch import is_scratch
from orchestrator.core.scratch_kinds import (
    FUNCTIONS,
    HELPERS,
    ISAS,
    PROPERTIES,
    Kind,
    SizeError,
    Value,
)
from orchestrator.errors import did_you_mean

if TYPE_CHECKING:
    from orchestrator.core.operator import Argument, OpSchema
    from orchestrator.core.scratch_kinds import Function

_MAX_TEXT = 4000  # characters
_MAX_DEPTH = 100
_LIMIT = 2**63
_MAX_BYTES = 2**31 - 1

Call = Mapping[str, Value]
"""What is known of a call: its arguments by name, and `isa`."""
Number = Callable[[Call], int]
Numbers = Callable[[Call], tuple[int, ...]]
Truth = Callable[[Call], bool]


def check_size(text: str, schema: OpSchema) -> None:
    """Read an expression for a scratch argument of an operator.

    Raises:
        SizeError: What is wrong with it.
    """
    _compiled(text, schema)


def scratch_bytes(
    text: str, schema: OpSchema, arguments: Mapping[str, Value], isa: str
) -> int:
    """The size that an expression gives for a call.

    Args:
        text: One that `check_size` accepts for this schema.
        schema: Of the operator.
        arguments: By name, all that sizes may depend on; None if one is missing. Those
            that the program computes are left out.
        isa: One of `ISAS`.

    Raises:
        SizeError: There is none: the arguments do not fit what it computes.
    """
    size = _compiled(text, schema)({**arguments, "isa": Backend(isa)})
    if not 0 <= size <= _MAX_BYTES:
        raise SizeError(f"it gives {size} bytes")
    return size


@lru_cache(maxsize=1024)
def _compiled(text: str, schema: OpSchema) -> Number:
    part = _Reader(schema).read(_tree(text))
    if part.kind is not Kind.NUMBER:
        raise SizeError(f"it gives {part.kind}, not {Kind.NUMBER}")
    return cast("Number", part.run)


def _tree(text: str) -> ast.expr:
    """The syntax of an expression, not too large for what goes down recursively."""
    if len(text) > _MAX_TEXT:
        raise SizeError(f"it has more than {_MAX_TEXT} characters")
    try:
        with warnings.catch_warnings():  # of Python, about odd ways to write numbers
            warnings.simplefilter("error")
            tree = ast.parse(" ".join(text.split()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SizeError("it is not an expression") from error
    level: list[ast.AST] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise SizeError(f"it is nested more than {_MAX_DEPTH} levels deep")
    return tree


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an expression: the kind of what it gives, and how."""

    kind: Kind
    run: Callable[[Call], Value]


_KINDS = {
    ArgKind.TENSOR: Kind.TENSOR,
    ArgKind.INT: Kind.NUMBER,
    ArgKind.BOOL: Kind.TRUTH,
    ArgKind.INT_LIST: Kind.NUMBERS,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ORDER: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COMPARED = (Kind.NUMBER, Kind.NUMBERS, Kind.ISA)


class _Reader:
    """Reads expressions of the arguments of an operator."""

    def __init__(self, schema: OpSchema) -> None:
        self._arguments = {a.name: a for a in schema.arguments}

    def read(self, node: ast.expr) -> _Part:
        """A part of the expression, its kinds checked."""
        match node:
            case ast.Constant(value=value):
                part = _constant(node, value)
            case ast.Name(id=name):
                part = self._name(name)
            case ast.Attribute(value=tensor, attr=name):
                part = self._property(tensor, name)
            case ast.Subscript(value=items, slice=index):
                part = self._item(items, index)
            case ast.List(elts=elements):
                part = self._list(elements)
            case ast.Call():
                part = self._call(node)
            case _:
                part = self._operation(node)
        return part

    def _of(self, node: ast.expr, kind: Kind) -> Callable[[Call], Value]:
        part = self.read(node)
        if part.kind is not kind:
            raise SizeError(f"{_shown(node)} is {part.kind}, not {kind}")
        return part.run

    def _number(self, node: ast.expr) -> Number:
        return cast("Number", self._of(node, Kind.NUMBER))

    def _numbers(self, node: ast.expr) -> Numbers:
        return cast("Numbers", self._of(node, Kind.NUMBERS))

    def _truth(self, node: ast.expr) -> Truth:
        return cast("Truth", self._of(node, Kind.TRUTH))

    def _operation(self, node: ast.expr) -> _Part:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                part = _negative(self._number(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                truth = self._truth(operand)
                part = _Part(Kind.TRUTH, lambda call: not truth(call))
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _ARITHMETIC:
                part = self._arithmetic(node, type(op), left, right)
            case ast.BoolOp(op=op, values=values):
                part = _logic(list(map(self._truth, values)), isinstance(op, ast.And))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                part = self._comparison(node, left, op, right)
            case ast.IfExp(test=test, body=yes, orelse=no):
                part = self._choice(test, yes, no)
            case _:
                raise SizeError(f"{_shown(node)} cannot be written here")
        return part

    def _name(self, name: str) -> _Part:
        if name == "isa":
            return _Part(Kind.ISA, lambda call: call["isa"])
        argument = self._argument(name)
        kind = _KINDS.get(argument.kind)
        if kind is None:
            raise SizeError(f"the argument {name} has no part in sizes")
        if is_scratch(argument):
            raise SizeError(f"the argument {name} is scratch itself")

        def run(call: Call) -> Value:
            value = _known(call, name)
            if value is None:
                raise SizeError(f"{name} is None")
            return value

        return _Part(kind, run)

    def _argument(self, name: str) -> Argument:
        if name not in self._arguments:
            near = did_you_mean(name, ("isa", *self._arguments))
            also = f", {near}" if near else ""
            raise SizeError(f"the operator has no argument {name}{also}")
        return self._arguments[name]

    def _property(self, of: ast.expr, name: str) -> _Part:
        tensor = self._of(of, Kind.TENSOR)
        if name not in PROPERTIES:
            known = ", ".join(PROPERTIES)
            raise SizeError(f"a tensor has no {name}, it has {known}")
        get = operator.attrgetter(name)
        return _Part(PROPERTIES[name], lambda call: get(tensor(call)))

    def _item(self, of: ast.expr, at: ast.expr) -> _Part:
        items, index = self._numbers(of), self._number(at)

        def run(call: Call) -> int:
            found, place = items(call), index(call)
            if not -len(found) <= place < len(found):
                raise SizeError(f"{_shown(of)} has {len(found)} items, no item {place}")
            return found[place]

        return _Part(Kind.NUMBER, run)

    def _list(self, items: list[ast.expr]) -> _Part:
        numbers = [self._number(item) for item in items]
        return _Part(Kind.NUMBERS, lambda call: tuple(n(call) for n in numbers))

    def _arithmetic(
        self, node: ast.expr, op: type[ast.operator], left: ast.expr, right: ast.expr
    ) -> _Part:
        a, b, compute = self._number(left), self._number(right), _ARITHMETIC[op]

        def run(call: Call) -> int:
            try:
                result = compute(a(call), b(call))
            except ZeroDivisionError as error:
                raise SizeError(f"{_shown(right)} is 0") from error
            if abs(result) >= _LIMIT:
                raise SizeError(f"{_shown(node)} does not fit 64 bits")
            return result

        return _Part(Kind.NUMBER, run)

    def _comparison(
        self, node: ast.expr, left: ast.expr, op: ast.cmpop, right: ast.expr
    ) -> _Part:
        if isinstance(op, ast.Is | ast.IsNot):
            return self._is_none(node, left, right, wanted=isinstance(op, ast.Is))
        if type(op) in _ORDER:
            small, large, holds = self._number(left), self._number(right), type(op)
            order = _ORDER[holds]
            return _Part(Kind.TRUTH, lambda call: order(small(call), large(call)))
        if not isinstance(op, ast.Eq | ast.NotEq):
            raise SizeError(f"{_shown(node)} cannot be written here")
        part = self.read(left)
        if part.kind not in _COMPARED:
            raise SizeError(f"{_shown(left)} is {part.kind}, it cannot be compared")
        other, equal = self._of(right, part.kind), isinstance(op, ast.Eq)
        return _Part(Kind.TRUTH, lambda call: (part.run(call) == other(call)) is equal)

    def _is_none(
        self, node: ast.expr, left: ast.expr, right: ast.expr, *, wanted: bool
    ) -> _Part:
        match left, right:
            case ast.Name(id=name), ast.Constant(value=None):
                if not self._argument(name).optional:
                    raise SizeError(f"the argument {name} is never None")
                return _Part(
                    Kind.TRUTH, lambda call: (_known(call, name) is None) is wanted
                )
        raise SizeError(f"{_shown(node)} cannot be written here")

    def _choice(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> _Part:
        holds, part = self._truth(test), self.read(yes)
        other = self._of(no, part.kind)
        return _Part(
            part.kind, lambda call: part.run(call) if holds(call) else other(call)
        )

    def _call(self, node: ast.Call) -> _Part:
        name = ast.unparse(node.func)
        if name in HELPERS:
            return self._helper(name, node)
        if name not in FUNCTIONS:
            known = (*HELPERS, *FUNCTIONS)
            near = did_you_mean(name, known) or "known are " + ", ".join(known)
            raise SizeError(f"there is no function {name}, {near}")
        return self._function(name, FUNCTIONS[name], node)

    def _helper(self, name: str, node: ast.Call) -> _Part:
        helper = HELPERS[name]
        count = len(node.args)
        if node.keywords or not helper.least <= count <= (helper.most or count):
            raise SizeError(f"{_shown(node)} is not {helper.form}")
        if helper.of_list:
            items = self._numbers(node.args[0])
            return _Part(Kind.NUMBER, lambda call: helper.compute(*items(call)))
        numbers = [self._number(argument) for argument in node.args]
        return _Part(
            Kind.NUMBER, lambda call: helper.compute(*(n(call) for n in numbers))
        )

    def _function(self, name: str, function: Function, node: ast.Call) -> _Part:
        given = {k.arg: k.value for k in node.keywords if k.arg is not None}
        if node.args or len(given) < len(node.keywords):
            raise SizeError(f"{name} takes named arguments only, each once")
        isa = self._of(given.pop("isa", ast.Name("isa")), Kind.ISA)
        expected = [parameter for parameter, _ in function.parameters]
        if missing := [p for p in expected if p not in given]:
            raise SizeError(f"{name} needs {', '.join(missing)}")
        if unknown := [p for p in given if p not in expected]:
            raise SizeError(f"{name} has no {', '.join(unknown)}")
        parts = {p: (k, self._of(given[p], k)) for p, k in function.parameters}

        def run(call: Call) -> int:
            arguments = {}
            for parameter, (kind, part) in parts.items():
                value = part(call)
                arguments[parameter] = cast(
                    "tuple[int, ...]", value if kind is Kind.NUMBERS else (value,)
                )
            return function.call(cast("Backend", isa(call)), arguments)

        return _Part(Kind.NUMBER, run)


def _known(call: Call, name: str) -> Value:
    if name not in call:
        raise SizeError(f"{name} is known only when the program runs")
    return call[name]


def _constant(node: ast.expr, value: object) -> _Part:
    match value:
        case bool():
            return _Part(Kind.TRUTH, lambda _: value)
        case int() if value < _LIMIT:
            return _Part(Kind.NUMBER, lambda _: value)
        case str():
            if value not in tuple(ISAS):
                raise SizeError(f'"{value}" is no ISA, known are {", ".join(ISAS)}')
            named = Backend(value)
            return _Part(Kind.ISA, lambda _: named)
    raise SizeError(f"{_shown(node)} cannot be written here")


def _negative(number: Number) -> _Part:
    return _Part(Kind.NUMBER, lambda call: -number(call))


def _logic(truths: list[Truth], every: bool) -> _Part:  # noqa: FBT001
    among = all if every else any
    return _Part(Kind.TRUTH, lambda call: among(truth(call) for truth in truths))


def _shown(node: ast.AST) -> str:
    """A part of an expression as messages show it."""
    text = ast.unparse(node)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_SHOWN = 60
