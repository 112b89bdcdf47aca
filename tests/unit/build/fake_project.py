"""A small project whose builds need no compiler."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Project, load
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = """schema = 1
name = "demo"

[target]
cpu = "host"
toolchain = "zig"

[[models]]
name = "net"
path = "net.pte"
"""


def write_project(folder: Path, *, more: str = "") -> Path:
    """The profile `demo.toml`, with a model of the corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CORPUS / "mlp" / "model.pte", folder / "net.pte")
    profile = folder / "demo.toml"
    profile.write_text(PROFILE + more)
    return profile


def project_in(folder: Path, *, locked: bool = False) -> Project:
    """The project as it is now; it is built in `out`."""
    profile = load(folder / "demo.toml")
    return Project(profile, BuildOptions(out=folder / "out", locked=locked))
