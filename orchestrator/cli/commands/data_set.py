"""The data set that `--data` names, and functions of the user's."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.errors import SourceSpan, UsageError
from orchestrator.evaluation.samples import (
    Choice,
    DataSet,
    Files,
    archive_data,
    archive_files,
    bad_data,
    folder_data,
    loader_data,
    unknown_form,
)
from orchestrator.evaluation.tables import arrow_data, csv_data
from orchestrator.shell.files import read_file, reason_of

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)

_CORRECT = "correct the function: it raised this"
_SEARCHED = "modules are searched in the current folder and on PYTHONPATH"
_MOST_TEXT = 500
_TEXT: dict[str, Any] = {"encoding": "utf-8-sig", "newline": ""}
"""How a CSV file is read: with or without a byte order mark."""


def data_set(text: str, choice: Choice) -> DataSet:
    """The data set of `--data`.

    Args:
        text: A path, or a function of the user's.
        choice: What else the user said about it.

    Raises:
        UsageError: There is none, or it is damaged (`bad-data`); a function of the
            user's cannot be imported or fails (`user-code`).
        ToolchainError: Reading it takes an extra (`missing-package`).
    """
    path = Path(text)
    form = path.suffix.lower()
    try:
        if (path / "dataset_dict.json").is_file():
            folders = sorted(state.parent.name for state in path.glob("*/state.json"))
            message, found = "the folder has several data sets", ", ".join(folders)
            raise bad_data(text, message, found=found, hint="name the folder of one")
        if (path / "state.json").is_file():
            return arrow_data(text, lambda name: (path / name).open("rb"), choice)
        if path.is_dir():
            return folder_data(_folder(path), choice)
        if form == ".npz" and path.exists():
            return archive_data(archive_files(read_file(path), text), choice)
        if form in (".csv", ".tsv") and path.exists():
            return csv_data(text, partial(path.open, **_TEXT), choice)
    except OSError as error:
        raise bad_data(text, "the data cannot be read", found=reason_of(error)) from None
    if is_function(text) and not path.exists():
        return _loader(text)
    raise unknown_form(text, exists=path.exists())


def _folder(path: Path) -> Files:
    """The files of a folder and of those in it, which have names with `/`."""
    names = [entry.name for entry in path.iterdir() if entry.is_file()]
    for folder in path.iterdir():
        if folder.is_dir() and not folder.name.startswith("."):
            names.append(f"{folder.name}/")
            files = (file for file in folder.rglob("*") if file.is_file())
            names += [file.relative_to(path).as_posix() for file in files]
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
            "user-code", f"{text} {what}", where=_place(error), found=found[:_MOST_TEXT], hint=hint
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
