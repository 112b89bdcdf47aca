"""The arguments of `orchestrator package`."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from orchestrator.cli.shared_arguments import (
    PROFILE,
    CommandParser,
    add_locking,
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
    package = command(
        "package", "make a package for another build system", profile=False
    )
    package.path("profile", "PROFILE", PROFILE)
    package.value(
        "--for",
        "TARGET",
        "cmake, conan, meson, zephyr, esp-idf, arduino, platformio, cmsis, bazel"
        " or rust",
        required=True,
        dest="ecosystem",
    )
    package.path(
        "--out",
        "DIR",
        "folder of the package; default: packages/TARGET/NAME",
        dest="package_folder",
    )
    package.flag("--binary", "the library as built, instead of its sources")
    package.path(
        "--scenario",
        "FILE",
        "calls of the self test; default: one of each method, random inputs",
    )
    package.value(
        "--version",
        "X.Y.Z",
        "version of the package; default: that of the profile",
        type=_version,
        dest="package_version",
    )
    package.jobs()
    add_locking(package)
    package.set_defaults(out=None, timeout=_TIMEOUT_S)
