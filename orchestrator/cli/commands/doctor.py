"""`orchestrator doctor`: what is installed, and how to get the rest."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.build.exporting import PYTHON, interpreter
from orchestrator.errors import ExitCode, ToolchainError
from orchestrator.shell.distribution import pip_install
from orchestrator.shell.process import run as run_process
from orchestrator.shell.toolchain import find_emulator, find_toolchain, install_hint
from orchestrator.targets.cores import BOARDS, CPUS, resolve_target

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """A program: its purpose, where it was found, how to install it."""

    purpose: str
    found: str
    hint: str


def run(args: Namespace, console: Console) -> ExitCode:
    """Probe every toolchain and emulator. A missing one is not an error."""
    del args
    findings = [*_toolchains(), *_emulators(), _ninja(), _export()]
    console.document(
        [
            {"for": f.purpose, "found": f.found or None, "install": f.hint or None}
            for f in findings
        ]
    )
    lines = []
    width = max(len(finding.purpose) for finding in findings)
    for finding in findings:
        state = finding.found or f"missing; {finding.hint}"
        lines.append(
            f"{'ok ' if finding.found else '-- '} {finding.purpose:<{width}}  {state}"
        )
    console.data("\n".join(lines))
    return ExitCode.OK


def _toolchains() -> list[_Finding]:
    findings = []
    for cpu in CPUS.values():
        for toolchain in cpu.toolchains:
            target = resolve_target(
                cpu=cpu.name, isa=None, board=None, toolchain=toolchain, optimize="size"
            )
            purpose = f"{cpu.name}, {toolchain}"
            try:
                version = find_toolchain(target).version
                findings.append(_Finding(purpose=purpose, found=version, hint=""))
            except ToolchainError as error:
                hint = error.diagnostics[0].hint.partition(";")[0]
                findings.append(_Finding(purpose=purpose, found="", hint=hint))
    return findings


def _emulators() -> list[_Finding]:
    findings = []
    emulated = [b for b in BOARDS.values() if b.emulator]
    for program in sorted({b.emulator[0] for b in emulated}):
        boards = ", ".join(b.name for b in emulated if b.emulator[0] == program)
        try:
            (path, *_) = find_emulator((program,))
            findings.append(_Finding(purpose=f"run on {boards}", found=path, hint=""))
        except ToolchainError:
            findings.append(
                _Finding(
                    purpose=f"run on {boards}",
                    found="",
                    hint=install_hint(program),
                )
            )
    return findings


def _ninja() -> _Finding:
    from orchestrator.shell.ninja import ninja_program  # noqa: PLC0415

    program = ninja_program()
    found = str(program) if shutil.which(program) else ""
    return _Finding(purpose="ninja", found=found, hint="pip install ninja")


_VERSIONS = """
from importlib import metadata
for name in ("torch", "executorch", "ethos-u-vela", "tosa-tools"):
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
"""


def _export() -> _Finding:
    """The packages that export needs; they are not imported, which takes seconds."""
    python = interpreter()
    done = run_process(
        [python, "-c", _VERSIONS], cwd=Path(), env=os.environ, timeout_s=60.0
    )
    found = done.stdout.splitlines()
    needed = {"torch", "executorch"} <= {line.partition(" ")[0] for line in found}
    return _Finding(
        purpose="models given as Python",
        found=f"{', '.join(found)} ({python})" if needed else "",
        hint=f"{pip_install('export')}, or set {PYTHON}",
    )
