"""Firmware of the Raspberry Pi Pico in rp2040js: an emulator and a GDB server beside QEMU."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.measure.elf import loaded_bytes
from orchestrator.targets.boards import BOARDS
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.product import Product, make_product
from tests.qemu.boards import gdb_server
from tests.tools import need_tool, need_toolchain, optional_tool

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

LIBRARY = ROOT / "build/package-tools/node_modules/rp2040js"
SCENARIO = ("--scenario", str(CORPUS / "add_mul" / "case.json"))


def _built(folder: Path, via: str, images: Sequence[str] = ()) -> Product:
    need_toolchain("cortex-m0plus", "zig")
    optional_tool("node")
    if not LIBRARY.is_dir():
        # In no registry but npm's: tests/run installs it where there is npm.
        pytest.skip("needs rp2040js: not installed")
    product = make_product(folder, "add_mul", cpu="cortex-m0plus", toolchain="zig")
    text = product.profile.read_text()
    more = f'[target]\nboard = "rp2040"\nvia = "{via}"\nimages = {[*images]}\n'
    product.profile.write_text(text.replace("[target]\n", more))
    assert product.run("build") == 0
    return product


def _command(product: Product, *more: str) -> list[str]:
    """What starts a Pico with the product's firmware in its flash."""
    parts = sorted(loaded_bytes((product.out / "firmware.elf").read_bytes()))
    begin, data = parts[0][0], bytearray()
    for at, part in parts:
        data += bytes(at - begin - len(data)) + part
    image = product.out.parent / "image.bin"
    image.write_bytes(data)
    return _started(image, hex(begin), *more)


def _started(image: Path, *more: str) -> list[str]:
    script = Path(__file__).with_name("pico.mjs")
    return [optional_tool("node"), str(script), str(LIBRARY), str(image), *more]


def test_a_core_that_halts_at_breakpoint_instructions(tmp_path: Path) -> None:
    """As a core of silicon does, and QEMU's do not."""
    product = _built(tmp_path, "semihosting")
    with gdb_server(lambda port: _command(product, str(port))) as device:
        for _ in range(2):
            assert product.run("run", "--on", device, *SCENARIO) == 0


def test_the_second_stage_boot_loader_is_built_from_its_source(tmp_path: Path) -> None:
    source, assembled = ROOT / "runtime/tools/rp2040_boot2.S", tmp_path / "boot2.o"
    prefix = "arm-none-eabi"
    for command in (
        [need_tool(f"{prefix}-as"), str(source), "-o", str(assembled)],
        [need_tool(f"{prefix}-objcopy"), "-O", "binary", str(assembled), str(tmp_path / "bytes")],
    ):
        subprocess.run(command, check=True)
    boot = BOARDS["rp2040"].boot
    assert boot[:-4] == (tmp_path / "bytes").read_bytes().ljust(252, b"\0")
    # CRC-32 of the data sheet (2.8.1.3.1), by long division: bits as they come, none inverted.
    value = int.from_bytes(boot[:-4], "big") << 32 ^ 0xFFFFFFFF << 252 * 8
    for bit in range(252 * 8 + 31, 31, -1):
        if value >> bit & 1:
            value ^= 0x104C11DB7 << bit - 32
    assert value == int.from_bytes(boot[-4:], "little")


def test_a_pico_starts_as_its_boot_rom_starts_it(tmp_path: Path) -> None:
    """From the UF2 file on, with the boot loader in front."""
    product = _built(tmp_path, "uart", images=["uf2"])
    blocks = (product.out / "firmware.uf2").read_bytes()
    flash = bytearray(b"\xff" * (1 << 20))
    for at in range(0, len(blocks), 512):
        address, size = struct.unpack_from("<II", blocks, at + 12)
        flash[address - 0x10000000 : address - 0x10000000 + size] = blocks[at + 32 :][:size]
    image = tmp_path / "flash.bin"
    image.write_bytes(flash)
    host, port = os.openpty()
    with (tmp_path / "said").open("wb") as said:
        command = _started(image, "0x10000000")
        with subprocess.Popen(command, stdin=host, stdout=host, stderr=said) as emulator:
            try:
                assert product.run("run", "--on", f"uart:{os.ttyname(port)}", *SCENARIO) == 0
            finally:
                emulator.kill()
                os.close(host)
                os.close(port)
    # RP2040 data sheet, 4.10: off, then a standard read of 03h with 24 bits of address, then on.
    written = ["8 0", "14 4", "0 1f0300", "f4 3000218", "4 0", "8 1"]
    assert (tmp_path / "said").read_text().splitlines() == [f"ssi {one}" for one in written]


def test_a_pico_over_its_uart(tmp_path: Path) -> None:
    """With the crystal and the clocks that the board's file starts."""
    product = _built(tmp_path, "uart")
    host, port = os.openpty()
    with subprocess.Popen(_command(product), stdin=host, stdout=host) as emulator:
        try:
            on = f"uart:{os.ttyname(port)}"
            assert product.run("run", "--on", on, *SCENARIO) == 0
        finally:
            emulator.kill()
            os.close(host)
            os.close(port)
