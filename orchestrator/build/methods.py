"""Stages prelink, replan and memory: models adapted to the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.build.borders import (
    border_problem,
    need_borders,
    unaligned_ports,
    unknown_ports,
    with_borders,
    with_bounds,
    with_streams,
)
from orchestrator.build.selecting import KernelFinder, Selector
from orchestrator.core.border import ModelIo
from orchestrator.core.bounds import SizeBound
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.core.rounding import WeightRounding
from orchestrator.emit.generate.prelinked import constants_bytes, constants_file
from orchestrator.errors import Diagnostic, MemoryPlanError, ModelError, SourceSpan
from orchestrator.memory.estimate import firmware_needs
from orchestrator.memory.plan import MemoryPlan, own_constants
from orchestrator.memory.product import plan_memory
from orchestrator.method.ledger import MethodPasses
from orchestrator.method.linked import Linkage, LinkedMethod
from orchestrator.method.passes import OPTIONAL, PASSES, BorderError, link_program, try_link
from orchestrator.method.replan import Adapted, free_memory_id, with_pinned, with_scratch
from orchestrator.method.separate import plan_faults, separated
from orchestrator.method.state import StateError, with_state
from orchestrator.planner import plan_blocks
from orchestrator.planner.blocks import Block, BlockPlan
from orchestrator.planner.policy import Fusing, Planner, ScratchPolicy, SharedState
from orchestrator.profile.choices import Load
from orchestrator.profile.tables import BudgetTable, IntegrityTable, PassesTable, ScratchTable
from orchestrator.program.edit import EditError
from orchestrator.program.problems import unsupported
from orchestrator.program.program import Program
from orchestrator.scratch import ScratchNeed, policy_problems, product_scratch
from orchestrator.selection.op_info import OpInfo, Selection
from orchestrator.selection.resolution import DelegateCode, Resolution
from orchestrator.shell.reporter import Reporter
from orchestrator.targets.boards import Board, Concurrency, Pins
from orchestrator.targets.cores import Target

if TYPE_CHECKING:
    from orchestrator.build.adapter import Restraints


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedModels:
    """All models as they are built, in the profile's order.

    Args:
        models: By name.
        selection: The operators of the kernel table and of the product's lists.
            Calls that passes removed from loaded models are not in it. Those
            removed from prelinked models are: the linker drops their kernels.
            Instruction numbers are those of the profile's programs.
        resolution: Kernels for it.
        warnings: What passes do not do, as the product would not fit.
    """

    models: Mapping[str, Adapted]
    selection: Selection
    resolution: Resolution
    warnings: tuple[str, ...] = ()

    @property
    def programs(self) -> dict[str, Program]:
        """Programs by model name."""
        return {name: a.program for name, a in self.models.items()}

    @property
    def linked(self) -> dict[str, tuple[LinkedMethod, ...]]:
        """Methods of prelinked models."""
        return {n: a.linked for n, a in self.models.items() if a.linked is not None}

    @property
    def rewritten(self) -> dict[str, tuple[LinkedMethod, ...]]:
        """Methods of loaded models that passes changed, without data."""
        return {n: a.passed for n, a in self.models.items() if a.passed is not None}

    @property
    def ledger(self) -> tuple[MethodPasses, ...]:
        """The pass records of all methods of all models."""
        return tuple(m for adapted in self.models.values() for m in adapted.ledger)

    @property
    def files(self) -> dict[str, Bytes]:
        """What goes into flash as it is, by path in the build folder.

        Programs that the device loads, and constants of those that it does not.
        """
        own = own_constants(self.linked)
        found: dict[str, Bytes] = {}
        for name, adapted in self.models.items():
            if adapted.linked is None:
                found[f"models/{name}.pte"] = adapted.program.data
                constants = tuple(e.data for e in adapted.program.external)
            else:
                constants = own[name]
            if constants:
                found[constants_file(name)] = constants_bytes(constants)
        return found


def find_scratch_needs(
    *,
    programs: Mapping[str, Program],
    resolution: Resolution,
    scratch: ScratchTable,
    isa: str,
    model_spans: Mapping[str, SourceSpan],
) -> dict[str, tuple[ScratchNeed, ...]]:
    """By model: the scratch memory of its calls.

    Raises:
        KernelError: The size for a call is unknown.
        MemoryPlanError: A program's scratch sizes violate the profile's policy.
    """
    if scratch.policy is ScratchPolicy.KEEP:
        return dict.fromkeys(programs, ())
    found = product_scratch(programs, resolution, isa)
    problems = [
        problem
        for name, needs in found.items()
        for problem in policy_problems(
            needs, scratch.policy, model=name, isa=isa, where=model_spans[name]
        )
    ]
    MemoryPlanError.raise_if(problems)
    return found


def mark_state(
    *,
    programs: Mapping[str, Program],
    resolution: Resolution,
    shared_state: Mapping[str, SharedState | None],
    planner: Planner,
    model_spans: Mapping[str, SourceSpan],
) -> dict[str, Program]:
    """Programs with their state marked, and with sound plans of memory.

    A program whose own plan is wrong gets memory of its own for every value.

    Raises:
        ModelError: Methods cannot share their state, as they should. Or a plan is wrong
            and the profile keeps it.
    """
    schemas = resolution.schemas
    marked: dict[str, Program] = {}
    problems: list[Diagnostic] = []
    for name, program in programs.items():
        try:
            found = with_state(program, schemas, shared_state[name])
        except StateError as error:
            problems.append(
                Diagnostic.of(
                    "state-not-shared",
                    f'the methods of model "{name}" cannot share their state',
                    where=model_spans[name],
                    found=str(error),
                    hint="export them together, with MemoryPlanningPass("
                    'share_mutable_buffers=True), or write shared_state = "no" to give'
                    " each method its own",
                )
            )
            continue
        faults = {m.name: plan_faults(m, schemas) for m in found.methods}
        # ExecuTorch 1.5.1 lays branches of torch.cond over results of an earlier one
        # (pytorch/executorch#21490): such a plan is replaced before anything relies on
        # it (decision 0039). SEPARATE is what the reference of `test` asks for.
        names = [method for method, of in faults.items() if of or planner is Planner.SEPARATE]
        if names and planner is Planner.KEEP:
            problems.append(
                Diagnostic(
                    code="unsound-plan",
                    message=f'the memory plan in model "{name}" is wrong',
                    where=model_spans[name],
                    notes=tuple(("found", faults[m][0].text(found.method(m))) for m in names),
                    hint='leave out planner = "keep": a plan of our own is right',
                )
            )
        marked[name] = separated(found, schemas, names)
    ModelError.raise_if(problems)
    return marked


def size_scratch(
    *,
    marked_programs: Mapping[str, Program],
    scratch_needs: Mapping[str, tuple[ScratchNeed, ...]],
    resolution: Resolution,
    pins: Mapping[str, Pins],
    span: Callable[..., SourceSpan],
) -> dict[str, Program]:
    """Programs with resized scratch tensors, and pinned tensors in their arenas."""
    schemas = resolution.schemas
    sized: dict[str, Program] = {}
    problems = []
    for number, (name, chosen) in enumerate(pins.items()):
        # With `verify` the sizes were checked before, and nothing has to change.
        # Before passes and planning: a scratch tensor is a value like any other to
        # them.
        program = with_scratch(marked_programs[name], scratch_needs[name])
        sized[name], unplaced = with_pinned(program, chosen, schemas)
        problems += [
            Diagnostic.of(
                "cannot-pin",
                f'{chosen.tensors[p.pin].text} of model "{name}",'
                f" method {p.method}, cannot have a place of its own",
                where=span("models", number, "tensors", p.pin, "tensor"),
                found=p.found,
                hint="name another tensor, or place its whole arena with `regions`",
            )
            for p in unplaced
        ]
    MemoryPlanError.raise_if(problems)
    return sized


def models_with_passes(*, loads: Mapping[str, Load], passes: PassesTable) -> tuple[str, ...]:
    """Names of the models that passes run on: all, unless every pass is skipped."""
    runs = len(passes.skip) < len(PASSES)
    return tuple(n for n, load in loads.items() if runs or load is Load.PRELINKED)


def prelink_models(
    *,
    pass_models: Sequence[str],
    sized_programs: Mapping[str, Program],
    op_infos: Mapping[str, OpInfo],
    resolution: Resolution,
    loads: Mapping[str, Load],
    passes: PassesTable,
    planner: Planner,
    isa: str,
    fast: bool,
    unaligned: bool,
    io: Mapping[str, ModelIo],
    rounding: Mapping[str, WeightRounding | None],
    span: Callable[..., SourceSpan],
    model_spans: Mapping[str, SourceSpan],
    reporter: Reporter,
) -> dict[str, Linkage]:
    """Stage prelink: link the models that passes run on, and run the passes.

    Raises:
        ModelError: A prelinked model cannot be linked; a loaded one need not be. Or an
            input or output cannot be as the profile says.
    """
    from orchestrator.build.adapter import Adapter  # noqa: PLC0415  # slow, see below

    # Schemas are empty: they are for loaded programs, which `replan` adapts.
    adapter = Adapter(
        passes=_passes(passes),
        schemas={},
        planner=_block_planner(planner),
        isa=isa,
        fast=fast,
        unaligned=unaligned,
    )
    linkages: dict[str, Linkage] = {}
    for number, model in enumerate(pass_models, 1):
        reporter.working(f"passes {model}", number, len(pass_models))
        program, info = sized_programs[model], op_infos[model]
        is_prelinked = loads[model] is Load.PRELINKED
        if is_prelinked:
            where = model_spans[model]
            methods = link_program(program, info, resolution, where=where)
            linkage = Linkage(methods=methods)
        # Linking would fail with indices of the linked method, which nobody can look up
        # in the file.
        elif any([*unsupported(model, program, m, None)] for m in program.methods):
            # Stage memory reports it, with the value indices of the file.
            linkage = Linkage(methods=(), problems=("not supported",))
        else:
            linkage = try_link(program, info, resolution)
        if not linkage.problems:
            linkage = replace(
                linkage,
                before=tuple(
                    replace(m, io=io[model], rounding=rounding[model]) for m in linkage.methods
                ),
            )
            try:
                linkage = adapter.passed(linkage, program, is_prelinked=is_prelinked)
            except BorderError as error:
                found = border_problem(model, error, [*loads], span)
                raise ModelError(found) from error
        linkages[model] = linkage
    # After linking, as ports count per method.
    ModelError.raise_if([*unknown_ports(sized_programs, io, [*loads], span)])
    return linkages


def _passes(passes: PassesTable) -> list[str]:
    """Names of the passes that the profile does not skip, and those that it wants."""
    # They change last bits or weights, so they run only where the profile asks.
    optional = {name for name in OPTIONAL if not getattr(passes, name)}
    return [name for name in PASSES if name not in {*passes.skip, *optional}]


def replan_models(
    *,
    programs: Mapping[str, Program],
    sized_programs: Mapping[str, Program],
    linkages: Mapping[str, Linkage],
    loads: Mapping[str, Load],
    passes: PassesTable,
    planner: Planner,
    fusing: Fusing | None,
    max_step_cycles: int | None,
    isa: str,
    fast: bool,
    io: Mapping[str, ModelIo],
    size_bounds: Mapping[str, Mapping[str, tuple[SizeBound, ...]]],
    span: Callable[..., SourceSpan],
    op_infos: Mapping[str, OpInfo],
    selection: Selection,
    resolution: Resolution,
    selector: Selector,
    kernel_finder: KernelFinder,
    memory_planner: MemoryPlanner,
    model_spans: Mapping[str, SourceSpan],
    target: Target,
    speed_budget: BudgetTable | None,
    reporter: Reporter,
) -> AdaptedModels:
    """Stage replan: lay memory out again, and find kernels for the remaining calls.

    Passes that cost more than they save are left out.
    """
    # Row plans take 50 ms to import, which commands save whose stages are all known.
    from orchestrator.build.adapter import Adapter, Judge  # noqa: PLC0415
    from orchestrator.build.stepping import most_instructions, step_problems  # noqa: PLC0415

    adapter = Adapter(
        passes=_passes(passes),
        schemas=resolution.schemas,
        planner=_block_planner(planner),
        isa=isa,
        fast=fast,
        unaligned=target.unaligned,
        fusing=fusing,
        most_step=most_instructions(target, max_step_cycles),
    )

    def adapt(name: str, linkage: Linkage) -> Adapted:
        # The original for indices and plans of the file, which messages and `decode`
        # show.
        original, program = programs[name], sized_programs[name]
        try:
            if loads[name] is Load.PRELINKED:
                model = adapter.prelinked(original, program, linkage.methods)
            else:
                model = adapter.loaded(name, original, program, linkage, io[name])
                need_borders(name, model, io[name], [*loads], span)
        except BorderError as error:
            found = border_problem(name, error, [*loads], span)
            raise ModelError(found) from error
        except EditError as error:
            raise ModelError.of(
                "unsupported-program",
                f'model "{name}" cannot be given the scratch memory that its kernels need',
                where=model_spans[name],
                found=str(error),
                hint="export the model again with ExecuTorch's own exporter",
            ) from error
        bordered = with_streams(with_borders(model, linkage), original, io[name])
        return with_bounds(bordered, size_bounds.get(name, {}))

    def restrained(name: str, restraints: Restraints) -> Adapted:
        is_prelinked, program = loads[name] is Load.PRELINKED, sized_programs[name]
        linkage = adapter.passed(
            linkages[name], program, is_prelinked=is_prelinked, restraints=restraints
        )
        return adapt(name, linkage)

    models: dict[str, Adapted] = {}
    for number, name in enumerate(sized_programs, 1):
        reporter.working(f"memory of {name}", number, len(sized_programs))
        models[name] = adapt(name, linkages.get(name, Linkage(methods=())))
    judge = Judge(
        restrained=restrained,
        plan=lambda tried, board: memory_planner(
            AdaptedModels(models=tried, selection=selection, resolution=resolution), board, {}
        ),
        board=target.board,
        budget=speed_budget,
    )
    judged, warnings = judge.judged(models, linkages)
    adapted = AdaptedModels(
        models=judged, selection=selection, resolution=resolution, warnings=warnings
    )
    # Only now are offsets final.
    problems = [*unaligned_ports(adapted.models, io, [*loads], span)]
    if max_step_cycles is not None:
        where = span("schedule", "max_step_cycles")
        problems += step_problems(judged, max_step_cycles, target, where)
    ModelError.raise_if(problems)
    before = list(op_infos.values())
    # A loaded program loses calls for good: its firmware needs no kernel for them. In a
    # prelinked one the linker drops what nothing names.
    after = [_remaining_calls(info, adapted.models[info.model]) for info in before]
    if after == before:
        return adapted
    selection = selector(after)
    return replace(adapted, selection=selection, resolution=kernel_finder(selection))


def _block_planner(planner: Planner) -> Callable[[Sequence[Block]], BlockPlan] | None:
    """The planner of arenas; None if they keep their offsets."""
    # SEPARATE gave each value its place already, and a plan would join them again.
    if planner in (Planner.KEEP, Planner.SEPARATE):
        return None
    return partial(plan_blocks, planner="best" if planner is Planner.BEST else "greedy")


def _remaining_calls(info: OpInfo, adapted: Adapted) -> OpInfo:
    """The calls of a model that remain after passes."""
    if adapted.passed is None:
        return info
    kept = {(m.name, origin) for m in adapted.passed for origin in m.origins}
    return replace(
        info,
        operators=tuple(
            (method.name, operator)
            for method in adapted.program.methods
            for operator in method.operators
        ),
        calls=tuple(c for c in info.calls if (c.method, c.instruction) in kept),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlanner:
    """Plans the memory of models after passes; stage replan tries models with it, too."""

    programs: Mapping[str, Program]
    target: Target
    delegates: Sequence[DelegateCode]
    pins: Mapping[str, Pins]
    concurrency: Concurrency
    alignment: int
    integrity: IntegrityTable
    updates: Mapping[str, str]
    model_spans: Mapping[str, SourceSpan]

    def __call__(
        self,
        adapted: AdaptedModels,
        board: Board | None,
        scratch: Mapping[str, tuple[ScratchNeed, ...]],
    ) -> MemoryPlan:
        """The plan of some models.

        Args:
            adapted: The models.
            board: Where they have to fit; None for anywhere.
            scratch: By model: the scratch memory of its calls.

        Raises:
            ModelError: A program needs what the runtime does not offer.
            MemoryPlanError: A block fits no region of the board.
        """
        # Names of parts in memory/code_sizes.json, whose code counts only if it is
        # linked.
        parts = {"integrity"} if self.integrity.check.value != "never" else set[str]()
        parts |= {"update"} if self.updates else set()
        return plan_memory(
            adapted.programs,
            pointer_bytes=self.target.cpu.pointer_bytes,
            board=board,
            spans=self.model_spans,
            linked=adapted.linked,
            delegates=_delegate_states(self.programs, self.delegates),
            planned={name: model.arenas for name, model in adapted.models.items()},
            scratch=scratch,
            pins=all_pins(self.pins, self.programs),
            concurrency=self.concurrency,
            alignment=self.alignment,
            needs=firmware_needs(
                adapted.programs, adapted.linked, adapted.resolution, self.target, parts=parts
            ),
        )


def plan_adapted_memory(
    *,
    adapted: AdaptedModels,
    memory_planner: MemoryPlanner,
    target: Target,
    scratch_needs: Mapping[str, tuple[ScratchNeed, ...]],
) -> MemoryPlan:
    """Stage memory: plan the memory of the models after passes. Raises as the planner."""
    return memory_planner(adapted, target.board, scratch_needs)


def all_pins(pins: Mapping[str, Pins], programs: Mapping[str, Program]) -> dict[str, Pins]:
    """Memories of arenas, with those of pinned tensors."""
    return {
        name: chosen.with_tensor_arenas(free_memory_id(programs[name]))
        for name, chosen in pins.items()
    }


def plan_file_memory(
    *,
    programs: Mapping[str, Program],
    target: Target,
    delegates: Sequence[DelegateCode],
    pins: Mapping[str, Pins],
    concurrency: Concurrency,
    model_spans: Mapping[str, SourceSpan],
) -> MemoryPlan:
    """Plan the memory of unchanged programs, where a gap prevents adapting them.

    Raises:
        ModelError: A program needs what the runtime does not offer.
        MemoryPlanError: A block fits no region of the board.
    """
    return plan_memory(
        programs,
        pointer_bytes=target.cpu.pointer_bytes,
        board=target.board,
        spans=model_spans,
        delegates=_delegate_states(programs, delegates),
        pins=pins,
        concurrency=concurrency,
    )


def _delegate_states(
    programs: Mapping[str, Program], delegates: Sequence[DelegateCode]
) -> dict[str, int]:
    """State bytes of the delegates that programs need, by backend."""
    needed = {d.backend for p in programs.values() for m in p.methods for d in m.delegates}
    return {c.backend: c.part_bytes for c in delegates if c.backend in needed}
