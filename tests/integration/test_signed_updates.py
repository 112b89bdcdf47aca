"""examples/signed_updates with small writes: no loss of power leaves neither model.

The same with PSA Crypto and larger writes is in its README, which test_pages.py
follows.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from orchestrator.build.locking import needed_lock
from orchestrator.cli.main import run
from orchestrator.update import Update, read_fact, update_bytes
from tests.tools import need_tool, need_toolchain

ROOT: Final = Path(__file__).parents[2]
EXAMPLE: Final = ROOT / "examples" / "signed_updates"
FLAGS: Final = ("-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")

pytestmark = pytest.mark.toolchain


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its product, and updates of versions 1 and 2."""
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("updates")
    shutil.copytree(EXAMPLE, folder / "examples" / "signed_updates")
    model = ROOT / "examples" / "models" / "add_mul.pte"
    (folder / "examples" / "models").mkdir()
    shutil.copyfile(model, folder / "examples" / "models" / model.name)
    profile = folder / "examples" / "signed_updates" / "adder.toml"
    assert run(["build", str(profile), "--out", str(folder / "out"), "-q"]) == 0
    lock = needed_lock(profile.with_suffix(".lock"))
    identity, firmware = read_fact(dict(lock.firmware)["update add_mul"])
    for version in (1, 2):
        update = Update(
            identity=identity,
            model="add_mul",
            version=version,
            firmware_version=firmware,
            program=(folder / "out" / "models" / "add_mul.pte").read_bytes(),
        )
        data = update_bytes(update, lambda m: hmac.digest(b"\x5a" * 32, m, hashlib.sha256) * 2)
        (folder / f"{version}.update").write_bytes(data)
    return folder


def _program(folder: Path, slots: str, device: str) -> Path:
    """The simulation, with slots and what the device does as given."""
    source = folder / "examples" / "signed_updates"
    (source / "slots.c").write_text(slots)
    (source / "power_loss.c").write_text(device)
    includes = ("-I", str(folder / "out" / "include"), "-I", str(source))
    objects = []
    files = [source / n for n in ("slots.c", "simulated_flash.c", "power_loss.c")]
    for file in (*files, ROOT / "tests" / "integration" / "trust_hmac.cpp"):
        is_c = file.suffix == ".c"
        compiler = need_tool("cc") if is_c else need_tool("c++")
        standard = "-std=c11" if is_c else "-std=c++17"
        objects.append(str(folder / f"{file.name}.o"))
        tests = ("-I", str(ROOT / "tests" / "cpp"))
        command = [compiler, standard, *FLAGS, *includes, *tests, "-c", str(file)]
        subprocess.run([*command, "-o", objects[-1]], check=True)
    library = str(folder / "out" / "libadder.a")
    program = folder / "power_loss"
    link = [need_tool("c++"), "-no-pie", *objects, library, "-o", str(program)]
    subprocess.run(link, check=True)
    return program


DEVICE: Final = (EXAMPLE / "power_loss.c").read_text(encoding="utf-8")


def _simulate(folder: Path, slots: str, device: str = DEVICE) -> subprocess.CompletedProcess[str]:
    program = _program(folder, slots, device)
    files = ("1.update", "1.update", "2.update")
    return subprocess.run(
        [str(program), *(str(folder / name) for name in files), "16", "512"],
        capture_output=True,
        text=True,
        check=False,
    )


SLOTS: Final = (EXAMPLE / "slots.c").read_text(encoding="utf-8")


def test_no_loss_of_power_leaves_neither_model(folder: Path) -> None:
    done = _simulate(folder, SLOTS)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(
        r"(\d+) losses of power: (\d+) starts with the old update, (\d+) with the new"
        r" one, none with neither\n",
        done.stdout,
    )
    assert found
    losses, old, new = map(int, found.groups())
    assert losses > 1000
    assert min(old, new) > 100


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        # Over the slot that runs.
        ("active == 0 ? 1 : 0", "active == 0 ? 0 : 1", "neither the old nor the new"),
        # The older one runs.
        (
            "records[1].sequence > records[0]",
            "records[1].sequence < records[0]",
            "cannot be stored any more",
        ),
        # The record stays while the slot is written.
        ("if (!flash->erase(flash, record_at)) return false;", "", ""),
    ],
)
def test_the_simulation_notices_mistakes(folder: Path, right: str, wrong: str, said: str) -> None:
    assert SLOTS.count(right) == 1
    done = _simulate(folder, SLOTS.replace(right, wrong))
    assert done.returncode != 0
    assert said in done.stderr


def test_an_older_update_is_refused_after_a_newer_one_ran(folder: Path) -> None:
    raised = "if (version > lowest) lowest = version;"
    assert DEVICE.count(raised) == 1
    done = _simulate(folder, SLOTS, DEVICE.replace(raised, "(void)version;"))
    assert done.returncode != 0
    assert "an older update is accepted" in done.stderr
