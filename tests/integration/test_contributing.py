"""What CONTRIBUTING.md shows is followed in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.integration.workspace import ROOT, copy_checkout, orchestrator
from tests.tools import need_toolchain

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _section(title: str) -> str:
    return PAGE.partition(f"\n### {title}\n")[2].partition("\n### ")[0]


def _examples(title: str) -> list[tuple[str, str]]:
    """Files that a section names, each with the block that follows."""
    section = _section(title)
    return [
        (re.findall(r"`([\w/.]+/[\w.]+)`", section[: block.start()])[-1], block[2])
        for block in _BLOCK.finditer(section)
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    need_toolchain("host", "zig")
    copy_checkout(tmp_path / "p")
    return tmp_path / "p"


def _orchestrator(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(cwd)}
    return orchestrator(*arguments, cwd=cwd, env=env)


def _profile(folder: Path, cpu: str, more: str) -> None:
    shutil.copyfile(ROOT / "tests/data/corpus/add_mul/model.pte", folder / "m.pte")
    (folder / "p.toml").write_text(
        f'schema = 1\nname = "p"\n[target]\ncpu = "{cpu}"\ntoolchain = "zig"\n{more}'
        '[[models]]\nname = "m"\npath = "m.pte"\n'
    )


@pytest.mark.toolchain
def test_a_kernel(checkout: Path) -> None:
    """It is not there, then it is in the product and in the library."""
    _profile(checkout, "host", '[operators]\ninclude = ["aten::sign.out"]\n')
    before = _orchestrator("check", "p.toml", cwd=checkout)
    assert "error[no-kernel]: no kernel for aten::sign.out" in before.stderr
    (source, code), (entries, entry) = _examples("A kernel")
    assert not (checkout / source).exists()
    (checkout / source).write_text(code)
    with (checkout / entries).open("a") as file:
        file.write(f"\n{entry}")
    after = _orchestrator("build", "p.toml", cwd=checkout)
    assert after.returncode == 0, after.stderr
    table = (checkout / "build/p/gen/src/registered_kernels.cpp").read_text()
    assert "orch::portable::sign_out" in table


@pytest.mark.toolchain
def test_a_core_and_its_board(checkout: Path) -> None:
    """Each is its row."""
    examples = dict(_examples("A core and a board"))
    name = examples["orchestrator/targets/cores.py"].split('"')[1]
    _profile(checkout, name, "")
    before = _orchestrator("check", "p.toml", cwd=checkout)
    assert "error[unknown-cpu]" in before.stderr
    for file, row in examples.items():
        path = checkout / file
        text = path.read_text()
        end = text.rindex("        )\n    }\n)")  # of the table's rows
        path.write_text(text[:end] + row + text[end:])
    after = _orchestrator("build", "p.toml", cwd=checkout)
    assert after.returncode == 0, after.stderr
    assert (checkout / "build/p/firmware.elf").exists()


def test_everything_that_is_named_exists() -> None:
    """But for the kernel that the example adds, and names with a part to fill in."""
    new = {file for file, _ in _examples("A kernel") if file.endswith(".cpp")}
    code = "\n".join(re.findall(r"`([^`\n]+)`", PAGE))
    named = {
        name
        for name in re.findall(r"[\w./]*/[\w.]+", code)
        if (ROOT / name.partition("/")[0]).exists() and not re.search("[A-Z]{2}", name)
    }
    assert len(named) > 20
    assert {name for name in named - new if not (ROOT / name).exists()} == set()
