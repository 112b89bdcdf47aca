"""Stage `memory`: every byte of RAM and program flash, and where it lies.

The offsets of planned tensors are those of the program; this stage computes what
they need, how far that is from the lower bound, and where blocks go on the board.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, MemoryPlanError, ModelError, SourceSpan
from orchestrator.memory.common_arena import share_arenas
from orchestrator.memory.constants import own_constants, same_programs
from orchestrator.memory.plan import (
    CALLER_SECTION,
    Arena,
    DelegateState,
    MemoryPlan,
    MethodMemory,
    ModelMemory,
    Placement,
    arena_section,
    common_section,
    model_section,
)
from orchestrator.method.compact import WIDE_TABLES, table_layout
from orchestrator.method.lifetimes import peak_live_bytes
from orchestrator.method.state import kept_arenas
from orchestrator.planner.blocks import ArenaFacts, aligned
from orchestrator.program.caller import caller_bytes
from orchestrator.program.interface import (
    NUMBER_LISTS,
    TENSOR_LISTS,
    most_items,
    with_items,
)
from orchestrator.program.shared import SHARED_ID, shared_bytes
from orchestrator.program.unsupported import unsupported
from orchestrator.program.values import BoolListValue, TensorValue
from orchestrator.targets.regions import ARENA_ALIGNMENT, NO_PINS, Concurrency

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orchestrator.method.compact import TableLayout
    from orchestrator.method.linked import LinkedMethod
    from orchestrator.program.program import Method, Program
    from orchestrator.scratch.needs import ScratchNeed
    from orchestrator.targets.cores import Board, Region
    from orchestrator.targets.regions import Pins

SCALAR_BYTES = 8
_STATE_WORD_BYTES = 8
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
    delegates: Mapping[str, int] = MappingProxyType({}),
    pins: Mapping[str, Pins] = MappingProxyType({}),
    planned: Mapping[str, Sequence[Sequence[ArenaFacts]]] = MappingProxyType({}),
    scratch: Mapping[str, Sequence[ScratchNeed]] = MappingProxyType({}),
    concurrency: Concurrency = Concurrency.PARALLEL,
    alignment: int = ARENA_ALIGNMENT,
) -> MemoryPlan:
    """Compute the memory of every method of every model, and place it on the board.

    Args:
        programs: By model name, in the profile's order.
        pointer_bytes: Of the target.
        board: Memory map; None for hosts.
        spans: By model name, the profile line that names it.
        linked: By name of a prelinked model: its methods in the program's order.
        delegates: State bytes of the delegates that are linked, by backend.
        pins: By model name: memories of the board that its arenas have to lie in.
        planned: By model and method, what became of arenas that were planned.
        scratch: By model, of its calls.
        concurrency: Whether methods may run at the same time.
        alignment: Of arenas in bytes; above the usual one, their sizes are multiples.

    Raises:
        ModelError: A program needs what the runtime does not offer.
        MemoryPlanError: A block fits no region of the board, or not the one it has to
            lie in; an arena is named that there is not.
    """
    problems = [
        d
        for name, program in programs.items()
        for method in program.methods
        for d in unsupported(name, program, method, spans.get(name))
    ]
    if problems:
        raise ModelError(problems)
    compact = table_layout(programs, linked).compact
    constants, first = own_constants(linked), same_programs(programs, linked)
    models = tuple(
        ModelMemory(
            model=name,
            program_bytes=sum(aligned(len(data)) for data in constants[name])
            if name in linked
            else program.size_bytes
            + sum(aligned(len(e.data)) for e in program.external)
            if first[name] == name
            else 0,
            methods=tuple(
                _method_memory(
                    name,
                    program,
                    method,
                    state_bytes=linked[name][index].state_bytes(
                        pointer_bytes=pointer_bytes, compact=compact
                    )
                    if name in linked
                    else method_state_bytes(
                        method, pointer_bytes=pointer_bytes, delegates=delegates
                    ),
                    delegates={} if name in linked else delegates,
                    planned=planned[name][index] if name in planned else (),
                    scratch=scratch.get(name, ()),
                )
                for index, method in enumerate(program.methods)
            ),
        )
        for name, program in programs.items()
    )
    if alignment != ARENA_ALIGNMENT:
        models = tuple(_aligned(model, alignment) for model in models)
    plan = MemoryPlan(models=models, alignment=alignment)
    if concurrency is Concurrency.SEQUENTIAL:
        found = {
            (name, method.name, memory_id)
            for name, program in programs.items()
            for index, method in enumerate(program.methods)
            for memory_id in kept_arenas(
                method, linked[name][index] if name in linked else None
            )
        }
        plan = replace(share_arenas(models, found, pins), alignment=alignment)
    if board is None:
        return plan
    if unknown := list(_unknown_arenas(plan, pins, spans)):
        raise MemoryPlanError(unknown)
    return replace(plan, placements=_place(plan, board, spans, pins))


def _aligned(model: ModelMemory, alignment: int) -> ModelMemory:
    """The model with arenas that share no line of a cache with anything else."""
    return replace(
        model,
        methods=tuple(
            replace(
                method,
                arenas=tuple(
                    replace(a, size_bytes=-(-a.size_bytes // alignment) * alignment)
                    for a in method.arenas
                ),
            )
            for method in model.methods
        ),
    )


def _unknown_arenas(
    plan: MemoryPlan, pins: Mapping[str, Pins], spans: Mapping[str, SourceSpan]
) -> Iterable[Diagnostic]:
    """Memory ids that a profile gives a memory, and that no method has."""
    for model in plan.models:
        known = sorted({a.memory_id for m in model.methods for a in m.arenas})
        for memory_id, _ in pins.get(model.model, NO_PINS).by_id:
            if memory_id not in known:
                yield Diagnostic(
                    code="unknown-arena",
                    message=f'model "{model.model}" has no arena {memory_id}',
                    where=spans.get(model.model),
                    notes=(("known", ", ".join(map(str, known)) or "none"),),
                    hint="correct the memory id in `regions` of [[models]]",
                )


def method_state_bytes(
    method: Method,
    *,
    pointer_bytes: int,
    delegates: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Size of the method state block the device loader needs, exactly.

    `delegates` are the state bytes of the product's delegates, by backend.

    Source: sizes of `Value` and `Instruction` in runtime/include/orch/value.h and
    method.h, which assert them; layout in runtime/src/load_method.cpp.
    """
    value_bytes = 4 * pointer_bytes
    words = sum(
        1 + len(v.sizes)
        for v in method.values
        if isinstance(v, TensorValue) and v.is_dynamic
    )
    size = (
        len(method.values) * value_bytes
        + len(method.instructions) * instruction_bytes(pointer_bytes)
        + 4 * words
    )
    return _with_delegates(
        size, method, pointer_bytes=pointer_bytes, delegates=delegates
    )


