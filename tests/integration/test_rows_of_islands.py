"""Calls that read more rows of an image than it has: images stay whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.main import run

ISLANDS = Path(__file__).parents[1] / "data" / "islands"
PROGRAMS = sorted(path.stem for path in ISLANDS.glob("*.pte"))

PROFILE = """
schema = 1
name = "rows"

[target]
cpu = "cortex-m55"

[[models]]
name = "model"
path = "{path}"
load = "prelinked"

[kernels]
libraries = ["cortex_m", "quantized", "portable"]

[memory]
fuse = "smallest"
"""


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_checked(program: str, tmp_path: Path) -> None:
    profile = tmp_path / "rows.toml"
    profile.write_text(PROFILE.format(path=ISLANDS / f"{program}.pte"))
    assert run(["check", str(profile)]) == 0
