"""`orchestrator doctor`: what is installed, and how to get the rest."""

from __future__ import annotations

import platform
import re
import shutil
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, ToolchainError
from orchestrator.shell.distribution import pip_install
from orchestrator.shell.process import PYTHON, interpreter
from orchestrator.shell.process import run as run_process
from orchestrator.shell.toolchain import find_emulator, find_toolchain, install_hint
from orchestrator.targets.cores import BOARDS, CPUS, resolve_target

# Columns. Chosen by hand.
_WIDTH = 80


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
    return console.result(
        [{"for": f.purpose, "found": f.found or None, "install": f.hint or None} for f in findings],
        "\n".join(_lines(findings)),
    )


def _lines(findings: Sequence[_Finding]) -> Iterator[str]:
    """What is fine with what it is for, and what is missing with its remedy."""
    by_program: dict[str, list[str]] = {}
    for finding in findings:
        if finding.found:
            by_program.setdefault(finding.found, []).append(finding.purpose)
    for program, purposes in by_program.items():
        targets = ", ".join(re.sub(", (gnu|zig)$", "", text) for text in purposes)
        yield from _wrapped("ok       ", f"{program}: {targets}")
    by_hint: dict[str, list[str]] = {}
    for finding in findings:
        if not finding.found:
            by_hint.setdefault(finding.hint, []).append(finding.purpose)
    for hint, purposes in by_hint.items():
        yield from _wrapped("missing  ", f"for {', '.join(purposes)}")
        yield from _wrapped("         ", hint)


def _wrapped(start: str, text: str) -> list[str]:
    """Lines of at most 80 columns; a path or a command stays whole."""
    return wrap(
        text,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _toolchains() -> list[_Finding]:
    findings = []
    for cpu in CPUS.values():
        for toolchain in cpu.toolchains:
            target = resolve_target(
                cpu=cpu.name, isa=None, board=None, toolchain=toolchain, optimize="size"
            )
            purpose = f"{cpu.name}, {toolchain}"
            try:
                tools = find_toolchain(target)
                found = f"{tools.version}, {tools.compiler[0]}"
                findings.append(_Finding(purpose=purpose, found=found, hint=""))
            except ToolchainError as error:
                hint = error.diagnostics[0].hint.partition(";")[0]
                findings.append(_Finding(purpose=purpose, found="", hint=hint))
    return findings


def _emulators() -> list[_Finding]:
    findings = []
    here = platform.machine()
    emulated = [(b.name, b.emulator) for b in BOARDS.values() if b.emulator]
    emulated += [
        (cpu.name, cpu.emulator) for cpu in CPUS.values() if cpu.emulator and cpu.machine != here
    ]
    for program in sorted({command[0] for _, command in emulated}):
        boards = ", ".join(n for n, command in emulated if command[0] == program)
        try:
            (path, *_) = find_emulator((program,))
            findings.append(_Finding(purpose=f"run on {boards}", found=path, hint=""))
        except ToolchainError:
            findings.append(
                _Finding(purpose=f"run on {boards}", found="", hint=install_hint(program))
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
    # In the interpreter that exports, which may be another one
    # (ORCHESTRATOR_EXPORT_PYTHON).
    done = run_process([python, "-c", _VERSIONS], cwd=Path(), timeout_s=60.0)
    found = done.stdout.splitlines()
    needed = {"torch", "executorch"} <= {line.partition(" ")[0] for line in found}
    return _Finding(
        purpose="models given as Python",
        found=f"{', '.join(found)} ({python})" if needed else "",
        hint=f"{pip_install('export')}, or set {PYTHON}",
    )