def _delegate_states(
    method: Method, delegates: Mapping[str, int]
) -> tuple[DelegateState, ...]:
    """Of each part that a linked delegate runs, in the program's order."""
    return tuple(
        DelegateState(backend=d.backend, state_bytes=delegates[d.backend])
        for d in method.delegates
        if d.backend in delegates
    )


def _with_delegates(
    size_bytes: int,
    method: Method,
    *,
    pointer_bytes: int,
    delegates: Mapping[str, int],
) -> int:
    """Size of a method state with handles and states of the method's delegates.

    Args:
        size_bytes: Without them.
        method: Of the program.
        pointer_bytes: Of the target.
        delegates: State bytes of the delegates of the product, by backend. A product
            without any knows nothing of the delegates of a method.

    Source: `DelegateHandle` and `kDelegateStateAlignment` in
    runtime/include/orch/delegate.h; layout in runtime/src/load_delegates.cpp.
    """
    if delegates:
        size_bytes += len(method.delegates) * 4 * pointer_bytes
    states = [delegates.get(d.backend, 0) for d in method.delegates]
    if not any(states):
        return size_bytes
    return sum(
        -(-part // _STATE_WORD_BYTES) * _STATE_WORD_BYTES
        for part in (size_bytes, *states)
    )


def instructions_offset(method: Method, *, pointer_bytes: int) -> int:
    """Where in the method state the instructions begin, in bytes.

    Source: as for `method_state_bytes`.
    """
    return len(method.values) * 4 * pointer_bytes


def instruction_bytes(pointer_bytes: int, *, layout: TableLayout = WIDE_TABLES) -> int:
    """Size of an instruction on the device."""
    if layout.compact and not layout.kernel_calls:
        return pointer_bytes
    return (1 if layout.compact else 2) * pointer_bytes + max(4, pointer_bytes)


def _arenas(
    program: Program, method: Method, planned: Sequence[ArenaFacts]
) -> Iterable[Arena]:
    facts = {found.memory_id: found for found in planned}
    for memory_id in range(1, len(method.arena_bytes)):
        is_shared = method.name in program.sharers and memory_id == SHARED_ID
        if memory_id in facts:
            yield Arena(
                memory_id=memory_id,
                size_bytes=facts[memory_id].size_bytes,
                peak_live_bytes=facts[memory_id].lower_bound_bytes,
                file_bytes=facts[memory_id].file_bytes,
                planner=facts[memory_id].planner,
            )
            continue
        yield Arena(
            memory_id=memory_id,
            size_bytes=method.arena_bytes[memory_id],
            peak_live_bytes=shared_bytes(program)
            if is_shared
            else peak_live_bytes(method, memory_id),
            shared=program.sharers if is_shared else (),
        )


def _method_memory(
    model: str,
    program: Program,
    method: Method,
    *,
    state_bytes: int,
    delegates: Mapping[str, int],
    planned: Sequence[ArenaFacts],
    scratch: Sequence[ScratchNeed],
) -> MethodMemory:
    most = most_items(method)
    return MethodMemory(
        model=model,
        method=method.name,
        arenas=tuple(_arenas(program, method, planned)),
        state_bytes=state_bytes,
        input_bytes=tuple(_value_bytes(method, i, most) for i in method.inputs),
        output_bytes=tuple(_value_bytes(method, i, most) for i in method.outputs),
        delegates=_delegate_states(method, delegates),
        caller_bytes=caller_bytes(method),
        scratch=tuple(need for need in scratch if need.method == method.name),
    )


def _value_bytes(method: Method, index: int, most: Mapping[int, int]) -> int:
    """Of a tensor, of those in a list, of the most that a list of numbers has."""
    value = method.values[index]
    if isinstance(value, BoolListValue):
        return most[index]
    if isinstance(value, NUMBER_LISTS):
        return most[index] * SCALAR_BYTES
    if not isinstance(value, (TensorValue, *TENSOR_LISTS)):
        return SCALAR_BYTES
    tensors = (method.values[i] for i in with_items(method, [index]))
    return sum(t.size_bytes for t in tensors if isinstance(t, TensorValue))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A block that a memory has to be found for.

    Args:
        section: Its linker section.
        size_bytes: Of the block.
        regions: Memories to choose from, the first that has room.
        what: For messages.
        model: Whose line of the profile messages show.
        region: Name of the memory that the profile chose.
    """

    section: str
    size_bytes: int
    regions: Sequence[Region]
    what: str
    model: str
    region: str | None = None


def _blocks(
    plan: MemoryPlan, board: Board, pins: Mapping[str, Pins]
) -> Iterable[_Block]:
    weights, code = board.places.weights, board.places.code
    flash = [
        r for r in board.regions if r.kind == "flash" and weights in (None, r.name)
    ]
    # None begins at 0, as an ITCM does: no arena is at a null pointer. The memory that
    # code is copied to comes last.
    ram = [r for r in board.regions if r.kind == "ram" and r.origin]
    ram.sort(key=lambda r: r.name == code)
    if plan.caller_bytes:
        yield _Block(
            section=CALLER_SECTION,
            size_bytes=plan.caller_bytes,
            regions=ram,
            what="memory of the application for inputs and outputs that are not"
            " planned",
            model=plan.caller_model,
        )
    for common in plan.common:
        yield _Block(
            section=common_section(common.name),
            size_bytes=common.size_bytes,
            regions=[r for r in ram if common.region in (None, r.name)],
            what="what the arenas of all methods have in common",
            model="",
            region=common.region,
        )
    for model in plan.models:
        yield _Block(
            section=model_section(model.model),
            size_bytes=model.program_bytes,
            regions=flash,
            what=f'the program of model "{model.model}"',
            model=model.model,
            region=weights,
        )
        chosen = pins.get(model.model, NO_PINS)
        for method in model.methods:
            for arena in method.own_arenas:
                region = chosen.region(arena.memory_id)
                yield _Block(
                    section=arena_section(model.model, method.method, arena.memory_id),
                    size_bytes=arena.size_bytes,
                    regions=[r for r in ram if region in (None, r.name)],
                    what=f'arena {arena.memory_id} of model "{model.model}",'
                    f" method {method.method}",
                    model=model.model,
                    region=region,
                )


def _place(
    plan: MemoryPlan,
    board: Board,
    spans: Mapping[str, SourceSpan],
    pins: Mapping[str, Pins],
) -> tuple[Placement, ...]:
    """First fit in the board's order of regions, after what the profile places."""
    free = {r.name: r.size_bytes for r in board.regions}
    flash = [r.name for r in board.regions if r.kind == "flash"]
    ram = [r.name for r in board.regions if r.kind == "ram"]
    # Whether a single flash is large enough, the linker knows exactly; of the
    # boards we have, none is so small that it would matter.
    reserve = not board.is_own or len(flash) > 1
    free[flash[0]] -= CODE_RESERVE_BYTES if reserve else 0
    free[ram[0]] -= RAM_RESERVE_BYTES + board.stack_bytes + plan.state_bytes
    blocks = list(_blocks(plan, board, pins))
    placed: dict[str, Placement] = {}
    problems: list[Diagnostic] = []
    for block in sorted(blocks, key=lambda b: b.region is None):
        size = block.size_bytes
        region = next((r for r in block.regions if size <= free[r.name]), None)
        if region is None:
            problems.append(_too_small(block, board, free, spans))
            continue
        free[region.name] -= aligned(size)
        placed[block.section] = Placement(
            section=block.section, region=region.name, size_bytes=size
        )
    if problems:
        raise MemoryPlanError(problems)
    return tuple(placed[block.section] for block in blocks)


def _too_small(
    block: _Block,
    board: Board,
    free: Mapping[str, int],
    spans: Mapping[str, SourceSpan],
) -> Diagnostic:
    return Diagnostic(
        code="memory-too-small",
        message=f"{block.what} does not fit {block.region or board.name}",
        where=spans.get(block.model),
        notes=(
            ("needs", f"{block.size_bytes} bytes"),
            *(
                (
                    "region",
                    f"{r.name}: {max(free[r.name], 0)} of {r.size_bytes} bytes free",
                )
                for r in block.regions
            ),
        ),
        hint="choose another memory for it, or a smaller model"
        if block.region
        else "choose a board with more memory, or a smaller model",
    )
