"""Expressions in `functions.yaml`: scratch sizes and conditions of calls.

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
from operator import attrgetter
from typing import TYPE_CHECKING, cast

from orchestrator.catalog.cmsis_nn import Backend
from orchestrator.catalog.expressions import moved_shapes, predicates, reductions, shapes
from orchestrator.catalog.expressions.cmsis_nn_functions import FUNCTIONS
from orchestrator.catalog.expressions.functions import PREDICATES
from orchestrator.catalog.expressions.values import (
    ACCEPTS,
    HELPERS,
    ISAS,
    PROPERTIES,
    Changing,
    ExpressionError,
    Kind,
    Number,
    Range,
    Undecided,
    Value,
    each,
    same_number,
    same_numbers,
    settled,
)
from orchestrator.catalog.scratch_arguments import is_scratch
from orchestrator.core.dtype import DTYPE_GROUPS, ScalarType
from orchestrator.core.operator import ArgKind, Argument, OpSchema
from orchestrator.errors import did_you_mean

if TYPE_CHECKING:
    from orchestrator.catalog.expressions.cmsis_nn_functions import Function
    from orchestrator.catalog.expressions.values import Helper

_DEFINE = (moved_shapes, predicates, reductions, shapes)
"""Modules whose functions conditions can call."""

RESULT = "result"
"""The name, in expressions, of the number that an operator returns."""

# Bounds on what a file from elsewhere can make the build do: Python's parser and `read` recurse,
# and an expression is compiled once for each operator.
_MAX_TEXT = 4000  # characters
_MAX_DEPTH = 100
_SHOWN_CHARACTERS = 60
# Kernels compute in 64 bits: a size beyond them would be another one there.
_LIMIT = 2**63

Call = Mapping[str, Value]
"""Facts of a call: its arguments by name, and `isa`."""
Numeric = Callable[[Call], Number]
Numbers = Callable[[Call], tuple[Number, ...]]
Truth = Callable[[Call], bool]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an expression: the kind of its value, and how to compute it."""

    kind: Kind
    run: Callable[[Call], Value]


