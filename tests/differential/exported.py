"""A model as ExecuTorch exports it: memory is shared by lifetimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.program import program as p
from orchestrator.program.values import BoolValue, IntValue, TensorValue
from tests.differential.program import Cond, Map, Op, Put, Store, View, statements_of, uses_of
from tests.differential.writing import ALIGNMENT, Data, Writer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.differential.program import Method, Model, Statement, Value


def exported(model: Model) -> bytes:
    """The program of a model.

    Traits of the model: `shared`: methods share buffers, in arena 2. `unsound`: what a
    move gives away counts as dead, as in ExecuTorch 1.5.1. `constant`: a method without
    tensors is there as well.
    """
    data = Data(has_names=bool(model.traits.get("shared")))
    methods = [_Exporter(model, method, data).method() for method in model.methods]
    if model.traits.get("constant"):
        writer = Writer(data)
        value = writer.slot(IntValue(4))
        methods.append(writer.method("get_constant", (), (value,), (0,)))
    return data.program(methods)


def buffers_of(method: Method) -> list[Value]:
    """Buffers that a method reads, writes or returns, in the order of their names."""
    found = {v for v in (*uses_of(method.statements), *method.outputs) if v.buffer}
    for statement in statements_of(method.statements):
        if isinstance(statement, (Store, Put)):
            found.add(statement.buffer)
    return sorted(found, key=lambda value: value.buffer)


class _Exporter:
    def __init__(self, model: Model, method: Method, data: Data) -> None:
        self._model = model
        self._method = method
        self._out = Writer(data)
        self._views: dict[int, int] = {}
        self._moved: list[tuple[int, int]] = []
        self._loops: list[tuple[int, int]] = []

    def method(self) -> p.Method:
        out, method = self._out, self._method
        inputs = [out.tensor(value) for value in method.inputs]
        for statement in method.statements:
            self._emit(statement)
        outputs = [out.tensor(value) for value in method.outputs]
        arenas = self._laid_out(inputs, outputs)
        return out.method(method.name, inputs, outputs, arenas)

    def _emit(self, statement: Statement) -> None:
        out = self._out
        match statement:
            case Op():
                out.call(statement.operator, *statement.args)
            case View():
                base, view = out.tensor(statement.base), out.tensor(statement.out)
                self._views[view] = base
                if statement.is_called:
                    sizes = out.argument(statement.out.sizes)
                    name = "executorch_prim::et_view.default"
                    out.call(name, slots=(base, sizes, view))
            case Store():
                out.call("aten::copy_", statement.buffer, statement.value, False)
            case Put():
                rows, values = [statement.rows], statement.values
                out.call("aten::index_put_", statement.buffer, rows, values, False)
            case Cond():
                self._cond(statement)
            case Map():
                self._map(statement)

    def _cond(self, statement: Cond) -> None:
        out = self._out
        flag, target = out.tensor(statement.flag), out.tensor(statement.out)
        never = out.slot(BoolValue(value=False))
        holes = []
        for block, condition in zip(statement.blocks, (flag, never), strict=True):
            if condition == never:  # the first block ends with a jump over this one
                holes.append((len(out.code), never))
                out.add(p.FreeCall(value=0), (never,))
                self._close(holes[0], len(out.code))
            else:
                holes.append((len(out.code), flag))
                out.add(p.FreeCall(value=0), (flag,))
            for inner in block.statements:
                self._emit(inner)
            source = out.tensor(block.result)
            out.add(p.MoveCall(source=source, target=target), (source, target))
            self._moved.append((source, target))
        self._close(holes[1], len(out.code))

    def _close(self, hole: tuple[int, int], destination: int) -> None:
        at, condition = hole
        self._out.code[at] = p.JumpFalseCall(condition=condition, destination=destination)

    def _map(self, statement: Map) -> None:
        out = self._out
        count, end = out.slot(IntValue(0)), out.slot(IntValue(statement.rows.sizes[0]))
        one, flag = out.slot(IntValue(1)), out.slot(BoolValue(value=False))
        dim = out.slot(IntValue(0))
        rows, row = out.tensor(statement.rows), out.tensor(statement.row)
        begin = len(out.code)
        out.call("aten::select_copy.int_out", slots=(rows, dim, count, row))
        for inner in statement.block.statements:
            self._emit(inner)
        result, target = out.tensor(statement.block.result), out.tensor(statement.out)
        prim = "executorch_prim::"
        out.call(f"{prim}et_copy_index.tensor", slots=(target, result, count))
        out.call(f"{prim}add.Scalar", slots=(count, one, count))
        out.call(f"{prim}eq.Scalar", slots=(count, end, flag))
        out.add(p.JumpFalseCall(condition=flag, destination=begin), (flag,))
        out.call(f"{prim}sub.Scalar", slots=(count, end, count))
        self._loops.append((begin, len(out.code) - 1))

    def _laid_out(self, inputs: list[int], outputs: list[int]) -> tuple[int, ...]:
        """Places of all tensors; the sizes of the arenas."""
        out, shared = self._out, bool(self._model.traits.get("shared"))
        own = {out.tensor(value): value for value in buffers_of(self._method)}
        sizes = [0, 0]
        places: list[tuple[int, int, int, int]] = []
        for index, (first, last) in self._lifetimes(inputs, outputs).items():
            slot = out.slots[index]
            assert isinstance(slot, TensorValue)
            if slot.data_buffer_index or index in own:
                continue
            at, size = 0, slot.size_bytes
            for begin, to, since, until in sorted(places):
                if since <= last and first <= until and begin < at + size:
                    at = max(at, -(-to // ALIGNMENT) * ALIGNMENT)
            places.append((at, at + size, first, last))
            sizes[1] = max(sizes[1], out.place(index, 1, at))
        for view in self._views:
            base = out.slots[self._root(view)]
            assert isinstance(base, TensorValue)
            assert base.allocation is not None
            out.place(view, 1, base.allocation.offset_bytes)
        if shared:
            offsets = _offsets(self._model)
            for index, value in own.items():
                out.place(index, 2, offsets[value])
            return (0, max(sizes[1], ALIGNMENT), *([offsets[None]] if own else ()))
        for index in own:
            at = -(-sizes[1] // ALIGNMENT) * ALIGNMENT
            sizes[1] = out.place(index, 1, at)
        return (0, max(sizes[1], ALIGNMENT))

    def _root(self, index: int) -> int:
        while index in self._views:
            index = self._views[index]
        return index

    def _lifetimes(
        self, inputs: Iterable[int], outputs: Iterable[int]
    ) -> dict[int, tuple[int, int]]:
        """By tensor: first and last instruction; views count for their base."""
        out = self._out
        times: dict[int, list[int]] = {}
        for index in inputs:
            times.setdefault(self._root(index), []).append(-1)
        for time, touched in enumerate(out.touched):
            for index in touched:
                times.setdefault(self._root(index), []).append(time)
        for index in outputs:
            times.setdefault(self._root(index), []).append(len(out.code))
        spans = {index: (min(found), max(found)) for index, found in times.items()}
        for begin, end in self._loops:
            for index, (first, last) in spans.items():
                if first < begin <= last <= end:
                    spans[index] = (first, end)
        if not self._model.traits.get("unsound"):
            for source, target in reversed(self._moved):
                first, last = spans[self._root(source)]
                until = max(last, spans[self._root(target)][1])
                spans[self._root(source)] = (first, until)
        return spans


def _offsets(model: Model) -> dict[Value | None, int]:
    """Places of buffers in the shared arena; None: its size."""
    found: dict[Value | None, int] = {}
    end = 0
    for buffer in dict.fromkeys(b for m in model.methods for b in buffers_of(m)):
        found[buffer] = end
        end += -(-buffer.size_bytes // ALIGNMENT) * ALIGNMENT
    return {**found, None: end}
