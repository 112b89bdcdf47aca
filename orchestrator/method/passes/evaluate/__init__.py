"""What kernels compute from constants, bit for bit, in Python."""

from orchestrator.method.passes.evaluate.registry import (
    evaluated_kernels,
    has_evaluator,
    may_be_computed,
    number_of,
    results_of,
)

__all__ = [
    "evaluated_kernels",
    "has_evaluator",
    "may_be_computed",
    "number_of",
    "results_of",
]
