"""Hooks of a product that is traced: the application defines them."""

from __future__ import annotations

from typing import Final

from orchestrator.memory.plan import identifier

_HOOKS: Final = ("ticks", "record")


def hook_names(profile: str) -> dict[str, str]:
    """Names of the hooks in the runtime, and in the library of a product.

    Each product has its own, as numbers of methods are only its own, too.
    """
    base = identifier(profile)
    return {f"orch_trace_{hook}": f"{base}_trace_{hook}" for hook in _HOOKS}
