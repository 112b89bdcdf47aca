"""What went wrong while a model was exported."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile

from orchestrator.shell.distribution import PACKAGE_FOLDER

# Lines, frames and letters of a message, chosen by hand;
# tests/unit/export/test_failure.py has examples. The log has all of it.
_MOST_FRAMES = 4
_MOST_LINES = 6
_MOST_LETTERS = 400
# torch.fx and torch.export append the node, or the whole graph, to a message: thousands
# of lines of a model that the user wrote in ten.
_QUOTES = ("While executing %", "Here is the node in the graph")


class ExportError(Exception):
    """A problem for the user, in the parts of a diagnostic.

    Args:
        code: Of the diagnostic.
        message: What is wrong; `{model}` stands for the model.
        notes: (label, text) pairs.
        hint: What to do next.
    """

    def __init__(
        self, code: str, message: str, *, notes: tuple[tuple[str, str], ...] = (), hint: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.notes = notes
        self.hint = hint

    @classmethod
    @contextmanager
    def around(cls, code: str, message: str, hint: str = "") -> Iterator[None]:
        """Turn any exception inside into this error.

        Its notes begin with what a user looks for: the lines of their own code and the
        first error, before the errors that followed.

        Args:
            code: Of the diagnostic.
            message: What is wrong.
            hint: What to do next.
        """
        try:
            yield
        except ExportError:
            raise
        # Vela and argument parsers call sys.exit: without it the process would end
        # without a result.
        except (Exception, SystemExit) as error:
            chain = _chain(error)
            notes = [("at", place) for place in _places(chain)]
            notes.append(("found", _text_of(chain[-1])))
            if len(chain) > 1:
                notes.append(("raised as", _text_of(error).partition("\n")[0]))
            raise cls(
                code,
                message,
                notes=tuple(notes),
                hint=hint or "see the log for the whole traceback",
            ) from error


def _chain(error: BaseException) -> list[BaseException]:
    """The error, what it was raised from, and so on to the first one."""
    chain = [error]
    while True:
        last = chain[-1]
        # `raise ... from None` says that the error before is not the cause.
        hidden = last.__suppress_context__
        before = last.__cause__ or (None if hidden else last.__context__)
        if before is None or before in chain:
            return chain
        chain.append(before)


def _text_of(error: BaseException) -> str:
    """The error in a few lines, with its type; without a graph that it quotes."""
    lines = [line.rstrip()[:_MOST_LETTERS] for line in str(error).strip().splitlines()]
    lines = list(takewhile(lambda line: not line.startswith(_QUOTES), lines))
    lines = [line for line in lines if line][:_MOST_LINES]
    return "\n".join([f"{type(error).__name__}: {''.join(lines[:1])}", *lines[1:]])


_PLACE = re.compile(r'File "([^"\n]+)", line ([0-9]+)')


def _places(chain: list[BaseException]) -> list[str]:
    """Lines of the user's own code that led to an error, innermost first.

    PyTorch runs graphs, not the code they came from: it quotes the lines in its texts.
    """
    places: list[tuple[str, str]] = []
    for error in reversed(chain):
        if isinstance(error, SyntaxError) and error.filename:
            places.append((error.filename, str(error.lineno or 0)))
        frames = traceback.extract_tb(error.__traceback__)
        places += [(f.filename, str(f.lineno)) for f in reversed(frames)]
        # PyTorch quotes the user's line somewhere in its text, where the traceback has
        # only its own frames.
        places += _PLACE.findall(str(error))
    return _own(places)


def own_lines(trace: str) -> list[str]:
    """Lines of the user's own code in a quoted stack, innermost first."""
    return _own(reversed(_PLACE.findall(trace)))


def _own(places: Iterable[tuple[str, str]]) -> list[str]:
    own = (f"{file}:{line}" for file, line in places if _is_own(file))
    return list(dict.fromkeys(own))[:_MOST_FRAMES]


def _is_own(path: str) -> bool:
    """Whether a path is a file of the user: not Orchestrator's, not installed."""
    ours = f"{PACKAGE_FOLDER}{os.sep}"
    return os.path.isabs(path) and not path.startswith(ours) and not is_installed(path)  # noqa: PTH117


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python or to a package that was installed."""
    roots = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    # A virtual environment has a prefix of its own and its Python's libraries below
    # base_prefix.
    return "site-packages" in path or any(path.startswith(f"{root}/") for root in roots)
