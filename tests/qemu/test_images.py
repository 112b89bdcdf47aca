"""Images of a firmware beside binutils, and run in QEMU in the place of the ELF file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.build.firmware import _command, carry_out
from orchestrator.build.judging import scenario_of
from orchestrator.running.product import read_product
from orchestrator.targets import boards
from tests.conftest import CORPUS
from tests.images import read_hex, read_uf2
from tests.product import Product, make_product
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

CASE = "kws_dscnn_int8_m4"
MEMORY = """
[kernels]
libraries = ["cortex_m", "quantized", "portable"]
[memory]
code = "psram"
"""
"""Code runs where it is not stored, as data with initial values do."""


@pytest.fixture(scope="module", params=["gnu", "zig"])
def product(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Product:
    need_toolchain("cortex-m4", request.param)
    folder = tmp_path_factory.mktemp("images")
    made = make_product(folder, CASE, cpu="cortex-m4", toolchain=request.param, extra=MEMORY)
    board = Path(boards.__file__).with_name("board_files") / "mps2-an386.toml"
    (folder / "own.toml").write_text(f"uf2_family = 0xE48BFF56\n{board.read_text()}")
    own = '[target]\nboard = "own.toml"\nimages = ["hex", "bin", "uf2"]\n'
    made.profile.write_text(made.profile.read_text().replace("[target]\n", own))
    assert made.run("build") == 0
    return made


def _file(product: Product, name: str) -> bytes:
    return (product.out / name).read_bytes()


def _objcopy(product: Product, name: str, *options: str) -> bytes:
    """What binutils make of the ELF file."""
    made = product.out.parent / name
    program = need_tool("arm-none-eabi-objcopy")
    subprocess.run([program, *options, product.out / "firmware.elf", made], check=True)
    return made.read_bytes()


def test_binutils_give_the_same_bytes(product: Product) -> None:
    binutils = read_hex(_objcopy(product, "binutils.hex", "-O", "ihex"))
    assert read_hex(_file(product, "firmware.hex")) == binutils
    # It fills gaps with zeros; with --gap-fill also those in front of memory without contents.
    plain = _objcopy(product, "binutils.bin", "-O", "binary")
    filled = bytes(byte if at in binutils else 0xFF for at, byte in enumerate(plain))
    assert _file(product, "firmware.bin") == filled
    pages = {b.address: b.data for b in read_uf2(_file(product, "firmware.uf2"))}
    for page, data in pages.items():
        assert data == bytes(binutils.get(page + n, 0xFF) for n in range(256))
    assert {at - at % 256 for at in binutils} <= pages.keys()


def _response(product: Product, loaded: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The answer of what QEMU loads by these arguments."""
    described = read_product((product.out / "product.json").read_text())

    def with_image(*arguments: object) -> tuple[str, ...]:
        found = _command(*arguments)  # type: ignore[arg-type]  # handed on
        assert found[-2] == "-kernel"
        return (*found[:-2], *loaded)

    if loaded:
        monkeypatch.setattr("orchestrator.build.firmware._command", with_image)
    calls = scenario_of(CORPUS / CASE / "case.json", described).calls
    return carry_out(described, product.out / "firmware.elf", calls, timeout_s=60).response


@pytest.mark.parametrize("image", ["hex", "bin", "uf2"])
def test_each_gives_the_answer_of_the_elf_file(
    product: Product, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_emulator("cortex-m4")
    right = _response(product, (), monkeypatch)
    assert right
    path = product.out / f"firmware.{image}"
    if image == "uf2":  # which QEMU does not read
        blocks = read_uf2(path.read_bytes())
        assert [b.address for b in blocks] == [256 * n for n in range(len(blocks))]
        path = tmp_path / "blocks.bin"
        path.write_bytes(b"".join(b.data for b in blocks))
    place = "" if image == "hex" else ",addr=0,force-raw=on"
    device = ("-device", f"loader,file={path}{place}")
    assert _response(product, device, monkeypatch) == right
