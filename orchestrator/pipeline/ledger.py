"""What passes did to the models of a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.stages.prelink.ledger import ledger_lines

if TYPE_CHECKING:
    from orchestrator.core.passes import MethodPasses
    from orchestrator.pipeline.stages import Stages
    from orchestrator.plan import BuildPlan
    from orchestrator.reporter import Reporter


def prelink_ledger(stages: Stages, plan: BuildPlan) -> tuple[MethodPasses, ...]:
    """By method of all models, in the profile's order."""
    found = stages.adapted(plan).values()
    return tuple(of for adapted in found for of in adapted.ledger)


def prelink_lines(stages: Stages, plan: BuildPlan) -> list[str]:
    """The same as text; nothing without models."""
    return [*ledger_lines(prelink_ledger(stages, plan))]


def explain_passes(stages: Stages, plan: BuildPlan, reporter: Reporter) -> None:
    """Tell what passes did."""
    for line in prelink_lines(stages, plan):
        reporter.explained(line)
