"""What some kernels compute from constants, bit for bit, in Python.

A call of a method comes in, with the values of that method; what goes out is what the
call writes or returns, or None where only the device can tell. Which kernels have an
evaluator, and why others have none, is in docs/constants.md.
"""

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
