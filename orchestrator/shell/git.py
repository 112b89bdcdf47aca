"""The history of a file, from git."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, UsageError
from orchestrator.shell.process import run

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A commit that changed a file.

    Args:
        commit: Its abbreviated name.
        date: `2026-03-04`, of the author.
        subject: First line of its message.
        text: The file as it was then.
    """

    commit: str
    date: str
    subject: str
    text: str


def revisions(file: Path, *, most: int) -> tuple[Revision, ...]:
    """The last commits that changed a file, the oldest first.

    Args:
        file: It; names in its history do not count.
        most: How many of them.

    Raises:
        UsageError: git is missing, or the file is in no repository (`no-history`).
    """
    found = []
    name = f"./{file.name}"
    wanted = ["log", f"-{most}", "--format=%h%x09%as%x09%s", "--", name]
    for line in _git(file, *wanted).splitlines():
        commit, date, subject = line.split("\t", 2)
        text = _git(file, "show", f"{commit}:{name}", missing="")
        if text:  # the commit may have removed it
            found.append(Revision(commit=commit, date=date, subject=subject, text=text))
    return tuple(reversed(found))


def _git(file: Path, *arguments: str, missing: str | None = None) -> str:
    # Settings of the user must not change the form of what git prints.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    command = ("git", "-c", "log.showSignature=false", "--no-pager", *arguments)
    done = run(
        command, cwd=file.absolute().parent, env=environment, timeout_s=_TIMEOUT_S
    )
    if done.status == 0:
        return done.stdout
    if missing is not None and done.status > 0:
        return missing
    first = done.stderr.strip().partition("\n")[0]
    raise _no_history(file, first or f"git ended with status {done.status}")


def _no_history(file: Path, found: str) -> UsageError:
    return UsageError(
        Diagnostic(
            code="no-history",
            message=f"{file} has no history",
            notes=(("found", found),),
            hint="commit the lock of each build to a git repository",
        )
    )
