"""Stage `replan`: adapt programs to the target, and lay memory out again."""

from orchestrator.method.replan.adapt import (
    Adapted,
    adapt_linked,
    adapt_program,
    can_plan,
    with_scratch,
)
from orchestrator.method.replan.layout import free_memory_id, with_pinned
from orchestrator.method.replan.proof import PlanProofError

__all__ = [
    "Adapted",
    "PlanProofError",
    "adapt_linked",
    "adapt_program",
    "can_plan",
    "free_memory_id",
    "with_pinned",
    "with_scratch",
]
