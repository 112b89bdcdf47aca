"""What passes did to the models of a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.method.passes.ledger_lines import ledger_lines

if TYPE_CHECKING:
    from orchestrator.build.plan import BuildPlan
    from orchestrator.build.stages import Stages
    from orchestrator.method.ledger import MethodPasses
    from orchestrator.shell.reporter import Reporter


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
