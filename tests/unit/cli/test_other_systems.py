"""The program on systems that are not Linux, as far as Linux can tell.

A process of its own lacks what only Linux has, or what only POSIX has, and gets another
name of its system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from argparse import _SubParsersAction
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.build.product_warnings import system_warnings
from orchestrator.cli.arguments import parser
from orchestrator.errors import ExitCode
from orchestrator.shell import process
from orchestrator.shell.object_store import ObjectStore
from tests.doc_blocks import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MODEL = ROOT / "tests" / "data" / "corpus" / "add_mul" / "model.pte"
PROFILE = """\
schema = 1
name = "demo"

[target]
cpu = "cortex-m4"
toolchain = "zig"

[[models]]
path = "model.pte"
"""
LINUX: Final = (
    "os.sched_ os.pidfd_ os.eventfd os.memfd_ os.posix_f os.O_PATH os.O_TMPFILE"
    " os.copy_file_range os.splice os.getrandom os.setresuid os.getresuid"
)
POSIX: Final = (
    "fcntl resource pwd grp termios tty pty syslog spwd crypt nis readline curses"
    " _curses _posixshmem os.posix_ os.O_NO os.O_DIR os.O_CLOEXEC os.fchmod os.fchown"
    " os.chown os.lchown os.mkfifo os.mknod os.statvfs os.fstatvfs os.killpg os.getpg"
    " os.setpg os.setsid os.getuid os.geteuid os.getgid os.getegid os.getgroups"
    " os.getloadavg os.nice os.sync os.lockf os.uname"
    " signal.SIGHUP signal.SIGKILL signal.SIGALRM signal.SIGUSR signal.SIGCHLD"
    " signal.pthread_ signal.sigwait signal.alarm signal.setitimer"
)
"""Modules, and beginnings of names."""
RUN = """\
import os
import signal
import sys
import sysconfig

sysconfig.get_config_vars()  # lie in a file that has the system's name
REMOVED = sys.argv.pop(1).split()
for word in REMOVED:
    owner, _, start = word.rpartition(".")
    if not owner:
        sys.modules.pop(word, None)
        continue
    for name in dir(sys.modules[owner]):
        if name.startswith(start):
            delattr(sys.modules[owner], name)
os.supports_effective_ids = frozenset()
sys.platform = "other"


class Refused:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in REMOVED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refused)
from orchestrator.cli.main import run

for arguments in sys.argv[1].split(";"):
    print("$", arguments, flush=True)
    try:
        print("status", run(arguments.split()), flush=True)
    except SystemExit as ended:
        print("status", ended.code or 0, flush=True)
"""
(_COMMANDS,) = (a for a in parser()._actions if isinstance(a, _SubParsersAction))  # noqa: SLF001  # argparse lists them nowhere else


def _run(folder: Path, removed: str, *commands: str) -> tuple[list[str], str]:
    """Statuses of commands in one process, and all that they print."""
    shutil.copy(MODEL, folder)
    (folder / "demo.toml").write_text(PROFILE)
    (folder / "host.toml").write_text(PROFILE.replace("cortex-m4", "host"))
    done = subprocess.run(
        [sys.executable, "-c", RUN, removed, ";".join(commands)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout
    assert "internal-error" not in done.stdout
    found = [n for n in done.stdout.splitlines() if n.startswith("status ")]
    assert len(found) == len(commands), done.stdout
    return [line.removeprefix("status ") for line in found], done.stdout


@pytest.mark.parametrize("removed", [LINUX, f"{LINUX} {POSIX}"], ids=["bsd", "bare"])
def test_what_needs_no_build_works_elsewhere(tmp_path: Path, removed: str) -> None:
    commands = ("check demo.toml", "plan demo.toml", "inspect model.pte", "targets")
    statuses, said = _run(tmp_path, removed, *commands)
    assert statuses == ["0"] * len(commands), said
    assert "demo: everything fits" in said


def test_every_command_explains_itself_elsewhere(tmp_path: Path) -> None:
    commands = [f"{name} --help" for name in _COMMANDS.choices]
    statuses, said = _run(tmp_path, f"{LINUX} {POSIX}", *commands)
    assert statuses == ["0"] * len(commands), said
    assert said.count("usage: ") >= len(commands)


def test_builds_without_locks_are_refused(tmp_path: Path) -> None:
    statuses, said = _run(tmp_path, f"{LINUX} {POSIX}", "build demo.toml", "doctor")
    assert statuses[0] == str(int(ExitCode.TOOLCHAIN)), said
    refusal = """\
error[unsupported-system]: this system cannot lock a build folder
   = found: other
   = expected: Linux
   hint: on Windows, build in WSL 2
"""
    assert refusal in said
    assert not (tmp_path / "demo.lock").exists()


def test_products_for_the_host_need_linux(tmp_path: Path) -> None:
    statuses, said = _run(tmp_path, LINUX, "build host.toml", "check host.toml")
    assert statuses == [str(int(ExitCode.TOOLCHAIN)), "0"], said
    assert (
        """\
error[unsupported-system]: products for the host need Linux
   = found: other
   hint: build for a board that has an emulator; on Windows, use WSL 2
"""
        in said
    )


def test_builds_elsewhere_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert system_warnings() == ()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert system_warnings() == (
        "warning[untested-system]: builds are tested on Linux, not on darwin; if a"
        " build is killed, compilers that it started go on",
    )


def test_objects_are_shared_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process may have every key: work is done twice, and is right."""
    keys = [sha256(text).hexdigest() for text in (b"one", b"two")]
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with ObjectStore(tmp_path).claims() as claims:
        assert claims.take(keys) == frozenset(keys)
        assert claims.wait(keys[0]) == {keys[0]}
        claims.release()


def test_a_process_ends_in_time_without_process_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "killpg")
    command = (sys.executable, "-c", "import time; time.sleep(90)")
    assert process.run(command, cwd=tmp_path, timeout_s=0.5).status == process.TIMED_OUT
