"""Depfiles: the files that an output depends on, for the build that runs this one.

Imports nothing that is slow to import.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress


def depfile_text(target: str, inputs: Iterable[str]) -> str:
    """A rule in the syntax of make, ninja and CMake.

    Args:
        target: Path of the output, as the reading build spells it.
        inputs: Paths of its dependencies, in any order.

    Raises:
        ValueError: A path has a character that the syntax cannot express; the text
            is the path.

    Source: what `gcc -M` writes, GCC `libcpp/mkdeps.cc`.
    """
    lines = [f"{_escaped(target)}:", *(_escaped(p) for p in sorted(set(inputs)))]
    return " \\\n  ".join(lines) + "\n"


def _escaped(path: str) -> str:
    """A path; each space, and each backslash just before it, gets a backslash."""
    if any(character in path for character in "\t\n\r\v\f\0"):
        raise ValueError(path)
    *words, last = path.split(" ")
    text = ""
    for word in words:
        backslashes = len(word) - len(word.rstrip("\\"))
        text += word + "\\" * backslashes + "\\ "
    return (text + last).replace("#", "\\#").replace("$", "$$")


def write_depfile(path: str, *, target: str, inputs: Iterable[str]) -> None:
    """Write a depfile in one step, with the folder that holds it.

    Raises:
        ValueError: As `depfile_text`.
        OSError: The file cannot be written.
    """
    data = depfile_text(target, inputs).encode("utf-8", "surrogateescape")
    folder = os.path.dirname(path)  # noqa: PTH120  # pathlib is slow to import
    if folder:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    # A ninja or CMake around this build may read the file at any moment.
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:  # noqa: PTH123
            file.write(data)
        os.replace(temporary, path)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise
