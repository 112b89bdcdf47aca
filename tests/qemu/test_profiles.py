"""`orchestrator test` on each profile and example that needs nothing from elsewhere."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

ROOT = Path(__file__).parents[2]


def _profiles() -> Iterator[Path]:
    """Those whose programs and kernels are checked in."""
    yield from sorted((ROOT / "profiles").glob("*.toml"))
    for path in sorted((ROOT / "examples").rglob("*.toml")):
        text = path.read_text()
        if "[[models]]" in text and "source =" not in text and "CMSIS-NN" not in text:
            yield path


PROFILES = [*_profiles()]


def test_profiles_are_those_that_we_show() -> None:
    assert len(PROFILES) > 25


@pytest.mark.parametrize("path", PROFILES, ids=[f"{p.parent.name}-{p.stem}" for p in PROFILES])
def test_a_product_has_the_numbers_of_its_program(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tomllib.loads(path.read_text())["target"]
    need_toolchain(target["cpu"], target.get("toolchain", "gnu"))
    if target["cpu"] != "host":
        need_emulator(target["cpu"])
    capsys.readouterr()
    words = ["test", str(path), "--json", "--no-lock", "--out", str(tmp_path / "out")]
    assert run(words) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    assert found["equal"]
    assert found["methods"]
    for method in found["methods"]:
        assert method["runs"] > 0
        assert method["outputs"] > 0
