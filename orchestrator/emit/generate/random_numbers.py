"""Functions of the generator that kernels draw random numbers from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Resolution

_DRAWING: Final = frozenset({"op_native_dropout.cpp", "op_rand.cpp", "op_randn.cpp"})
"""Sources of `portable` whose kernels draw."""


def draws(resolution: Resolution) -> bool:
    """Whether a product has kernels that draw random numbers."""
    return not _DRAWING.isdisjoint(dict(resolution.sources).get("portable", ()))
