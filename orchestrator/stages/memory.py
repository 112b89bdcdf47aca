"""Stage `memory`: every byte of RAM and program flash, and where it lies.

The offsets of planned tensors are those of the program; this stage computes what
they need, how far that is from the lower bound, and where blocks go on the board.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from heapq import heappop, heappush
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.core.memory import (
    CALLER_SECTION,
    Arena,
    MemoryPlan,
    MethodMemory,
    ModelMemory,
    Placement,
    arena_section,
    model_section,
)
from orchestrator.errors import Diagnostic, MemoryPlanError, ModelError, SourceSpan
from orchestrator.pte.caller import caller_bytes, caller_problems
from orchestrator.pte.program import KernelCall, MoveCall
from orchestrator.pte.shared import SHARED_ID, shared_bytes, shares_state
from orchestrator.pte.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orchestrator.pte.linked import LinkedMethod
    from orchestrator.pte.program import Method, Program
    from orchestrator.targets import Board, Region

SCALAR_BYTES = 8
CODE_RESERVE_BYTES = 48 * 1024
"""Kept free in the first flash region for code when programs are placed."""
RAM_RESERVE_BYTES = 1024
"""Kept free in the first RAM region for the runtime's and runner's variables."""


def plan_memory(
    programs: Mapping[str, Program],
    *,
    pointer_bytes: int,
    board: Board | None,
    spans: Mapping[str, SourceSpan],
    linked: Mapping[str, Sequence[LinkedMethod]] = MappingProxyType({}),
) -> MemoryPlan:
    """Compute the memory of every method of every model, and place it on the board.

    Args:
        programs: By model name, in the profile's order.
        pointer_bytes: Of the target.
        board: Memory map; None for hosts.
        spans: By model name, the profile line that names it.
        linked: By name of a prelinked model: its methods in the program's order.

    Raises:
        ModelError: A program needs what the runtime does not offer.
        MemoryPlanError: A block fits no region of the board.
    """
    problems = [
        d
        for name, program in programs.items()
        for method in program.methods
        for d in _unsupported(name, program, method, spans.get(name))
    ]
    if problems:
        raise ModelError(problems)
    models = tuple(
        ModelMemory(
            model=name,
            program_bytes=_constant_bytes(linked[name])
            if name in linked
            else program.size_bytes
            + sum(_aligned(len(e.data)) for e in program.external),
            methods=tuple(
                _method_memory(
                    name,
                    program,
                    method,
                    linked[name][index].state_bytes(pointer_bytes=pointer_bytes)
                    if name in linked
                    else method_state_bytes(method, pointer_bytes=pointer_bytes),
                )
                for index, method in enumerate(program.methods)
            ),
        )
        for name, program in programs.items()
    )
    plan = MemoryPlan(models=models)
    if board is None:
        return plan
    return MemoryPlan(models=models, placements=_place(plan, board, spans))


def method_state_bytes(method: Method, *, pointer_bytes: int) -> int:
    """Size of the method state block the device loader needs, exactly.

    Source: sizes of `Value` and `Instruction` in runtime/include/orch/value.h and
    method.h, which assert them; layout in runtime/src/load_method.cpp.
    """
    value_bytes = 4 * pointer_bytes
    words = sum(
        1 + len(v.sizes)
        for v in method.values
        if isinstance(v, TensorValue) and v.is_dynamic
    )
    return (
        len(method.values) * value_bytes
        + len(method.instructions) * instruction_bytes(pointer_bytes)
        + 4 * words
    )


def instructions_offset(method: Method, *, pointer_bytes: int) -> int:
    """Where in the method state the instructions begin, in bytes.

    Source: as for `method_state_bytes`.
    """
    return len(method.values) * 4 * pointer_bytes


def instruction_bytes(pointer_bytes: int) -> int:
    """Size of an instruction on the device."""
    return 2 * pointer_bytes + max(4, pointer_bytes)


_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def _unsupported(
    model: str, program: Program, method: Method, span: SourceSpan | None
) -> Iterable[Diagnostic]:
    def problem(message: str, hint: str, values: list[int] | None = None) -> Diagnostic:
        notes = (("found", f"values {', '.join(map(str, values))}"),) if values else ()
        return Diagnostic(
            code="unsupported-program",
            message=f'model "{model}", method {method.name}: {message}',
            where=span,
            notes=notes,
            hint=hint,
        )

    if not _IDENTIFIER.fullmatch(method.name):
        yield problem(
            "its name cannot be part of a C function's",
            "export it under a name of letters, digits and _",
        )
    tensors = [
        (i, v) for i, v in enumerate(method.values) if isinstance(v, TensorValue)
    ]
    if external := [i for i, v in tensors if v.is_external and not program.has_data(v)]:
        yield problem(
            "tensors have their data outside the program",
            "name its .ptd files in `data` of [[models]], or export without external"
            " constants",
            external,
        )
    for message, hint, values in caller_problems(method):
        yield problem(message, hint, values)


def _constant_bytes(methods: Iterable[LinkedMethod]) -> int:
    """Flash of the constants of a prelinked model."""
    constants = {data for method in methods for data in method.constants}
    return sum(_aligned(len(data)) for data in constants)


def _arenas(program: Program, method: Method) -> Iterable[Arena]:
    shares = shares_state(program)
    for memory_id in range(1, len(method.arena_bytes)):
        is_shared = shares and memory_id == SHARED_ID
        yield Arena(
            memory_id=memory_id,
            size_bytes=method.arena_bytes[memory_id],
            peak_live_bytes=shared_bytes(program)
            if is_shared
            else peak_live_bytes(method, memory_id),
            shared=tuple(m.name for m in program.methods) if is_shared else (),
        )


def _method_memory(
    model: str, program: Program, method: Method, state_bytes: int
) -> MethodMemory:
    return MethodMemory(
        model=model,
        method=method.name,
        arenas=tuple(_arenas(program, method)),
        state_bytes=state_bytes,
        input_bytes=tuple(_value_bytes(method, i) for i in method.inputs),
        output_bytes=tuple(_value_bytes(method, i) for i in method.outputs),
        caller_bytes=caller_bytes(method),
    )


def _value_bytes(method: Method, index: int) -> int:
    value = method.values[index]
    return value.size_bytes if isinstance(value, TensorValue) else SCALAR_BYTES


def peak_live_bytes(method: Method, memory_id: int) -> int:
    """Most bytes of an arena that are live at once: a lower bound of its size.

    A value is live from the instruction that writes it to the last one that touches
    it; inputs from the start, outputs to the end, state always. A value that is read
    but never written is a view: it is live from the last write to its bytes.
    """
    # One sweep: methods may have thousands of values, of which few live together.
    peak = 0
    live: list[tuple[int, int]] = []
    ends: list[tuple[int, int, int]] = []
    for first, lives in groupby(sorted(_lifetimes(method, memory_id)), itemgetter(0)):
        while ends and ends[0][0] < first:
            _, begin, end = heappop(ends)
            del live[bisect_left(live, (begin, end))]
        for _, last, begin, end in lives:
            insort(live, (begin, end))
            heappush(ends, (last, begin, end))
        peak = max(peak, _union_bytes(live))
    return peak


def _lifetimes(method: Method, memory_id: int) -> list[tuple[int, int, int, int]]:
    """(first, last instruction, begin, end in the arena) of every planned value."""
    end_of_time = len(method.instructions)
    touched: dict[int, list[int]] = {}
    written: dict[int, int] = {}
    for time, instruction in enumerate(method.instructions):
        match instruction:
            case KernelCall(args=args):
                outs = {a for a in args if args.count(a) > 1} | set(args[-1:])
            case MoveCall(source=source, target=target):
                args, outs = (source, target), {target}
            case _:
                continue
        for index in _with_items(method, args):
            touched.setdefault(index, []).append(time)
        for index in _with_items(method, outs):
            written.setdefault(index, time)
    owners: list[tuple[int, int, int, int]] = []
    views: list[tuple[int, int, int, int]] = []
    for index, value in enumerate(method.values):
        if not isinstance(value, TensorValue) or value.allocation is None:
            continue
        place = value.allocation
        if place.memory_id != memory_id or value.size_bytes == 0:
            continue
        times = touched.get(index, [end_of_time])
        starts_live = index in method.inputs or value.is_mutable_state
        is_view = not starts_live and index not in written
        first = -1 if starts_live else written.get(index, times[0])
        last = max(times[-1], first) if index in touched else first
        if index in method.outputs or value.is_mutable_state:
            last = end_of_time
        begin = place.offset_bytes
        life = (first, last, begin, begin + value.size_bytes)
        (views if is_view else owners).append(life)
    owners.sort()
    return owners + [_extend_view(view, owners) for view in views]


def _extend_view(
    view: tuple[int, int, int, int], owners: list[tuple[int, int, int, int]]
) -> tuple[int, int, int, int]:
    """Start a view where the value whose bytes it shows was written.

    Args:
        view: Its life.
        owners: Lives of values that are no views, sorted.
    """
    first, last, begin, end = view
    for at in range(bisect_left(owners, (first,)) - 1, -1, -1):
        start, _, lowest, highest = owners[at]
        if lowest <= begin and end <= highest:
            return (start, last, begin, end)
    return view


def _with_items(method: Method, args: Iterable[int]) -> Iterable[int]:
    """The arguments, and the tensors of those that are lists."""
    for index in args:
        yield index
        value = method.values[index]
        if "TensorList" in type(value).__name__:
            yield from (i for i in getattr(value, "items", ()) if i >= 0)


def _union_bytes(spans: Iterable[tuple[int, int]]) -> int:
    """Bytes that spans cover together; they come sorted."""
    total, reach = 0, 0
    for begin, end in spans:
        total += max(0, end - max(begin, reach))
        reach = max(reach, end)
    return total


def _place(
    plan: MemoryPlan, board: Board, spans: Mapping[str, SourceSpan]
) -> tuple[Placement, ...]:
    """First fit in the board's order of regions."""
    free = {r.name: r.size_bytes for r in board.regions}
    flash = [r for r in board.regions if r.kind == "flash"]
    ram = [r for r in board.regions if r.kind == "ram"]
    free[flash[0].name] -= CODE_RESERVE_BYTES
    free[ram[0].name] -= RAM_RESERVE_BYTES + board.stack_bytes + plan.state_bytes
    placements: list[Placement] = []
    problems: list[Diagnostic] = []

    def place(
        section: str, size_bytes: int, regions: list[Region], what: str, model: str
    ) -> None:
        for region in regions:
            if size_bytes <= free[region.name]:
                free[region.name] -= _aligned(size_bytes)
                placements.append(
                    Placement(
                        section=section, region=region.name, size_bytes=size_bytes
                    )
                )
                return
        problems.append(
            Diagnostic(
                code="memory-too-small",
                message=f"{what} does not fit {board.name}",
                where=spans.get(model),
                notes=(
                    ("needs", f"{size_bytes} bytes"),
                    *(
                        (
                            "region",
                            f"{r.name}: {max(free[r.name], 0)} of"
                            f" {r.size_bytes} bytes free",
                        )
                        for r in regions
                    ),
                ),
                hint="choose a board with more memory, or a smaller model",
            )
        )

    if plan.caller_bytes:
        place(
            CALLER_SECTION,
            plan.caller_bytes,
            ram,
            "memory of the application for inputs and outputs that are not planned",
            plan.caller_model,
        )
    for model in plan.models:
        place(
            model_section(model.model),
            model.program_bytes,
            flash,
            f'the program of model "{model.model}"',
            model.model,
        )
        for method in model.methods:
            for arena in method.own_arenas:
                place(
                    arena_section(model.model, method.method, arena.memory_id),
                    arena.size_bytes,
                    ram,
                    f'arena {arena.memory_id} of model "{model.model}",'
                    f" method {method.method}",
                    model.model,
                )
    if problems:
        raise MemoryPlanError(problems)
    return tuple(placements)


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // 16) * 16
