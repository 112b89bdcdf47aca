"""Profiles for tests: a corpus case on a target, built by the real command line."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.cli.main import run
from tests.conftest import CORPUS
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A profile in a folder of its own; outputs go to `out`."""

    profile: Path
    out: Path

    @property
    def lock(self) -> Path:
        """The lock beside the profile."""
        return self.profile.with_suffix(".lock")

    def run(self, command: str, *arguments: str) -> int:
        """Exit code of `orchestrator COMMAND PROFILE --out OUT ARGUMENTS`."""
        return run([command, str(self.profile), "--out", str(self.out), *arguments])

    def report(self) -> dict[str, object]:
        """The report of the last build."""
        report = json.loads((self.out / "report.json").read_text())
        assert isinstance(report, dict)
        return report

    def outputs(self) -> dict[str, bytes]:
        """What is the same wherever and with whatever store it is built."""
        names = ("firmware.elf", "report.json", f"lib{self.profile.stem}.a")
        files = {name: (self.out / name).read_bytes() for name in names}
        return {**files, "lock": self.lock.read_bytes()}


def compiled_objects(out: Path) -> set[str]:
    """Objects that ninja made in a build folder."""
    log = (out / ".work" / ".ninja_log").read_text().splitlines()[1:]
    return {line.split("\t")[3] for line in log if line.split("\t")[3].endswith(".o")}


def make_product(folder: Path, case: str, *, cpu: str, toolchain: str, extra: str = "") -> Product:
    """Write a profile for a corpus case, with a copy of its model."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CORPUS / case / "model.pte", folder / "model.pte")
    name = f"{case.replace('_', '-')}-{cpu.replace('.', '')}-{toolchain}"
    profile = folder / f"{name}.toml"
    profile.write_text(
        f'schema = 1\nname = "{name}"\n{extra}\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n\n'
        '[[models]]\nname = "model"\npath = "model.pte"\n'
    )
    return Product(profile=profile, out=folder / "out")


def build_product(folder: Path, case: str = "add_mul", *, toolchain: str = "gnu") -> Product:
    """Build a corpus case for a Cortex-M4."""
    need_toolchain("cortex-m4", toolchain)
    product = make_product(folder, case, cpu="cortex-m4", toolchain=toolchain)
    assert product.run("build") == 0
    return product


def run_nets(
    folder: Path,
    data: Path,
    *,
    cpu: str,
    toolchain: str,
    read: Callable[[], str],
    load: str = "pte",
) -> list[dict[str, Any]]:
    """Build all programs of a folder as one product, and run its scenario there.

    Args:
        folder: Of the product.
        data: Has `NAME.pte` for each model, and `scenario.json`.
        cpu: Of the target.
        toolchain: Of the target.
        read: Gives, and forgets, what was printed.
        load: Of the models.

    Returns:
        The calls of the scenario, as `run --json` prints them.
    """
    models = ""
    for program in sorted(data.glob("*.pte")):
        shutil.copyfile(program, folder / program.name)
        models += f'[[models]]\nname = "{program.stem}"\npath = "{program.name}"\n'
        models += f'load = "{load}"\n'
    profile = folder / "product.toml"
    profile.write_text(
        'schema = 1\nname = "product"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n'
        "[kernels]\n"
        'libraries = ["cortex_m_int16", "cortex_m", "quantized", "portable"]\n'
        f"{models}"
    )
    product = Product(profile=profile, out=folder / "out")
    assert product.run("build") == 0
    read()
    product.run("run", "--scenario", str(data / "scenario.json"), "--json")
    calls: list[dict[str, Any]] = json.loads(read())["calls"]
    return calls
