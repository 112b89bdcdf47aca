"""All products of a workspace.

The list is kept in the folder `build`, once builds made that: while no file or folder
that it follows from has changed, nothing is read again, and nothing slow is imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product as combinations
from pathlib import Path
from typing import Any

from orchestrator.errors import Diagnostic, ProfileError, SourceSpan
from orchestrator.profile.document import Document, read_document
from orchestrator.profile.load import base_path_of
from orchestrator.profile.target import AXES
from orchestrator.shell.files import write_atomic
from orchestrator.shell.stamp import Looked, State, environment, state_of
from orchestrator.workspace.load import Workspace, read_workspace, text_of
from orchestrator.workspace.product import WORKSPACE_FILE, Product

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
    # Taken before the files are read: one that changes meanwhile has another state the
    # next time.
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
    # A command that only lists makes no folder `build`.
    if folders is not None and (file.parent / _LISTING).parent.is_dir():
        with suppress(OSError):  # the next command reads everything again
            _keep(file, found, states)
    return found


def _folders(root: Path, patterns: Iterable[str]) -> list[Path] | None:
    """Folders in which a new file may match a pattern; None if these are too many."""
    # Folders at any depth may get a file: to look at all of them is to read the list
    # anew.
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
    # Not synced: after a loss of power the list is read again.
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


# Which products the profiles of a workspace give.


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """What one file of a workspace gives.

    Args:
        products: At least one.
        base: The file that it extends; None if none.
        where: Where it has its name.
        has_name: Whether it has one; if not, it may only be the base of others.
    """

    products: tuple[Product, ...]
    base: Path | None
    where: SourceSpan
    has_name: bool


def expand(workspace: Workspace, path: Path) -> Expanded:
    """The products of one profile; one that cannot be read gives one that fails."""
    where = SourceSpan(file=str(path))
    base = None
    try:
        document = own = read_document(path, text_of=text_of)
        base = base_path_of(document)
        if base is not None:
            document = document.over(read_document(base, text_of=text_of))
    except ProfileError:
        alone = Product(name=path.stem, profile=path)
        return Expanded(products=(alone,), base=base, where=where, has_name=True)
    name = own.data.get("name")
    where = own.span("name")
    if not isinstance(name, str) or not name:
        alone = Product(name=path.stem, profile=path)
        return Expanded(products=(alone,), base=base, where=where, has_name=False)
    axes = _axes(workspace, document)
    several = [key for key, values in axes.items() if len(values) > 1]
    found = []
    for values in combinations(*axes.values()):
        target = dict(zip(axes, values, strict=True))
        found.append(
            Product(
                name="-".join((str(name), *(target[key] for key in several))),
                profile=path,
                target=tuple(target.items()),
                is_variant=bool(several),
            )
        )
    return Expanded(products=tuple(found), base=base, where=where, has_name=True)


def _axes(workspace: Workspace, document: Document) -> Mapping[str, tuple[str, ...]]:
    """Values by key of `[target]`, for those keys that the profile leaves open."""
    narrow: Any = document.data.get("matrix", {})
    target: Any = document.data.get("target", {})
    found: dict[str, tuple[str, ...]] = {}
    if not isinstance(narrow, dict) or narrow.get("enable") is False:
        return found
    for axis, key in AXES:
        values = tuple(workspace.table.matrix.axis(axis))
        chosen = narrow.get(axis, ())
        if not isinstance(chosen, list | tuple) or not set(chosen) <= set(values):
            return {}  # loading the profile reports it
        if chosen:
            values = tuple(value for value in values if value in chosen)
        if values and isinstance(target, dict) and key not in target:
            found[key] = values
    return found


def products_of(workspace: Workspace, expanded: Mapping[Path, Expanded]) -> tuple[Product, ...]:
    """All products, by name.

    Args:
        workspace: The workspace.
        expanded: What each member gives.

    Raises:
        ProfileError: Two have one name, build folder or lock; a member is in another
            workspace; nothing is left.
    """
    bases = {one.base for one in expanded.values()}
    real = {path: one for path, one in expanded.items() if one.has_name or path not in bases}
    problems = [*_nested(workspace, real), *_duplicates(real)]
    products = [product for one in real.values() for product in one.products]
    if not products:
        problems.append(
            Diagnostic.of(
                "no-profiles",
                "the workspace has no products",
                where=workspace.document.span("workspace", "profiles"),
                found=f"{len(expanded)} files without a name",
                hint="add a profile, or take less out with exclude",
            )
        )
    ProfileError.raise_if(problems)
    return tuple(sorted(products, key=lambda product: product.name))


def _duplicates(real: Mapping[Path, Expanded]) -> Iterable[Diagnostic]:
    names: dict[str, SourceSpan] = {}
    locks: dict[Path, Product] = {}
    for one in real.values():
        for product in one.products:
            if product.name in names:
                yield Diagnostic.of(
                    "duplicate-product",
                    f'two products have the name "{product.name}"',
                    where=one.where,
                    found=f"the first at {names[product.name]}",
                    hint="build folders have the names of products: choose another",
                )
            elif product.lock_file in locks:
                other = locks[product.lock_file]
                yield Diagnostic.of(
                    "duplicate-lock",
                    f"two products have the lock {product.lock_file}",
                    where=one.where,
                    found=f"{other.name} and {product.name}",
                    first=str(other.profile),
                    hint="rename one of the products, or its profile",
                )
            names.setdefault(product.name, one.where)
            locks.setdefault(product.lock_file, product)


def _nested(workspace: Workspace, real: Mapping[Path, Expanded]) -> Iterable[Diagnostic]:
    """Members in folders that are, or are in, workspaces of their own."""
    found: dict[Path, Path] = {}
    for path in real:
        for folder in path.parents:
            if folder == workspace.root:
                break
            found.setdefault(folder, path)
    for folder, path in sorted(found.items()):
        inner = folder / WORKSPACE_FILE
        if inner.is_file():
            yield Diagnostic.of(
                "nested-workspace",
                f"{path} is in another workspace",
                where=SourceSpan(file=str(inner)),
                found=f"it is also in that of {workspace.file}",
                hint=f"remove {inner}, or exclude the folder in the other one",
            )
