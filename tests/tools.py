"""Programs that tests need besides Python.

A test whose tool is missing is skipped by the tool's name, so that a machine without
root can run all the others. With ORCHESTRATOR_REQUIRE_TOOLS=1 (or CI=true, which
services for continuous integration set) it fails instead: there, nothing may pass by
being left out.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NoReturn

import pytest

from orchestrator.errors import ToolchainError
from orchestrator.shell.signals import ENDING
from orchestrator.shell.toolchain import find_emulator, find_toolchain
from orchestrator.targets.cores import resolve_target

_TRUE = frozenset({"1", "true", "yes", "on"})


def tools_required() -> bool:
    """Whether a missing tool is a failure."""
    names = ("ORCHESTRATOR_REQUIRE_TOOLS", "CI")
    return any(os.environ.get(name, "").lower() in _TRUE for name in names)


def heed_signals() -> None:
    """Set signals that end a program to their default, as `preexec_fn` of a process.

    It inherits from what runs the tests which of them are ignored (`nohup`, `&`).
    """
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


def need_tool(*names: str) -> str:
    """Path of the first of these programs that is installed; else skip or fail."""
    path = next((p for name in names if (p := shutil.which(name))), None)
    if path is None:
        _missing(" or ".join(names))
    return path


def need_cmake() -> str:
    """CMake: that of the PyPI package, else the system's; else skip or fail."""
    with suppress(PackageNotFoundError):
        # Not its Python wrapper, which takes longer than CMake does.
        path = distribution("cmake").locate_file("cmake/data/bin/cmake")
        if Path(str(path)).is_file():
            return str(path)
    return need_tool("cmake")


def need_script(name: str, *, program: str = "") -> str:
    """A program of a Python package of tests/package-tools.txt; else skip or fail."""
    path = shutil.which(program or name)
    if path is None:
        _missing(name)
    return path


def optional_tool(name: str) -> str:
    """A program that CI need not have either; else skip."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs {name}: not installed")
    return path


def need_file(path: str, package: str) -> str:
    """A file that a system package brings, such as a header; else skip or fail."""
    if not Path(path).is_file():
        _missing(f"{path} ({package})")
    return path


def need_toolchain(cpu: str, toolchain: str) -> None:
    """Skip or fail unless this toolchain for this core is installed and works."""
    target = resolve_target(cpu=cpu, isa=None, board=None, toolchain=toolchain, optimize="size")
    try:
        find_toolchain(target)
    except ToolchainError as error:
        _missing(f"toolchain {toolchain} for {cpu}", str(error))


def need_emulator(cpu: str) -> None:
    """Skip or fail unless what emulates the core, or its board, is installed."""
    target = resolve_target(cpu=cpu, isa=None, board=None, toolchain=None, optimize="size")
    emulator = target.board.emulator if target.board else target.cpu.emulator
    if not emulator or target.cpu.machine == platform.machine():
        return  # a host runs its own programs; some boards have no emulator
    try:
        find_emulator(emulator)
    except ToolchainError as error:
        _missing(emulator[0], str(error))


def _missing(tool: str, found: str = "not installed") -> NoReturn:
    if tools_required():
        pytest.fail(f"{tool} is needed here: {found}", pytrace=False)
    pytest.skip(f"needs {tool}: {found}")
