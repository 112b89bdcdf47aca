"""Signed updates on M4 and M55: a right one is loaded, a thousand damaged ones are not.

HMAC stands for the signature: `tests/cpp/support/test_trust.h`.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from pathlib import Path
from typing import Final

import pytest

from orchestrator.build.firmware import carry_out
from orchestrator.build.locking import needed_lock
from orchestrator.running.product import read_product
from orchestrator.update import Update, read_fact, update_bytes
from tests.integration.workspace import Workspace, write_product
from tests.qemu.other_application import with_application
from tests.tools import need_emulator, need_toolchain

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

TESTS: Final = Path(__file__).parents[1] / "cpp"
APPLICATION: Final = Path(__file__).with_name("damaged_updates.cpp")
TARGETS: Final = (("host", "zig"), ("cortex-m4", "gnu"), ("cortex-m55", "zig"))
RESULTS: Final = (
    *("ok", "misaligned", "invalid", "other product", "other model"),
    *("needs firmware", "too old", "not signed", "damaged", "not loaded"),
)


def _signature(message: bytes) -> bytes:
    return hmac.new(b"\x5a" * 32, message, hashlib.sha256).digest() * 2


@pytest.mark.parametrize(("cpu", "toolchain"), TARGETS)
def test_damaged_updates_are_refused(
    cpu: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    write_product(tmp_path, case="add_mul", cpu=cpu, toolchain=toolchain, extra="update = true\n")
    product = Workspace(folder=tmp_path, capsys=capsys)
    product.build()
    facts = dict(needed_lock(tmp_path / "product.lock").firmware)
    identity, firmware = read_fact(facts["update model"])
    for name, program in (
        ("update", (product.out / "models" / "model.pte").read_bytes()),
        ("rubbish", b"no program"),
    ):
        update = Update(
            identity=identity, model="model", version=7, firmware_version=firmware, program=program
        )
        data = update_bytes(update, _signature)
        (product.out / ".work" / f"{name}.bin").write_bytes(data)
    elf = with_application(product.out, APPLICATION, {}, folders=[TESTS])
    known = read_product((product.out / "product.json").read_text())
    data = carry_out(known, elf, (), timeout_s=240).response
    words = struct.unpack(f"<{len(data) // 4}I", data)
    before, accepted, old, rubbish, after, again, odd, run = words[:8]
    assert (before, after, run, words[-1]) == (0, 0, 0, 0)
    right = [RESULTS[number] for number in (accepted, old, rubbish, again, odd)]
    assert right == ["ok", "too old", "not loaded", "ok", "misaligned"]
    counts = dict(zip(RESULTS, words[8:-1], strict=True))
    assert sum(counts.values()) == 1000
    assert counts["ok"] == counts["not loaded"] == counts["misaligned"] == 0
    # Every check has work to do.
    for name in RESULTS[2:9]:
        assert counts[name] > 0, counts
