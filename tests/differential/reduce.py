"""Make a model that differs small: the fewest calls, methods and statements."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.differential.program import Block, Cond, Map, Model, Op, Put, Store, View, uses_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.differential.program import Method, Statement, Value


def reduced(model: Model, differs: Callable[[Model], bool], tries: int = 40) -> Model:
    """The smallest model found that still differs.

    Args:
        model: One that differs.
        differs: Whether a model does.
        tries: Most models that are tried.
    """
    found = True
    while found:
        found = False
        for smaller in _smaller(model):
            if tries == 0:
                return model
            tries -= 1
            if differs(smaller):
                model, found = smaller, True
                break
    return model


def size_of(model: Model) -> int:
    """Statements of all methods, without those of blocks."""
    return sum(len(method.statements) for method in model.methods)


def _smaller(model: Model) -> Iterator[Model]:
    """Models with something less, those with much less first."""
    pruned = replace(model, methods=tuple(map(_pruned, model.methods)))
    if size_of(pruned) < size_of(model):
        yield pruned
    calls = len(model.session)
    for keep in dict.fromkeys((calls // 2, calls - 1)):
        if 0 < keep < calls:
            yield _used(replace(model, session=model.session[:keep]))
            yield _used(replace(model, session=model.session[-keep:]))
    for number, method in enumerate(model.methods):
        for output in range(len(method.outputs)):
            if len(method.outputs) > 1:
                left = (*method.outputs[:output], *method.outputs[output + 1 :])
                yield _with(model, number, replace(method, outputs=left))
        for at in range(len(method.statements) - 1, -1, -1):
            yield from _without(model, number, at)


def _pruned(method: Method) -> Method:
    """The method without statements that nothing needs."""
    kept: tuple[Statement, ...] = ()
    for statement in reversed(method.statements):
        needed = {*uses_of(kept), *method.outputs}
        is_store = isinstance(statement, (Store, Put))
        if is_store or needed & {*_made_by(statement)}:
            kept = (statement, *kept)
    return replace(method, statements=kept)


def _made_by(statement: Statement) -> tuple[Value, ...]:
    match statement:
        case Op():
            return statement.outs
        case Store() | Put():
            return (statement.buffer,)
    return (statement.out,)


def _without(model: Model, number: int, at: int) -> Iterator[Model]:
    """The model without a statement; a value of the same kind stands for its own."""
    method = model.methods[number]
    statement = method.statements[at]
    rest = (*method.statements[:at], *method.statements[at + 1 :])
    match statement:
        case Store() | Put():
            yield _with(model, number, replace(method, statements=rest))
            return
        case Op():
            (out,) = statement.outs
            given = [a for a in statement.args if hasattr(a, "order") and a is not out]
        case View():
            out, given = statement.out, []
        case Cond():
            out, given = statement.out, [*method.inputs]
        case Map():
            out, given = statement.out, [statement.rows]
    used = any(v is out for v in (*uses_of(rest), *method.outputs))
    if not used:
        yield _with(model, number, replace(method, statements=rest))
    kind = (out.sizes, out.dtype, out.order)
    for other in given:
        if used and (other.sizes, other.dtype, other.order) == kind:
            instead = _Instead(out, other)
            yield _with(
                model,
                number,
                replace(
                    method,
                    statements=tuple(map(instead.statement, rest)),
                    outputs=tuple(map(instead.value, method.outputs)),
                ),
            )
            return


class _Instead:
    """Puts a value in the place of another."""

    def __init__(self, old: Value, new: Value) -> None:
        self._old, self._new = old, new

    def value(self, value: Value) -> Value:
        return self._new if value is self._old else value

    def _argument(self, given: object) -> object:
        if isinstance(given, tuple):
            return tuple(map(self._argument, given))
        return self._new if given is self._old else given

    def statement(self, found: Statement) -> Statement:
        match found:
            case Op():
                return replace(found, args=tuple(map(self._argument, found.args)))
            case View():
                return replace(found, base=self.value(found.base))
            case Store():
                return replace(found, value=self.value(found.value))
            case Put():
                return replace(found, values=self.value(found.values))
            case Cond():
                first, second = found.blocks
                blocks = (self._block(first), self._block(second))
                return replace(found, flag=self.value(found.flag), blocks=blocks)
            case Map():
                block = self._block(found.block)
                return replace(found, rows=self.value(found.rows), block=block)

    def _block(self, block: Block) -> Block:
        inner = tuple(map(self.statement, block.statements))
        return Block(inner, self.value(block.result))


def _with(model: Model, number: int, method: Method) -> Model:
    methods = [*model.methods]
    methods[number] = method
    return replace(model, methods=tuple(methods))


def _used(model: Model) -> Model:
    """The model with the methods that its session calls."""
    numbers = sorted({number for number, _ in model.session})
    return replace(
        model,
        methods=tuple(model.methods[number] for number in numbers),
        session=tuple((numbers.index(n), inputs) for n, inputs in model.session),
    )
