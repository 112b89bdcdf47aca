"""The data set that `--data` names, and functions of the user's."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Callable, Sized
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import SourceSpan, UsageError
from orchestrator.evaluation.samples import (
    Files,
    archive_data,
    archive_files,
    bad_data,
    folder_data,
    loader_data,
    unknown_form,
)
from orchestrator.shell.files import read_file, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.evaluation.samples import DataSet

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)

_CORRECT = "correct the function: it raised this"
_SEARCHED = "modules are searched in the current folder and on PYTHONPATH"
_MOST_TEXT = 500


def data_set(text: str) -> DataSet:
    """The data set of `--data`.

    Raises:
        UsageError: There is none, or it is damaged (`bad-data`); a function of the
            user's cannot be imported or fails (`user-code`).
    """
    path = Path(text)
    try:
        if path.is_dir():
            return folder_data(_folder(path))
        if path.suffix == ".npz" and path.exists():
            return archive_data(archive_files(read_file(path), text))
    except OSError as error:
        raise bad_data(
            text, "the data cannot be read", found=reason_of(error)
        ) from None
    if is_function(text) and not path.exists():
        return _loader(text)
    raise unknown_form(text)


def _folder(path: Path) -> Files:
    names = [entry.name for entry in path.iterdir() if entry.is_file()]
    return Files(str(path), names, lambda name: read_file(path / name))


def is_function(text: str) -> bool:
    """Whether a text names a function, as `package.module:name`."""
    return _FUNCTION.fullmatch(text) is not None


def function(text: str) -> Callable[..., Any]:
    """The user's function `package.module:name`.

    Modules are searched in the current folder, too.

    Raises:
        UsageError: There is none (`user-code`).
    """
    module, _, name = text.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    with users_code(text, "cannot be imported", _SEARCHED):
        found = getattr(importlib.import_module(module), name)
        if not callable(found):
            raise TypeError(f"{name} is not a function")
    return found  # type: ignore[no-any-return]  # it is callable


@contextmanager
def users_code(text: str, what: str, hint: str = _CORRECT) -> Iterator[None]:
    """Report exceptions of the user's code as such; what it prints goes to stderr.

    Args:
        text: The function, as the user named it.
        what: What happened to it.
        hint: What to do.

    Raises:
        UsageError: The code raised (`user-code`).
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except Exception as error:
        found = traceback.format_exception_only(error)[-1].strip()
        raise UsageError.of(
            "user-code",
            f"{text} {what}",
            where=_place(error),
            found=found[:_MOST_TEXT],
            hint=hint,
        ) from error


def _place(error: Exception) -> SourceSpan | None:
    """The innermost line of the user's code; None if it was not reached."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = {Path(name).resolve() for name in (__file__, importlib.__file__)}
    for frame in reversed(frames):
        path = Path(frame.filename)
        if path.is_file() and path.resolve() not in ours:
            line = frame.lineno or 0
            return SourceSpan(file=frame.filename, line=line, text=frame.line or "")
    return None


def _loader(text: str) -> DataSet:
    load = function(text)
    with users_code(text, "failed"):
        first = load()
        count = len(first) if isinstance(first, Sized) else None
    begun = [first]

    def items() -> Iterator[object]:
        with users_code(text, "failed"):
            # The first reading takes what counted the samples.
            iterator = iter(begun.pop() if begun else load())
        while True:
            with users_code(text, "failed"):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    return loader_data(text, items, count)
