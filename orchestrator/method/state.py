"""State: the bytes of a program that outlive a run.

A method keeps bytes from one run to the next if it may read them before it has written
all of them in the same run, whether the program has initial data for them or not. So
does a method that shares an arena with another one that does. `with_state` is the one
place that decides this, before passes and plans. It marks the tensors that lie there
(`TensorValue.is_kept`), and everything else looks at the mark. State without initial
data begins with zeros.

Methods share the arena with memory id 2 if ExecuTorch planned it so:
`MemoryPlanningPass(share_mutable_buffers=True)` puts the mutable buffers of all methods
there, the same buffer at the same offset in each, and nothing else. No flag of the file
says so; this is how it is recognised.

Source: ExecuTorch `exir/passes/memory_planning_pass.py`, `run_multimethod`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.method.effects import MethodEffects, effects_of_method
from orchestrator.method.linked import LinkedMethod
from orchestrator.method.places import place_of
from orchestrator.method.replan.flow import early_reads
from orchestrator.method.sets import Spans, join, touches
from orchestrator.planner.policy import SharedState
from orchestrator.program.program import DelegateCall, KernelCall, Method, Program
from orchestrator.program.shared import SHARED_ID, shared_tensors
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    _Schemas = Mapping[OperatorName, OpSchema]

_Kept: TypeAlias = "dict[int, Spans]"
"""By memory id: bytes that outlive a run."""


class StateError(Exception):
    """The methods should share state, and the program does not allow it.

    Args:
        found: What differs.
    """


def with_state(program: Program, schemas: _Schemas, shared: SharedState | None = None) -> Program:
    """The program with its state marked, and with the methods that share it.

    Args:
        program: As it was read.
        schemas: Of the operators that have a kernel; calls of others are assumed to
            read all of their arguments but the last.
        shared: Whether methods share state; None: as the program has it.

    Raises:
        StateError: They should, as the profile or the program says, and cannot.
    """
    kept = [_kept(method, schemas) for method in program.methods]
    sharers = _sharers(program, kept, shared)
    # There is one block for all sharers: it is as large as the largest of them has it, and what one
    # of them keeps, all of them keep.
    sizes = [m.arena_bytes[SHARED_ID] for m in program.methods if m.name in sharers]
    together = join(
        tuple(
            span
            for method, spans in zip(program.methods, kept, strict=True)
            if method.name in sharers
            for span in spans.get(SHARED_ID, ())
        ),
        (),
    )
    methods = []
    for method, spans in zip(program.methods, kept, strict=True):
        arenas = [*method.arena_bytes]
        if method.name in sharers:
            spans[SHARED_ID] = together
            arenas[SHARED_ID] = max(sizes)
        methods.append(_marked(replace(method, arena_bytes=tuple(arenas)), spans))
    return replace(program, methods=tuple(methods), sharers=sharers)


def kept_arenas(method: Method, linked: LinkedMethod | None = None) -> frozenset[int]:
    """Memory ids of the arenas whose contents a method needs from call to call.

    They hold state, or the rows of a method that gets its input in several calls.

    Args:
        method: Of the program.
        linked: What it was linked to, if the model is prelinked.
    """
    by_rows = linked is not None and any(border.rows for border in linked.borders)
    return frozenset(
        value.allocation.memory_id
        for value in method.values
        if isinstance(value, TensorValue) and (value.is_state or by_rows) and value.allocation
    )


def zeroed_state(program: Program, method: Method) -> dict[int, int]:
    """State of a method that begins with zeros, as the program has no data for it.

    Returns:
        Bytes by value index; of tensors that overlap, the largest one.
    """
    taken: dict[int, Spans] = {}
    sharers = [m for m in program.methods if m.name in program.sharers]
    # Initial data of others that share the arena counts, too.
    for other in dict.fromkeys((method, *sharers)):
        for value in other.values:
            if isinstance(value, TensorValue) and value.is_mutable_state:
                memory_id, begin, end = _span(value)
                if other is method or memory_id == SHARED_ID:
                    taken[memory_id] = join(taken.get(memory_id, ()), ((begin, end),))
    found = {}
    state = (
        # Large ones first: smaller ones within them are views, whose bytes are zeros then.
        (-value.size_bytes, index, value)
        for index, value in enumerate(method.values)
        if isinstance(value, TensorValue) and value.is_state
    )
    for _, index, value in sorted(state, key=lambda entry: entry[:2]):
        memory_id, begin, end = _span(value)
        if begin < end and not touches(taken.get(memory_id, ()), begin, end):
            taken[memory_id] = join(taken.get(memory_id, ()), ((begin, end),))
            found[index] = value.size_bytes
    return found


def _span(value: TensorValue) -> tuple[int, int, int]:
    assert value.allocation is not None  # noqa: S101  # state has a place
    begin = value.allocation.offset_bytes
    return value.allocation.memory_id, begin, begin + value.size_bytes


def _marked(method: Method, kept: Mapping[int, Spans]) -> Method:
    values = tuple(
        replace(value, is_kept=touches(kept.get((at := _span(value))[0], ()), *at[1:]))
        if isinstance(value, TensorValue) and value.allocation is not None
        else value
        for value in method.values
    )
    return replace(method, values=values)


def _kept(method: Method, schemas: _Schemas) -> _Kept:
    """What a method keeps by itself."""
    effects = effects_of_method(method, schemas)
    outputs = undecided_outputs(method, effects, schemas)
    found = {
        memory_id: join(early_reads(effects, memory_id, outputs), ())
        # ExecuTorch keeps memory id 0 for constants.
        for memory_id in range(1, len(method.arena_bytes))
    }
    for value in method.values:
        if isinstance(value, TensorValue) and value.is_mutable_state:
            memory_id, begin, end = _span(value)
            if begin < end:
                found[memory_id] = join(found.get(memory_id, ()), ((begin, end),))
    return {memory_id: spans for memory_id, spans in found.items() if spans}


def undecided_outputs(
    method: Method, effects: MethodEffects, schemas: _Schemas
) -> set[tuple[int, int]]:
    """(instruction, tensor) of outputs of calls of which a program says less.

    A delegate takes its inputs first. Behind the last one that is known to be an input,
    its last argument is an output, and each other one that something else uses, too. A
    tensor that only one call without a schema uses is scratch memory of that call,
    unless another one writes there.
    """
    uses = Counter(i for e in effects.at for i in {*e.touches, *e.replaces})
    uses.update(dict.fromkeys(effects.outputs, 2))  # no scratch
    written = {
        i
        for instruction, effect in zip(method.instructions, effects.at, strict=True)
        if not isinstance(instruction, DelegateCall)
        for i in (*effect.writes, *effect.replaces)
    }
    places = {place_of(method.values[i], i) for i in written}
    known = {*written, *effects.inputs}
    found = set()
    for time, instruction in enumerate(method.instructions):
        read = effects.at[time].reads
        if isinstance(instruction, DelegateCall):
            inputs = [n for n, i in enumerate(read) if i in known]
            # Without one that is known, the first argument counts as an input, if there is another.
            first = inputs[-1] + 1 if inputs else min(1, len(read) - 1)
            outputs = [i for i in read[first:-1] if uses[i] > 1]
            outputs += read[first:][-1:]
            known.update(outputs)
            found |= {(time, index) for index in outputs}
        elif (
            isinstance(instruction, KernelCall)
            and method.operators[instruction.operator] not in schemas
        ):
            found |= {
                (time, index)
                for index in read
                if uses[index] == 1 and place_of(method.values[index], index) not in places
            }
    return found


def _sharers(
    program: Program, kept: Sequence[_Kept], shared: SharedState | None
) -> tuple[str, ...]:
    """Names of the methods that share state; none if they do not.

    A method with nothing in the shared arena does not count.
    """
    users = [m for m in program.methods if any(shared_tensors(m))]
    if shared is SharedState.NO:
        return ()
    has_state = len(users) > 1 and any(spans.get(SHARED_ID) for spans in kept)
    found = next(_differences(program, users), "") if has_state else ""
    found = found or next(_apart(program, has_state=has_state), "")
    if shared is SharedState.YES and not has_state:
        found = found or f"no two methods have tensors in arena {SHARED_ID}"
    if found:
        raise StateError(found)
    return tuple(m.name for m in users) if has_state else ()


def _differences(program: Program, users: Sequence[Method]) -> Iterator[str]:
    """Why the arena with memory id 2 is none of state that methods share.

    What lies in it must be the same buffers in all of them: two that overlap are one,
    with the same place, size and dtype, and with the same initial data if both have
    some. Their shapes may differ, as views have others. No input lies there.
    """
    buffers: dict[int, tuple[TensorValue, str]] = {}
    data: dict[int, Bytes] = {}
    for method in users:
        for index, offset, value in shared_tensors(method):
            where = f"value {index} of {method.name}"
            if index in method.inputs:
                yield f"{where} is an input in arena {SHARED_ID}"
            if value.is_dynamic:
                yield f"{where} changes its size in arena {SHARED_ID}"
            first, other = buffers.setdefault(offset, (value, where))
            both = f"{other} and {where} lie at byte {offset} of arena {SHARED_ID}"
            if (first.size_bytes, first.dtype) != (value.size_bytes, value.dtype):
                yield f"{both}, and differ in size or dtype"
            if value.is_mutable_state:
                own = program.data_bytes(value)
                if data.setdefault(offset, own) != own:
                    yield f"{both}, and differ in initial data"
    in_order = sorted(buffers.items(), key=itemgetter(0))
    for (begin, (one, where)), (after, (_, other)) in pairwise(in_order):
        if begin + one.size_bytes > after:
            yield f"{where} and {other} overlap in arena {SHARED_ID}"


def _apart(program: Program, *, has_state: bool) -> Iterator[str]:
    """Mutable buffers of one name that methods keep apart."""
    known: dict[str, tuple[str, int]] = {}
    for method in program.methods:
        for value in method.values:
            if not isinstance(value, TensorValue) or value.allocation is None:
                continue
            name = value.extra.qualified_name if value.extra else ""
            memory_id = value.allocation.memory_id
            if not name or value.is_external:
                continue
            other, at = known.setdefault(name, (method.name, memory_id))
            if other != method.name and not (has_state and memory_id == at == SHARED_ID):
                yield (
                    f'the buffer "{name}" lies in arena {at} of {other}, and in arena'
                    f" {memory_id} of {method.name}"
                )
