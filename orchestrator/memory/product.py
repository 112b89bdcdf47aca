"""Stage `memory`: every byte of RAM and program flash, and where it lies.

The offsets of planned tensors are those of the program; this stage computes what
they need, how far that is from the lower bound, and where blocks go on the board.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.errors import (
    Diagnostic,
    MemoryPlanError,
    ModelError,
    RegionOverflowError,
    SourceSpan,
)
from orchestrator.memory.plan import (
    CALLER_SECTION,
    Arena,
    CommonArena,
    CommonPlace,
    DelegateState,
    FirmwareNeeds,
    MemoryPlan,
    MethodMemory,
    ModelMemory,
    Placement,
    arena_section,
    common_section,
    model_section,
    own_constants,
    same_programs,
)
from orchestrator.method.compact import instruction_bytes, table_layout
from orchestrator.method.lifetimes import peak_live_bytes
from orchestrator.method.linked import LinkedMethod
from orchestrator.method.state import kept_arenas
from orchestrator.planner.blocks import ArenaFacts, aligned
from orchestrator.program.caller import caller_bytes
from orchestrator.program.interface import NUMBER_LISTS, TENSOR_LISTS, most_items, with_items
from orchestrator.program.problems import unsupported
from orchestrator.program.program import Method, Program
from orchestrator.program.shared import SHARED_ID, shared_bytes
from orchestrator.program.values import BoolListValue, TensorValue
from orchestrator.targets.boards import ARENA_ALIGNMENT, NO_PINS, NO_PLACES, Concurrency, Pins

if TYPE_CHECKING:
    from orchestrator.scratch.needs import ScratchNeed
    from orchestrator.targets.cores import Board, Region


# Blocks that arenas of several methods have in common, as they never run together.


def share_arenas(
    models: tuple[ModelMemory, ...],
    kept: Collection[tuple[str, str, int]],
    pins: Mapping[str, Pins],
) -> MemoryPlan:
    """Let arenas of methods overlap; those of one method lie beside each other.

    A block that only one method would use there is none: that method keeps its own.

    Args:
        models: With arenas of their own.
        kept: (model, method, memory id) of arenas whose content a method expects to
            find again: they stay on their own.
        pins: By model name: memories of the board that arenas have to lie in.
    """
    methods = [method for model in models for method in model.methods]
    users = Counter(n for m in methods for n in {n for _, n in _common_blocks(m, kept, pins)})
    sizes = {name: 0 for name in sorted(users) if users[name] > 1}

    def placed(method: MethodMemory) -> MethodMemory:
        names = {a.memory_id: n for a, n in _common_blocks(method, kept, pins) if n in sizes}
        # Arenas of one method are live at the same time: beside each other.
        ends = dict.fromkeys(sizes, 0)
        arenas = []
        for arena in method.arenas:
            name = names.get(arena.memory_id)
            if name is None:
                arenas.append(arena)
                continue
            place = CommonPlace(name=name, offset_bytes=aligned(ends[name]))
            ends[name] = place.offset_bytes + arena.size_bytes
            sizes[name] = max(sizes[name], ends[name])
            arenas.append(replace(arena, common=place))
        return replace(method, arenas=tuple(arenas))

    found = tuple(replace(m, methods=tuple(map(placed, m.methods))) for m in models)
    return MemoryPlan(
        models=found,
        common=tuple(
            CommonArena(
                name=name,
                size_bytes=size_bytes,
                region=name.removeprefix(_COMMON).removeprefix("_") or None,
            )
            for name, size_bytes in sizes.items()
        ),
    )


_COMMON = "common"


def _common_blocks(
    method: MethodMemory, kept: Collection[tuple[str, str, int]], pins: Mapping[str, Pins]
) -> Iterator[tuple[Arena, str]]:
    """Arenas that may overlap those of others, and the blocks for them.

    There is a block for each memory of the board that arenas have to lie in, and one
    for all others.
    """
    for arena in method.arenas:
        key = (method.model, method.method, arena.memory_id)
        # What methods share, or expect to find again, nothing else may write over.
        if arena.size_bytes and not arena.shared and key not in kept:
            region = pins.get(method.model, NO_PINS).region(arena.memory_id)
            yield arena, f"{_COMMON}_{region}" if region else _COMMON


# Numbers of programs have 64 bits.
SCALAR_BYTES = 8
# `kDelegateStateAlignment` of runtime/include/orch/delegate.h.
_STATE_WORD_BYTES = 8
# They were all that was kept free once: 50 models on an M55 then filled its ITCM with programs, and
# the link overflowed by 157,048 bytes. They stay, so that a change of the code moves nothing.
CODE_RESERVE_BYTES = 48 * 1024
"""Kept free in the first flash for code, if that leaves room for everything."""
RAM_RESERVE_BYTES = 1024
"""Kept free in the first RAM for variables, likewise."""


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
    needs: FirmwareNeeds | None = None,
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
        needs: What the firmware takes for code and variables; None leaves reserves.

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
            else program.size_bytes + sum(aligned(len(e.data)) for e in program.external)
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
    # Larger alignments are lines of a data cache, which nothing else may lie in.
    if alignment != ARENA_ALIGNMENT:
        models = tuple(_aligned(model, alignment) for model in models)

    def sequential() -> MemoryPlan:
        found = {
            (name, method.name, memory_id)
            for name, program in programs.items()
            for index, method in enumerate(program.methods)
            for memory_id in kept_arenas(method, linked[name][index] if name in linked else None)
        }
        return replace(share_arenas(models, found, pins), alignment=alignment)

    plan = MemoryPlan(models=models, alignment=alignment)
    if concurrency is Concurrency.SEQUENTIAL:
        plan = sequential()
    plan = replace(plan, needs=needs)
    if board is None:
        return plan
    if unknown := list(_unknown_arenas(plan, pins, spans)):
        raise MemoryPlanError(unknown)
    return _place(_Product(plan, board, pins), spans, sequential)


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
                yield Diagnostic.of(
                    "unknown-arena",
                    f'model "{model.model}" has no arena {memory_id}',
                    where=spans.get(model.model),
                    known=", ".join(map(str, known)) or "none",
                    hint="correct the memory id in `regions` of [[models]]",
                )


def method_state_bytes(
    method: Method, *, pointer_bytes: int, delegates: Mapping[str, int] = MappingProxyType({})
) -> int:
    """Size of the method state block the device loader needs, exactly.

    Args:
        method: Of the program.
        pointer_bytes: Of the target.
        delegates: State bytes of the delegates of the product, by backend. A product
            without any knows nothing of the delegates of a method.

    Source: sizes of `Value`, `Instruction` and `DelegateHandle`, and
    `kDelegateStateAlignment`, in runtime/include/orch/value.h, method.h and delegate.h,
    which assert them; layout in runtime/src/load_method.cpp and load_delegates.cpp.
    """
    value_bytes = 4 * pointer_bytes
    words = sum(
        1 + len(v.sizes) for v in method.values if isinstance(v, TensorValue) and v.is_dynamic
    )
    size = (
        len(method.values) * value_bytes
        + len(method.instructions) * instruction_bytes(pointer_bytes)
        + 4 * words
    )
    if delegates:
        # `DelegateHandle`: four pointers, or counts of their size.
        size += len(method.delegates) * 4 * pointer_bytes
    states = [delegates.get(d.backend, 0) for d in method.delegates]
    if not any(states):
        return size
    return sum(-(-part // _STATE_WORD_BYTES) * _STATE_WORD_BYTES for part in (size, *states))


def instructions_offset(method: Method, *, pointer_bytes: int) -> int:
    """Where in the method state the instructions begin, in bytes.

    Source: as for `method_state_bytes`.
    """
    return len(method.values) * 4 * pointer_bytes


def _arenas(program: Program, method: Method, planned: Sequence[ArenaFacts]) -> Iterable[Arena]:
    facts = {found.memory_id: found for found in planned}
    # ExecuTorch keeps memory id 0 for constants.
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
        delegates=tuple(
            DelegateState(backend=d.backend, state_bytes=delegates[d.backend])
            for d in method.delegates
            if d.backend in delegates
        ),
        caller_bytes=caller_bytes(method),
        scratch=tuple(need for need in scratch if need.method == method.name),
    )


def _value_bytes(method: Method, index: int, most: Mapping[int, int]) -> int:
    """Bytes of a tensor, of those in a list, or of the most that a list of numbers has."""
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


def _blocks(plan: MemoryPlan, board: Board, pins: Mapping[str, Pins]) -> Iterable[_Block]:
    weights, code = board.places.weights, board.places.code
    flash = [r for r in board.regions if r.kind == "flash" and weights in (None, r.name)]
    # None begins at 0, as an ITCM does: no arena is at a null pointer. The memory that
    # code is copied to comes last.
    ram = [r for r in board.regions if r.kind == "ram" and r.origin]
    ram.sort(key=lambda r: r.name == code)
    if plan.caller_bytes:
        yield _Block(
            section=CALLER_SECTION,
            size_bytes=plan.caller_bytes,
            regions=ram,
            what="memory of the application for inputs and outputs that are not planned",
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


def _capacity(
    plan: MemoryPlan, board: Board, *, code: int, tables: int, variables: int
) -> dict[str, int]:
    """Bytes of each memory that are left for programs and arenas."""
    free = {r.name: r.size_bytes for r in board.regions}
    flash = next(r.name for r in board.regions if r.kind == "flash")
    ram = next(r.name for r in board.regions if r.kind == "ram")
    # Code that runs from RAM lies in flash as well, from where the start-up copies it.
    free[flash] -= tables + (code if board.copies_code else 0)
    free[board.code_region.name] -= code
    free[ram] -= variables + board.stack_bytes + plan.state_bytes
    return free


def _reserved(plan: MemoryPlan, board: Board) -> dict[str, int]:
    """What is left beside reserves, whatever the code."""
    # Where there is one flash, nothing is gained by a reserve.
    several = len([r for r in board.regions if r.kind == "flash"]) > 1
    return _capacity(
        plan,
        replace(board, places=NO_PLACES),
        code=CODE_RESERVE_BYTES if several or not board.is_own else 0,
        tables=0,
        variables=RAM_RESERVE_BYTES,
    )


def _filled(
    blocks: Iterable[_Block], free: Mapping[str, int]
) -> tuple[dict[str, Placement], dict[str, int], list[_Block]]:
    """Each block in its first memory with room; what is left, and what failed."""
    left = {**free}
    placed: dict[str, Placement] = {}
    failed = []
    for block in blocks:
        size = block.size_bytes
        region = next((r for r in block.regions if size <= left[r.name]), None)
        if region is None:
            failed.append(block)
            continue
        left[region.name] -= aligned(size)
        placed[block.section] = Placement(
            section=block.section, region=region.name, size_bytes=size
        )
    return placed, left, failed


def _solved(
    blocks: Sequence[_Block], reserved: Mapping[str, int], free: Mapping[str, int]
) -> dict[str, Placement] | None:
    """Memories for all blocks; None if none were found.

    Reserves come first, so that a change of the code moves nothing while it fits them.
    Then the room that there is, in the order of the profile, and the largest first.
    """
    # Blocks that the profile gave a memory come first: they have no other.
    given = sorted(blocks, key=lambda b: b.region is None)
    largest = sorted(given, key=lambda b: (b.region is None, -b.size_bytes))
    for order, room in ((given, reserved), (given, free), (largest, free)):
        placed, left, failed = _filled(order, room)
        # What fills a memory to the end may count padding behind it.
        missing = (room[name] - n - free[name] for name, n in left.items())
        if not failed and all(size < ARENA_ALIGNMENT for size in missing):
            return placed
    return None


class _Product(NamedTuple):
    """What has to fit, and where."""

    plan: MemoryPlan
    board: Board
    pins: Mapping[str, Pins]

    def room(self) -> dict[str, int]:
        """What is left for blocks if the firmware needs the most that it may."""
        needs = self.plan.needs
        if needs is None:
            reserved = _reserved(self.plan, self.board)
            return {name: max(size, 0) for name, size in reserved.items()}
        return _capacity(
            self.plan,
            self.board,
            code=needs.code_bytes,
            tables=needs.table_bytes,
            variables=needs.variable_bytes,
        )


def _place(
    product: _Product, spans: Mapping[str, SourceSpan], sequential: Callable[[], MemoryPlan]
) -> MemoryPlan:
    """The plan with a memory for each block, with room for code and variables."""
    plan, board, pins = product
    blocks = list(_blocks(plan, board, pins))
    reserved, most = _reserved(plan, board), product.room()
    placed, least = _solved(blocks, reserved, most), most
    if placed is None and plan.needs:
        sure = replace(plan.needs, code_bytes=plan.needs.sure_code_bytes)
        least = product._replace(plan=replace(plan, needs=sure)).room()
        placed = _solved(blocks, reserved, least)
    if placed is None:
        _, left, failed = _filled(sorted(blocks, key=lambda b: b.region is None), least)
        hint = _remedy(product, most, sequential)
        over = {name: -size for name, size in least.items() if size < 0}
        if plan.needs and over:
            raise RegionOverflowError(over, hint)
        raise MemoryPlanError([_too_small(block, board, left, spans, hint) for block in failed])
    plan = replace(plan, placements=tuple(placed[block.section] for block in blocks))
    # Programs may lie in what the estimate wanted: only the linker then knows whether all fits.
    over = {r.name: plan.placed_bytes(r.name) - most[r.name] for r in board.regions}
    tight = ((r.name, r.size_bytes + over[r.name]) for r in board.regions)
    return replace(plan, tight=tuple(found for found in tight if over[found[0]] > 0))


def link_overflow(
    plan: MemoryPlan, board: Board, pins: Mapping[str, Pins], over: Mapping[str, int]
) -> RegionOverflowError:
    """What to say of memories that the linker found too small, by so many bytes."""
    product = _Product(plan, board, pins)
    room = product.room()
    # As the linker knows it: less than was estimated.
    for name, size in over.items():
        room[name] = plan.placed_bytes(name) - size
    return RegionOverflowError(over, _remedy(product, room, lambda: plan))


def _remedy(
    product: _Product, room: Mapping[str, int], sequential: Callable[[], MemoryPlan]
) -> str:
    """The first key of the profile that makes everything fit, if there is one.

    Args:
        product: What does not fit.
        room: What its blocks may take of each memory.
        sequential: Gives the plan of methods that run one at a time.
    """
    before = product.room()
    for text, changed in _changes(product, sequential):
        # What the linker found less, or more, than was estimated stays so with another key.
        free = {n: s + room[n] - before[n] for n, s in changed.room().items()}
        if _solved([*_blocks(*changed)], free, free) is not None:
            return f"{text}: everything fits then"
    return "choose a board with more memory, or a smaller model"


def _changes(
    product: _Product, sequential: Callable[[], MemoryPlan]
) -> Iterator[tuple[str, _Product]]:
    """Products of profiles with another key: what to write, and what follows."""
    plan, board, pins = product
    places, needs = board.places, plan.needs
    flash = [r.name for r in board.regions if r.kind == "flash"]
    for key in ("weights", "code"):
        for name in (*((None,) if getattr(places, key) else ()), *flash):
            moved = replace(board, places=replace(places, **{key: name}))
            text = f'set {key} = "{name}" in' if name else f"remove {key} from"
            yield f"{text} [memory]", product._replace(board=moved)
    for name in pins:
        rest = {other: chosen for other, chosen in pins.items() if other != name}
        text = f'remove region, regions and tensors of model "{name}"'
        yield text, product._replace(pins=rest)
    if needs and needs.smallest_code_bytes < needs.code_bytes:
        smallest = replace(needs, code_bytes=needs.smallest_code_bytes)
        changed = product._replace(plan=replace(plan, needs=smallest))
        yield 'set optimize = "size" in [target]', changed
    for region, whole in zip(board.regions, board.whole, strict=False):
        if region.size_bytes < whole.size_bytes:
            regions = [whole if r == region else r for r in board.regions]
            yield (
                f"give {region.name} {whole.size_bytes} bytes in [[memory.regions]]",
                product._replace(board=replace(board, regions=tuple(regions))),
            )
    yield (
        'set concurrency = "sequential" in [memory], where methods never run at once',
        product._replace(plan=replace(sequential(), needs=needs)),
    )


def _too_small(
    block: _Block, board: Board, free: Mapping[str, int], spans: Mapping[str, SourceSpan], hint: str
) -> Diagnostic:
    return Diagnostic(
        code="memory-too-small",
        message=f"{block.what} does not fit {block.region or board.name}",
        where=spans.get(block.model),
        notes=(
            ("needs", f"{block.size_bytes} bytes"),
            *(
                ("region", f"{r.name}: {max(free[r.name], 0)} of {r.size_bytes} bytes free")
                for r in block.regions
            ),
        ),
        hint=hint,
    )
