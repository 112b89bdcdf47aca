"""The facts about a product from which `why` and `why --not` answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from orchestrator.build import inputs, open_build, table
from orchestrator.build.engine import Build
from orchestrator.build.project import Project
from orchestrator.catalog import Catalog
from orchestrator.errors import KernelError, MemoryPlanError, ModelError, OrchestratorError
from orchestrator.explain import Facts, Outcome
from orchestrator.measure.size import SizeReport
from orchestrator.memory.product import method_state_bytes
from orchestrator.method.compact import table_layout
from orchestrator.running.protocol import CallResult, DeviceError
from orchestrator.running.report import Failure
from orchestrator.running.status import Explanation, explain_status, find_place
from orchestrator.running.values import Call
from orchestrator.selection.op_info import SelectedOperator
from orchestrator.selection.resolution import Resolution


def selection_facts(project: Project, build: Build) -> Facts:
    """Collect the facts for an answer; needs no compiler.

    Gaps do not raise: the facts hold them.

    Raises:
        OrchestratorError: A stage before resolve failed, or the report is
            damaged (`bad-report`).
    """
    before = selection = build[table.AGGREGATE]
    catalog, delegates = build[table.CATALOG], build[inputs.DELEGATES]
    every_dtype = build[inputs.DTYPES].select.value == "all"
    every_library = build[inputs.EVERY_LIBRARY]()

    def resolve_one(selected: SelectedOperator, catalog: Catalog) -> Outcome:
        from orchestrator.selection.resolve import resolve  # noqa: PLC0415

        try:
            resolution = resolve(
                replace(selection, operators=(selected,), delegates=(), every_operator=False),
                catalog,
                every_dtype=every_dtype,
                span_of=build[inputs.ORIGIN_SPAN],
                elsewhere=lambda: every_library,
            )
        except KernelError as error:
            return Outcome(gaps=error.diagnostics)
        return Outcome(bindings=tuple(b for o in resolution.operators for b in o.bindings))

    gaps = []
    try:
        resolution = build[table.RESOLVE]
        # Programs that cannot be built are shown as they are.
        with suppress(MemoryPlanError, ModelError):
            adapted = build[table.REPLAN]
            selection, resolution = adapted.selection, adapted.resolution
        allowed = {m.name for m in resolution.missing}
        gaps = [
            (selected.name, resolve_one(selected, catalog).gaps)
            for selected in selection.operators
            if str(selected.name) in allowed
        ]
    except KernelError:
        from orchestrator.selection.resolve import resolve  # noqa: PLC0415

        known = {code.backend for code in delegates}
        served = []
        for selected in selection.operators:
            if outcome := resolve_one(selected, catalog).gaps:
                gaps.append((selected.name, outcome))
            else:
                served.append(selected)
        resolution = resolve(
            replace(
                selection,
                operators=tuple(served),
                delegates=tuple(
                    (backend, origins)
                    for backend, origins in selection.delegates
                    if backend in known
                ),
            ),
            catalog,
            every_dtype=every_dtype,
            span_of=build[inputs.ORIGIN_SPAN],
            delegates=delegates,
        )
        # With `operators.all` an operator with gaps is linked although no call uses it;
        # it is shown as a gap.
        missing = {name for name, _ in gaps}
        resolution = Resolution(
            operators=tuple(o for o in resolution.operators if o.name not in missing),
            sources=resolution.sources,
            table_entries=tuple(e for e in resolution.table_entries if e.operator not in missing),
            delegates=resolution.delegates,
        )
    return Facts(
        profile=project.profile.name,
        file=str(project.profile.file),
        selection=selection,
        resolution=resolution,
        gaps=tuple(gaps),
        catalog=catalog,
        elsewhere=every_library,
        resolve=resolve_one,
        report=_report(project),
        named_data=tuple(
            (n, *d) for n, p in build[inputs.PROGRAMS].items() for d in p.delegate_data
        ),
        left_out=frozenset(
            {o.name for o in before.operators} - {o.name for o in selection.operators}
        ),
    )


def _report(project: Project) -> SizeReport | None:
    """The report of the last build; None if there is none."""
    from orchestrator.build.report_file import last_report  # noqa: PLC0415

    is_built = os.path.lexists(project.reports / "report.json")
    return last_report(project)[1] if is_built else None


# Explain a status of the device for a product: for `decode` and `run`.


def explain_device_error(
    project: Project,
    error: DeviceError,
    *,
    model: str | None,
    method: str | None,
    instruction: int | None,
) -> Explanation:
    """Explain a status: its meaning, its origin and what to do.

    Args:
        project: Project of the firmware on the device.
        error: The status.
        model: Name of the model; None if only one has the method.
        method: Name of the method; None if there is only one.
        instruction: Index that the device reported; None if it reported none.

    Raises:
        OrchestratorError: The profile cannot be built, or has no model, method or
            instruction of that name.
    """
    build = open_build(project)
    adapted = build[table.REPLAN]
    place = find_place(
        build[inputs.PROGRAMS],
        model=model,
        method=method,
        instruction=instruction,
        linked=adapted.linked | adapted.rewritten,
    )
    facts = selection_facts(project, build)
    pointer_bytes = build[inputs.TARGET].cpu.pointer_bytes
    if place.linked is not None and place.model in adapted.linked:
        state_bytes = place.linked.state_bytes(
            pointer_bytes=pointer_bytes,
            compact=table_layout(build[inputs.PROGRAMS], adapted.linked).compact,
        )
    else:
        state_bytes = method_state_bytes(
            adapted.programs[place.model].method(place.method.name),
            pointer_bytes=pointer_bytes,
            delegates=facts.resolution.delegate_states,
        )
    return explain_status(
        error,
        place,
        state_bytes=state_bytes,
        # An operator that the profile allows to be missing is a gap as well.
        missing=list(
            dict.fromkeys(
                (
                    *(str(name) for name, _ in facts.gaps),
                    *(missing.name for missing in facts.resolution.missing),
                )
            )
        ),
    )


def explain_failure(
    project: Project, calls: Sequence[Call], results: Sequence[CallResult]
) -> Failure | None:
    """Explain the device's status; None if there is no error, or no explanation."""
    for call, result in zip(calls, results, strict=False):
        if result.error is DeviceError.Ok:
            continue
        # A profile that no longer builds must not hide the device's status.
        with suppress(OrchestratorError):
            found = explain_device_error(
                project,
                result.error,
                model=call.method.model,
                method=call.method.name,
                instruction=result.instruction,
            )
            models = project.profile.models
            index = [model.name for model in models].index(call.method.model)
            key = "path" if models[index].source is None else "source"
            where = project.profile.span("models", index, key)
            return Failure(explanation=found, where=where)
    return None
