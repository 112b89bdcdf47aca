"""Stages `prelink` and `replan`: models made right for the target."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from orchestrator.errors import Diagnostic, MemoryPlanError, ModelError
from orchestrator.method.linked import Linkage
from orchestrator.planner.policy import Planner, ScratchPolicy
from orchestrator.program.edit import EditError
from orchestrator.program.unsupported import unsupported
from orchestrator.scratch import policy_problems, product_scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.build.plan import BuildPlan
    from orchestrator.build.stages import Stages
    from orchestrator.core.operator import OperatorName, OpSchema
    from orchestrator.memory.plan import MemoryPlan
    from orchestrator.method.replan import Adapted
    from orchestrator.planner.blocks import Block, BlockPlan
    from orchestrator.program.program import Program
    from orchestrator.scratch import ScratchNeed


_OUTSIDE: Final = "constants that lie outside the program stay there"


def scratch_needs(
    stages: Stages, plan: BuildPlan
) -> dict[str, tuple[ScratchNeed, ...]]:
    """By model: scratch memory of its calls.

    Raises:
        KernelError: The size for a call is unknown.
        MemoryPlanError: The profile's policy does not allow what a program has.
    """
    policy = stages.profile.scratch.policy
    if policy is ScratchPolicy.KEEP:
        return dict.fromkeys(stages.programs, ())
    isa = stages.target.isa.name
    found = product_scratch(stages.programs, stages.resolution(plan), isa)
    problems = [
        problem
        for name, needs in found.items()
        for problem in policy_problems(
            needs, policy, model=name, isa=isa, where=stages.model_spans[name]
        )
    ]
    if problems:
        raise MemoryPlanError(problems)
    return found


def prelink(stages: Stages, plan: BuildPlan) -> dict[str, Linkage]:
    """Stage prelink: methods after the passes, of all models that passes run on.

    Raises:
        ModelError: A prelinked model cannot be linked; one that is loaded may.
    """
    from orchestrator.method.passes import (  # noqa: PLC0415
        MAKES_CONSTANTS,
        link_program,
        run_passes,
        try_link,
    )

    names = _passes(stages)
    infos = {info.model: info for info in stages.op_infos(plan)}
    programs, resolution = _sized(stages, plan), stages.resolution(plan)
    found = {}
    for model in stages.passed:
        program, info = programs[model], infos[model]
        if model in stages.prelinked:
            where = stages.model_spans[model]
            methods = link_program(program, info, resolution, where=where)
            linkage = Linkage(methods=methods)
        elif any([*unsupported(model, program, m, None)] for m in program.methods):
            # Stage memory tells, by the values of the file.
            linkage = Linkage(methods=(), problems=("not supported",))
        else:
            linkage = try_link(program, info, resolution)
        if not linkage.problems:
            is_outside = bool(program.external) and model not in stages.prelinked
            refused = dict.fromkeys(MAKES_CONSTANTS, _OUTSIDE) if is_outside else {}
            methods = tuple(
                run_passes(method, names, planned=False, refused=refused)
                for method in linkage.methods
            )
            linkage = replace(linkage, methods=methods)
        found[model] = linkage
    return found


def _passes(stages: Stages) -> list[str]:
    """Names of the passes that the profile does not skip."""
    from orchestrator.method.passes import PASSES  # noqa: PLC0415

    skip = stages.profile.prelink.skip
    return [name for name in PASSES if name not in skip]


def replan(stages: Stages, plan: BuildPlan) -> dict[str, Adapted]:
    """Stage replan: every model as it is built, in the profile's order."""
    from orchestrator.build.passing import Adapting  # noqa: PLC0415  # numpy

    linked = stages.unplanned(plan)
    work = Adapting(
        names=_passes(stages), schemas=_schemas(stages, plan), plan=_planner(stages)
    )
    found = {}
    for name, program in _sized(stages, plan).items():
        original = stages.programs[name]
        try:
            if name in stages.prelinked:
                found[name] = work.prelinked(original, program, linked[name].methods)
            else:
                found[name] = work.loaded(
                    name, original, program, linked.get(name, Linkage(methods=()))
                )
        except EditError as error:
            raise ModelError(
                Diagnostic(
                    code="unsupported-program",
                    message=f'model "{name}" cannot be given the scratch memory that'
                    " its kernels need",
                    where=stages.model_spans[name],
                    notes=(("found", str(error)),),
                    hint="export the model again with ExecuTorch's own exporter",
                )
            ) from error
    return found


