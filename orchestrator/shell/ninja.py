"""Run ninja: progress, and the output of a failed step."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from orchestrator.errors import CompileError, RegionOverflowError
from orchestrator.shell import process
from orchestrator.shell.files import remedy_for
from orchestrator.shell.process import compiler_environment
from orchestrator.shell.reporter import Reporter

# As NINJA_STATUS below says.
_STATUS = re.compile(r"\[(\d+)/(\d+)\] (.*)")
# GNU ld: "region `flash' overflowed by 12 bytes"; lld: "section '.text' will not fit in
# region 'flash': overflowed by 12 bytes".
_OVERFLOW = re.compile(r"region [`'](\w+)':? overflowed by (\d+) bytes")
# Some hundred lines of a terminal, chosen by hand: errors of C++ templates are long.
_SHOWN_CHARACTERS = 6000


def ninja_program() -> Path:
    """The ninja of the PyPI package."""
    from ninja import BIN_DIR  # noqa: PLC0415  # only real builds need it

    return Path(BIN_DIR) / "ninja"


def run_ninja(
    folder: Path,
    *,
    jobs: int | None,
    reporter: Reporter,
    folder_lock: int | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
    targets: Iterable[str] = (),
) -> str:
    """Run ninja in a folder.

    Args:
        folder: Holds build.ninja.
        jobs: Steps at a time; None lets ninja choose.
        reporter: Gets every step.
        folder_lock: Descriptor of the lock on the build folder. ninja and compilers
            hold it as well: if we are killed, the next build waits until they end.
        environment: Variables besides those that compilers need.
        targets: What to make; everything if it is empty.

    Returns:
        Output of ninja and the compilers, warnings included.

    Raises:
        CompileError: A step failed.
        MemoryPlanError: A memory of the board overflowed at link time.
    """
    command = [str(ninja_program())]
    if jobs is not None:
        command += ["-j", str(jobs)]
    command += targets
    # A relative working directory keeps absolute paths out of debug information.
    # gcc and clang write $PWD into debug information as the folder of compilation
    # (DW_AT_comp_dir) if it names the current folder, and else its absolute path.
    env = {
        **compiler_environment(),
        **environment,
        "NINJA_STATUS": "[%f/%t] ",
        "PWD": "/proc/self/cwd",
    }
    output: list[str] = []
    with process.started(
        command,
        cwd=folder,
        env=env,
        # One pipe keeps a warning below the step that gave it, which `_with_warnings`
        # in compile_folder.py relies on.
        stderr=subprocess.STDOUT,
        ask_first=True,
        pass_fds=() if folder_lock is None else (folder_lock,),
    ) as ninja:
        for data in ninja.stdout or ():
            line = data.decode(errors="replace")
            if match := _STATUS.match(line):
                reporter.progress(int(match[1]), int(match[2]), match[3])
            output.append(line)
        ninja.wait()
    text = "".join(output)
    if ninja.returncode != 0:
        raise _failure(text, folder)
    return text


def _failure(text: str, folder: Path) -> CompileError | RegionOverflowError:
    overflows: dict[str, int] = {}
    for region, size in _OVERFLOW.findall(text):
        # lld reports a running total at each section; the last one is the overflow.
        overflows[region] = max(int(size), overflows.get(region, 0))
    if overflows:
        return RegionOverflowError(overflows)
    # ninja writes it before the output of a failed step; steps before it are of no
    # interest.
    start = text.find("FAILED:")
    shown = text[max(start, 0) :].rstrip()
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[:_SHOWN_CHARACTERS] + "\n[...]"
    hint = f"the commands are in {folder / 'build.ninja'}"
    # A full disk is an error of the compiler or linker, in their words around those of
    # libc.
    if os.strerror(errno.ENOSPC) in text:
        hint = remedy_for(OSError(errno.ENOSPC, ""))
    return CompileError.of("compile-failed", "compiling or linking failed", output=shown, hint=hint)
