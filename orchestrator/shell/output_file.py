"""Files that options name for results: what must not be written over.

Imports nothing that is slow to import.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress

_KEPT = frozenset(
    (
        *(".toml", ".lock", ".pte", ".ptd", ".pt2", ".pt", ".pth", ".py", ".npy", ".npz", ".wav"),
        *(".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".s", ".ld", ".csv", ".tsv", ".png", ".jpg"),
        *(".json", ".jsonl", ".yaml", ".yml", ".md", ".pem", ".key", ".pub"),
    )
)
"""Suffixes of what people write, train or measure, in lower case."""
ANY = "*"
"""In place of the suffixes that an option writes: any file."""
FOLDER = "/"
"""Among them: a folder, in which the command chooses the name."""


def lost(path: str, suffixes: Collection[str], inputs: Iterable[str]) -> str:
    """What would be lost if a file were written, such as `an input`; "" if nothing.

    Compilers and test runners write over what an earlier run left, as we do, and never
    over what they read.

    Args:
        path: Of the file.
        suffixes: Those that it usually has, `ANY` or `FOLDER`.
        inputs: Paths of what is read.
    """
    try:
        # lstat: what a link leads to is not ours to replace, whatever it is.
        there = os.lstat(path)
    except OSError:
        return ""  # it is new, or cannot be written
    if stat.S_ISLNK(there.st_mode):
        return f"a link to {os.readlink(path)}"  # noqa: PTH115
    if stat.S_ISDIR(there.st_mode) and FOLDER in suffixes:
        return ""
    if not stat.S_ISREG(there.st_mode):
        return "a folder" if stat.S_ISDIR(there.st_mode) else "a device or a pipe"
    for one in inputs:
        with suppress(OSError):
            if os.path.samestat(there, os.stat(one)):  # noqa: PTH116  # pathlib is slow to import
                return "an input of the command"
    suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122
    is_kept = suffix in _KEPT and suffix not in suffixes and ANY not in suffixes
    # An empty file is what `mktemp x.json` or `touch` left for us.
    return f"a {suffix} file, which this option does not write" if is_kept and there.st_size else ""
