"""Adapt a program to the target, or the methods linked from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from orchestrator.core.border import NO_IO, ModelIo
from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.method.effects import MethodEffects, effects_of_linked, effects_of_method
from orchestrator.method.linked import LinkedMethod
from orchestrator.method.replan.flow import flow_of
from orchestrator.method.replan.layout import replan, resize_scratch
from orchestrator.method.replan.proof import PlanProofError, problems_of
from orchestrator.planner.blocks import ArenaFacts, Block, BlockPlan
from orchestrator.program.edit import EditError, with_methods
from orchestrator.program.program import Method, Program
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.ledger import MethodPasses
    from orchestrator.method.replan.layout import Replanned
    from orchestrator.scratch.needs import ScratchNeed

    Planner = Callable[[Sequence[Block]], BlockPlan]
    Schemas = Mapping[OperatorName, OpSchema]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """A model after passes and planning.

    Args:
        program: What the device loads; for a prelinked model, the program that was
            linked, with the new sizes of its arenas.
        linked: Methods of a prelinked model.
        arenas: By method, the result for each arena that could be planned.
        passed: Methods of a loaded model that passes changed: `program` was
            written from them; without data.
        ledger: Records of the passes.
    """

    program: Program = field(repr=False)
    linked: tuple[LinkedMethod, ...] | None = field(default=None, repr=False)
    arenas: tuple[tuple[ArenaFacts, ...], ...]
    passed: tuple[LinkedMethod, ...] | None = field(default=None, repr=False)
    ledger: tuple[MethodPasses, ...] = ()


def with_scratch(program: Program, needs: Iterable[ScratchNeed]) -> Program:
    """The decoded program with scratch tensors of the sizes that calls need.

    Its bytes stay those of the file.
    """
    by_method: dict[str, list[ScratchNeed]] = {}
    for need in needs:
        by_method.setdefault(need.method, []).append(need)
    methods = (resize_scratch(m, by_method.get(m.name, ())) for m in program.methods)
    return replace(program, methods=tuple(methods))


def adapt_program(
    original: Program,
    program: Program,
    schemas: Schemas,
    *,
    plan: Planner | None,
    io: ModelIo = NO_IO,
) -> Adapted:
    """Plan the memory of a program that the device loads.

    Args:
        original: As it was read.
        program: The same with scratch tensors of the right size.
        schemas: Of the operators that have a kernel.
        plan: The planner; None keeps the offsets.
        io: What the profile says of inputs and outputs.

    Raises:
        EditError: Scratch tensors cannot be resized in these bytes.
        PlanProofError: The plan is wrong.
    """
    if plan is not None:
        found = [
            _replanned(
                effects_of_method(m, schemas),
                m,
                of,
                program,
                plan,
                alignments=io.alignments(m.inputs, m.outputs),
            )
            for m, of in zip(program.methods, original.methods, strict=True)
        ]
        methods = [
            replace(m, values=r.values, arena_bytes=r.arena_bytes)
            for m, r in zip(program.methods, found, strict=True)
        ]
        arenas = tuple(r.arenas for r in found)
        # Files of unusual layout cannot be edited in place; they keep their offsets.
        try:
            return Adapted(program=_written(original, program, methods), arenas=arenas)
        except EditError:
            pass
    return Adapted(
        program=_written(original, program, program.methods),
        arenas=tuple(() for _ in program.methods),
    )


def _written(original: Program, program: Program, methods: Sequence[Method]) -> Program:
    return replace(with_methods(original, methods), sharers=program.sharers)


def adapt_linked(
    original: Program, program: Program, linked: Sequence[LinkedMethod], *, plan: Planner | None
) -> Adapted:
    """Plan the memory of linked methods, after passes.

    Args:
        original: As it was read.
        program: What they were linked from, with resized scratch tensors.
        linked: Its methods, in order.
        plan: The planner; None keeps the offsets.

    Raises:
        PlanProofError: The plan is wrong.
    """
    roomy = [_with_room(sized, m) for m, sized in zip(linked, program.methods, strict=True)]
    if plan is None:
        none: tuple[ArenaFacts, ...] = ()
        return Adapted(
            program=replace(program, methods=tuple(roomy)),
            linked=tuple(linked),
            arenas=(none,) * len(linked),
        )
    found = [
        _replanned(
            effects_of_linked(m),
            sized,
            of,
            program,
            plan,
            alignments=m.io.alignments(m.inputs, m.outputs),
        )
        for m, sized, of in zip(linked, roomy, original.methods, strict=True)
    ]
    methods = tuple(
        replace(m, arena_bytes=r.arena_bytes) for m, r in zip(program.methods, found, strict=True)
    )
    return Adapted(
        program=replace(program, methods=methods),
        linked=tuple(replace(m, values=r.values) for m, r in zip(linked, found, strict=True)),
        arenas=tuple(r.arenas for r in found),
    )


def can_plan(linked: LinkedMethod) -> bool:
    """Whether the memory of all arenas of a method can be planned."""
    effects = effects_of_linked(linked)
    return all(flow_of(effects, memory_id).is_clear for memory_id in linked.arenas - {SHARED_ID})


def _with_room(method: Method, linked: LinkedMethod) -> Method:
    """The method with arenas that hold what passes added at their ends."""
    sizes = list(method.arena_bytes)
    for value in linked.values:
        if isinstance(value, TensorValue) and value.allocation is not None:
            place = value.allocation
            end = place.offset_bytes + value.size_bytes
            if place.memory_id < len(sizes):
                sizes[place.memory_id] = max(sizes[place.memory_id], end)
    return replace(method, arena_bytes=tuple(sizes))


def _replanned(
    effects: MethodEffects,
    method: Method,
    original: Method,
    program: Program,
    plan: Planner,
    *,
    alignments: Mapping[int, int],
) -> Replanned:
    fixed = {SHARED_ID} if method.name in program.sharers else set[int]()
    found = replan(
        effects,
        method.arena_bytes,
        file_bytes=original.arena_bytes,
        fixed=fixed,
        plan=plan,
        alignments=alignments,
    )
    if problems := problems_of(effects, found.values, found.arena_bytes):
        raise PlanProofError("; ".join(problems))
    return found
