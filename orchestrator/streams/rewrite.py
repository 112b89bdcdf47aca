"""Write a program of a window as one that gets what is new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from orchestrator.core.layout import ALIGNMENT
from orchestrator.core.lazy_bytes import joined
from orchestrator.core.operator import OperatorName
from orchestrator.program.encode import write_program
from orchestrator.program.program import (
    DelegateCall,
    Frame,
    Instruction,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
    Program,
    Segment,
    SubsegmentOffsets,
)
from orchestrator.program.reader import read_program
from orchestrator.program.values import (
    Allocation,
    Dynamism,
    ExtraTensorInfo,
    IntListValue,
    IntValue,
    TensorListValue,
    TensorValue,
    Value,
)
from orchestrator.streams.rules import Flow, Read, Site, Step, rule_of, scratch_of, view_axis

if TYPE_CHECKING:
    from orchestrator.core.border import Stream
    from orchestrator.streams.rules import Change

_CAT: Final = OperatorName("aten", "cat", "out")
_SLICE: Final = OperatorName("aten", "slice_copy", "Tensor_out")
_PRIMS: Final = "executorch_prim"


class StreamError(Exception):
    """An input cannot be a stream.

    Args:
        method: Name of the method.
        found: What is in the way.
        hint: What to do.
    """

    def __init__(self, method: str, found: str, hint: str) -> None:
        super().__init__(found)
        self.method = method
        self.found = found
        self.hint = hint


def streamed(program: Program, index: int, stream: Stream) -> Program:
    """The program with an input that gets what is new of a window.

    Each call gives what the window gives that ends with it: the same bits, once as many
    positions have come as a window has.

    Args:
        program: Of windows.
        index: Which input, in the order of its methods.
        stream: How it is one.

    Returns:
        A program read back from new bytes, with state for what calls need of the past.

    Raises:
        StreamError: The input is no tensor with such a dimension, or the method jumps.
    """
    state = _State(program)
    methods = tuple(
        _Writer(method, index, stream, state).method() if len(method.inputs) > index else method
        for method in program.methods
    )
    if methods == program.methods:
        return program
    found = read_program(write_program(state.program(methods)), file="")
    return replace(found, external=program.external, original=program.file)


class _State:
    """Memory that starts as zeros, one block of bytes for all tensors."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._most = 0
        self._extra = ExtraTensorInfo(
            mutable_segment_index=len(program.mutable_segments),
            qualified_name="",
            is_external=False,
            device_type=0,
            device_index=0,
        )

    def tensor(self, like: TensorValue) -> TensorValue:
        """A planned tensor as state."""
        self._most = max(self._most, like.size_bytes)
        return replace(like, data_buffer_index=1, extra=self._extra)

    def program(self, methods: tuple[Method, ...]) -> Program:
        """The program with other methods, and with the zeros if they need some."""
        program = replace(self._program, methods=methods)
        if not self._most:
            return program
        base = program.header.segment_base if program.header is not None else 0
        data = joined((program.data, bytes(-len(program.data) % ALIGNMENT)))
        zeros = Segment(offset=len(data) - base, size_bytes=self._most)
        table = SubsegmentOffsets(segment_index=len(program.segments), offsets=(0, 0))
        return replace(
            program,
            data=joined((data, bytes(self._most))),
            segments=(*program.segments, zeros),
            mutable_segments=(*program.mutable_segments, table),
        )


class _PaddedError(Exception):
    """A call needs a whole window, padding included: these pads have to be computed."""

    def __init__(self, pads: frozenset[int]) -> None:
        super().__init__()
        self.pads = pads


