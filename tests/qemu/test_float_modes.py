"""Modes of an FPU that change bits of floats: products that compute with floats refuse them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.build.firmware import carry_out
from orchestrator.running.product import read_product
from orchestrator.running.protocol import DeviceError
from tests.integration.workspace import Workspace, write_product
from tests.qemu.other_application import with_application
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

APPLICATION: Final = Path(__file__).with_name("float_modes.cpp")
_UP, _ZERO, _FLUSH, _HALVES = 1 << 22, 3 << 22, 1 << 24, 1 << 26
_FLUSH_HALVES, _DEFAULT_NAN, _FLAGS = 1 << 19, 1 << 25, 0xF000009F
_FPSCR: Final = {
    # Whether numbers stay what they are, by mode: what is fine comes between.
    0: True,
    _FLUSH: False,
    _UP: False,
    _ZERO: False,
    _DEFAULT_NAN: True,
    _HALVES: False,
    _FLAGS: True,
    _FLUSH | _DEFAULT_NAN: False,
}
_MODES: Final[Mapping[str, Mapping[int, bool]]] = {
    "cortex-m4": _FPSCR,
    "cortex-m7": _FPSCR,
    "cortex-m33": _FPSCR,
    "cortex-m55": {**_FPSCR, _FLUSH_HALVES: False},
    "rv32imafc": {0: True, 1: False, 2: False, 3: False, 4: False},
}
_ANEW: Final = {
    "prelinked": "product_model_forward_reset()",
    "pte": "product_model_forward_load(nullptr, 0)",
}
_INT8: Final = '[models.io]\nquantized = true\n[kernels]\nlibraries = ["cortex_m"]\n'


def _statuses(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    case: str,
    cpu: str,
    toolchain: str,
    load: str,
    abi: str = "",
    extra: str = "",
) -> list[DeviceError]:
    """What the product says of each mode."""
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    extra = f'load = "{load}"\n{extra}'
    write_product(folder, case=case, cpu=cpu, toolchain=toolchain, extra=extra)
    product = Workspace(folder=folder, capsys=capsys)
    if abi:
        text = product.profile.read_text()
        product.profile.write_text(text.replace("[target]", f'[target]\nfloat_abi = "{abi}"'))
    product.build()
    macros = {"MODES": ", ".join(f"{mode}u" for mode in _MODES[cpu]), "ANEW": _ANEW[load]}
    firmware = with_application(product.out, APPLICATION, macros)
    known = read_product((product.out / "product.json").read_text())
    data = carry_out(known, firmware, (), timeout_s=60).response
    return [DeviceError(word) for (word,) in struct.iter_unpack("<I", data)]


@pytest.mark.parametrize(
    ("cpu", "toolchain", "load", "abi"),
    [
        ("cortex-m4", "zig", "prelinked", ""),
        ("cortex-m4", "gnu", "pte", "softfp"),
        ("cortex-m7", "gnu", "prelinked", ""),
        ("cortex-m33", "zig", "pte", ""),
        ("cortex-m55", "zig", "prelinked", ""),
        ("rv32imafc", "zig", "prelinked", ""),
        ("rv32imafc", "gnu", "pte", ""),
    ],
)
def test_floats_need_an_fpu_as_it_is_after_reset(  # noqa: PLR0917  # fixtures
    cpu: str,
    toolchain: str,
    load: str,
    abi: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = {"case": "linear_softmax", "cpu": cpu, "toolchain": toolchain, "load": load}
    found = _statuses(tmp_path, capsys, abi=abi, **names)
    fine = _MODES[cpu].values()
    assert found == [DeviceError.Ok if f else DeviceError.WrongFloatMode for f in fine]


@pytest.mark.parametrize(
    ("case", "cpu", "load"),
    [
        ("kws_dscnn_int8_m4", "cortex-m4", "prelinked"),
        ("ad_autoencoder_int8_m55", "cortex-m55", "pte"),
    ],
)
def test_int8_alone_takes_every_mode(
    case: str, cpu: str, load: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _statuses(
        *(tmp_path, capsys), case=case, cpu=cpu, toolchain="zig", load=load, extra=_INT8
    )
    assert found == [DeviceError.Ok] * len(_MODES[cpu])
