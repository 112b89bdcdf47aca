"""Damaged flash: what commands say of it, and what checksums cost a firmware."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from tests.conftest import CORPUS
from tests.integration.workspace import Workspace, write_product
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

CASE = "add_mul"
CALL = tuple(
    word
    for index in range(3)
    if (CORPUS / CASE / f"in{index}.npy").exists()
    for word in ("--input", str(CORPUS / CASE / f"in{index}.npy"))
)
REMEDY = (
    "failed with ImageDamaged (14), flash does not hold what was linked: flash the"
    " firmware again; if it happens on the same device again, its flash is worn out or"
    " something overwrites it"
)


def _product(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    check: str,
    *,
    cpu: str = "host",
    load: str = "pte",
) -> Workspace:
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    extra = f'load = "{load}"\n'
    extra += f'[integrity]\ncheck = "{check}"\n' if check else ""
    write_product(folder, case=CASE, cpu=cpu, extra=extra)
    product = Workspace(folder=folder, capsys=capsys)
    product.build()
    return product


def _damage(product: Workspace) -> None:
    """Flip a bit of a constant, as the firmware has it; the loader cannot know."""
    firmware = (product.out / "firmware.elf").resolve()
    data = bytearray(firmware.read_bytes())
    program = (product.out / "models" / "model.pte").read_bytes()
    at = data.index(program) + len(program) - 1
    data[at] ^= 0x10
    firmware.chmod(0o755)
    firmware.write_bytes(data)


@pytest.mark.qemu
@pytest.mark.usefixtures("as_it_is")
@pytest.mark.parametrize("cpu", ["host", "cortex-m4"])
@pytest.mark.parametrize("check", ["start", "load"])
def test_run_tells_of_damaged_flash(
    check: str, cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = _product(tmp_path, capsys, check, cpu=cpu)
    assert product.run("run", *CALL).code == 0
    _damage(product)
    done = product.run("run", *CALL)
    assert done.code == 10
    assert "flash does not hold what was linked" in done.err
    assert done.err.endswith(
        "hint: build the profile again: the firmware was changed after it was linked\n"
    )


@pytest.mark.usefixtures("as_it_is")
def test_without_a_check_nobody_notices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    product = _product(tmp_path, capsys, "")
    _damage(product)
    assert product.run("run", *CALL).code == 0


def test_decode_tells_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("host", "zig")
    write_product(tmp_path, case=CASE)
    profile = str(tmp_path / "product.toml")
    for status in ("14", "ImageDamaged", "ORCH_IMAGE_DAMAGED"):
        assert run(["decode", status, "--profile", profile]) == 0
        said = capsys.readouterr().out
        assert said == f'model "model", method "forward", {REMEDY}\n'


_APPLICATION = """\
#include "product.h"
int main(void) {{
  static float input[1024], output[1024];
  (void)input, (void)output;
  return (int){call};
}}
"""


def _linked(product: Workspace, folder: Path, call: str) -> bytes:
    """An application in C that makes one call, without what the linker drops."""
    gcc = need_tool("gcc")
    source, binary = folder / "app.c", folder / "app"
    source.write_text(_APPLICATION.format(call=call))
    done = subprocess.run(
        [
            *(gcc, "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-no-pie"),
            *("-ffunction-sections", "-Wl,--gc-sections", "-Wl,--strip-debug"),
            *(f"-I{product.out / 'include'}", str(source)),
            *(str(product.out / "libproduct.a"), "-o", str(binary)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return binary.read_bytes()


@pytest.mark.parametrize("check", ["start", "load"])
def test_the_linker_drops_checksums_with_what_is_not_called(
    check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    extra = '[[models]]\nname = "other"\npath = "other.pte"\n'
    extra += f'[integrity]\ncheck = "{check}"\n'
    write_product(tmp_path, case=CASE, toolchain="gnu", extra=extra)
    shutil.copyfile(CORPUS / "mlp" / "model.pte", tmp_path / "other.pte")
    product = Workspace(folder=tmp_path, capsys=capsys)
    product.build()
    built = product.out / "models"
    one, two = ((built / f"{name}.pte").read_bytes() for name in ("model", "other"))
    for call, has in {
        "product_model_forward_run()": {one},
        "product_model_forward_check()": {one},
        "product_other_forward_check()": {two},
        "product_check()": {one, two},
        "orch_status_text(ORCH_OK)[0]": set(),
    }.items():
        binary = _linked(product, tmp_path, call)
        assert {p for p in (one, two) if p in binary} == has, call
        # A product that compares nothing has none of it.
        compares = "check" in call or (check == "load" and "run" in call)
        assert (b"check_bytes" in binary) == compares, call


@pytest.mark.parametrize("load", ["pte", "prelinked"])
def test_an_application_asks(load: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("host", "gnu")
    extra = f'load = "{load}"\n[integrity]\ncheck = "start"\n'
    write_product(tmp_path, case="linear_softmax", toolchain="gnu", extra=extra)
    product = Workspace(folder=tmp_path, capsys=capsys)
    product.build()
    binary = tmp_path / "app"
    data = bytearray(_linked(product, tmp_path, "product_check()"))
    assert subprocess.run([binary], check=False).returncode == 0
    # A constant of the model: its last bytes are weights however it is loaded.
    weights = product.model.read_bytes()[-16:]
    at = data.index(weights) if load == "pte" else _constant(data, product)
    data[at] ^= 1
    binary.write_bytes(data)
    assert subprocess.run([binary], check=False).returncode == 14


def _constant(binary: bytes | bytearray, product: Workspace) -> int:
    """Where the application has the first bytes of the constants."""
    (file,) = (product.out / ".work" / "models").glob("*.constants")
    return binary.index(file.read_bytes()[:64])
