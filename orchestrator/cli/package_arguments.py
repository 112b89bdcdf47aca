"""The arguments of `orchestrator package`."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from orchestrator.cli.shared_arguments import (
    PROFILE,
    CommandParser,
    add_jobs,
    add_locking,
    flag,
    option,
    path,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT_S: Final = 600.0
_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def _version(text: str) -> str:
    if _VERSION.fullmatch(text):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not MAJOR.MINOR.PATCH")


def add_package(command: Callable[..., CommandParser]) -> None:
    """The package command."""
    what = "make a package for another build system"
    package = command("package", what, profile=False)
    path(package, "profile", "PROFILE", PROFILE)
    option(
        package,
        "--for",
        "TARGET",
        "cmake, conan, meson, zephyr, esp-idf, arduino, platformio, cmsis, bazel"
        " or rust",
        required=True,
        dest="ecosystem",
    )
    what = "folder of the package; default: packages/TARGET/NAME"
    path(package, "--out", "DIR", what, dest="package_folder")
    flag(package, "--binary", "the library as built, instead of its sources")
    what = "calls of the self test; default: one of each method, random inputs"
    path(package, "--scenario", "FILE", what)
    what = "version of the package; default: that of the profile"
    option(package, "--version", "X.Y.Z", what, type=_version, dest="package_version")
    add_jobs(package)
    add_locking(package)
    package.set_defaults(out=None, timeout=_TIMEOUT_S)
