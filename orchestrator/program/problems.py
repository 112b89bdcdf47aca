"""Collects all problems of a program, to raise them at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.program.caller import caller_problems
from orchestrator.program.program import Method, Program
from orchestrator.program.values import TensorValue

# Chosen by hand; the rest is counted.
_MOST: Final = 20
"""Diagnostics kept; damage at one place often shows at thousands."""

_REEXPORT: Final = "export the model again, the file is damaged or was cut off"

_LONGEST_NAME: Final = 100
"""Characters of a method's name in a message; a place is written for every value."""


def method_place(name: str) -> str:
    """A method, as messages name it."""
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}..."
    return f'method "{name}"'


class DecodeError(ValueError):
    """A part of the file cannot be decoded.

    Args:
        message: What is wrong.
        found: Value or place that shows it.
        expected: What would be right; may be "".
        hint: What to do next, if it is not what such an error usually needs.
    """

    code = "bad-program"
    usual_hint = _REEXPORT

    def __init__(self, message: str, *, found: str, expected: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.found = found
        self.expected = expected
        self.hint = hint or self.usual_hint


class UnsupportedError(DecodeError):
    """A part of the file is valid, but the runtime does not support it."""

    code = "unsupported-program"


class NewerError(DecodeError):
    """A part of the file is unknown to this version; each `found` is noted once."""

    code = "newer-program"
    usual_hint = (
        "update Orchestrator, or export the model with a version of ExecuTorch that it"
        " knows (docs/executorch-compatibility.md)"
    )


class Problems:
    """Diagnostics about one file.

    Attributes:
        has_gaps: Something that cannot be decoded was left out, and indices of what
            comes after it mean something else; or the rest was not checked.
    """

    def __init__(self, file: str) -> None:
        self.has_gaps = False
        self._where = SourceSpan(file=file)
        self._diagnostics: list[Diagnostic] = []
        self._newer: set[str] = set()
        self._left_out = 0

    def damaged(
        self, message: str, *, place: str = "", found: str = "", expected: str = ""
    ) -> None:
        """Note that the file is damaged.

        Args:
            message: What is wrong.
            place: Such as `method "forward", value 3`.
            found: Value that shows it.
            expected: What would be right.
        """
        self._add("bad-program", message, (place, found, expected), _REEXPORT)

    def unsupported(
        self, message: str, *, place: str = "", found: str, expected: str, hint: str
    ) -> None:
        """Note something that is valid and that the runtime cannot do."""
        self._add("unsupported-program", message, (place, found, expected), hint)

    def too_large(
        self, message: str, *, place: str = "", found: str, expected: str, hint: str
    ) -> None:
        """Note that there is more of something than can be gone through."""
        parts = (place, found, expected)
        self._add(UnsupportedError.code, message, parts, hint)
        self.has_gaps = True  # nothing of it is checked

    def undecodable(self, error: DecodeError, place: str) -> None:
        """Note that a part of the file could not be decoded."""
        parts = (place, error.found, error.expected)
        if isinstance(error, NewerError):
            # Every tensor may have it: the first one is enough.
            # By field: each newer field is named once, not once per tensor.
            if error.found in self._newer:
                return
            self._newer.add(error.found)
        self._add(error.code, error.message, parts, error.hint)

    def _add(self, code: str, message: str, parts: tuple[str, str, str], hint: str) -> None:
        if len(self._diagnostics) >= _MOST:
            self._left_out += 1
            return
        notes = zip(("at", "found", "expected"), parts, strict=True)
        self._diagnostics.append(
            Diagnostic(
                code=code,
                message=message,
                where=self._where,
                notes=tuple((label, text) for label, text in notes if text),
                hint=hint,
            )
        )

    @property
    def are_unsupported(self) -> bool:
        """Whether all are valid, and cannot be done here."""
        return all(d.code == UnsupportedError.code for d in self._diagnostics)

    def error(self) -> ModelError:
        """Everything noted, as one error."""
        diagnostics = list(self._diagnostics)
        if self._left_out:
            diagnostics.append(
                Diagnostic(
                    code="bad-program",
                    message=f"{self._left_out} more problems in the same file",
                    where=self._where,
                    hint=_REEXPORT,
                )
            )
        return ModelError(diagnostics)

    def raise_if_any(self) -> None:
        """Raise everything noted.

        Raises:
            ModelError: Something was noted.
        """
        if self._diagnostics:
            raise self.error()


# What a method needs that the runtime does not support.

# ASCII alone, as C identifiers are in every compiler.
_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def unsupported(
    model: str, program: Program, method: Method, span: SourceSpan | None
) -> Iterable[Diagnostic]:
    """What keeps a method from running.

    Args:
        model: Name of the model.
        program: That has the method.
        method: Of the program.
        span: The profile line that names the model.
    """

    def problem(message: str, hint: str, values: list[int] | None = None) -> Diagnostic:
        notes = (("found", f"values {', '.join(map(str, values))}"),) if values else ()
        return Diagnostic(
            code="unsupported-program",
            message=f'model "{model}", method {method.name}: {message}',
            where=span,
            notes=notes,
            hint=hint,
        )

    if not _IDENTIFIER.fullmatch(method.name):
        yield problem(
            "its name cannot be part of the name of a C function",
            "export it under a name of letters, digits and _",
        )
    tensors = [(i, v) for i, v in enumerate(method.values) if isinstance(v, TensorValue)]
    if external := [i for i, v in tensors if v.is_external and not program.has_data(v)]:
        yield problem(
            "tensors have their data outside the program",
            "name its .ptd files in `data` of [[models]], or export without external constants",
            external,
        )
    for message, hint, values in caller_problems(method):
        yield problem(message, hint, values)
