"""New files: written whole, and never in the place of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.errors import Diagnostic, SourceSpan, UsageError

GITIGNORE: Final = """\
# What `orchestrator build` makes. Commit the lock beside the profile.
build/
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What `write_files` did.

    Args:
        created: Files that are new.
        kept: Files that were there, and are as they were.
    """

    created: tuple[Path, ...]
    kept: tuple[Path, ...]


def write_files(
    folder: Path,
    *,
    create: Mapping[str, str | bytes],
    keep: Mapping[str, str],
    absent: Sequence[Path] = (),
) -> Written:
    """Write files into a folder, which is made.

    Args:
        folder: May exist.
        create: Files by relative path; none of them may exist.
        keep: Files that stay as they are where they exist.
        absent: More paths that may not exist.

    Raises:
        UsageError: A file exists; nothing was written.
    """
    wanted = [*(folder / name for name in create), *absent]
    there = [path for path in wanted if path.exists() or path.is_symlink()]
    if there:
        raise UsageError([_exists(path) for path in there])
    created, kept = [], []
    for name, data in create.items():
        _create(folder / name, data)
        created.append(folder / name)
    for name, text in keep.items():
        path = folder / name
        if path.exists():
            kept.append(path)
        else:
            _create(path, text)
            created.append(path)
    return Written(created=tuple(created), kept=tuple(kept))


def _create(path: Path, data: str | bytes) -> None:
    create(path, data.encode() if isinstance(data, str) else data)


def create(path: Path, data: bytes) -> None:
    """Write a file that may not exist. Raises UsageError if it does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise UsageError(_exists(path)) from None


def _exists(path: Path) -> Diagnostic:
    return Diagnostic(
        code="file-exists",
        message=f"{path} exists, and is never overwritten",
        where=SourceSpan(file=str(path)),
        hint="choose another --name or --dir, or move the file away",
    )
