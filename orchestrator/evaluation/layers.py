"""Where a quantized program departs from its float model, layer by layer.

A program whose calls' results are all outputs, each in memory of its own, keeps every
one of them to the end. Results of both programs are then matched by what they hold.
Scales are not in a program, so each result is compared with the float one up to a
factor and an offset, which least squares find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.evaluation.metrics import Floats
from orchestrator.method.separate import separated
from orchestrator.program.interface import with_items
from orchestrator.program.program import KernelCall, Program
from orchestrator.program.values import TensorValue

# Each result is correlated with every one of equal size of the reference. Chosen by
# hand; docs/evaluate.md says the number.
MOST_ELEMENTS: Final = 4096
"""Elements of a result that are compared, evenly spaced."""
# docs/evaluate.md says 10 %.
LARGE: Final = 0.1
"""An error that counts as a departure: a tenth of the signal, 20 dB."""
# Chosen by hand.
_LEAST_LIKENESS: Final = 0.25
"""Squared correlation below which two results are not of the same layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A result of a call.

    Args:
        instruction: Index of the call in the program.
        operator: What it calls.
        sizes: Of the result.
        output: Number of the output of the probed method that has it.
    """

    instruction: int
    operator: str
    sizes: tuple[int, ...]
    output: int


def probed(
    program: Program, name: str, schemas: Mapping[OperatorName, OpSchema]
) -> tuple[Program, tuple[Probe, ...]]:
    """The program with every result of a method's calls as an output.

    Args:
        program: Its state is marked.
        name: Of the method; others are left out.
        schemas: Of the operators that have a kernel.
    """
    method = program.method(name)
    outputs = list(method.outputs)
    probes: dict[int, Probe] = {}
    for number, instruction in enumerate(method.instructions):
        if not isinstance(instruction, KernelCall):
            continue
        # The last argument is what it returns, or a list of that.
        for index in with_items(method, instruction.args[-1:]):
            value = method.values[index]
            if not isinstance(value, TensorValue) or value.numel < 2:  # noqa: PLR2004
                continue  # nothing that varies
            if value.allocation is None or value.is_mutable_state:
                continue
            if index in method.inputs:
                continue
            if index not in outputs:
                outputs.append(index)
            # A value that is written again has its last result.
            probes.pop(index, None)
            probes[index] = Probe(
                instruction=number,
                operator=str(method.operators[instruction.operator]),
                sizes=value.sizes,
                output=outputs.index(index),
            )
    made = replace(method, outputs=tuple(outputs), container=None)
    alone = replace(program, methods=(made,))
    return separated(alone, schemas, (name,)), tuple(probes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A result of the program beside that of the reference.

    Args:
        probe: The result.
        reference: That of the reference; None if none is like it.
        error: Root mean square of the difference over that of the signal, up to a
            factor and an offset; None without a reference.
    """

    probe: Probe
    reference: Probe | None
    error: float | None

    @property
    def sqnr_db(self) -> float | None:
        """The ratio in decibels; infinite without a difference."""
        if self.error is None:
            return None
        return float("inf") if not self.error else -20.0 * float(np.log10(self.error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """All layers in the order of the program.

    Args:
        samples: How many samples they are from.
        layers: One per result.
        first_large: Number of the first with an error above `LARGE`; None if none has.
        largest_step: Number of the one whose error grows most over that of the layer
            before; None if no error grows.
    """

    samples: int
    layers: tuple[Layer, ...]
    first_large: int | None
    largest_step: int | None


def signal(outputs: Sequence[Any]) -> Floats:
    """A result over all samples as one line of numbers, at most as many as compared."""
    parts = []
    for output in outputs:
        flat = np.asarray(output, np.float64).ravel()
        # Evenly spaced, not at random: the same samples give the same report.
        step = -(-flat.size // MOST_ELEMENTS) if flat.size else 1
        parts.append(flat[::step])
    return np.concatenate(parts)


def match_layers(
    mine: Sequence[tuple[Probe, Floats]], others: Sequence[tuple[Probe, Floats]], *, samples: int
) -> Layers:
    """Match results of a program with those of a reference, in the order of both.

    Args:
        mine: Results with their numbers over the same samples (`signal`).
        others: Likewise, of the reference.
        samples: How many there were.
    """
    likeness = np.zeros((len(mine), len(others)))
    for row, (probe, numbers) in enumerate(mine):
        for column, (other, wanted) in enumerate(others):
            if _sizes(probe) == _sizes(other) and numbers.size == wanted.size:
                likeness[row, column] = _squared_correlation(numbers, wanted)
    likeness[likeness < _LEAST_LIKENESS] = 0.0
    pairs = _in_order(likeness)
    layers = tuple(
        Layer(
            probe=probe,
            reference=others[pairs[row]][0] if row in pairs else None,
            # What is left after the best factor and offset: 1 - r squared of the
            # variance.
            error=float(np.sqrt(max(0.0, 1.0 - likeness[row, pairs[row]])))
            if row in pairs
            else None,
        )
        for row, (probe, _) in enumerate(mine)
    )
    found = [(i, layer.error) for i, layer in enumerate(layers) if layer.error is not None]
    first = next((i for i, error in found if error > LARGE), None)
    steps = [
        (error - before, i)
        for (_, before), (i, error) in zip([(0, 0.0), *found], found, strict=False)
        if error > before
    ]
    return Layers(
        samples=samples,
        layers=layers,
        first_large=first,
        largest_step=max(steps, key=lambda step: (step[0], -step[1]))[1] if steps else None,
    )


def _sizes(probe: Probe) -> tuple[int, ...]:
    """Sizes without leading ones, which exporters add and drop."""
    sizes = list(probe.sizes)
    while sizes and sizes[0] == 1:
        sizes.pop(0)
    return tuple(sizes)


def _squared_correlation(one: Floats, other: Floats) -> float:
    """1 if one is the other times a factor plus an offset; 0 if they share nothing."""
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return 0.0
    one, other = one - one.mean(), other - other.mean()
    norms = float(one @ one) * float(other @ other)
    if not norms or not np.isfinite(norms):
        return 0.0
    product = float(one @ other)
    # A negative factor is no scale.
    return min(1.0, product * product / norms) if product > 0 else 0.0


def _in_order(likeness: npt.NDArray[np.float64]) -> dict[int, int]:
    """Column by row: pairs in ascending order with the largest sum.

    Of equal sums the one with later columns: the result of an activation that the
    quantized program has fused into the call before.
    """
    rows, columns = likeness.shape
    # Dynamic programming, as for the longest common subsequence: the best pair of each
    # row by itself would cross others where several layers are alike.
    best = np.zeros((rows + 1, columns + 1))
    for row in range(rows):
        for column in range(columns):
            best[row + 1, column + 1] = max(
                best[row, column + 1],
                best[row + 1, column],
                best[row, column] + likeness[row, column],
            )
    pairs: dict[int, int] = {}
    row, column = rows, columns
    while row and column:
        here = best[row, column]
        gain = likeness[row - 1, column - 1]
        if gain and here == best[row - 1, column - 1] + gain:
            pairs[row - 1] = column - 1
            row, column = row - 1, column - 1
        elif here == best[row, column - 1]:
            column -= 1
        else:
            row -= 1
    return pairs
