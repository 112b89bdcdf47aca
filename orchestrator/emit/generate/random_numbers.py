"""Functions of the generator that kernels draw random numbers from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.memory.plan import identifier

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Resolution

_DRAWING: Final = frozenset({"op_native_dropout.cpp", "op_rand.cpp", "op_randn.cpp"})
"""Sources of `portable` whose kernels draw."""


def draws(resolution: Resolution) -> bool:
    """Whether a product has kernels that draw random numbers."""
    return not _DRAWING.isdisjoint(dict(resolution.sources).get("portable", ()))


# Hooks of a product that is traced: the application defines them.

_HOOKS: Final = ("ticks", "record")


def hook_names(profile: str) -> dict[str, str]:
    """Names of the hooks in the runtime, and in the library of a product.

    Each product has its own, as numbers of methods are only its own, too.
    """
    base = identifier(profile)
    return {f"orch_trace_{hook}": f"{base}_trace_{hook}" for hook in _HOOKS}
