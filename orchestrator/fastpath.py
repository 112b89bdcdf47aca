"""Builds that have nothing to do, recognised by their stamp without slow imports."""

from __future__ import annotations

import re
import sys

from orchestrator.shell.stamp import STAMP_NAME, is_current

_NAME = re.compile(rb'^name\s*=\s*"([a-z][a-z0-9-]*)"', re.MULTILINE)


def unchanged_build(arguments: list[str]) -> bool:
    """Whether `build ARGUMENTS` has nothing to do; says so if it has not.

    Only plain profiles and `--out` are understood here. Anything else, and any doubt,
    is left to the full program.
    """
    profiles: list[str] = []
    out: str | None = None
    rest = iter(arguments)
    for argument in rest:
        if argument == "--out":
            out = next(rest, None)
            if out is None:
                return False
        elif argument.startswith("-"):
            return False
        else:
            profiles.append(argument)
    if not profiles or (out is not None and len(profiles) > 1):
        return False
    lines = []
    for profile in profiles:
        folder = out or _folder_of(profile)
        if (
            folder is None
            or is_current(f"{folder}/.work/{STAMP_NAME}", profile=profile) is None
        ):
            return False
        lines.append(up_to_date(profile, folder))
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return True


def up_to_date(profile: str, folder: str) -> str:
    """What a build without work says."""
    return f"{profile}: up to date, outputs in {folder}"


def _folder_of(profile: str) -> str | None:
    """Default build folder; None if the name is not written in the plainest form."""
    try:
        with open(profile, "rb") as file:  # noqa: PTH123  # pathlib is slow to import
            match = _NAME.search(file.read())
    except OSError:
        return None
    return f"build/{match[1].decode()}" if match else None
