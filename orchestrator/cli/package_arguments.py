"""The arguments of `orchestrator package`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.cli.argument_types import job_count
from orchestrator.cli.shared_arguments import (
    JOBS,
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
    package.add_argument("profile", type=Path, metavar="PROFILE", help=PROFILE)
    package.add_argument(
        "--for",
        required=True,
        dest="ecosystem",
        metavar="TARGET",
        help="cmake, conan, meson, zephyr, esp-idf, arduino, platformio, cmsis, bazel"
        " or rust",
    )
    package.add_argument(
        "--out",
        type=Path,
        dest="package_folder",
        metavar="DIR",
        help="folder of the package; default: packages/TARGET/NAME",
    )
    package.add_argument(
        "--binary",
        action="store_true",
        help="the library as built, instead of its sources",
    )
    package.add_argument(
        "--scenario",
        type=Path,
        metavar="FILE",
        help="calls of the self test; default: one of each method, random inputs",
    )
    package.add_argument(
        "--version",
        type=_version,
        dest="package_version",
        metavar="X.Y.Z",
        help="version of the package; default: that of the profile",
    )
    package.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)
    add_locking(package)
    package.set_defaults(out=None, timeout=_TIMEOUT_S)
