"""Firmware of the Raspberry Pi Pico in rp2040js: an emulator and a GDB server beside QEMU."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.measure.elf import loaded_bytes
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.product import Product, make_product
from tests.tools import need_toolchain, optional_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

LIBRARY = ROOT / "build/package-tools/node_modules/rp2040js"
SCENARIO = ("--scenario", str(CORPUS / "add_mul" / "case.json"))


def _built(folder: Path, via: str) -> Product:
    need_toolchain("cortex-m0plus", "zig")
    optional_tool("node")
    if not LIBRARY.is_dir():
        pytest.skip("needs rp2040js: not installed")
    product = make_product(folder, "add_mul", cpu="cortex-m0plus", toolchain="zig")
    text = product.profile.read_text()
    more = f'[target]\nboard = "rp2040"\nvia = "{via}"\n'
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
    script = Path(__file__).with_name("pico.mjs")
    return [optional_tool("node"), str(script), str(LIBRARY), str(image), hex(begin), *more]


@contextmanager
def _gdb_server(product: Product) -> Iterator[str]:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    with subprocess.Popen(_command(product, str(port))) as emulator:
        try:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.02)
            yield f"gdb:127.0.0.1:{port}"
        finally:
            emulator.kill()


def test_a_core_that_halts_at_breakpoint_instructions(tmp_path: Path) -> None:
    """As a core of silicon does, and QEMU's do not."""
    product = _built(tmp_path, "semihosting")
    with _gdb_server(product) as device:
        for _ in range(2):
            assert product.run("run", "--on", device, *SCENARIO) == 0


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
