"""Delegates of a profile against each other, and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic
from orchestrator.profile.explain import key_text
from orchestrator.profile.fields import is_pattern, shown
from orchestrator.profile.parsed import array_of, missing_file, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from orchestrator.profile.checked import KeyPath
    from orchestrator.profile.document import Document


def check_delegates(
    document: Document, is_file: Callable[[Path], bool]
) -> Iterator[Diagnostic]:
    """Every problem of `[[delegates]]` that single values do not show.

    Args:
        document: The profile, merged with its base.
        is_file: Whether a path is a file; may raise `OSError`.
    """
    first: dict[str, int] = {}
    for index in range(len(array_of(document, "delegates"))):
        where: KeyPath = ("delegates", index)
        for at, source in enumerate(array_of(document, *where, "sources")):
            if isinstance(source, str) and not is_pattern(source):
                yield from missing_file(
                    document,
                    (*where, "sources", at),
                    is_file,
                    what="source",
                    expected="a source of the delegate",
                )
        backend = text_of(document, *where, "backend")
        if backend is None:
            continue
        if backend in first:
            other: KeyPath = ("delegates", first[backend])
            yield Diagnostic(
                code="duplicate-delegate",
                message=f"two delegates serve the backend {shown(backend)}",
                where=document.span(*where, "backend"),
                notes=(
                    (
                        "found",
                        f"{key_text(other)} does too, "
                        f"{document.span(*other, 'backend')}",
                    ),
                    ("expected", "one delegate for each backend"),
                ),
                hint="remove one of them",
            )
        first.setdefault(backend, index)
