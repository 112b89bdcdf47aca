"""Sizes that the inputs of a model may have, as PyTorch's export knows them.

ExecuTorch writes the largest sizes into a program, not the least ones, and not that a
size is a multiple of something. It takes the largest size of each value from ranges in
which no size is less than 2, as PyTorch traces them: of `window[x.shape[0]:]` it plans
too little for an `x` of one item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import ceil, gcd
from typing import Any

import torch
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy


def size_bounds(program: Any) -> list[dict[str, int]]:
    """The fields of a `SizeBound` for each dimension that may not have all sizes.

    Args:
        program: The exported program, before ExecuTorch lowers it.
    """
    found = []
    for number, dim, size in _dynamic(program):
        least, step = _least_and_step(size.expr, program.range_constraints)
        if least > 0 or step > 1:
            bound = {"input": number, "dim": dim, "least": least, "step": step}
            found.append(bound)
    return found


def with_least_sizes(program: Any, bounds: Iterable[Mapping[str, int]]) -> None:
    """Let sizes of inputs be as small as they may when the largest values are planned.

    Args:
        program: The program after lowering; the ranges of its sizes are changed.
        bounds: Of `size_bounds`, before lowering.
    """
    least = {(bound["input"], bound["dim"]): bound["least"] for bound in bounds}
    for number, dim, size in _dynamic(program):
        (factor, symbol), constant = _linear(size.expr)
        if symbol is None:
            continue
        ranges = size.shape_env.var_to_range
        # torch.export traces with sizes of at least 2, as 0 and 1 are special to its
        # shapes; ExecuTorch 1.5.1 then plans with these ranges. Widened here, its upper
        # bounds hold for small inputs too (tests/interop/test_export.py).
        lowest = ceil((least.get((number, dim), 0) - constant) / factor)
        if symbol in ranges and lowest < ranges[symbol].lower:
            ranges[symbol] = ValueRanges(lowest, ranges[symbol].upper)


def _dynamic(program: Any) -> Iterator[tuple[int, int, Any]]:
    """Number of the input, dimension, and PyTorch's node of sizes that may change."""
    values = {
        node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"
    }
    for number, name in enumerate(program.graph_signature.user_inputs):
        value = values.get(name) if isinstance(name, str) else None
        for dim, size in enumerate(getattr(value, "shape", ())):
            if isinstance(size, torch.SymInt):
                yield number, dim, size.node


def _linear(size: Any) -> tuple[tuple[int, Any], int]:
    """Factor, symbol and constant of `4 * n + 1`; no symbol if it has another form."""
    constant, terms = size.as_coeff_add()
    # SymPy's parts of `factor * symbol + constant`, which is what torch.export derives
    # from Dim("n") * 4 + 1.
    factor, symbol = terms[0].as_coeff_Mul() if len(terms) == 1 else (constant, size)
    if constant.is_Integer and symbol.is_Symbol and factor.is_Integer and factor > 0:
        return (int(factor), symbol), int(constant)
    return (1, None), 0


def _least_and_step(size: Any, ranges: Any) -> tuple[int, int]:
    """The least size, and from one to the next: `4 * n + 1` has steps of 4."""
    constant, terms = size.as_coeff_add()
    factors = [term.as_coeff_Mul()[0] for term in terms]
    whole = constant.is_Integer and all(factor.is_Integer for factor in factors)
    step = gcd(*map(int, factors)) if whole else 1
    # What the user said of this very expression, else what follows for it from its
    # symbols.
    lowest = ranges.get(size) or bound_sympy(size, ranges)
    least = max(int(lowest.lower), 0)
    # The first size from the least one on that has the form `step * n + constant`.
    return least + (int(constant) - least) % step if whole else least, step