_KINDS = {
    ArgKind.TENSOR: Kind.TENSOR,
    ArgKind.TENSOR_LIST: Kind.TENSORS,
    ArgKind.INT: Kind.NUMBER,
    ArgKind.FLOAT: Kind.SCALAR,
    ArgKind.SCALAR: Kind.SCALAR,
    ArgKind.BOOL: Kind.TRUTH,
    ArgKind.STRING: Kind.TEXT,
    ArgKind.INT_LIST: Kind.NUMBERS,
    ArgKind.FLOAT_LIST: Kind.SCALARS,
    ArgKind.BOOL_LIST: Kind.NUMBERS,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ORDER: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = {
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


_EQUAL: Mapping[Kind, Callable[..., bool]] = {
    Kind.NUMBER: same_number,
    Kind.NUMBERS: same_numbers,
    Kind.SCALAR: _same_scalar,
    Kind.ISA: operator.eq,
    Kind.DTYPE: operator.eq,
    Kind.TEXT: operator.eq,
    Kind.TRUTH: operator.eq,
}
"""Kinds that can be compared."""


def _known(call: Call, name: str) -> Value:
    """The value of an argument. Raises Undecided."""
    if name not in call:
        raise Undecided(f"{name} is known only when the program runs")
    return call[name]


_DTYPES: Mapping[str, Part] = {
    **{d.name: Part(Kind.DTYPE, lambda _, d=d: d) for d in ScalarType},  # type: ignore[misc]  # mypy knows no types of defaults
    **{
        name: Part(Kind.DTYPES, lambda _, group=group: group)  # type: ignore[misc]
        for name, group in DTYPE_GROUPS.items()
    },
}


def _constant(node: ast.expr, value: object) -> Part:
    """A literal."""
    match value:
        case bool():
            return Part(Kind.TRUTH, lambda _: value)
        case int() if value < _LIMIT:
            return Part(Kind.NUMBER, lambda _: value)
        case str():
            if value not in tuple(ISAS):
                names = ", ".join(ISAS)
                raise ExpressionError(f'"{value}" is not an ISA, use one of {names}')
            named = Backend(value)
            return Part(Kind.ISA, lambda _: named)
    raise ExpressionError(f"{_shown(node)} is not allowed here")


def _negative(number: Numeric) -> Part:
    """The negative of a number."""
    return Part(Kind.NUMBER, lambda call: -number(call))


def _logic(truths: list[Truth], *, is_and: bool) -> Part:
    """Whether all hold, or any; a deciding one makes unknown ones irrelevant."""

    def run(call: Call) -> bool:
        return each(lambda t: t(call) is is_and, truths) is is_and

    return Part(Kind.TRUTH, run)


# The libraries have some 1,300 conditions and sizes.
@lru_cache(maxsize=4096)
def compiled(text: str, schema: OpSchema, gives: Kind) -> Callable[[Call], Value]:
    """An expression as a function of the facts of a call.

    Args:
        text: The expression.
        schema: Schema of the operator that is called.
        gives: Kind of the result.

    Raises:
        ExpressionError: The expression is invalid. The function raises `Undecided` for
            values that are known only when the program runs, and `ExpressionError`
            if there is no result: the arguments do not fit what it computes.
    """
    part = _Reader(schema).read(_tree_of(text))
    if part.kind is not gives:
        raise ExpressionError(f"it gives {part.kind}, not {gives}")
    return part.run


class _Reader:
    """Reads expressions over the arguments of an operator."""

    def __init__(self, schema: OpSchema) -> None:
        self._arguments = {a.name: a for a in schema.arguments}
        self._result = schema.result

    def read(self, node: ast.expr) -> Part:
        """Read a part of the expression and check its kinds."""
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
        if part.kind is not kind and part.kind not in ACCEPTS.get(kind, ()):
            raise ExpressionError(f"{_shown(node)} is {part.kind}, not {kind}")
        return part.run

    def _number(self, node: ast.expr) -> Numeric:
        return cast("Numeric", self._of(node, Kind.NUMBER))

    def _numbers(self, node: ast.expr) -> Numbers:
        return cast("Numbers", self._of(node, Kind.NUMBERS))

    def _truth(self, node: ast.expr) -> Truth:
        return cast("Truth", self._of(node, Kind.TRUTH))

    def _operation(self, node: ast.expr) -> Part:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                part = _negative(self._number(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                truth = self._truth(operand)
                part = Part(Kind.TRUTH, lambda call: not truth(call))
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _ARITHMETIC:
                part = self._arithmetic(node, type(op), left, right)
            case ast.BoolOp(op=op, values=values):
                truths = list(map(self._truth, values))
                part = _logic(truths, is_and=isinstance(op, ast.And))
            case ast.Compare(left=left, ops=ops, comparators=rights):
                pairs = zip([left, *rights], ops, rights, strict=False)
                each = [self._comparison(node, a, op, b) for a, op, b in pairs]
                part = _logic([cast("Truth", p.run) for p in each], is_and=True)
            case ast.IfExp(test=test, body=yes, orelse=no):
                part = self._choice(test, yes, no)
            case _:
                raise ExpressionError(f"{_shown(node)} is not allowed here")
        return part

    def _name(self, name: str) -> Part:
        if name == "isa":
            return Part(Kind.ISA, lambda call: call["isa"])
        # An argument of that name is meant before the dtype.
        if name not in self._arguments and name in _DTYPES:
            return _DTYPES[name]
        argument = self._argument(name)
        kind = _KINDS.get(argument.kind)
        if kind is None:
            raise ExpressionError(f"the argument {name} cannot be used here")
        # Its size is what the expression is there to give.
        if is_scratch(argument):
            raise ExpressionError(f"the argument {name} is scratch itself")

        def run(call: Call) -> Value:
            value = _argument_of(call, name, kind)
            if value is None:
                raise ExpressionError(f"{name} is None")
            return value

        return Part(kind, run)

    def _argument(self, name: str) -> Argument:
        if name not in self._arguments:
            if name == RESULT and self._result is not None:
                return self._result
            near = did_you_mean(name, ("isa", *self._arguments))
            also = f", {near}" if near else ""
            raise ExpressionError(f"the operator has no argument {name}{also}")
        return self._arguments[name]

    def _property(self, of: ast.expr, name: str) -> Part:
        tensor = self._of(of, Kind.TENSOR)
        if name not in PROPERTIES:
            raise ExpressionError(f"a tensor has no {name}, it has {', '.join(PROPERTIES)}")
        get = attrgetter(name)
        return Part(PROPERTIES[name], lambda call: get(tensor(call)))

    def _item(self, of: ast.expr, at: ast.expr) -> Part:
        items, index = self._numbers(of), self._number(at)

        def run(call: Call) -> Number:
            found, place = items(call), index(call)
            if isinstance(place, Range):
                raise Undecided(f"{_shown(at)} is known only when the program runs")
            if not -len(found) <= place < len(found):
                raise ExpressionError(f"{_shown(of)} has {len(found)} items, no item {place}")
            return found[place]

        return Part(Kind.NUMBER, run)

    def _list(self, items: list[ast.expr]) -> Part:
        parts: list[Numbers] = []
        for item in items:
            if isinstance(item, ast.Starred):
                parts.append(self._numbers(item.value))
            else:
                number = self._number(item)
                parts.append(lambda call, number=number: (number(call),))  # type: ignore[misc]  # mypy knows no types of defaults
        return Part(Kind.NUMBERS, lambda call: tuple(n for part in parts for n in part(call)))

    def _arithmetic(
        self, node: ast.expr, op: type[ast.operator], left: ast.expr, right: ast.expr
    ) -> Part:
        a, b, compute = self._number(left), self._number(right), _ARITHMETIC[op]

        def run(call: Call) -> Number:
            try:
                result = compute(a(call), b(call))
            except ZeroDivisionError as error:
                raise ExpressionError(f"{_shown(right)} is 0") from error
            if isinstance(result, int) and abs(result) >= _LIMIT:
                raise ExpressionError(f"{_shown(node)} does not fit 64 bits")
            return result

        return Part(Kind.NUMBER, run)

    def _comparison(self, node: ast.expr, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Part:
        if isinstance(op, ast.Is | ast.IsNot):
            return self._is_none(node, left, right, wanted=isinstance(op, ast.Is))
        if isinstance(op, ast.In | ast.NotIn):
            member = cast("Truth", self._membership(node, left, right).run)
            wanted = isinstance(op, ast.In)
            return Part(Kind.TRUTH, lambda call: member(call) is wanted)
        if type(op) in _ORDER:
            small, large = (self._of(side, Kind.SCALAR) for side in (left, right))
            order = _ORDER[type(op)]
            return Part(Kind.TRUTH, lambda call: order(settled(small(call)), settled(large(call))))
        if not isinstance(op, ast.Eq | ast.NotEq):
            raise ExpressionError(f"{_shown(node)} is not allowed here")
        part = self.read(left)
        same = _EQUAL.get(part.kind)
        if same is None:
            raise ExpressionError(f"{_shown(left)} is {part.kind}, it cannot be compared")
        other, equal = self._same_kind(right, part.kind), isinstance(op, ast.Eq)
        return Part(Kind.TRUTH, lambda call: same(part.run(call), other(call)) is equal)

    def _same_kind(self, node: ast.expr, kind: Kind) -> Callable[[Call], Value]:
        """Read the other side of a comparison; strings are then not ISAs but texts."""
        if kind is Kind.TEXT and isinstance(node, ast.Constant):
            text = node.value
            if isinstance(text, str):
                return lambda _: text
        return self._of(node, kind)

    def _membership(self, node: ast.expr, left: ast.expr, right: ast.expr) -> Part:
        part = self.read(left)
        if not isinstance(right, ast.List):
            if part.kind is not Kind.DTYPE:
                raise ExpressionError(f"{_shown(node)} is not allowed here")
            dtypes = self._of(right, Kind.DTYPES)
            return Part(
                Kind.TRUTH, lambda call: part.run(call) in cast("frozenset[object]", dtypes(call))
            )
        same = _EQUAL.get(part.kind)
        if same is None:
            raise ExpressionError(f"{_shown(left)} is {part.kind}, it cannot be compared")
        items = [self._same_kind(item, part.kind) for item in right.elts]
        return _logic(
            [
                lambda call, item=item: same(part.run(call), item(call))  # type: ignore[misc]  # mypy knows no types of defaults
                for item in items
            ],
            is_and=False,
        )

    def _is_none(self, node: ast.expr, left: ast.expr, right: ast.expr, *, wanted: bool) -> Part:
        match left, right:
            case ast.Name(id=name), ast.Constant(value=None):
                if not self._argument(name).optional:
                    raise ExpressionError(f"the argument {name} is never None")
                return Part(Kind.TRUTH, lambda call: (_known(call, name) is None) is wanted)
        raise ExpressionError(f"{_shown(node)} is not allowed here")

    def _choice(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> Part:
        holds, part = self._truth(test), self.read(yes)
        other = self._of(no, part.kind)
        return Part(part.kind, lambda call: part.run(call) if holds(call) else other(call))

    def _call(self, node: ast.Call) -> Part:
        name = ast.unparse(node.func)
        helper = HELPERS.get(name) or PREDICATES.get(name)
        if helper is not None:
            return self._helper(helper, node)
        if name not in FUNCTIONS:
            names = (*HELPERS, *PREDICATES, *FUNCTIONS)
            near = did_you_mean(name, names) or "docs/kernels.md lists them"
            raise ExpressionError(f"there is no function {name}, {near}")
        return self._function(name, FUNCTIONS[name], node)

    def _helper(self, helper: Helper, node: ast.Call) -> Part:
        count = len(node.args)
        if node.keywords or not helper.least <= count <= (helper.most or count):
            raise ExpressionError(f"{_shown(node)} is not {helper.form}")
        more = count - len(helper.kinds)
        kinds = (*helper.kinds, *[helper.kinds[-1]] * more)
        parts = [
            self._parameter(argument, kind, optional=helper.optional)
            for argument, kind in zip(node.args, kinds, strict=False)
        ]
        return Part(helper.gives, lambda call: helper.compute(*(part(call) for part in parts)))

    def _parameter(self, node: ast.expr, kind: Kind, *, optional: bool) -> Callable[[Call], Value]:
        match node:
            case ast.Constant(value=None) if optional:
                return lambda _: None
        part = self._of(node, kind)
        match node:
            case ast.Name(id=name) if optional and name in self._arguments:
                return lambda call: _argument_of(call, name, kind)
        return part

    def _function(self, name: str, function: Function, node: ast.Call) -> Part:
        given = {k.arg: k.value for k in node.keywords if k.arg is not None}
        if node.args or len(given) < len(node.keywords):
            raise ExpressionError(f"{name} takes named arguments only, each once")
        isa = self._of(given.pop("isa", ast.Name("isa")), Kind.ISA)
        expected = [parameter for parameter, _ in function.parameters]
        if missing := [p for p in expected if p not in given]:
            raise ExpressionError(f"{name} needs {', '.join(missing)}")
        if unknown := [p for p in given if p not in expected]:
            raise ExpressionError(f"{name} has no {', '.join(unknown)}")
        parts = {p: (k, self._of(given[p], k)) for p, k in function.parameters}

        def run(call: Call) -> int:
            arguments = {}
            for parameter, (kind, part) in parts.items():
                value = part(call)
                arguments[parameter] = cast(
                    "tuple[int, ...]", value if kind is Kind.NUMBERS else (value,)
                )
            return function.call(cast("Backend", isa(call)), arguments)

        return Part(Kind.NUMBER, run)


def _argument_of(call: Call, name: str, kind: Kind) -> Value:
    """The value of an argument; a truth value must be known."""
    value = _known(call, name)
    if kind is Kind.TRUTH and isinstance(value, Changing):
        raise Undecided(f"{name} is known only when the program runs")
    return value


def _tree_of(text: str) -> ast.expr:
    """Parse an expression, of limited depth, as it is read recursively."""
    if len(text) > _MAX_TEXT:
        raise ExpressionError(f"it has more than {_MAX_TEXT} characters")
    try:
        with warnings.catch_warnings():  # Python's warnings about odd number literals
            warnings.simplefilter("error")
            tree = ast.parse(" ".join(text.split()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError("it is not an expression") from error
    level: list[ast.AST] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise ExpressionError(f"it is nested more than {_MAX_DEPTH} levels deep")
    return tree


def _shown(node: ast.AST) -> str:
    """The text of a part, shortened for messages."""
    text = ast.unparse(node)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
