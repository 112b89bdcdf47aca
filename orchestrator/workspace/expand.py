"""Which products the profiles of a workspace give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product as combinations
from pathlib import Path
from typing import Any

from orchestrator.errors import Diagnostic, ProfileError, SourceSpan
from orchestrator.profile.document import Document, read_document
from orchestrator.profile.load import base_path_of
from orchestrator.profile.matrix import AXES
from orchestrator.workspace.load import Workspace, text_of
from orchestrator.workspace.product import WORKSPACE_FILE, Product


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
    if problems:
        raise ProfileError(problems)
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
