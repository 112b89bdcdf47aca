"""`orchestrator decode`: a status of the device as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import ExitCode
from orchestrator.pipeline import BuildOptions, Pipeline, load
from orchestrator.pipeline.facts import selection_facts
from orchestrator.pte.compact import table_layout
from orchestrator.running.status import explain_status, find_place, parse_status
from orchestrator.stages.memory import method_state_bytes

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Tell what a status means, where it comes from and what to do."""
    error = parse_status(args.code)
    pipeline = Pipeline(load(args.from_profile), BuildOptions())
    plan = pipeline.plan(with_toolchain=False)
    linked = pipeline.linked(plan)
    place = find_place(
        pipeline.programs,
        model=args.model,
        method=args.method,
        instruction=args.instruction,
        linked=linked | pipeline.passed_methods(plan),
    )
    facts = selection_facts(pipeline)
    pointer_bytes = pipeline.target.cpu.pointer_bytes
    if place.linked is not None and place.model in pipeline.prelinked:
        state_bytes = place.linked.state_bytes(
            pointer_bytes=pointer_bytes,
            compact=table_layout(pipeline.programs, linked).compact,
        )
    else:
        state_bytes = method_state_bytes(
            pipeline.built(plan)[place.model].method(place.method.name),
            pointer_bytes=pointer_bytes,
            delegates=facts.resolution.delegate_states,
        )
    found = explain_status(
        error,
        place,
        state_bytes=state_bytes,
        missing=[
            *(str(name) for name, _ in facts.gaps),
            *(missing.name for missing in facts.resolution.missing),
        ],
    )
    console.document(
        {
            "code": int(error),
            "name": error.name,
            "meaning": error.meaning,
            "model": place.model,
            "method": place.method.name,
            "instruction": place.instruction,
            "program_instruction": place.origin,
            "operator": place.operator or None,
            "source": place.source or None,
            "remedy": found.remedy,
            "sentence": found.sentence,
        }
    )
    source = f"\nexported from {place.source}" if place.source else ""
    console.data(found.sentence + source)
    return ExitCode.OK
