"""Products of a workspace, as values that other processes take."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

WORKSPACE_FILE = "orchestrator.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product of a workspace.

    Args:
        name: Unique in the workspace.
        profile: Its profile, as messages show it.
        target: Keys of `[target]` that the matrix gives, each with its value.
        is_variant: One of several products of the profile.
    """

    name: str
    profile: Path
    target: tuple[tuple[str, str], ...] = ()
    is_variant: bool = False

    @property
    def lock_file(self) -> Path:
        """The lock, beside the profile."""
        if self.is_variant:
            return self.profile.with_name(f"{self.name}.lock")
        return self.profile.with_suffix(".lock")


# Names that a message lists. Chosen by hand.
_MOST_NAMES = 8


def names_text(names: Sequence[str]) -> str:
    """Names of products for a message; of many, how many they are."""
    return ", ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} products"


def product_shard(name: str, count: int) -> int:
    """The shard of a product, from 1: a new product moves no other to another shard."""
    # Not `hash`, which is another one in each process; nor the number in the list,
    # which a new product moves.
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % count + 1


def in_shard(products: Iterable[Product], shard: tuple[int, int] | None) -> tuple[Product, ...]:
    """Products of shard `(number, count)`; all if it is None."""
    if shard is None:
        return tuple(products)
    number, count = shard
    return tuple(p for p in products if product_shard(p.name, count) == number)
