"""What a product asks for, and its kernels: of its models as they are, and as built."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.build.decoding import decoded
from orchestrator.build.requested import requested
from orchestrator.core.operator import OperatorName
from orchestrator.errors import ProfileError
from orchestrator.selection.op_info import Origin

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from orchestrator.build.plan import BuildPlan
    from orchestrator.build.stages import Stages
    from orchestrator.method.replan import Adapted
    from orchestrator.selection.op_info import OpInfo, Selection
    from orchestrator.selection.resolution import Resolution

_LABEL = "select what passes left"


def union_of(stages: Stages, infos: Iterable[OpInfo]) -> Selection:
    """What models and profile ask for. Raises ProfileError."""
    from orchestrator.selection.aggregate import aggregate  # noqa: PLC0415

    lists = _operator_lists(stages)
    listed = [operator for found in lists for operator in found.operators]
    union = aggregate(infos, [*requested(stages.profile), *listed])
    every = stages.profile.operators.every or any(f.every_operator for f in lists)
    return replace(union, every_operator=every)


def _operator_lists(stages: Stages) -> list[Selection]:
    """What the files of `operators.include_yaml` ask for."""
    if not stages.profile.operators.include_yaml:
        return []
    from orchestrator.selection.selection_yaml import (  # noqa: PLC0415  # YAML
        read_operator_list,
    )

    lists, problems = [], []
    for index, file in enumerate(stages.profile.operators.include_yaml):
        named_by = stages.profile.span("operators", "include_yaml", index)
        try:
            data = stages.operator_files[stages.label(file.path)]
            found = read_operator_list(
                decoded(data, file=str(file.path)),
                file=str(file.path),
                origin=Origin(source="operators.include_yaml"),
            )
            lists.append(found)
        except ProfileError as error:
            note = ("named by", str(named_by))
            problems += [replace(d, notes=(*d.notes, note)) for d in error.diagnostics]
    if problems:
        raise ProfileError(tuple(dict.fromkeys(problems)))
    return lists


def resolved(stages: Stages, selection: Selection) -> Resolution:
    """Kernels for a selection. Raises KernelError with every gap."""
    from orchestrator.selection.resolve import resolve  # noqa: PLC0415

    return resolve(
        selection,
        stages.catalog,
        every_dtype=stages.profile.dtypes.select.value == "all",
        span_of=stages.span_of,
        elsewhere=stages.every_library,
        allow_missing=allowed_missing(stages),
        delegates=stages.libraries.delegates,
    )


def check_arguments(
    stages: Stages, infos: Collection[OpInfo], resolution: Resolution
) -> None:
    """Every call meets the conditions of its kernel. Raises KernelError."""
    from orchestrator.selection.resolve import check_calls  # noqa: PLC0415

    check_calls(
        stages.programs,
        infos,
        resolution,
        stages.catalog,
        span_of=stages.span_of,
        allow_missing=allowed_missing(stages),
    )


def allowed_missing(stages: Stages) -> list[str]:
    """Operators and backends that `operators.allow_missing` can mean."""
    allowed = stages.profile.operators.allow_missing
    return [name for item in allowed for name in allowed_names(item)]


def allowed_names(allowed: str) -> tuple[str, ...]:
    """What an item of `operators.allow_missing` can mean: a backend, an operator."""
    return (allowed, str(OperatorName.parse(allowed)))


def product_selection(stages: Stages, plan: BuildPlan) -> Selection:
    """What the kernel table and the lists of a product are made of.

    Calls that passes left out of models that are loaded are not in it. Those of
    prelinked models are: their kernels are dropped by the linker. Instructions are
    counted as in the programs of the profile.

    Raises:
        OrchestratorError: Of the stages up to replan.
    """
    return _found(stages, plan)[0]


def product_resolution(stages: Stages, plan: BuildPlan) -> Resolution:
    """Kernels for that; raises the same."""
    return _found(stages, plan)[1]


def _found(stages: Stages, plan: BuildPlan) -> tuple[Selection, Resolution]:
    known = stages.results.get(_LABEL)
    if isinstance(known, tuple):
        return known
    selection, resolution = stages.selection(plan), stages.resolution(plan)
    before = stages.op_infos(plan)
    adapted = stages.adapted(plan)
    after = [_left(info, adapted[info.model]) for info in before]
    if after != before:
        selection = union_of(stages, after)
        resolution = resolved(stages, selection)
    stages.results[_LABEL] = (selection, resolution)
    return selection, resolution


def _left(info: OpInfo, adapted: Adapted) -> OpInfo:
    """What a model calls as it is built."""
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
