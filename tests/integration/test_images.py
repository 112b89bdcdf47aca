"""Builds that write images of the firmware: which steps run, and what the lock has."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.build.lockfile import parse_lock
from tests.integration.workspace import Build, Workspace, write_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

BOTH = {"firmware.hex", "firmware.bin"}


@pytest.fixture
def w(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    need_toolchain("cortex-m4", "zig")
    write_product(tmp_path, case="add_mul", cpu="cortex-m4")
    return Workspace(folder=tmp_path, capsys=capsys)


def _with(w: Workspace, images: str) -> Build:
    lines = [line for line in w.profile.read_text().splitlines() if "images" not in line]
    at = lines.index("[target]") + 1
    w.profile.write_text("\n".join([*lines[:at], f"images = {images}", *lines[at:], ""]))
    return w.build("--json")


def test_images_come_and_go_without_compiling(w: Workspace) -> None:
    w.build()
    before = w.outputs()
    done = _with(w, '["hex", "bin"]')
    assert done.stages == {"lock": "profile [target] changed"}
    assert not done.steps
    after = w.outputs()
    assert after.keys() - before.keys() == BOTH
    assert after["firmware.elf"] == before["firmware.elf"]
    (build,) = json.loads(done.out)["builds"]
    lock = parse_lock(w.lock.read_text(), file="product.lock")
    for name in BOTH:
        digest = hashlib.sha256(after[name]).hexdigest()
        assert dict(lock.outputs)[name] == f"sha256:{digest} {len(after[name])}"
        assert build["outputs"][name] == dict(lock.outputs)[name]
        assert w.run("verify", "--artefact", str(w.out / name)).code == 0
    assert w.run("verify").code == 0
    (w.out / "firmware.hex").write_bytes(b":00000001FF\r\n")  # without its bytes
    assert w.run("lock", "--check", "--outputs").code == 8
    w.build()
    assert w.outputs() == after
    _with(w, "[]")
    assert w.outputs().keys() == before.keys()
    assert not (w.out / "firmware.hex").exists()


def test_one_that_cannot_be_written_leaves_the_build_before(w: Workspace) -> None:
    _with(w, '["hex"]')
    before = w.state()
    memories = """
[[memory.regions]]
name = "flash"
origin = 0x00000000
size = "1 MiB"
kind = "flash"

[[memory.regions]]
name = "far"
origin = 0x10000000
size = "1 MiB"
kind = "flash"

[[memory.regions]]
name = "sram"
origin = 0x20000000
size = "1 MiB"
kind = "ram"

[memory]
weights = "far"
"""
    w.edit("product.toml", memories)
    w.profile.write_text(w.profile.read_text().replace('["hex"]', '["bin"]'))
    done = w.run("build", "--json")
    assert [problem["code"] for problem in done.problems] == ["scattered-image"]
    assert done.code == 6
    assert w.state() == before
    assert "firmware.hex" in _with(w, '["hex"]').out
