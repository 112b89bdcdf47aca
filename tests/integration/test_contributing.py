"""What CONTRIBUTING.md shows is followed in a copy of the project."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.errors import ExitCode
from tests.integration.joined_nets import Net, program_bytes
from tests.integration.workspace import ROOT, copy_checkout, orchestrator
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _section(title: str) -> str:
    return PAGE.partition(f"\n### {title}\n")[2].partition("\n### ")[0]


def _examples(title: str) -> list[tuple[str, str]]:
    """Files that a section names, each with the block that follows."""
    section = _section(title)
    return [
        (re.findall(r"`([\w/.]+/[\w.-]+)`", section[: block.start()])[-1], block[2])
        for block in _BLOCK.finditer(section)
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    need_toolchain("host", "zig")
    copy_checkout(tmp_path / "p")
    return tmp_path / "p"


def _follow(title: str, checkout: Path) -> None:
    """Do what a section shows: new files, and changes of those that are there."""
    for file, block in _examples(title):
        path = checkout / file
        lines = block.splitlines(keepends=True)
        if not path.exists():
            path.write_text(block)
            continue
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        text = path.read_text()
        assert text.count(before) == 1, f"{file} has not, or not once:\n{before}"
        path.write_text(text.replace(before, after))


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
    _profile(checkout, "host", '[operators]\ninclude = ["aten::square.out"]\n')
    before = _orchestrator("check", "p.toml", cwd=checkout)
    assert "error[no-kernel]: no kernel for aten::square.out" in before.stderr
    (source, code), (entries, entry) = _examples("A kernel")
    assert not (checkout / source).exists()
    (checkout / source).write_text(code)
    with (checkout / entries).open("a") as file:
        file.write(f"\n{entry}")
    after = _orchestrator("build", "p.toml", cwd=checkout)
    assert after.returncode == 0, after.stderr
    table = (checkout / "build/p/gen/src/registered_kernels.cpp").read_text()
    assert "orch::portable::square_out" in table


@pytest.mark.toolchain
def test_a_variant_of_a_packed_kernel(checkout: Path) -> None:
    """A call whose depth it fits has it."""
    net = Net(name="forward")
    sums = net.constant(np.zeros(8), ScalarType.Int)
    weights = net.constant(np.ones((8, 6 * 16)), ScalarType.Char)
    rest = (0, 0, 0, [1 << 30], [-5], 127, -128, net.tensor((4, 8)))
    y = net.call(
        "cortex_m::quantized_linear.out", net.given((4, 6 * 16)), weights, None, sums, *rest
    )
    _profile(checkout, "cortex-m55", 'optimize = "speed"\n[kernels]\nlibraries = ["cortex_m"]\n')
    profile = checkout / "p.toml"
    profile.write_text(f'{profile.read_text()}load = "prelinked"\n')
    (checkout / "m.pte").write_bytes(program_bytes([net.returns(y)]))
    _follow("A variant of a packed kernel", checkout)
    after = _orchestrator("build", "p.toml", cwd=checkout)
    assert after.returncode == 0, after.stderr
    report = json.loads((checkout / "build/p/report.json").read_text())
    names = {symbol["name"] for symbol in report["symbols"]}
    assert names >= {"orch::cortex_m::packed_pixels_6", "orch_packed_pixels_6"}


@pytest.mark.toolchain
def test_a_core_and_its_board(checkout: Path) -> None:
    """A row and a file."""
    examples = dict(_examples("A core and a board"))
    name = examples["orchestrator/targets/cores.py"].split('"')[1]
    _profile(checkout, name, "")
    before = _orchestrator("check", "p.toml", cwd=checkout)
    assert "error[unknown-cpu]" in before.stderr
    for file, row in examples.items():
        path = checkout / file
        if not path.exists():
            path.write_text(row)
            continue
        text = path.read_text()
        end = text.rindex("        )\n    }\n)")  # of the table's rows
        path.write_text(text[:end] + row + text[end:])
    after = _orchestrator("build", "p.toml", cwd=checkout)
    assert after.returncode == 0, after.stderr
    assert (checkout / "build/p/firmware.elf").exists()


@pytest.mark.toolchain
def test_a_profile_key(checkout: Path) -> None:
    """It is checked with its line, and the stage that reads it acts on it."""
    _profile(checkout, "cortex-m4", '[budget]\nstack = "100 B"\n')
    before = _orchestrator("build", "p.toml", cwd=checkout)
    assert 'error[unknown-key]: unknown key "stack" in [budget]' in before.stderr
    _follow("A profile key", checkout)
    after = _orchestrator("build", "p.toml", cwd=checkout)
    assert after.returncode == ExitCode.MEMORY
    assert "error[over-budget]: the firmware needs more stack than" in after.stderr
    assert "--> p.toml:7" in after.stderr
    _profile(checkout, "cortex-m4", '[budget]\nstack = "100 KiB"\n')
    assert _orchestrator("build", "p.toml", cwd=checkout).returncode == 0


def test_a_pass(checkout: Path) -> None:
    """It runs where its row is, and can be skipped."""
    _follow("A pass", checkout)
    _profile(checkout, "host", '[passes]\nskip = ["drop_self_moves"]\n')
    done = _orchestrator("check", "p.toml", cwd=checkout)
    assert done.returncode == 0, done.stderr
    program = (
        "from dataclasses import replace\n"
        "from orchestrator.method.passes import PASSES, run_passes\n"
        "from orchestrator.program.program import MoveCall\n"
        "from orchestrator.program.values import IntValue\n"
        "from tests.unit.method.methods import Builder\n"
        "b = Builder()\n"
        "b.value(IntValue(1))\n"
        "method = b.method()\n"
        "move = MoveCall(source=0, target=0)\n"
        "method = replace(method, instructions=(move,), origins=(0,))\n"
        "print(len(run_passes(method, ['drop_self_moves']).instructions))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout), str(ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "0\n", ran.stderr


def test_an_option_of_a_command(checkout: Path) -> None:
    """Help has it, and it says the same in text and JSON."""
    before = _orchestrator("targets", cwd=checkout).stdout
    _follow("An option of a command", checkout)
    done = _orchestrator("targets", "--emulated", cwd=checkout)
    assert done.returncode == 0, done.stderr
    assert "not tried on hardware" in before
    assert "not tried on hardware" not in done.stdout
    found = json.loads(_orchestrator("targets", "--emulated", "--json", cwd=checkout).stdout)
    boards = sorted(board for core in found.values() for board in core["boards"])
    assert boards == sorted(re.findall(r"^  board +(\S+).*QEMU", before, re.MULTILINE))
    assert "--emulated" in _orchestrator("targets", "--help", cwd=checkout).stdout


def test_a_command(checkout: Path) -> None:
    """It is listed, and gives what it says."""
    _profile(checkout, "host", "")
    _follow("A command", checkout)
    done = _orchestrator("models", "p.toml", cwd=checkout)
    assert (done.returncode, done.stdout) == (0, "m  m.pte\n")
    assert "models" in _orchestrator("--help", cwd=checkout).stdout


def test_everything_that_is_named_exists() -> None:
    """But for what the examples add, names to fill in, and what nox sessions leave."""
    titles = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
    blocks = [example for title in titles for example in _examples(title)]
    new = {file for file, text in blocks if text.startswith(('"""', "#include", "description ="))}
    code = "\n".join(re.findall(r"`([^`\n]+)`", PAGE))
    named = {
        name
        for name in re.findall(r"[\w./-]*/[\w.-]+", code)
        if (ROOT / name.partition("/")[0]).exists()
        and not name.startswith("build/")
        and not re.search("[A-Z]{2}", name)
    }
    assert len(named) > 20
    assert {name for name in named - new if not (ROOT / name).exists()} == set()
