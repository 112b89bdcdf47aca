"""The distribution this package came from, and how to install more of it."""

from __future__ import annotations

from pathlib import Path

DISTRIBUTION = "pte-orchestrator"
"""Its name on PyPI; `orchestrator` there is somebody else's."""

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]


def checkout() -> Path | None:
    """Top folder of the checkout that this runs from; None if it was installed.

    An installed package brings runtime/ and kernels/ inside of it, in `_native`.
    """
    return None if (PACKAGE_FOLDER / "_native").is_dir() else PACKAGE_FOLDER.parent


def pip_install(extra: str) -> str:
    """The command that adds an extra to this installation: `zig`, `export`.

    It has to be right in whatever folder it is typed: a checkout is named by its path
    unless that is the current folder. What is installed already has the extra's
    requirements, so pip adds these and fetches nothing else.
    """
    root = checkout()
    if root is None:
        return f'pip install "{DISTRIBUTION}[{extra}]"'
    folder = "." if root == Path.cwd() else root
    return f'pip install -e "{folder}[{extra}]"'
