"""`run --profile --on DEVICE`: cycles by the core's counter, in QEMU in place of a board.

With `-icount` QEMU's time is that of its instructions, so a right counter is as exact as
`run --profile` in an emulator, which counts instructions in another way.
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.targets.boards import BOARDS
from tests.conftest import CORPUS
from tests.qemu.test_on_device import _built, _device

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

TRACED = "\n[trace]\nenable = true\n"
_HOOK = 100
"""Instructions of a reading of the counter, and around it."""
_INTERRUPT = 20
"""Instructions of SysTick's interrupt."""
_WRAP = 1 << 24
"""Cycles after which SysTick begins anew."""


def _profile(product: Product, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    capsys.readouterr()
    assert product.run("run", "--profile", "--json", *more) == 0
    costs: dict[str, Any] = json.loads(capsys.readouterr().out)["profile"]
    rows = [*costs["operators"], costs["executor"]]
    assert all(row["total"] > 0 for row in rows)
    assert sum(row["total"] for row in rows) == costs["total"]
    return costs


def _scenario(case: str) -> tuple[str, str]:
    return ("--scenario", str(CORPUS / case / "case.json"))


def _with_hooks(product: Product) -> None:
    product.profile.write_text(product.profile.read_text() + TRACED)
    assert product.run("build") == 0


def _compare(counted: dict[str, Any], cycles: dict[str, Any], *, per_instruction: float) -> None:
    """Cycles of each kernel are those of its instructions, and of a reading of the counter."""
    assert len(cycles["instructions"]) == len(counted["instructions"])
    for instructions, found in zip(counted["instructions"], cycles["instructions"], strict=True):
        assert found["calls"] == instructions["calls"]
        more = found["total"] / per_instruction - instructions["total"]
        wraps = found["total"] / _WRAP
        assert -1 <= more / found["calls"] <= _HOOK + _INTERRUPT * wraps, found
    # Hooks are in the executor as well: nothing else is.
    ran = sum(i["calls"] for i in cycles["instructions"])
    most = counted["executor"]["total"] + 2 * _HOOK * ran
    assert cycles["executor"]["total"] / per_instruction < most


@pytest.mark.parametrize(
    ("board", "case", "megahertz"),
    [
        ("netduinoplus2", "kws_dscnn_int8_m4", 168),
        ("microbit", "mlp", 16),
        ("mps3-an547", "kws_dscnn_int8_m55", 32),
        # QEMU counts nanoseconds in mcycle.
        ("sifive-e", "mlp", 1000),
        ("virt-rv64", "kws_dscnn_fp32", 1000),
    ],
)
def test_cycles_are_those_of_the_instructions(
    board: str, case: str, megahertz: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = _built(tmp_path, board, case, toolchain="gnu" if board == "microbit" else "zig")
    counted = _profile(product, capsys, *_scenario(case))
    _with_hooks(product)
    per_instruction = megahertz * 1.024  # 2^10 nanoseconds
    with _device(board, "-icount", "shift=10") as device:
        assert product.run("flash", "--on", device, "--yes") == 0
        once = _profile(product, capsys, "--on", device, *_scenario(case))
        again = _profile(product, capsys, "--on", device, "--passes", "2", *_scenario(case))
    _compare(counted, once, per_instruction=per_instruction)
    _compare(counted, again, per_instruction=per_instruction)
    assert (once["unit"], once["passes"], again["passes"]) == ("cycles", 1, 2)
    assert once["counted_on"]["device"] == device
    assert once["counted_on"]["board"] == board
    is_arm = "cortex" in BOARDS[board].cpu
    assert once["counted_on"]["counter"] == ("SysTick" if is_arm else "mcycle")
    assert once["counted_on"]["wait_states"] == BOARDS[board].flash_wait_states
    if board == "netduinoplus2":
        assert max(i["total"] / i["calls"] for i in once["instructions"]) > 3 * _WRAP


def test_a_wire_takes_no_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A method writes its events in the middle, over a UART that takes longer than it."""
    board, case = "netduinoplus2", "lstm_unrolled"
    product = _built(tmp_path, board, case, via="uart")
    counted = _profile(product, capsys, *_scenario(case))
    _with_hooks(product)
    assert product.run("run", *_scenario(case)) == 0
    assert _profile(product, capsys, *_scenario(case)) == counted  # without the hooks
    program, *words = BOARDS[board].emulator
    at = words.index("-serial")
    words[at + 1] = "pty"
    firmware = str((product.out / "firmware.elf").resolve())
    command = [program, *words, "-icount", "shift=1", "-no-reboot", "-kernel", firmware]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as emulator:
        try:
            assert emulator.stdout is not None
            port = re.search(r"/dev/\S+", emulator.stdout.readline())
            assert port
            found = _profile(product, capsys, "--on", f"uart:{port[0]}", *_scenario(case))
        finally:
            emulator.kill()
    _compare(counted, found, per_instruction=168 * 0.002)


def test_a_device_needs_hooks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    product = _built(tmp_path)
    firmware = (product.out / "firmware.elf").read_bytes()
    capsys.readouterr()
    arguments = ("--profile", "--on", "gdb:127.0.0.1:1", *_scenario("add_mul"))
    assert product.run("run", *arguments) == 2
    name = product.profile.stem
    assert capsys.readouterr().err == (
        f"error[no-trace-hooks]: {name} has no trace hooks, which read the counter of a device\n"
        f"  --> {product.profile}\n"
        "   hint: write enable = true in [trace], build and flash it\n"
    )
    assert (product.out / "firmware.elf").read_bytes() == firmware
