"""Diagnostics as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from orchestrator.errors import Diagnostic, OrchestratorError, SourceSpan, nearest_path
from orchestrator.printable import printable

# Columns of the user's line; a file may be one line of megabytes. Chosen by hand.
_MAX_SOURCE_COLUMNS = 200
_MIN_GUTTER = 2

_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
_RED = "\x1b[1;31m"
_BLUE = "\x1b[1;34m"
_GREEN = "\x1b[1;32m"


def with_near_file(error: OrchestratorError) -> OrchestratorError:
    """The error; of one file that is missing, with a hint to the file that is meant."""
    cause = error.__cause__
    if not isinstance(cause, FileNotFoundError) or len(error.diagnostics) != 1:
        return error
    (diagnostic,) = error.diagnostics
    path = Path(str(cause.filename))
    if "`orchestrator " in diagnostic.hint:  # a command that writes the file
        return error
    if str(path) not in diagnostic.message or not (near := nearest_path(path)):
        return error
    return type(error)(replace(diagnostic, hint=f'did you mean "{near}"?'))


def render_diagnostics(diagnostics: Iterable[Diagnostic], *, color: bool = False) -> str:
    """Text of several diagnostics, a blank line between them, a newline at the end."""
    texts = [render_diagnostic(d, color=color) for d in diagnostics]
    return "\n".join(text + "\n" for text in texts)


def render_diagnostic(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """Text of one diagnostic, several lines, without a newline at the end.

    Args:
        diagnostic: The diagnostic.
        color: Whether to add ANSI colours; the text is the same without.
    """
    where = diagnostic.where
    line = str(where.line) if where else ""
    gutter = max(len(line), _MIN_GUTTER)
    indent = " " * (gutter + 1)

    def paint(style: str, text: str) -> str:
        return f"{style}{text}{_RESET}" if color else text

    title = paint(_RED, f"error[{diagnostic.code}]")
    message = _aligned(diagnostic.message, "    ")
    lines = [f"{title}: {paint(_BOLD, message)}"]
    if where:
        lines.append(f"{' ' * gutter}{paint(_BLUE, '-->')} {printable(str(where))}")
    if where and where.line and where.text.strip():
        bar = paint(_BLUE, "|")
        number = paint(_BLUE, line.rjust(gutter))
        lines += [f"{indent}{bar}", f"{number} {bar} {_excerpt(where)}"]
    for label, text in diagnostic.notes:
        prefix = f"{indent}= {label}: "
        aligned = _aligned(text, " " * len(prefix))
        lines.append(f"{indent}{paint(_BLUE, '=')} {label}: {aligned}")
    if diagnostic.hint:
        prefix = f"{indent}hint: "
        aligned = _aligned(diagnostic.hint, " " * len(prefix))
        lines.append(f"{indent}{paint(_GREEN, 'hint')}: {aligned}")
    return "\n".join(lines)


_MOST_TEXT = 2000
"""Characters of a line in JSON: a file may be one line, and every item of it wrong."""


def diagnostic_to_json(diagnostic: Diagnostic) -> dict[str, object]:
    """The diagnostic as JSON data; the keys are stable.

    `where` is null where there is no place; its `line` is 0 for a whole file.
    """
    where = diagnostic.where
    return {
        "code": diagnostic.code,
        "message": diagnostic.message,
        "where": where
        and {"file": where.file, "line": where.line, "text": where.text[:_MOST_TEXT]},
        "notes": [{"label": label, "text": text} for label, text in diagnostic.notes],
        "hint": diagnostic.hint,
    }


def _excerpt(where: SourceSpan) -> str:
    # Cut before it is escaped: a file may be one long line with thousands of problems.
    text = printable(where.text[: _MAX_SOURCE_COLUMNS + 1])
    if len(text) > _MAX_SOURCE_COLUMNS:
        return text[:_MAX_SOURCE_COLUMNS] + " ..."
    return text


def _aligned(text: str, indent: str) -> str:
    """A text with all lines but the first indented."""
    return f"\n{indent}".join(printable(line) for line in text.split("\n"))


def failure_document(error: OrchestratorError) -> dict[str, object]:
    """An error as JSON data: its exit code, and every problem."""
    return {
        "exit_code": int(error.exit_code),
        "diagnostics": [diagnostic_to_json(d) for d in error.diagnostics],
    }
