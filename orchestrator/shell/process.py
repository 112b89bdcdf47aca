"""Start processes, and report their failures, in one way.

No process outlives this program: an error, interrupt or signal ends a process with
all that it started, and if this program is killed, the system ends the process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, TypeAlias

from orchestrator.shell.distribution import PACKAGE_FOLDER

# Below the negative numbers of signals, -1 to -64, which subprocess gives for a process
# that a signal ended.
TIMED_OUT = -1000
NOT_STARTED = -1001
RESTARTED = -1002
TOO_MUCH = -1003
GONE = -1004

# Seconds, chosen by hand: ninja waits for compilers that run, which end within that;
# then the whole group is killed.
_GRACE_S = 10.0
"""How long a process may take to end after SIGTERM."""
Started: TypeAlias = "subprocess.Popen[bytes]"
"""A process that runs."""
PR_SET_PDEATHSIG = 1
"""Source: `linux/prctl.h`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A process that ended.

    Args:
        status: Its exit status; negative for a signal, TIMED_OUT, NOT_STARTED.
        stdout: What it wrote.
        stderr: What it wrote, or why it did not start.
    """

    status: int
    stdout: str
    stderr: str


class Processes(Protocol):
    """Runs programs: this module does."""

    def run(
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float
    ) -> Finished:
        """See `run`."""


@contextmanager
def started(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    ask_first: bool = False,
    pass_fds: tuple[int, ...] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a process group of its own.

    When the block is left and the process still runs, its group is ended.

    Args:
        command: Program and arguments.
        cwd: Its folder.
        env: Its whole environment; None for ours.
        stdin: As for `subprocess.Popen`; by default it has none.
        stdout: Likewise.
        stderr: Likewise.
        ask_first: Whether to send SIGTERM first, for a process that ends what it
            started, such as ninja, whose commands have groups of their own.
        pass_fds: Descriptors that it inherits.

    Raises:
        OSError: It does not start.
    """
    process = subprocess.Popen(  # noqa: S603  # a list of arguments, no shell
        command,
        cwd=cwd,
        env=None if env is None else dict(env),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        # A group of its own: a signal to it reaches all that the process started, and
        # Ctrl-C in a terminal reaches only us, who end it in order.
        process_group=0,
        pass_fds=pass_fds,
        preexec_fn=_ends_with_parent(ask_first=ask_first),  # noqa: PLW1509  # takes no lock
    )
    try:
        yield process
    finally:
        _end(process, ask_first=ask_first)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _end(process: subprocess.Popen[bytes], *, ask_first: bool) -> None:
    """End a process group, unless its first process has ended by itself."""
    if process.poll() is None and ask_first:
        # SIGKILL would leave ninja's commands alone, as each has a group of its own,
        # and compilers would go on to write objects.
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    if process.poll() is None:
        _kill(process)
        process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if not hasattr(os, "killpg"):
        process.kill()  # Windows has no process groups
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _ends_with_parent(*, ask_first: bool) -> Callable[[], None] | None:
    """A function for a new process: the system then signals it when we are gone."""
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415  # only builds that start something need it

    # Looked up before the fork: the child may not take a lock that another thread held
    # when it was made.
    prctl = ctypes.CDLL(None).prctl
    # prctl(2): the signal comes when the *thread* that started the process ends. A
    # worker that starts builds in a thread ends its compilers with it (decision 0037).
    ending = signal.SIGTERM if ask_first else signal.SIGKILL
    parent = os.getpid()

    # Between fork and prctl the parent may have gone: then no signal ever comes.
    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, int(ending), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # we were gone already

    return ask


def run(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float
) -> Finished:
    """Run a program to its end without standard input. Never raises for its failure."""
    try:
        with started(command, cwd=cwd, env=env) as process:
            try:
                stdout, stderr = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                _kill(process)
                # Again, for what it wrote before it was killed.
                stdout, stderr = process.communicate()
                return Finished(status=TIMED_OUT, stdout=_text(stdout), stderr=_text(stderr))
    except OSError as error:
        return Finished(status=NOT_STARTED, stdout="", stderr=str(error))
    return Finished(status=process.returncode, stdout=_text(stdout), stderr=_text(stderr))


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


# The environment of compilers and ninja: only the variables that they need.

PYTHON = "ORCHESTRATOR_EXPORT_PYTHON"
"""The interpreter that has PyTorch and ExecuTorch."""

ALLOWED = (
    # Finding programs and their shared libraries.
    "PATH",
    "LD_LIBRARY_PATH",
    # Temporary files and caches.
    "HOME",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "CCACHE_DIR",
    # The jobs of a make that runs us.
    "MAKEFLAGS",
)
"""Variables that reach a compiler; docs/reproducibility.md lists them.

A list of allowed variables: compilers have many variables that change what they
compile (`CPATH`, `GCC_EXEC_PREFIX`, `CCC_OVERRIDE_OPTIONS`, `SOURCE_DATE_EPOCH`), and
each version may add more.
"""


def compiler_environment() -> dict[str, str]:
    """Environment of every program whose output reaches a product."""
    kept = {name: os.environ[name] for name in ALLOWED if name in os.environ}
    # One language and one sort order: `ninja.py` reads messages of linkers.
    return {**kept, "LC_ALL": "C"}


def interpreter() -> str:
    """The Python that exports."""
    return os.environ.get(PYTHON) or sys.executable


def python_environment() -> dict[str, str]:
    """The environment of that Python: the user's, and it finds this package."""
    # The interpreter that exports may be another environment, which has PyTorch and not
    # this package: it has to run the exporter of this version.
    paths = [str(PACKAGE_FOLDER.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}


def program_folders() -> list[str]:
    """Where programs are looked for, in order."""
    return os.get_exec_path()
