"""Sizes of products at a revision of git, from their locks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.fleet.outcome import Costs, sizes_in_lock
from orchestrator.shell.git import lines_at

if TYPE_CHECKING:
    from orchestrator.workspace import Product


def sizes_at(revision: str, products: Iterable[Product], root: Path) -> Mapping[str, Costs]:
    """By name: sizes of products that had a lock at the revision.

    Raises:
        UsageError: There is no such revision, or no repository (`no-history`).
    """
    # One process for all locks: one for each takes longer than an unchanged build.
    lines: dict[str, list[str]] = {}
    for path, line in lines_at(root, revision, '^"(flash|ram)" = "', "*.lock"):
        lines.setdefault(os.path.normpath(root / path), []).append(line)
    found = {}
    for product in products:
        text = "\n".join(lines.get(os.path.normpath(product.lock_file), ()))
        if sizes := sizes_in_lock(text):
            found[product.name] = sizes
    return found
