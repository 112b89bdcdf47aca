"""README, docs and examples by the letter: files, commands, and what they print.

`tests/unit/test_doc_blocks.py` holds that every command is understood. Here all that
can run without PyTorch, boards and the code of others runs; `NOT_RUN` of
`tests/doc_blocks.py` says of all other blocks why. Getting started has a test of its
own: `tests/integration/test_distribution.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from tests.doc_blocks import NOT_RUN, ROOT, WALKED, Command, blocks, steps
from tests.doc_session import EXACT, Session, matches, paired, with_figures
from tests.tools import need_cmake, need_file, need_tool, need_toolchain
from tests.tutorial import PAGE as GETTING_STARTED

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

HERE = ("python3 -m venv ", ".venv/bin/pip install ")
"""Already here: this Python, with the project and its compiler."""
FOLDERS = {"examples/cmake/README.md": "examples/cmake"}
"""Where a page is followed, if not at the top of a checkout."""

NEEDS = {"examples/signed_updates/README.md": ("/usr/include/psa/crypto.h", "libmbedtls-dev")}
"""A file that a page needs, and the system's package with it."""


def test_a_page_shows_the_lines_that_are_printed() -> None:
    def difference(shown: str, printed: str) -> str | None:
        return paired(shown.split("|"), printed.replace("|", "\n"))[1]

    assert difference("a 1|b  2", "a  1||b 2") is None
    assert difference("a|...|c", "a|b|b|c") is None
    assert difference("a|...", "a|b|c") is None
    assert difference("a|b", "a|[1/2] compile x.cpp, 10 s|b") is None
    assert difference("a|c", "a|b|c") == "not printed: c"
    assert difference("a|b", "b|a") == "not printed: a"
    assert difference("a", "a|b") == "not shown: b"
    assert difference("...|result ok", "x|result FAIL") == "not printed: result ok"


@pytest.mark.skipif(not EXACT, reason="figures are those of a PC")
def test_a_page_shows_the_figures_that_are_printed() -> None:
    assert matches("total 1,000 B (+12)", "total  1,000 B (+12)")
    assert not matches("total 1,000 B", "total 1,001 B")
    assert not matches("1,000 B (+12)", "1,000 B (-12)")
    assert not matches("1,000 B (+12)", "1,000 B (same)")
    assert matches("built, 9 B; ...", "built, 9 B; outputs in build/a-7, lock a.lock")
    assert matches("a new ... built", "a new 13.8 s built")
    assert matches("sha256 ...", "sha256 0123456789abcdef")
    assert not matches("built, ... of flash", "built, 1,024 bytes of flash")
    assert not matches("packed ... files", "packed 12 files")
    assert not matches("op ... ok", "op 0.0002 + 1e-05*|expected| ok")


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
    # Builds of all pages: to remove their files takes most of a minute.
    subprocess.run(["/bin/sh", "-c", 'rm -rf "$0" &', folder], check=False)


@pytest.mark.parametrize("page", [page for page in WALKED if page != GETTING_STARTED])
def test_a_page_works_by_the_letter(page: str, checkout: Path, pytestconfig: pytest.Config) -> None:
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


@pytest.mark.parametrize(
    ("row", "model"),
    [
        ("matrix product and sum", "add_mul"),
        ("keyword spotting, DS-CNN", "kws_dscnn_fp32"),
        ("image classification, ResNet-8", "resnet8_fp32"),
    ],
)
def test_the_readme_has_the_sizes_of_builds(
    row: str,
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    monkeypatch.chdir(tmp_path)
    kinds = (("cortex-m4", "pte"), ("cortex-m55", "pte"), ("cortex-m55", "prelinked"))
    products = [f"p{number}" for number in range(len(kinds))]
    for product, (cpu, load) in zip(products, kinds, strict=True):
        need_toolchain(cpu, "zig")
        Path(f"{product}.toml").write_text(
            f'schema = 1\nname = "{product}"\n\n[target]\ncpu = "{cpu}"\n'
            f'toolchain = "zig"\n\n[[models]]\nload = "{load}"\n'
            f'path = "{ROOT}/examples/models/{model}.pte"\n'
        )
    assert run(["build", *(f"{product}.toml" for product in products)]) == 0
    reports = [Path(f"build/{product}/report.json") for product in products]
    sizes = [json.loads(report.read_text())["totals"] for report in reports]
    figures = [size["flash_bytes_without_models"] for size in sizes]
    figures.append(sizes[0]["arena_bytes"] + sizes[0]["state_bytes"])
    cells = " | ".join(f"{figure / 1024:.1f} KiB" for figure in figures)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    line = re.compile(rf"^(\| {row} \|) .* \|$", re.MULTILINE)
    expected = line.sub(rf"\1 {cells} |", text)
    if pytestconfig.getoption("--update-golden"):
        (ROOT / "README.md").write_text(expected, encoding="utf-8")
    assert f"| {row} | {cells} |" in expected
    assert expected == text
