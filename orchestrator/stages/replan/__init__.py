"""Stage `replan`: programs made right for the target, memory laid out afresh."""

from orchestrator.stages.replan.adapt import (
    Adapted,
    PlanProofError,
    adapt_linked,
    adapt_program,
    with_scratch,
)
from orchestrator.stages.replan.scratch import scratch_problems

__all__ = [
    "Adapted",
    "PlanProofError",
    "adapt_linked",
    "adapt_program",
    "scratch_problems",
    "with_scratch",
]
