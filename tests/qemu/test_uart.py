"""Firmware that speaks to the host over a UART, on the boards of QEMU that people own."""

from __future__ import annotations

import os
import select
import subprocess
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.build.firmware import _command, carry_out
from orchestrator.build.judging import scenario_of
from orchestrator.errors import MismatchError
from orchestrator.measure.elf import ElfFile
from orchestrator.running.product import read_product
from orchestrator.running.protocol import encode_request
from orchestrator.running.wire import WireEnd
from orchestrator.targets import boards
from orchestrator.targets.boards import BOARDS
from tests.bad_wire import spoiled
from tests.conftest import CORPUS
from tests.product import Product, make_product
from tests.qemu.boards import built_for
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

EMULATED = [board.name for board in BOARDS.values() if board.uart and board.emulator]
LARGE = "netduinoplus2"
"""The one with the most memory."""


def _built(
    folder: Path, board: str, case: str = "add_mul", *, toolchain: str = "zig", via: str = "uart"
) -> Product:
    return built_for(board, folder, case, toolchain=toolchain, via=via)


@pytest.mark.parametrize("board", EMULATED)
def test_a_board_gives_what_executorch_gives(board: str, tmp_path: Path) -> None:
    product = _built(tmp_path, board, toolchain="gnu" if board == "netduino2" else "zig")
    assert product.run("run", "--scenario", str(CORPUS / "add_mul" / "case.json")) == 0


def test_every_command_that_runs_firmware_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = _built(tmp_path, LARGE, "kws_dscnn_int8_m4")
    scenario = ("--scenario", str(CORPUS / "kws_dscnn_int8_m4" / "case.json"))
    assert product.run("run", *scenario) == 0
    assert product.run("run", "--profile", *scenario) == 0
    assert product.run("test") == 0
    samples = np.random.default_rng(1).normal(size=(5, 1, 49, 10)).astype(np.float32)
    np.savez(tmp_path / "data.npz", inputs=samples, labels=np.arange(5))
    assert product.run("evaluate", "--data", str(tmp_path / "data.npz")) in {0, 4, 5}
    assert "5 samples" in capsys.readouterr().out


def test_another_way_to_the_host_is_built_anew(tmp_path: Path) -> None:
    product = _built(tmp_path, LARGE)
    scenario = ("--scenario", str(CORPUS / "add_mul" / "case.json"))
    over_uart, text = product.outputs(), product.profile.read_text()
    product.profile.write_text(text.replace('via = "uart"', 'via = "semihosting"'))
    assert product.run("run", *scenario) == 0
    assert product.outputs()["firmware.elf"] != over_uart["firmware.elf"]
    product.profile.write_text(text)
    assert product.run("run", *scenario) == 0
    assert product.outputs() == over_uart


def _talk(
    product: Product, end: WireEnd, spoil: Callable[[bytes], bytes], *, timeout_s: float
) -> bytes:
    """The response over a wire on which bytes get lost or change."""
    described = read_product((product.out / "product.json").read_text())
    command = _command(described, product.out / "firmware.elf")
    response = bytearray()
    deadline = time.monotonic() + timeout_s
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as firmware:
        assert firmware.stdin is not None
        assert firmware.stdout is not None
        try:
            while end.status is None and time.monotonic() < deadline:
                if select.select([firmware.stdout], [], [], 1)[0]:
                    data = os.read(firmware.stdout.fileno(), 4096)
                    firmware.stdin.write(spoil(end.receive(spoil(data))))
                    firmware.stdin.flush()
                    response += end.taken()
        finally:
            firmware.kill()
    return bytes(response)


@pytest.mark.parametrize(
    ("case", "seeds", "rate"),
    [
        ("add_mul", 3, 0.01),
        pytest.param("kws_dscnn_int8_m4", 5, 0.003, marks=pytest.mark.nightly),
        pytest.param("list_arguments", 5, 0.003, marks=pytest.mark.nightly),
    ],
)
def test_a_bad_line_changes_no_byte(case: str, seeds: int, rate: float, tmp_path: Path) -> None:
    product = _built(tmp_path, LARGE, case)
    described = read_product((product.out / "product.json").read_text())
    scenario = scenario_of(CORPUS / case / "case.json", described)
    request = encode_request(scenario.calls)
    right = _talk(product, WireEnd(request), bytes, timeout_s=60)
    assert right
    for seed in range(seeds):
        end = WireEnd(request)
        spoil = partial(spoiled, random=Random(seed), rate=rate)  # noqa: S311  # no secret
        assert _talk(product, end, spoil, timeout_s=240) == right
        assert end.status == 0


@pytest.mark.parametrize(
    ("board", "via"), [(LARGE, "uart"), ("microbit", "uart"), (LARGE, "semihosting")]
)
def test_a_fault_is_told(board: str, via: str, tmp_path: Path) -> None:
    product = _built(tmp_path, board, via=via)
    data = bytearray((product.out / "firmware.elf").read_bytes())
    elf = ElfFile(bytes(data))
    symbol = next(s for s in elf.symbols if "orch_application" in s.name)
    section = elf.sections[symbol.section]
    at = section.offset + (symbol.value & ~1) - section.address
    data[at : at + 2] = b"\x00\xde"  # udf #0
    (tmp_path / "faulty.elf").write_bytes(data)
    described = read_product((product.out / "product.json").read_text())
    calls = scenario_of(CORPUS / "add_mul" / "case.json", described).calls
    with pytest.raises(MismatchError) as caught:
        carry_out(described, tmp_path / "faulty.elf", calls, timeout_s=60)
    assert ("found", "a hardware fault") in caught.value.diagnostics[0].notes


def test_without_a_debugger_a_core_does_not_lock_up(tmp_path: Path) -> None:
    """QEMU aborts when one does; nobody takes requests here, so firmware waits for ever."""
    product = _built(tmp_path, LARGE, via="semihosting")
    command = (*BOARDS[LARGE].emulator, "-kernel", str(product.out / "firmware.elf"))
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(command, timeout=2, check=False)


@pytest.mark.parametrize(("name", "address"), [(LARGE, 0x20010000), ("virt-rv32", 0x80C00000)])
def test_start_up_writes_settings_and_waits(name: str, address: int, tmp_path: Path) -> None:
    """Memory in the place of registers: a bit that was not written is waited for without end."""
    cpu = BOARDS[name].cpu
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    product = make_product(tmp_path, "add_mul", cpu=cpu, toolchain="zig")
    text = (Path(boards.__file__).parent / "board_files" / f"{name}.toml").read_text()
    rows = f'[{address:#x}, 0xF0, 0x50], [{address:#x}, 0xFF, 0x50, "wait"]'
    (tmp_path / "own.toml").write_text(f"settings = [{rows}]\n{text}")
    profile = product.profile.read_text()
    product.profile.write_text(profile.replace("[target]\n", '[target]\nboard = "own.toml"\n'))
    assert product.run("build") == 0
    assert product.run("run", "--scenario", str(CORPUS / "add_mul" / "case.json")) == 0
