"""Decompositions that PyTorch does not have. Needs PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

OWN: dict[Any, Callable[..., Any]] = {}
"""By operator: a function of the same arguments."""
