"""The history of files, from git."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.shell.process import run

# Seconds for one git command; chosen by hand, for repositories on network drives.
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A commit that changed files.

    Args:
        commit: Its abbreviated name.
        date: `2026-03-04`, of the author.
        subject: First line of its message.
        texts: By file that it changed, what it has been since; "" if it removed it.
    """

    commit: str
    date: str
    subject: str
    texts: Mapping[Path, str]


def revisions(files: Sequence[Path], *, most: int) -> tuple[Revision, ...]:
    """The last commits that changed any of some files, the oldest first.

    Args:
        files: They; names in their history do not count.
        most: How many commits.

    Raises:
        UsageError: git is missing, or a file is in no repository, or not in that of the
            first (`no-history`).
    """
    home = files[0]
    # `./NAME`, as git takes a bare path as relative to the top of the repository.
    names = {file: os.path.relpath(file, home.parent) for file in files}
    changed = {
        file: set(_git(home, "log", "--format=%h", "--", f"./{name}").split())
        for file, name in names.items()
    }
    # Split at the first two tabs: a subject may have any character.
    wanted = ["log", f"-{most}", "--format=%h%x09%as%x09%s", "--"]
    found = []
    for line in _git(home, *wanted, *(f"./{n}" for n in names.values())).splitlines():
        commit, date, subject = line.split("\t", 2)
        texts = {
            file: _git(home, "show", f"{commit}:./{name}", missing="")
            for file, name in names.items()
            if commit in changed[file]
        }
        found.append(Revision(commit=commit, date=date, subject=subject, texts=texts))
    return tuple(reversed(found))


def lines_at(folder: Path, revision: str, pattern: str, files: str) -> tuple[tuple[str, str], ...]:
    """Lines of files at a revision, each with the path relative to a folder.

    Args:
        folder: In the repository; files elsewhere in it are not looked at.
        revision: A commit, tag or branch.
        pattern: An extended regular expression.
        files: Pattern of their names.

    Raises:
        UsageError: There is no such revision, or no repository (`no-history`).
    """
    # The file that `_git` takes names the folder.
    here = folder / "."
    _git(here / files, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    arguments = ("grep", "-z", "-E", "-e", pattern, revision, "--", files)
    found = _git(here / files, *arguments, missing="")
    lines = (line.partition("\0") for line in found.splitlines())
    return tuple((name.removeprefix(f"{revision}:"), line) for name, _, line in lines)


def _git(file: Path, *arguments: str, missing: str | None = None) -> str:
    # Settings of the user must not change the form of what git prints.
    # Nor does this take locks of the index, for which a git of the user's would have to
    # wait. C: the first line of an error is shown.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    command = ("git", "-c", "log.showSignature=false", "--no-pager", *arguments)
    done = run(command, cwd=file.absolute().parent, env=environment, timeout_s=_TIMEOUT_S)
    if done.status == 0:
        return done.stdout
    if missing is not None and done.status > 0:
        return missing
    first = done.stderr.strip().partition("\n")[0]
    raise _no_history(file, first or f"git ended with status {done.status}")


def _no_history(file: Path, found: str) -> UsageError:
    return UsageError.of(
        "no-history",
        f"{file} has no history",
        found=found,
        hint="commit the lock of each build to a git repository",
    )
