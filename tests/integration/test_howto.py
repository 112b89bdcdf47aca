"""Pages with console blocks work by the letter: files, commands, and their output."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.doc_blocks import ROOT, WALKED, Command, SavedFile, steps
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def _values(numbers: list[str]) -> list[float]:
    return [float(number.replace(",", "")) for number in numbers]


def matches(shown: str, printed: str) -> bool:
    """Whether the page shows this line: `...` stands for any text, figures may drift.

    Kernels change by some bytes; a tenth is where a page has to be corrected.
    """
    pattern = _NUMBER.sub("\0", shown)
    pattern = r"\s+".join(map(re.escape, pattern.split()))
    pattern = pattern.replace(re.escape("..."), ".*")
    found = re.fullmatch(pattern.replace("\0", f"({_NUMBER.pattern})"), printed.strip())
    if not found:
        return False
    pairs = zip(
        _values(_NUMBER.findall(shown)), _values(list(found.groups())), strict=True
    )
    return all(math.isclose(a, b, rel_tol=0.1) for a, b in pairs)


def missing(shown: tuple[str, ...], printed: str) -> str | None:
    """The first line of the page that is not in the output, in this order."""
    lines = iter(printed.splitlines())
    for line in shown:
        text = line.strip()
        if text in ("", "..."):
            continue
        if not any(matches(text, candidate) for candidate in lines):
            return line
    return None


def test_shown_lines_are_found_in_order() -> None:
    shown = ("total 1,000 B", "...", "flash ...")
    assert missing(shown, "x\ntotal 1,090 B\nflash 9") is None
    assert missing(("a 1", "b ... c"), "a  1\nb 22 and c") is None
    assert missing(("total  1,000 B",), "total   1,090 B") is None
    assert missing(("total 1,000 B",), "total 1,200 B") == "total 1,000 B"
    assert missing(("b", "a"), "a\nb") == "a"
    assert missing(("result ok",), "result FAIL") == "result ok"


def _run(command: Command, folder: Path, path: str) -> None:
    done = subprocess.run(
        ["/bin/bash", "-c", command.line],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said = f"$ {command.line}\n{done.stdout}"
    fails = any("error[" in line for line in command.shown)
    assert (done.returncode != 0) == fails, said
    line = missing(command.shown, done.stdout)
    assert line is None, f"not printed: {line}\n{said}"


@pytest.mark.parametrize("page", WALKED)
def test_a_page_works_by_the_letter(page: str, tmp_path: Path) -> None:
    need_tool("qemu-system-arm")
    for cpu in ("host", "cortex-m4", "cortex-m55"):
        need_toolchain(cpu, "zig")
    for name in ("profiles", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    program = tmp_path / "bin" / "orchestrator"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m orchestrator "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join((str(program.parent), os.environ["PATH"]))
    commands = 0
    for step in steps(page):
        match step:
            case SavedFile():
                with (tmp_path / step.path).open("a" if step.added else "w") as file:
                    file.write(step.text if not step.added else f"\n{step.text}")
            case Command():
                _run(step, tmp_path, path)
                commands += 1
    assert commands
