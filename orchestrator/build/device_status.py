"""Explain a status of the device for a product: for `decode` and `run`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from orchestrator.build import inputs, open_build, table
from orchestrator.build.facts import selection_facts
from orchestrator.build.project import Project
from orchestrator.build.reading import find_model_spans
from orchestrator.errors import OrchestratorError
from orchestrator.memory.product import method_state_bytes
from orchestrator.method.compact import table_layout
from orchestrator.running.protocol import CallResult, DeviceError
from orchestrator.running.report import Failure
from orchestrator.running.status import Explanation, explain_status, find_place
from orchestrator.running.values import Call


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
        # Two layouts of one fact: tables of a prelinked method, or the slots that the
        # loader makes. `StateTooSmall` has to name what the device uses.
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
    # A device that failed stops: there may be fewer results than calls.
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
            where = find_model_spans(profile=project.profile)[call.method.model]
            return Failure(explanation=found, where=where)
    return None