class _Writer:
    def __init__(self, method: Method, index: int, stream: Stream, state: _State) -> None:
        self._old = method
        self._state = state
        self._input = method.inputs[index]
        self._flow = self._begin(stream)
        self._uses = Counter(method.outputs)
        for call in method.instructions:
            if isinstance(call, KernelCall | DelegateCall):
                self._uses.update({*self._tensors(call.args)})

    def _begin(self, stream: Stream) -> Flow:
        method = self._old
        value = method.values[self._input]
        if not isinstance(value, TensorValue):
            raise StreamError(method.name, "it is no tensor", "leave stream out")
        rank = len(value.sizes)
        if not -rank <= stream.axis < rank:
            raise StreamError(
                method.name,
                f"{rank} dimensions",
                f"write the dimension that is time: 0 to {rank - 1}",
            )
        axis = stream.axis % rank
        length = value.sizes[axis]
        if stream.hop > length:
            raise StreamError(
                method.name,
                f"{length} positions in dimension {axis}",
                f"write how many of them come at a time: 1 to {length}",
            )
        if value.is_dynamic:
            raise StreamError(
                method.name, "its sizes may change", "export the model with the sizes of a window"
            )
        if any(isinstance(i, JumpFalseCall) for i in method.instructions):
            raise StreamError(
                method.name, "the method has branches", "export it without torch.cond"
            )
        return Flow(axis=axis, length=length, fresh=stream.hop, end=length)

    def method(self) -> Method:
        """The method of a stream."""
        # A whole window with each call: nothing is of the past.
        if self._flow.fresh == self._flow.length:
            return self._old
        computed: frozenset[int] = frozenset()
        # A tensor has one past for all that read it, as long as the one that reads furthest back.
        # How far that is, only the end of the method shows: it is written until nothing grows.
        self._kept: dict[int, int] = {}
        while True:
            kept = dict(self._kept)
            try:
                written = self._written(computed)
            except _PaddedError as error:
                computed |= error.pads
                self._kept = {}
                continue
            if kept == self._kept:
                return written

    def _written(self, computed: frozenset[int]) -> Method:
        """The method, in which some calls compute whole windows."""
        method = self._old
        self._values: list[Value] = [*method.values]
        self._flows = {self._input: self._flow}
        self._operators = [*method.operators]
        self._arenas = [*method.arena_bytes]
        self._instructions: list[Instruction] = []
        self._frames: list[tuple[Frame, ...]] = []
        self._pasts: dict[int, int] = {}
        self._known = [*method.inputs]
        self._cut(self._input, self._flow)
        for number, instruction in enumerate(method.instructions):
            frames = method.frames[number : number + 1]
            new = instruction
            if isinstance(instruction, KernelCall | DelegateCall):
                new = self._call(number, instruction, computed)
            elif isinstance(instruction, MoveCall):
                self._move(instruction)
            self._instructions.append(new)
            missing = len(self._instructions) - len(self._frames)
            self._frames += [frames[0] if frames else ()] * missing
        outputs = tuple(self._output(index) for index in method.outputs)
        missing = len(self._instructions) - len(self._frames)
        self._frames += [()] * missing
        return replace(
            method,
            values=tuple(self._values),
            outputs=outputs,
            instructions=tuple(self._instructions),
            operators=tuple(self._operators),
            arena_bytes=tuple(self._arenas),
            frames=tuple(self._frames) if method.frames else (),
        )

    def _call(
        self, number: int, call: KernelCall | DelegateCall, computed: frozenset[int]
    ) -> Instruction:
        args = list(call.args)
        count = len(args) - self._returns(call)
        outs = {*self._outs(call)}
        scratch = {*self._scratch(call, count)}
        for index in self._tensors(args[:count]):
            if index not in outs and index not in scratch:
                self._resolve(index)
        self._known += outs
        site = Site(
            number_of_call=number,
            args=args[:count],
            values=self._values,
            flows=self._flows,
            is_used=lambda index: self._uses[index] > 1,
        )
        timed = {index for index in site.tensors() if index in self._flows}
        if not timed:
            return call
        step = self._step(site, call, timed, computed)
        places = {index: self._rows(index, read) for index, read in step.reads.items()}
        for position in range(count):
            args[position] = self._replaced(args[position], places)
        for position, change in step.changes.items():
            args[position] = self._number(change)
        for index, flow in step.outs.items():
            self._flows[index] = flow
            self._cut(index, flow)
        return replace(call, args=tuple(args))

    def _outs(self, call: KernelCall | DelegateCall) -> Iterable[int]:
        """What a call writes: what it returns; of delegates, what nothing wrote."""
        if isinstance(call, KernelCall):
            return self._tensors(call.args[-1:])
        return (index for index in call.args if index not in self._known)

    def _scratch(self, call: KernelCall | DelegateCall, count: int) -> Iterable[int]:
        """What a call may use as it likes; it comes before what the call writes."""
        if isinstance(call, DelegateCall):
            return ()
        most = scratch_of(self._old.operators[call.operator])
        return call.args[count - 1 - most : count - 1]

    def _resolve(self, index: int) -> None:
        """Find what a tensor is that no call writes: a view of what lies there."""
        value = self._old.values[index]
        if index in self._known or not isinstance(value, TensorValue):
            return
        if value.allocation is None or value.is_mutable_state:
            return
        # The last one that was written there before.
        source = next((i for i in reversed(self._known) if self._meet(i, value)), -1)
        self._known.append(index)
        flow = self._flows.get(source)
        if flow is None:
            return
        seen = self._old.values[source]
        assert isinstance(seen, TensorValue)  # noqa: S101  # it has time
        if (seen.allocation, seen.size_bytes) != (value.allocation, value.size_bytes):
            raise StreamError(
                self._old.name,
                f"values {source} and {index} share some of their memory",
                "export the model again with ExecuTorch's own memory planning",
            )
        axis = view_axis(seen, value, flow)
        if axis is not None:
            self._flows[index] = replace(flow, axis=axis)
            self._cut(index, self._flows[index])
            return
        if flow.start > 0 or flow.end < flow.length:
            raise _PaddedError(flow.pads)
        whole = self._values[self._rows(source, Read(first=0, last=flow.length))]
        assert isinstance(whole, TensorValue)  # noqa: S101  # it has time
        self._values[index] = replace(value, allocation=whole.allocation)

    def _meet(self, index: int, value: TensorValue) -> bool:
        """Whether a tensor has bytes of another one."""
        other, place = self._old.values[index], value.allocation
        if not isinstance(other, TensorValue) or place is None:
            return False
        if other.allocation is None or other.allocation.memory_id != place.memory_id:
            return False
        begin, other_begin = place.offset_bytes, other.allocation.offset_bytes
        return begin < other_begin + other.size_bytes and other_begin < begin + value.size_bytes

    def _move(self, move: MoveCall) -> None:
        """A value that becomes another one: that has time, too."""
        if flow := self._flows.get(move.source):
            self._flows[move.target] = flow
            self._cut(move.target, flow)

    def _returns(self, call: KernelCall | DelegateCall) -> int:
        """Arguments that repeat outputs: one, but for prim ops and delegates."""
        if isinstance(call, DelegateCall):
            return 0
        # Out variants repeat their output as a result; prim ops have only a result.
        return int(self._old.operators[call.operator].namespace != _PRIMS)

    def _tensors(self, args: Iterable[int]) -> Iterable[int]:
        for index in args:
            value = self._old.values[index]
            yield from value.items if isinstance(value, TensorListValue) else (index,)

    def _step(
        self, site: Site, call: KernelCall | DelegateCall, timed: set[int], computed: frozenset[int]
    ) -> Step:
        """A call as its rule has it, or with whole windows."""
        step = None
        if isinstance(call, KernelCall) and site.number_of_call not in computed:
            rule = rule_of(self._old.operators[call.operator])
            step = rule(site) if rule else None
        # A rule that says nothing of an argument with time does not know the call.
        if step is None or {*step.reads} != timed:
            step = Step(reads={i: self._whole(i) for i in timed})
        for index, read in step.reads.items():
            flow = self._flows[index]
            # Where time ends, the result has to be that of a window, with its padding.
            if not step.outs and (read.first < flow.start or flow.end < read.last):
                raise _PaddedError(flow.pads)
        return step

    def _whole(self, index: int) -> Read:
        return Read(first=0, last=self._flows[index].length)

    def _output(self, index: int) -> int:
        """An output with time: what is new, if it is as that of a window."""
        self._resolve(index)
        flow = self._flows.get(index)
        if flow is not None and (flow.first < flow.start or flow.end != flow.length):
            raise _PaddedError(flow.pads)
        return index

    def _replaced(self, index: int, places: Mapping[int, int]) -> int:
        """An argument with tensors that have other positions."""
        value = self._values[index]
        if isinstance(value, TensorListValue):
            items = tuple(places.get(item, item) for item in value.items)
            return index if items == value.items else self._add(replace(value, items=items))
        return places.get(index, index)

    # Positions of a tensor: those of the past lie in state.

    def _rows(self, index: int, read: Read) -> int:
        """A tensor with some positions of another."""
        flow = self._flows[index]
        first = flow.first
        if read.first < first:
            kept = max(self._kept.get(index, 0), first - read.first)
            self._kept[index] = kept
            index, first = self._with_past(index, flow, kept), first - kept
        if (read.first, read.last) == (first, flow.end):
            return index
        return self._part(index, flow.axis, read.first - first, read.last - read.first)

    def _with_past(self, index: int, flow: Flow, count: int) -> int:
        """What is new, behind positions of the past; the next call has its own."""
        # The past is joined once, right behind what is new, so that all readers find it.
        if index not in self._pasts:
            axis, length = flow.axis, count + flow.fresh
            past = self._tensor(index, axis, count, is_state=True)
            out = self._tensor(index, axis, length)
            both = self._add(TensorListValue(items=(past, index)))
            self._emit(_CAT, (both, self._number(axis), out, out))
            # The next call is `fresh` positions later: what it will call the past begins there.
            self._slice(out, axis, flow.fresh, count, past)
            self._pasts[index] = out
        return self._pasts[index]

    def _part(self, index: int, axis: int, first: int, count: int) -> int:
        out = self._tensor(index, axis, count)
        self._slice(index, axis, first, count, out)
        return out

    def _slice(self, index: int, axis: int, first: int, count: int, out: int) -> None:
        numbers = (axis, first, first + count, 1)
        args = (index, *(self._number(n) for n in numbers), out, out)
        self._emit(_SLICE, args)

    def _emit(self, operator: OperatorName, args: tuple[int, ...]) -> None:
        if operator not in self._operators:
            self._operators.append(operator)
        at = self._operators.index(operator)
        self._instructions.append(KernelCall(operator=at, args=args))

    # Values.

    def _cut(self, index: int, flow: Flow) -> None:
        """Make a tensor what is new of it."""
        value = self._values[index]
        assert isinstance(value, TensorValue)  # noqa: S101  # it has time
        self._values[index] = _resized(value, flow.axis, flow.fresh)

    def _tensor(self, like: int, axis: int, count: int, *, is_state: bool = False) -> int:
        """A new tensor of the arena, in memory of its own: the build plans it again."""
        value = self._values[like]
        assert isinstance(value, TensorValue)  # noqa: S101  # it has time
        place = value.allocation
        memory_id = place.memory_id if place is not None else 1
        self._arenas += [0] * (memory_id + 1 - len(self._arenas))
        at = -(-self._arenas[memory_id] // ALIGNMENT) * ALIGNMENT
        new = replace(
            _resized(value, axis, count),
            data_buffer_index=0,
            allocation=Allocation(memory_id=memory_id, offset_bytes=at),
            extra=None,
            dynamism=Dynamism.STATIC,
        )
        self._arenas[memory_id] = at + new.size_bytes
        return self._add(self._state.tensor(new) if is_state else new)

    def _number(self, change: Change) -> int:
        if isinstance(change, int):
            return self._add(IntValue(value=change))
        items = tuple(self._number(item) for item in change)
        return self._add(IntListValue(items=items))

    def _add(self, value: Value) -> int:
        self._values.append(value)
        return len(self._values) - 1


def _resized(value: TensorValue, axis: int, count: int) -> TensorValue:
    sizes = (*value.sizes[:axis], count, *value.sizes[axis + 1 :])
    return replace(value, sizes=sizes)
