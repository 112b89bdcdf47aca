"""Collects what is wrong with a program, to be raised once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.errors import Diagnostic, ModelError, SourceSpan

if TYPE_CHECKING:
    from orchestrator.pte.flatbuffer import FlatbufferError

_MOST: Final = 20
"""Diagnostics kept; damage at one place often shows at thousands."""

_REEXPORT: Final = "export the model again, the file is damaged or was cut off"


class Problems:
    """Diagnostics about one file."""

    def __init__(self, file: str) -> None:
        self._where = SourceSpan(file=file)
        self._diagnostics: list[Diagnostic] = []
        self._left_out = 0

    def add(  # noqa: PLR0913: the parts of a diagnostic
        self,
        message: str,
        *,
        place: str = "",
        found: str = "",
        expected: str = "",
        code: str = "bad-program",
        hint: str = _REEXPORT,
    ) -> None:
        """Note a problem; `place` is such as `method "forward", value 3`."""
        if len(self._diagnostics) >= _MOST:
            self._left_out += 1
            return
        notes = (("at", place), ("found", found), ("expected", expected))
        self._diagnostics.append(
            Diagnostic(
                code=code,
                message=message,
                where=self._where,
                notes=tuple(note for note in notes if note[1]),
                hint=hint,
            )
        )

    def add_error(self, error: FlatbufferError, place: str) -> None:
        """Note that something could not be decoded."""
        self.add(
            error.message, place=place, found=error.found, expected=error.expected
        )

    def unsupported(
        self, message: str, *, place: str, found: str, expected: str, hint: str
    ) -> None:
        """Note something that is valid and that the runtime cannot do."""
        self.add(
            message,
            place=place,
            found=found,
            expected=expected,
            code="unsupported-program",
            hint=hint,
        )

    def raise_if_any(self) -> None:
        """Raise everything noted.

        Raises:
            ModelError: Something was noted.
        """
        if not self._diagnostics:
            return
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            self._diagnostics.append(
                Diagnostic(
                    code="bad-program",
                    message=f"{left_out} more problems in the same file",
                    where=self._where,
                    hint=_REEXPORT,
                )
            )
        raise ModelError(self._diagnostics)
