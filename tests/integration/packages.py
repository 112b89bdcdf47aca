"""Packages of one product, the int8 keyword spotter, and tools that take them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.main import run
from orchestrator.shell.ninja import ninja_program
from tests.integration.workspace import ROOT
from tests.tools import need_cmake, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping

CASES = ROOT / "examples" / "cases"
SCENARIO = CASES / "kws-int8-m4.json"
MODEL = ROOT / "examples" / "models" / "kws_dscnn_int8.pte"
PASSED = "kws: self test passed\nrun_kws_kws_forward: Ok\n"
RAN = PASSED.partition("\n")[2]
PROFILE = """\
schema = 1
name = "kws"
version = "1.4.0"
description = "Keyword spotting"
[target]
cpu = "CPU"
toolchain = "TOOLCHAIN"
[kernels]
libraries = ["cortex_m", "quantized", "portable"]
[[models]]
name = "kws"
path = "kws_dscnn_int8.pte"
load = "prelinked"
"""
_CACHE = {
    name: value
    for name, value in {
        "CCACHE_DIR": os.environ.get("CCACHE_DIR", ""),
        "CCACHE_BASEDIR": "/tmp",  # noqa: S108  # paths below are relative to folders
        "CCACHE_NOHASHDIR": "1",
        "CMAKE_C_COMPILER_LAUNCHER": shutil.which("ccache") or "",
        "CMAKE_CXX_COMPILER_LAUNCHER": shutil.which("ccache") or "",
    }.items()
    if value
}
"""Ecosystems compile the same sources: what they compile is in ccache."""


@dataclass(frozen=True, slots=True)
class Packages:
    """Makes packages of one product."""

    folder: Path
    name: str = "kws"
    more: tuple[str, ...] = ("--scenario", str(SCENARIO))

    def run(self, ecosystem: str, out: Path, *arguments: str) -> int:
        """Exit code of `orchestrator package`."""
        profile = str(self.folder / f"{self.name}.toml")
        command = ["package", profile, "--for", ecosystem, "--out", str(out)]
        command += [*self.more, *arguments]
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            return run(command)
        finally:
            os.chdir(before)

    def make(self, ecosystem: str, out: Path, *arguments: str) -> Path:
        """A package in a folder that it did not know when it was made."""
        assert self.run(ecosystem, out / "made", *arguments) == 0
        return (out / "made").rename(out / self.name)


def packages_for(folder: Path, cpu: str, toolchain: str = "zig", target: str = "") -> Packages:
    """Packages of the product; `target` are further lines of that table."""
    need_toolchain(cpu, toolchain)
    text = PROFILE.replace("CPU", cpu).replace("TOOLCHAIN", toolchain)
    text = text.replace("[kernels]", f"{target}[kernels]")
    (folder / "kws.toml").write_text(text)
    shutil.copy(MODEL, folder)
    return Packages(folder)


def tool(
    *command: object, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a tool says, without settings of the user."""
    clean = {"PATH": os.environ["PATH"], "HOME": str(cwd), "LC_ALL": "C", **_CACHE}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**clean, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def need(done: subprocess.CompletedProcess[str]) -> str:
    """Output of a tool that succeeded."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cmake(
    source: Path, out: Path, *settings: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Configure and build."""
    program, ninja = need_cmake(), f"-DCMAKE_MAKE_PROGRAM={ninja_program()}"
    folders = ("-S", source, "-B", out)
    arguments = (program, *folders, "-GNinja", ninja, *settings)
    need(tool(*arguments, cwd=source, env=env))
    return tool(program, "--build", out, cwd=source, env=env)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
