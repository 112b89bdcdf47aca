"""Sizes that the inputs of a model may have, as PyTorch's export knows them.

ExecuTorch writes the largest sizes into a program, not the least ones, and not that a
size is a multiple of something.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import torch
from torch.utils._sympy.value_ranges import bound_sympy


def size_bounds(program: Any) -> list[dict[str, int]]:
    """The fields of a `SizeBound` for each dimension that may not have all sizes.

    Args:
        program: The exported program, before ExecuTorch lowers it.
    """
    values = {
        node.name: node.meta.get("val")
        for node in program.graph.nodes
        if node.op == "placeholder"
    }
    found = []
    for number, name in enumerate(program.graph_signature.user_inputs):
        value = values.get(name) if isinstance(name, str) else None
        for dim, size in enumerate(getattr(value, "shape", ())):
            if not isinstance(size, torch.SymInt):
                continue
            least, step = _least_and_step(size.node.expr, program.range_constraints)
            if least > 0 or step > 1:
                bound = {"input": number, "dim": dim, "least": least, "step": step}
                found.append(bound)
    return found


def _least_and_step(size: Any, ranges: Any) -> tuple[int, int]:
    """The least size, and from one to the next: `4 * n + 1` has steps of 4."""
    constant, terms = size.as_coeff_add()
    factors = [term.as_coeff_Mul()[0] for term in terms]
    whole = constant.is_Integer and all(factor.is_Integer for factor in factors)
    step = gcd(*map(int, factors)) if whole else 1
    lowest = ranges.get(size) or bound_sympy(size, ranges)
    least = max(int(lowest.lower), 0)
    return least + (int(constant) - least) % step if whole else least, step
