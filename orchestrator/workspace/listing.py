"""All products of a workspace.

The list is kept in the folder `build`, once builds made that: while no file or folder
that it follows from has changed, nothing is read again, and nothing slow is imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.shell.stamp import Looked, State, environment, state_of
from orchestrator.workspace.product import Product

_LISTING = "build/.workspace.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What commands need to know of a workspace.

    Args:
        products: By name.
    """

    products: tuple[Product, ...]


def read_listing(file: Path, looked: Looked) -> Listing:
    """The products of a workspace.

    Args:
        file: Its `orchestrator.toml`.
        looked: File states that this command has read; new ones are added.

    Raises:
        ProfileError: Every problem of the workspace; not those of profiles.
    """
    known = _known(file, looked)
    return _read(file) if known is None else known


def _read(file: Path) -> Listing:
    from orchestrator.workspace.expand import expand, products_of  # noqa: PLC0415
    from orchestrator.workspace.load import read_workspace  # noqa: PLC0415

    states = {str(file.absolute()): state_of(str(file.absolute()))}
    workspace = read_workspace(file)
    table = workspace.table.workspace
    folders = _folders(file.parent, (*table.profiles, *table.exclude))
    members = workspace.members()
    for path in (*(folders or ()), *members):
        absolute = str(path.absolute())
        states[absolute] = state_of(absolute)
    expanded = {path: expand(workspace, path) for path in members}
    for one in expanded.values():
        if one.base is not None:
            absolute = str(one.base.absolute())
            states.setdefault(absolute, state_of(absolute))
    found = Listing(products=products_of(workspace, expanded))
    if folders is not None and (file.parent / _LISTING).parent.is_dir():
        with suppress(OSError):  # the next command reads everything again
            _keep(file, found, states)
    return found


def _folders(root: Path, patterns: Iterable[str]) -> list[Path] | None:
    """Folders in which a new file may match a pattern; None if these are too many."""
    if any("**" in pattern for pattern in patterns):
        return None
    found: dict[Path, None] = {}
    for pattern in patterns:
        level = [root]
        for part in pattern.split("/")[:-1]:
            if _WILD.isdisjoint(part):
                level = [folder / part for folder in level]
                continue
            found.update(dict.fromkeys(level))
            level = [p for folder in level for p in folder.glob(part) if p.is_dir()]
        found.update(dict.fromkeys(level))
    return list(found)


_WILD = frozenset("*?[")


def _keep(file: Path, listing: Listing, states: dict[str, State]) -> None:
    from orchestrator.shell.files import write_atomic  # noqa: PLC0415

    document = {
        "environment": environment(),
        "products": [
            [
                product.name,
                str(product.profile.relative_to(file.parent)),
                product.target,
                product.is_variant,
            ]
            for product in listing.products
        ],
        "files": states,
    }
    path = file.parent / _LISTING
    write_atomic(path, json.dumps(document).encode(), durable=False)


def _known(file: Path, looked: Looked) -> Listing | None:
    """The list that a command kept, if all it follows from is as it was."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        found = json.loads((file.parent / _LISTING).read_bytes())
        is_here = str(file.absolute()) in found["files"]
        if is_here and found["environment"] == environment():
            listing = Listing(products=tuple(_products(found["products"], file.parent)))
            return listing if looked.all_are(found["files"]) else None
    return None


def _products(found: Any, root: Path) -> Iterator[Product]:  # noqa: ANN401  # JSON
    for name, profile, target, is_variant in found:
        yield Product(
            name=str(name),
            profile=root / profile,
            target=tuple((str(key), str(value)) for key, value in target),
            is_variant=bool(is_variant),
        )
