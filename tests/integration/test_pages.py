"""README, docs and examples by the letter: files, commands, and what they print.

`tests/unit/test_doc_blocks.py` holds that every command is understood. Here all that
can run without PyTorch, boards and the code of others runs; `NOT_RUN` of
`tests/doc_blocks.py` says of all other blocks why. Getting started has a test of its
own: `tests/integration/test_distribution.py`.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.doc_blocks import NOT_RUN, ROOT, WALKED, Command, blocks, steps
from tests.doc_session import Session, missing, with_figures
from tests.tools import need_cmake, need_file, need_tool, need_toolchain
from tests.tutorial import PAGE as GETTING_STARTED

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

HERE = ("python3 -m venv ", ".venv/bin/pip install ")
"""Already here: this Python, with the project and its compiler."""
FOLDERS = {"examples/cmake/README.md": "examples/cmake"}
"""Where a page is followed, if not at the top of a checkout."""

NEEDS = {
    "examples/signed_updates/README.md": (
        "/usr/include/psa/crypto.h",
        "libmbedtls-dev",
    )
}
"""A file that a page needs, and the system's package with it."""


def test_shown_lines_are_found_in_order() -> None:
    shown = ("total 1,000 B", "...", "flash ...")
    assert missing(shown, "x\ntotal 1,090 B\nflash 9") is None
    assert missing(("a 1", "b ... c"), "a  1\nb 22 and c") is None
    assert missing(("total  1,000 B",), "total   1,090 B") is None
    assert missing(("total 1,000 B",), "total 1,200 B") == "total 1,000 B"
    assert missing(("b", "a"), "a\nb") == "a"
    assert missing(("result ok",), "result FAIL") == "result ok"
    assert missing(("1,000 B (+12)",), "1,001 B (-340)") is None
    assert missing(("1,000 B (+12)",), "1,001 B (same)") == "1,000 B (+12)"


def test_figures_of_a_page_are_corrected_in_their_columns() -> None:
    shown, printed = "op   1,000  3.5 % ...", "op  12,345  10 % of all"
    assert with_figures(shown, printed) == "op  12,345   10 % ..."
    assert with_figures(shown, "other  12,345  10 % of all") is None
    assert with_figures("1,000 B (+12)", "999 B (-340)") == "999 B (-340)"


def test_only_blocks_that_exist_have_a_reason() -> None:
    assert set(NOT_RUN) <= set(blocks("sh"))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of what the pages work with; they share it, and what they build."""
    for cpu in ("host", "cortex-m4", "cortex-m55"):
        need_toolchain(cpu, "zig")
    folder = tmp_path_factory.mktemp("documented")
    for name in ("profiles", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / ".venv" / "bin").mkdir(parents=True)
    programs = {"python": "", "python3": "", "orchestrator": "-m orchestrator "}
    for name, arguments in programs.items():
        program = folder / ".venv" / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        program.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("page", [page for page in WALKED if page != GETTING_STARTED])
def test_a_page_works_by_the_letter(
    page: str, checkout: Path, pytestconfig: pytest.Config
) -> None:
    for tool in ("qemu-system-arm", "arm-none-eabi-gcc", "cc"):
        need_tool(tool)
    if page in NEEDS:
        need_file(*NEEDS[page])
    programs = (checkout / ".venv" / "bin", Path(need_cmake()).parent)
    path = os.pathsep.join((*map(str, programs), os.environ["PATH"]))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    corrected = ROOT / page if pytestconfig.getoption("--update-golden") else None
    folder = checkout / FOLDERS.get(page, ".")
    session = Session(folder, environment, corrected=corrected)
    for step in steps(page):
        if not (isinstance(step, Command) and step.line.startswith(HERE)):
            session.follow(step)
