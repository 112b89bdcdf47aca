"""What passes did to the prelinked models of a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.stages.prelink.ledger import ledger_lines, ledger_of

if TYPE_CHECKING:
    from orchestrator.core.passes import MethodPasses
    from orchestrator.pipeline.stages import Stages
    from orchestrator.plan import BuildPlan
    from orchestrator.reporter import Reporter


def prelink_ledger(stages: Stages, plan: BuildPlan) -> tuple[MethodPasses, ...]:
    """By method of prelinked models, in the profile's order."""
    linked = stages.linked(plan).values()
    return ledger_of(method for methods in linked for method in methods)


def prelink_lines(stages: Stages, plan: BuildPlan) -> list[str]:
    """The same as text; nothing if no model is prelinked."""
    return [*ledger_lines(prelink_ledger(stages, plan))]


def explain_passes(stages: Stages, plan: BuildPlan, reporter: Reporter) -> None:
    """Tell what passes did."""
    for line in prelink_lines(stages, plan):
        reporter.explained(line)
