"""Sizes that inputs may have, of which a program file holds the largest only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBound:
    """Sizes that a dimension of an input may have: the least, and every step from it.

    Args:
        input: Index of the input.
        dim: The dimension.
        least: The least size.
        step: From one size to the next.
    """

    input: int
    dim: int
    least: int
    step: int

    def allows(self, size: int) -> bool:
        """Whether the dimension may have a size."""
        return size >= self.least and (size - self.least) % self.step == 0

    def __str__(self) -> str:
        text = f"dimension {self.dim} at least {self.least}"
        if self.step == 1:
            return text
        if self.least % self.step:
            return f"{text}, in steps of {self.step}"
        return f"{text} and a multiple of {self.step}"


def bounds_of(bounds: tuple[SizeBound, ...], number: int) -> tuple[SizeBound, ...]:
    """Those of one input."""
    return tuple(bound for bound in bounds if bound.input == number)
