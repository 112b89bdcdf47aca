"""A session of calls as one method: no state, moves, loops, views or shared memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.program import program as p
from orchestrator.program.values import BoolValue, TensorValue
from tests.differential.program import Cond, Map, Op, Put, Store, Value, View
from tests.differential.writing import ALIGNMENT, Data, Writer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.differential.program import Block, Model, Statement

METHOD = "session"


def unrolled(model: Model) -> bytes:
    """The program of a model's session; its inputs are those of all calls."""
    data = Data()
    writer = _Unroller(data)
    return data.program([writer.method(model)])


class _Unroller:
    def __init__(self, data: Data) -> None:
        self._out = Writer(data)
        self._now: dict[Value, Value] = {}
        self._apart: dict[int, dict[Value, Value]] = {}

    def method(self, model: Model) -> p.Method:
        inputs, outputs = [], []
        for number, _ in model.session:
            method = model.methods[number]
            if not model.traits.get("shared"):
                # Each method has buffers of its own.
                self._now = self._apart.setdefault(number, {})
            self._now |= {value: self._new(value) for value in method.inputs}
            inputs += [self._out.tensor(self._now[value]) for value in method.inputs]
            self._emit(method.statements)
            outputs += [
                self._out.tensor(self._copied(self._read(value))) for value in method.outputs
            ]
        end = 0
        for index, slot in enumerate(self._out.slots):
            if isinstance(slot, TensorValue) and not slot.data_buffer_index:
                end = self._out.place(index, 1, -(-end // ALIGNMENT) * ALIGNMENT)
        return self._out.method(METHOD, inputs, outputs, (0, max(end, ALIGNMENT)))

    def _new(self, value: Value) -> Value:
        return replace(value, data=None, buffer="")

    def _read(self, value: Value) -> Value:
        """What a value is now."""
        if value.data is not None and not value.buffer:
            return value
        if value not in self._now and value.buffer:  # at the beginning
            initial = value.data or bytes(value.size_bytes)
            self._now[value] = replace(value, data=initial, buffer="")
        elif value not in self._now:  # scratch memory, which has no bytes here
            assert not value.size_bytes
            self._now[value] = self._new(value)
        return self._now[value]

    def _copied(self, value: Value) -> Value:
        copy = self._new(value)
        self._copy(value, copy)
        return copy

    def _copy(self, value: Value, to: Value) -> None:
        name = "dim_order_ops::_to_dim_order_copy.out"
        self._out.call(name, value, False, value.order, to)

    def _emit(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        out = self._out
        match statement:
            case Op():
                self._now |= {value: self._new(value) for value in statement.outs}
                args = (
                    tuple(map(self._argument, a)) if isinstance(a, tuple) else self._argument(a)
                    for a in statement.args
                )
                out.call(statement.operator, *args)
            case View():
                base, view = self._read(statement.base), self._new(statement.out)
                out.call("aten::view_copy.out", base, view.sizes, view)
                self._now[statement.out] = view
            case Store():
                self._now[statement.buffer] = self._read(statement.value)
            case Put():
                after = self._new(statement.buffer)
                rows = [self._read(statement.rows)]
                values = self._read(statement.values)
                before = self._read(statement.buffer)
                out.call("aten::index_put.out", before, rows, values, False, after)
                self._now[statement.buffer] = after
            case Cond():
                self._cond(statement)
            case Map():
                self._map(statement)

    def _argument(self, given: object) -> object:
        return self._read(given) if isinstance(given, Value) else given

    def _cond(self, statement: Cond) -> None:
        out, result = self._out, self._new(statement.out)
        flag = out.tensor(self._read(statement.flag))
        never = out.slot(BoolValue(value=False))
        first = len(out.code)
        out.add(p.FreeCall(value=0), ())
        self._copy(self._block(statement.blocks[0]), result)
        second = len(out.code)
        out.add(p.FreeCall(value=0), ())
        to = len(out.code)
        out.code[first] = p.JumpFalseCall(condition=flag, destination=to)
        self._copy(self._block(statement.blocks[1]), result)
        to = len(out.code)
        out.code[second] = p.JumpFalseCall(condition=never, destination=to)
        self._now[statement.out] = result

    def _block(self, block: Block) -> Value:
        self._emit(block.statements)
        return self._read(block.result)

    def _map(self, statement: Map) -> None:
        out, rows = self._out, self._read(statement.rows)
        results = []
        for index in range(rows.sizes[0]):
            row = self._new(statement.row)
            out.call("aten::select_copy.int_out", rows, 0, index, row)
            self._now[statement.row] = row
            results.append(self._block(statement.block))
        result = self._new(statement.out)
        out.call("aten::stack.out", tuple(results), 0, result)
        self._now[statement.out] = result
