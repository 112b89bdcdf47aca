"""Compute some kernels' results from constants in Python, bit for bit.

In: a call, with the values of its method. Out: the items or number that the call writes
or returns, or None where the device has to compute it. Which kernels have an evaluator,
and why others have none, is in docs/constants.md.
"""

from orchestrator.method.passes.evaluate.registry import (
    LIMITS,
    evaluated_kernels,
    has_evaluator,
    may_be_computed,
    may_be_number,
    number_of,
    results_of,
)

__all__ = [
    "LIMITS",
    "evaluated_kernels",
    "has_evaluator",
    "may_be_computed",
    "may_be_number",
    "number_of",
    "results_of",
]
