"""Recognize builds with nothing to do by their stamp, without slow imports."""

from __future__ import annotations

import os
import re
import stat

from orchestrator.cli.terminal import say
from orchestrator.printable import printable_lines
from orchestrator.shell.stamp import STAMP_NAME, Looked, inputs_of, is_current

# Enough for profiles as `init` writes them. Any other, or a name that a base or
# workspace gives, is built as usual.
_NAME = re.compile(rb'^name\s*=\s*"([a-z][a-z0-9-]*)"', re.MULTILINE)
_MOST_BYTES = 1 << 20  # a larger file is not a profile


def unchanged_build(arguments: list[str]) -> bool:
    """Whether `build ARGUMENTS` has nothing to do; if so, report it.

    Only plain profiles, `--out` and the options of locks and depfiles are understood
    here. Anything else, and any doubt, is left to the full program.
    """
    parsed = _read(arguments)
    if parsed is None:
        return False
    profiles, options = parsed
    lines: list[str] = []
    looked = Looked()
    for profile in profiles:
        found = unchanged_profile(profile, options, looked)
        if found is None:
            return False
        lines += found
    say("".join(f"{printable_lines(line)}\n" for line in lines))
    return True


def unchanged_profile(profile: str, options: dict[str, str], looked: Looked) -> list[str] | None:
    """What a build of a profile says if it has nothing to do; else None.

    Args:
        profile: As the user names it.
        options: `--out` and options of locks and depfiles, with their values.
        looked: States of files that are known already; gets more.
    """
    folder = options.get("--out") or _folder_of(profile)
    if folder is None:
        return None
    stamp_file = f"{folder}/.work/{STAMP_NAME}"
    stamp = is_current(stamp_file, profile=profile, looked=looked)
    if stamp is None or not _lock_holds(profile, options, stamp):
        return None
    if not _depfile_written(options, stamp_file, stamp):
        return None
    warnings = stamp.get("warnings")
    lines = list(map(str, warnings if isinstance(warnings, list) else ()))
    return [*lines, up_to_date(profile, folder)]


def _read(arguments: list[str]) -> tuple[list[str], dict[str, str]] | None:
    """Profiles and options; None if the fast path does not support them."""
    profiles: list[str] = []
    options: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        if argument == "--no-lock":
            options[argument] = ""
        elif argument in ("--out", "--lock", "--depfile", "--depfile-target"):
            value = next(rest, "")
            if not value or value.startswith("-"):
                return None
            options[argument] = value
        elif argument.startswith("-"):
            return None
        else:
            profiles.append(argument)
    if not profiles or (options and len(profiles) > 1):
        return None
    return profiles, options


def _lock_holds(profile: str, options: dict[str, str], stamp: dict[str, object]) -> bool:
    """Whether the requested lock, if any, is the one that was written."""
    if "--no-lock" in options:
        return "--lock" not in options
    lock = options.get("--lock") or f"{os.path.splitext(profile)[0]}.lock"  # noqa: PTH122
    return stamp.get("lock") == os.path.abspath(lock)  # noqa: PTH100


def _depfile_written(options: dict[str, str], stamp_file: str, stamp: dict[str, object]) -> bool:
    """Whether the requested depfile, if any, could be written."""
    if "--depfile" not in options:
        return "--depfile-target" not in options
    target = options.get("--depfile-target") or stamp.get("library")
    inputs = inputs_of(stamp_file, stamp)
    if not isinstance(target, str) or not inputs:
        return False
    from orchestrator.shell.depfile import write_depfile  # noqa: PLC0415
    from orchestrator.shell.output_file import lost  # noqa: PLC0415

    if lost(options["--depfile"], (".d",), inputs):
        return False
    try:
        write_depfile(options["--depfile"], target=target, inputs=inputs)
    except (OSError, ValueError):
        return False  # the full program reports the problem
    return True


def up_to_date(profile: str, folder: str) -> str:
    """The message of a build with nothing to do."""
    return f"{profile}: up to date, outputs in {folder}"


def _folder_of(profile: str) -> str | None:
    """Default build folder; None unless the name is written as `name = "..."`."""
    try:
        if not stat.S_ISREG(os.stat(profile).st_mode):  # noqa: PTH116
            return None  # a device may not end, a pipe is read once
        with open(profile, "rb") as file:  # noqa: PTH123  # pathlib is slow to import
            match = _NAME.search(file.read(_MOST_BYTES))
    except OSError:
        return None
    return f"build/{match[1].decode()}" if match else None
