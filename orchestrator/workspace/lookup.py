"""Which product the user means: a profile, or the name of one in a workspace."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from orchestrator.errors import ProfileError, SourceSpan, UsageError, did_you_mean
from orchestrator.profile.load import Member
from orchestrator.shell.settings import Settings, read_settings
from orchestrator.shell.stamp import State, state_of
from orchestrator.workspace.listing import expand, products_of
from orchestrator.workspace.load import Workspace, read_workspace, seen_from_here
from orchestrator.workspace.product import WORKSPACE_FILE, Product, names_text

# Find the workspace that a folder is in.


def looked_for(folder: Path) -> tuple[tuple[str, State], ...]:
    """Absolute paths that the workspace's file may have, nearest first, with states.

    The last one is the workspace's file, or that of the file system's root.
    """
    found = []
    absolute = Path(os.path.abspath(folder))  # noqa: PTH100  # keeps links
    for parent in (absolute, *absolute.parents):
        path = str(parent / WORKSPACE_FILE)
        # Also of files that are not there: one that comes later, nearer to the profile,
        # changes what it inherits, and the stamp has to notice.
        found.append((path, state_of(path)))
        if found[-1][1]:
            break
    return tuple(found)


def find_workspace(folder: Path) -> Path | None:
    """The nearest `orchestrator.toml` in a folder or above, as seen from here."""
    path, state = looked_for(folder)[-1]
    return Path(os.path.relpath(path)) if state else None


_NAME = re.compile("[a-z][a-z0-9-]*")


def is_name(path: Path) -> bool:
    """Whether it may be the name of a product: there is no such file."""
    # A name may be too long for a file: os.path does not mind.
    return bool(_NAME.fullmatch(str(path))) and not os.path.exists(path)  # noqa: PTH110


def member_at(path: Path) -> tuple[Path, Member, Workspace | None]:
    """The profile that the user names, with what it has from a workspace.

    Args:
        path: A profile, or the name of a product of the workspace that we are in.

    Returns:
        The profile, what it has, and the workspace that it is a member of.

    Raises:
        ProfileError: Something in `orchestrator.toml` is wrong.
        UsageError: The profile stands for several products (`several-products`).
    """
    if is_name(path):
        return _named(path)
    states = looked_for(path.parent)
    file, state = states[-1]
    if state and path.is_file():
        workspace = read_workspace(seen_from_here(file))
        if workspace.has_member(path):
            product = _only(expand(workspace, path).products, path, workspace)
            member = workspace.member_of(product)
            # A profile that is named is built below the current folder.
            member = replace(member, build_root=Path(), looked_for=states)
            return path, member, workspace
    return path, Member(looked_for=states), None


def _named(name: Path) -> tuple[Path, Member, Workspace | None]:
    file = find_workspace(Path())
    if file is not None:
        workspace = read_workspace(file)
        found = {path: expand(workspace, path) for path in workspace.members()}
        products = products_of(workspace, found)
        for product in products:
            if product.name == str(name):
                return product.profile, member_of(workspace, product), workspace
        names = [product.name for product in products]
        raise ProfileError.of(
            "missing-file",
            f'there is no file and no product "{name}"',
            where=SourceSpan(file=str(file)),
            found=names_text(names),
            hint=did_you_mean(str(name), names) or "name a product of the workspace, or a file",
        )
    return name, Member(), None


def member_of(workspace: Workspace, product: Product) -> Member:
    """What a product has from its workspace, and the files that decide this."""
    states = looked_for(product.profile.parent)
    return replace(workspace.member_of(product), looked_for=states)


def settings_here() -> Settings:
    """The settings of the workspace that the current folder is in, or the user's.

    Raises:
        ProfileError: Something in `orchestrator.toml` is wrong.
    """
    file = find_workspace(Path())
    return read_settings({} if file is None else read_workspace(file).settings)


def _only(products: tuple[Product, ...], path: Path, workspace: Workspace) -> Product:
    if len(products) == 1:
        return products[0]
    raise UsageError.of(
        "several-products",
        f"{path} gives {len(products)} products in its workspace",
        where=SourceSpan(file=str(workspace.file)),
        found=names_text([product.name for product in products]),
        hint="write the name of one in the place of the profile",
    )
