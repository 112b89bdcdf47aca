"""What a profile says of the weights of a model: fewer bits than the program has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightRounding:
    """int8 weights of convolutions and matrix products become numbers of 4 bits.

    Args:
        group: Inputs of a matrix product that share a step; None for all of an output.
    """

    group: int | None = None
