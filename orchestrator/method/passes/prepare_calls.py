"""Calls whose kernels get a struct from the build, instead of arguments to read.

For prelinked models. The kernel and the struct of a call are those for exactly its
shapes and numbers; the linker drops what no call takes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.method.linked import (
    LinkedCall,
    LinkedInstruction,
    LinkedMethod,
    Numbers,
    Prepared,
)
from orchestrator.method.passes.arguments import Arguments, UnknownCallError, need
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.dataflow import with_slots_of
from orchestrator.method.passes.packing.kernels import (
    ARGUMENTS,
    LIMITS,
    UNPREPARED,
    Kernel,
    arguments_of,
)
from orchestrator.method.passes.preparing.convolution import CONVOLUTIONS
from orchestrator.method.passes.preparing.copies import may_be_copies, prepared_copies
from orchestrator.method.passes.preparing.elementwise import ELEMENTWISE
from orchestrator.method.passes.preparing.floats import FLOATS
from orchestrator.method.passes.preparing.form import MOST_COPIES, Form
from orchestrator.method.places import Access
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.preparing.form import Preparer


# Calls with packed weights: these hold everything but addresses.


def _preparer(kernel: Kernel) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        names = arguments_of(kernel, arguments.count)
        places = {name: at for at, name in enumerate(names)}
        form = Form(
            function=kernel.function,
            struct="orch::cortex_m::PackedCall",
            memory=tuple((n, places.get(n)) for n in ARGUMENTS),
        )
        if not kernel.is_limited:
            return form
        limits = tuple((n, arguments.number(places[n])) for n in LIMITS)
        return replace(
            form, struct="orch::cortex_m::LimitedPackedCall", numbers=(("range", limits),)
        )

    return prepare


PACKED: Final[Mapping[str, Preparer]] = MappingProxyType(
    {function: _preparer(UNPREPARED[function]) for function in sorted(UNPREPARED)}
)


PREPARERS: Final[Mapping[str, Preparer]] = MappingProxyType(
    {**PACKED, **CONVOLUTIONS, **ELEMENTWISE, **FLOATS}
)
"""By kernel: what prepares its calls."""
_LOWEST, _HIGHEST = -(1 << 31), (1 << 31) - 1


def may_be_prepared(call: LinkedCall) -> bool:
    """Whether a call is of a kernel whose calls can be prepared."""
    return call.function in PREPARERS or may_be_copies(call)


def prepare_calls(method: LinkedMethod, context: Context) -> LinkedMethod:
    """Prepare all calls that have a form for it; values without slots come last."""
    written = method.written
    replaced = {i.target for i in method.instructions if isinstance(i, MoveCall)}
    constants = {index for index, data in method.data if len(data)}

    def prepared(call: LinkedCall) -> LinkedCall:
        prepare = PREPARERS.get(call.function)
        if prepare is None:
            return call
        try:
            arguments = Arguments(method, call, written)
            form = prepare(arguments, context.isa)
            # Arguments that are None are null pointers, too.
            places = [
                place
                for _, place in form.memory
                if place is not None and not arguments.is_none(place)
            ]
            args = tuple(call.args[place] for place in places)
            accesses = tuple(call.accesses[place] for place in places)
            # A move would give such an argument another address in a run.
            need(not replaced.intersection(args) and _fits(form.all_numbers))
            for index, access in zip(args, accesses, strict=True):
                need(_has_memory(method, index, access, constants))
        except UnknownCallError:
            return call
        return replace(
            call,
            function=form.function,
            args=args,
            accesses=accesses,
            outs=tuple(index for index in call.outs if index in args),
            in_place=(),
            prepared=Prepared(
                struct=form.struct,
                memory=tuple(
                    (name, places.index(place) if place in places else None)
                    for name, place in form.memory
                ),
                shape=form.shape,
                numbers=form.numbers,
            ),
        )

    def copies(call: LinkedCall) -> tuple[LinkedCall, ...]:
        """The calls in place of one that moves items; itself if it has to stay."""
        found = prepared_copies(method, call, written)
        known = all(
            _has_memory(method, index, access, constants)
            and index not in replaced
            and _fits(of.form.all_numbers)
            for of in found
            for index, access in of.arguments
        )
        # Jumps count instructions.
        return found if known and len(found) in counts else (call,)

    jumps = any(isinstance(i, JumpFalseCall) for i in method.instructions)
    counts = (1,) if jumps else range(1, MOST_COPIES + 1)
    instructions: list[LinkedInstruction] = []
    origins: list[int] = []
    for instruction, origin in zip(method.instructions, method.origins, strict=True):
        made: tuple[LinkedInstruction, ...] = (instruction,)
        if isinstance(instruction, LinkedCall):
            call = prepared(instruction)
            made = (call,) if call.prepared is not None else copies(call)
        instructions += made
        origins += [origin] * len(made)
    if tuple(instructions) == method.instructions:
        return method
    return slots_first(replace(method, instructions=tuple(instructions), origins=tuple(origins)))


def _fits(members: tuple[tuple[str, Numbers], ...]) -> bool:
    """Whether all numbers have 32 bits."""
    return all(
        _fits(value)
        if isinstance(value, tuple)
        else isinstance(value, float) or _LOWEST <= value <= _HIGHEST
        for _, value in members
    )


def _has_memory(
    method: LinkedMethod, index: int, access: Access, constants: Collection[int]
) -> bool:
    """Whether an argument is a tensor at an address that the build knows."""
    value = method.values[index]
    if not isinstance(value, TensorValue) or value.is_dynamic:
        return False
    # An empty scratch tensor may have any address: nothing is written there.
    if access is Access.SCRATCH:
        return value.allocation is not None
    known = value.allocation is not None or index in constants
    return known and value.size_bytes > 0


def slots_first(method: LinkedMethod) -> LinkedMethod:
    """The method with all values that need slots before those that do not."""
    slots = range(len(method.values))
    return with_slots_of(method, sorted(slots, key=method.slotless.__contains__))
