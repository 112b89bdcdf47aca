"""What went wrong while a model was exported."""

from __future__ import annotations

import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_FRAMES = 4
_MOST_LINES = 12


class ExportError(Exception):
    """A problem that the user has to know of, in the parts of a diagnostic.

    Args:
        code: Of the diagnostic.
        message: What is wrong; `{model}` stands for the model.
        notes: (label, text) pairs.
        hint: What to do next.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        notes: tuple[tuple[str, str], ...] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.notes = notes
        self.hint = hint

    @classmethod
    @contextmanager
    def around(
        cls, code: str, message: str, hint: str = "", *, user: str = ""
    ) -> Iterator[None]:
        """Turn whatever is raised inside into this error.

        Args:
            code: Of the diagnostic.
            message: What is wrong.
            hint: What to do next.
            user: Folder of the user's code, whose lines are told.
        """
        try:
            yield
        except ExportError:
            raise
        except (Exception, SystemExit) as error:
            notes = [("found", _text_of(error))]
            if user:
                notes += [("at", place) for place in _places(error, user)]
            raise cls(
                code,
                message,
                notes=tuple(notes),
                hint=hint or "see the log for the whole traceback",
            ) from error


def _text_of(error: BaseException) -> str:
    """The error in a few lines, with its type unless that says nothing."""
    lines = [line.rstrip() for line in str(error).strip().splitlines()]
    lines = [line for line in lines if line][:_MOST_LINES]
    return "\n".join([f"{type(error).__name__}: {''.join(lines[:1])}", *lines[1:]])


def _places(error: BaseException, folder: str) -> list[str]:
    """Lines of the user's own code that led to an error, innermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        frames.append(
            traceback.FrameSummary(error.filename, error.lineno or 0, "", line="")
        )
    places = [
        f"{frame.filename}:{frame.lineno}"
        for frame in reversed(frames)
        if frame.filename.startswith(folder) and not is_installed(frame.filename)
    ]
    return places[:_MOST_FRAMES]


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python or to a package that was installed."""
    roots = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    return "site-packages" in path or any(path.startswith(f"{root}/") for root in roots)