def _planner(stages: Stages) -> Callable[[Sequence[Block]], BlockPlan] | None:
    """What lays arenas out; None if they keep their offsets."""
    from orchestrator.planner import plan_blocks  # noqa: PLC0415

    choice = stages.profile.memory.planner
    if choice is Planner.KEEP:
        return None
    return partial(plan_blocks, planner="best" if choice is Planner.BEST else "greedy")


def _sized(stages: Stages, plan: BuildPlan) -> dict[str, Program]:
    """Programs with scratch tensors of the right size, pinned ones in their arenas."""
    from orchestrator.method.replan import with_pinned, with_scratch  # noqa: PLC0415

    needs = scratch_needs(stages, plan)
    schemas = _schemas(stages, plan)
    found, problems = {}, []
    for number, model in enumerate(stages.profile.models):
        # Where the profile asks to verify, everything is as it has to be already.
        program = with_scratch(stages.programs[model.name], needs[model.name])
        found[model.name], refused = with_pinned(program, model.pins, schemas)
        problems += [
            Diagnostic(
                code="cannot-pin",
                message=f'{model.pins.tensors[p.pin].text} of model "{model.name}",'
                f" method {p.method}, cannot have a place of its own",
                where=stages.profile.span("models", number, "tensors", p.pin, "tensor"),
                notes=(("found", p.found),),
                hint="name another tensor, or place its whole arena with `regions`",
            )
            for p in refused
        ]
    if problems:
        raise MemoryPlanError(problems)
    return found


def _schemas(stages: Stages, plan: BuildPlan) -> dict[OperatorName, OpSchema]:
    return {o.name: o.schema for o in stages.resolution(plan).operators}


def model_files(stages: Stages, plan: BuildPlan) -> dict[str, bytes]:
    """Programs as the device loads them, by path in the build folder."""
    return {
        f"models/{name}.pte": adapted.program.data
        for name, adapted in stages.adapted(plan).items()
        if adapted.linked is None
    }


def memory_of(stages: Stages, plan: BuildPlan | None) -> MemoryPlan:
    """Stage memory: of the models as they are built; without a plan, as they are.

    Raises:
        ModelError: A program needs what the runtime does not offer.
        MemoryPlanError: A block fits no region of the board.
    """
    from orchestrator.memory.product import plan_memory  # noqa: PLC0415
    from orchestrator.method.replan import free_memory_id  # noqa: PLC0415

    adapted = stages.adapted(plan) if plan is not None else {}
    pins = {model.name: model.pins for model in stages.profile.models}
    if plan is not None:
        pins = {
            name: chosen.with_tensor_arenas(free_memory_id(stages.programs[name]))
            for name, chosen in pins.items()
        }
    return plan_memory(
        stages.built(plan) if plan is not None else stages.programs,
        pointer_bytes=stages.target.cpu.pointer_bytes,
        board=stages.target.board,
        spans=stages.model_spans,
        linked=stages.linked(plan) if plan is not None else {},
        delegates=stages.libraries.delegate_states(stages.programs.values()),
        planned={name: found.arenas for name, found in adapted.items()},
        kept={n: found.kept for n, found in adapted.items() if found.kept is not None},
        scratch=scratch_needs(stages, plan) if plan is not None else {},
        pins=pins,
        concurrency=stages.profile.memory.concurrency,
    )


def firmware_facts_of(stages: Stages, plan: BuildPlan) -> tuple[tuple[str, str], ...]:
    """What the product has for programs that come later."""
    from orchestrator.build.selecting import (  # noqa: PLC0415
        product_resolution,
    )
    from orchestrator.compat.check import firmware_of  # noqa: PLC0415
    from orchestrator.compat.firmware import firmware_facts  # noqa: PLC0415

    firmware = firmware_of(
        resolution=product_resolution(stages, plan),
        memory=stages.memory(plan),
        programs=stages.built(plan),
        pointer_bytes=stages.target.cpu.pointer_bytes,
        inline_constants=stages.loads_inline_constants,
        isa=stages.target.isa.name,
    )
    return firmware_facts(firmware)
