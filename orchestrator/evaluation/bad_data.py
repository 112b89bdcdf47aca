"""Errors of data sets."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from orchestrator.errors import SourceSpan, UsageError, nearest_path

_FORMS: Final = (
    "a .csv or .npz file, a folder of samples or of a folder for each class, a folder"
    " that `datasets` saved, or a function as package.module:name"
)
# Characters of a list of names; some tables have thousands of columns. Chosen by hand.
_MOST_TEXT: Final = 300


def bad_data(
    place: str, message: str, *, line: int = 0, found: str = "", expected: str = "", hint: str = ""
) -> UsageError:
    """The error of a data set (`bad-data`).

    Args:
        place: File or folder, with the sample if there is one.
        message: What is wrong.
        line: Of the file; 0 for all of it.
        found: What was there; "" for nothing.
        expected: What should be; "" if the message says it.
        hint: What to do; "" for where to read about it.
    """
    notes = {"found": found, "expected": expected}
    return UsageError.of(
        "bad-data",
        message,
        where=SourceSpan(file=place, line=line),
        hint=hint or "see docs/evaluate.md for the forms of data",
        **{label: text for label, text in notes.items() if text},
    )


def name_list(names: Iterable[str]) -> str:
    """Names for a message; not all if there are very many."""
    return textwrap.shorten(", ".join(names), _MOST_TEXT, placeholder=" ...")


def unknown_form(text: str, *, exists: bool) -> UsageError:
    """The error of `--data` that names nothing, or a file of another form."""
    message = "unknown form of data" if exists else "no such data"
    hint = "convert it, or read it in a function" if exists else "check the path"
    if not exists and (near := nearest_path(Path(text))):
        hint = f'did you mean "{near}"?'
    return bad_data(text, message, expected=_FORMS, hint=hint)
