"""Which products a command is about, and which of them have nothing to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, UsageError, did_you_mean
from orchestrator.fleet.outcome import Costs, Outcome
from orchestrator.shell.stamp import STAMP_NAME, Looked, is_current

if TYPE_CHECKING:
    from orchestrator.workspace import Product


def chosen(products: Sequence[Product], patterns: Sequence[str]) -> tuple[Product, ...]:
    """Products whose names match one of the patterns; all if there are none.

    Raises:
        UsageError: A pattern matches no product.
    """
    if not patterns:
        return tuple(products)
    names = [product.name for product in products]
    problems = [
        Diagnostic.of(
            "no-product",
            f'the workspace has no product "{pattern}"',
            found=f"{len(names)} products",
            hint=did_you_mean(pattern, names) or "`*` stands for any text",
        )
        for pattern in dict.fromkeys(patterns)
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    if problems:
        raise UsageError(problems)
    return tuple(
        product
        for product in products
        if any(fnmatchcase(product.name, pattern) for pattern in patterns)
    )


def unchanged(
    products: Iterable[Product], root: Path, looked: Looked, *, uses_lock: bool
) -> dict[str, Outcome]:
    """Outcomes of products whose last build is as one would be now, by name.

    Args:
        products: They; files that several of them share are looked at once.
        root: Folder of the workspace.
        looked: File states that this command has read; new ones are added.
        uses_lock: Whether builds write locks.
    """
    found = {}
    for product in products:
        outcome = _unchanged(product, root, looked, uses_lock=uses_lock)
        if outcome is not None:
            found[product.name] = outcome
    return found


def _unchanged(product: Product, root: Path, looked: Looked, *, uses_lock: bool) -> Outcome | None:
    file = f"{root}/build/{product.name}/.work/{STAMP_NAME}"
    stamp = is_current(file, profile=str(product.profile), looked=looked)
    if stamp is None:
        return None
    lock = os.path.abspath(product.lock_file)  # noqa: PTH100  # keeps links
    if uses_lock and stamp.get("lock") != lock:
        return None
    match stamp.get("costs"), stamp.get("warnings"):
        case {
            "product": product.name,
            "cpu": str(cpu),
            "toolchain": str(toolchain),
            "optimize": str(optimize),
            "flash_bytes": int(flash),
            "ram_bytes": int(ram),
        }, list(warnings):
            now = Costs(flash_bytes=flash, ram_bytes=ram)
            return Outcome(
                product=product,
                done="up to date",
                target={"cpu": cpu, "toolchain": toolchain, "optimize": optimize},
                costs=now,
                before=now,
                notes=tuple(map(str, warnings)),
            )
    return None
