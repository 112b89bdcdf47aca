"""Values of a parsed profile, which may be of any type, and files it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic
from orchestrator.profile.fields import is_relative_path
from orchestrator.profile.source_fields import is_model_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from orchestrator.profile.checked import KeyPath
    from orchestrator.profile.document import Document


def table_of(document: Document, *key_path: str | int) -> Mapping[str, object]:
    """A table; empty if there is none."""
    value = document.value(*key_path)
    return value if isinstance(value, dict) else {}


def array_of(document: Document, *key_path: str | int) -> list[object]:
    """An array; empty if there is none."""
    value = document.value(*key_path)
    return value if isinstance(value, list) else []


def text_of(document: Document, *key_path: str | int) -> str | None:
    """A text; None if there is none."""
    value = document.value(*key_path)
    return value if isinstance(value, str) else None


def missing_file(
    document: Document,
    key_path: KeyPath,
    is_file: Callable[[Path], bool],
    *,
    what: str,
    expected: str,
    written: str | None = None,
) -> Iterator[Diagnostic]:
    """The problem of a path where there is no file.

    What is no path, the validators report.

    Args:
        document: The profile.
        key_path: Of the path.
        is_file: Whether a path is a file; may raise `OSError`.
        what: What the file is to the profile, "model file".
        expected: What it should hold.
        written: The path, if it is not all that stands there.
    """
    written = written or text_of(document, *key_path)
    is_path = is_model_path if _may_be_absolute(key_path) else is_relative_path
    if written is None or not is_path(written):
        return
    path = document.folder(*key_path) / written
    try:
        if is_file(path):
            return
    except OSError:  # a name that the file system cannot have
        pass
    yield Diagnostic(
        code="missing-file",
        message=f'there is no {what} "{written}"',
        where=document.span(*key_path),
        notes=(("found", f"nothing to read at {path}"), ("expected", expected)),
        hint="check the path; it is sought from the folder of the profile that has it",
    )


def _may_be_absolute(key_path: KeyPath) -> bool:
    return key_path[0] == "models" and key_path[2] in ("path", "data")
