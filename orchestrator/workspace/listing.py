"""All products of a workspace, and where its cache is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.workspace.product import Product


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What commands need to know of a workspace.

    Args:
        products: By name.
        cache: Absolute path of its cache; None for that of the machine.
    """

    products: tuple[Product, ...]
    cache: Path | None


def read_listing(file: Path) -> Listing:
    """The products of a workspace.

    Raises:
        ProfileError: Every problem of the workspace; not those of profiles.
    """
    from orchestrator.workspace.expand import expand, products_of  # noqa: PLC0415
    from orchestrator.workspace.load import read_workspace  # noqa: PLC0415

    workspace = read_workspace(file)
    expanded = {path: expand(workspace, path) for path in workspace.members()}
    return Listing(
        products=products_of(workspace, expanded),
        cache=workspace.cache and workspace.cache.absolute(),
    )
