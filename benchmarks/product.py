"""Profiles for benchmarks: a case of the corpus on a target, and its build."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.clock import ROOT, environment, orchestrator
from benchmarks.table import NotMeasuredError, short

if TYPE_CHECKING:
    from pathlib import Path

CASES = (
    "add_mul",
    "linear_softmax",
    "mlp",
    "small_cnn",
    "kws_dscnn_fp32",
    "ad_autoencoder_fp32",
    "ic_resnet8_fp32",
    "vww_mobilenetv1_fp32",
)
"""Cases of the corpus whose firmware is measured."""

CORPUS = ROOT / "tests" / "data" / "corpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A finished build; `folder` holds its outputs."""

    case: str
    cpu: str
    toolchain: str
    optimize: str
    folder: Path

    @property
    def report(self) -> dict[str, Any]:
        """Its report.json."""
        report: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return report

    @property
    def place(self) -> str:
        """Target and toolchain in a few letters."""
        return f"{self.cpu} {self.toolchain}"


def write_profile(
    folder: Path, case: str, *, cpu: str, toolchain: str, optimize: str = "size", extra: str = ""
) -> Path:
    """Write a profile for a case into a folder, with a copy of its model.

    `extra` holds further tables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CORPUS / case / "model.pte", folder / "model.pte")
    profile = folder / "product.toml"
    profile.write_text(
        f'schema = 1\nname = "{case.replace("_", "-")}"\n\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n'
        f'optimize = "{optimize}"\n\n'
        f'[[models]]\nname = "model"\npath = "model.pte"\n{extra}'
    )
    return profile


def build(
    folder: Path, case: str, *, cpu: str, toolchain: str, optimize: str = "size", extra: str = ""
) -> Built:
    """Build a case; `extra` holds further tables of its profile.

    Raises:
        NotMeasuredError: It cannot be built here.
    """
    profile = write_profile(
        folder, case, cpu=cpu, toolchain=toolchain, optimize=optimize, extra=extra
    )
    out = folder / "out"
    done = subprocess.run(
        orchestrator("build", str(profile), "--out", str(out)),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(short(done.stderr))
    return Built(case=case, cpu=cpu, toolchain=toolchain, optimize=optimize, folder=out)
