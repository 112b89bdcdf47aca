"""The distribution of this package, and how to install its extras."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DISTRIBUTION = "pte-orchestrator"
"""Its name on PyPI; `orchestrator` there is another project."""

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]


def checkout() -> Path | None:
    """Top folder of the checkout that this runs from; None if installed from a wheel.

    An installed package contains runtime/ and kernels/, in `_native`.
    """
    # `_native` is made by the wheel's build (pyproject.toml): a checkout never has it.
    return None if (PACKAGE_FOLDER / "_native").is_dir() else PACKAGE_FOLDER.parent


def pip_install(extra: str) -> str:
    """The command that adds an extra to this installation: `zig`, `export`.

    It has to work from any folder: a checkout is named by its path
    unless that is the current folder. An installed package has the extra's
    requirements in its metadata, so pip adds these and fetches nothing else.
    """
    root = checkout()
    if root is None:
        return f'pip install "{DISTRIBUTION}[{extra}]"'
    folder = "." if root == Path.cwd() else root
    return f'pip install -e "{folder}[{extra}]"'


@contextmanager
def extra_needed(extra: str, purpose: str) -> Iterator[None]:
    """Imports of an extra's packages.

    Args:
        extra: Its name.
        purpose: What they are for: "to sign".

    Raises:
        ToolchainError: A package is not installed (`missing-package`).
    """
    try:
        yield
    except ImportError as error:
        from orchestrator.errors import ToolchainError  # noqa: PLC0415

        raise ToolchainError.of(
            "missing-package",
            f"the package {error.name} is not installed",
            needed=purpose,
            hint=pip_install(extra),
        ) from error
