"""Diagnostics, the error tree and the exit codes.

Every problem a user can cause is a `Diagnostic`; every stage collects all of its
diagnostics and raises them once, in one `OrchestratorError`. Only `cli.py` turns
errors into exit codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from itertools import islice
from pathlib import Path
from typing import ClassVar, Self


# Scripts and CI compare these numbers: a new kind of failure gets a number that was
# never used. 1 is left to Python, 70 is EX_SOFTWARE of BSD's sysexits.h.
class ExitCode(IntEnum):
    """Exit codes of the command line; stable and documented in docs/errors.md."""

    OK = 0
    USAGE = 2
    PROFILE = 3
    MODEL = 4
    KERNEL = 5
    MEMORY = 6
    TOOLCHAIN = 7
    LOCK = 8
    COMPILE = 9
    MISMATCH = 10
    NOT_REPRODUCIBLE = 11
    INCOMPATIBLE = 12
    INTERNAL = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpan:
    """A place in a text file the user wrote.

    Args:
        file: As the user named it.
        line: 1-based; 0 means the whole file.
        text: The line itself, without its newline; empty if unknown.
    """

    file: str
    line: int = 0
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One problem, in four parts: what, where, found against expected, what to do.

    Args:
        code: Stable kebab-case identifier, documented in docs/errors.md.
        message: What is wrong, in one line, without a full stop.
        where: Profile key or file that led here.
        notes: (label, text) pairs such as ("found", "Half -> Half").
        hint: What to do next, in one sentence without a full stop.
    """

    code: str
    message: str
    where: SourceSpan | None = None
    notes: tuple[tuple[str, str], ...] = ()
    hint: str = ""

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        *,
        where: SourceSpan | None = None,
        hint: str = "",
        **notes: str,
    ) -> Self:
        """The problem with its notes as keywords: `required_by="a"`."""
        labels = tuple((label.replace("_", " "), text) for label, text in notes.items())
        return cls(code=code, message=message, where=where, notes=labels, hint=hint)


_MOST_DIAGNOSTICS = 1000
"""Most problems of one error: a file can have one in every line."""


class OrchestratorError(Exception):
    """All problems of one stage, raised once."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(self, diagnostics: Diagnostic | Sequence[Diagnostic]) -> None:
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        if len(diagnostics) > _MOST_DIAGNOSTICS:
            more = f"{len(diagnostics) - _MOST_DIAGNOSTICS} more problems like these"
            last = diagnostics[_MOST_DIAGNOSTICS]
            diagnostics = [
                *diagnostics[:_MOST_DIAGNOSTICS],
                Diagnostic(code=last.code, message=more, where=last.where),
            ]
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("; ".join(d.message for d in self.diagnostics))

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        *,
        where: SourceSpan | None = None,
        hint: str = "",
        **notes: str,
    ) -> Self:
        """The error of one problem."""
        return cls(Diagnostic.of(code, message, where=where, hint=hint, **notes))

    @classmethod
    def raise_if(cls, problems: Sequence[Diagnostic]) -> None:
        """Raise the error of these problems; without any, nothing happens."""
        if problems:
            raise cls(problems)


class UsageError(OrchestratorError):
    """The command line, or a file that it names, is invalid."""

    exit_code = ExitCode.USAGE

    @classmethod
    def wrong(
        cls, message: str, hint: str, *, where: SourceSpan | None = None, **notes: str
    ) -> Self:
        """The error of options that are wrong (`usage`)."""
        return cls.of("usage", message, where=where, hint=hint, **notes)


class ProfileError(OrchestratorError):
    """The profile, or a file that it names, is invalid."""

    exit_code = ExitCode.PROFILE


class ModelError(OrchestratorError):
    """A `.pte` program cannot be read or is damaged."""

    exit_code = ExitCode.MODEL


class KernelError(OrchestratorError):
    """The selection is not closed: something has no kernel."""

    exit_code = ExitCode.KERNEL


class MemoryPlanError(OrchestratorError):
    """A memory, a region or a budget is exceeded, or scratch sizes differ."""

    exit_code = ExitCode.MEMORY


class OverBudgetError(MemoryPlanError):
    """A firmware that was built exceeds its budget, or its stack the reserve."""


class RegionOverflowError(MemoryPlanError):
    """A firmware does not fit memories of its board.

    Args:
        over: By memory, the bytes that are too many.
        hint: What to do next.
    """

    def __init__(
        self,
        over: Mapping[str, int],
        hint: str = "choose a board with more memory, or a smaller model",
    ) -> None:
        self.over = over
        super().__init__(
            [
                Diagnostic(
                    code="region-overflow",
                    message=f"the firmware does not fit memory {region}",
                    notes=(("over", f"{size} bytes"),),
                    hint=hint,
                )
                for region, size in over.items()
            ]
        )


class ToolchainError(OrchestratorError):
    """A compiler, linker or emulator is missing or unusable."""

    exit_code = ExitCode.TOOLCHAIN


class LockError(OrchestratorError):
    """The lock file is damaged, missing or would change."""

    exit_code = ExitCode.LOCK


class CompileError(OrchestratorError):
    """Compiling or linking failed."""

    exit_code = ExitCode.COMPILE


class MismatchError(OrchestratorError):
    """Outputs of a run differ from those expected, or it failed on the device."""

    exit_code = ExitCode.MISMATCH


class ReproducibilityError(OrchestratorError):
    """A second build gave different bytes."""

    exit_code = ExitCode.NOT_REPRODUCIBLE


_LONGEST_NAME = 200
"""Characters of a name that is compared: the time grows with their square."""
_LEAST_START = 3
"""Characters of a name from which a longer one is guessed."""
_MOST_NAMES = 5000
"""Names of a folder that are compared."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The name that a shortened or misspelt one stands for; "" if none is near."""
    if len(name) > _LONGEST_NAME:
        return ""
    by_folded = {text.casefold(): text for text in sorted(known, reverse=True)}
    folded = name.casefold()
    found: list[str] = []
    if len(folded) >= _LEAST_START:
        word = re.compile(rf"(?<![a-z0-9]){re.escape(folded)}(?![a-z0-9])")
        # What a name begins comes before what is merely similar: `cortex-m5` is meant
        # for cortex-m55, and as near to cortex-m85 by letters
        # (tests/unit/test_near_names.py).
        found = [text for text in by_folded if text.startswith(folded)]
        found = found or [text for text in by_folded if word.search(text)]
        found.sort(key=lambda text: (len(text), text))
    # 0.6 is the default of difflib: the part of the letters of both names that match.
    found = found or get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint such as `did you mean "cortex-m55"?`, or "" when nothing is near."""
    near = nearest(name, known)
    return f'did you mean "{near}"?' if near else ""


def nearest_path(path: Path) -> Path | None:
    """A path that exists and has nearly the names of one that does not; or None."""
    folder: Path | None = path.parent
    names: list[str] = []
    with suppress(OSError):  # names may be too long for the file system
        # From the outermost folder inwards: `modls/motin.pte` is looked for in the
        # folder that `modls` was meant for.
        if folder != path and not path.parent.is_dir():
            folder = nearest_path(path.parent)
        if folder and len(path.name) <= _LONGEST_NAME:
            names = sorted(item.name for item in islice(folder.iterdir(), _MOST_NAMES))
    # Nearer than other names have to be: names of files share their suffixes.
    near = get_close_matches(path.name, names, n=1, cutoff=0.75)
    return folder / near[0] if folder and near else None
