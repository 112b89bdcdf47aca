"""Damaged flash: every bit that carries a checksum is flipped, on every target.

The firmware is linked once more with `flip_bits.cpp` in place of its application. The
checksums are the build's; that they are CRC-32 is held against zlib by the unit tests.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.build.firmware import carry_out
from orchestrator.running.product import read_product
from tests.integration.workspace import Workspace, write_product
from tests.qemu.other_application import with_application
from tests.targets import chosen_pairs, with_toolchains
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGETS = [*with_toolchains("host"), *chosen_pairs()]

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

FLIPPER: Final = Path(__file__).with_name("flip_bits.cpp")
_BYTES, _VALUES, _INSTRUCTIONS = range(3)
_TENSOR, _INT, _DOUBLE, _BOOL = range(1, 5)
_PTE = {"CHECKED": "orch_model_model_checked"}
_PRELINKED = {
    "CHECKED": "product_model_forward_checked",
    "VALUES": "product_model_forward_{values}",
    "INSTRUCTIONS": "product_model_forward_code.instructions",
}

_VALUE_TABLES: Final = {"linear_softmax": "values", "cond_branch": "values_first"}
"""By case, the end of the name of its constant table of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """What of a region was refused: a bit for each of its bits."""

    kind: int
    refused: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """What the firmware said of itself: before, after, and of each bit."""

    statuses: tuple[int, int, int]
    regions: tuple[Region, ...]


def _flip(product: Workspace, names: dict[str, str]) -> Flips:
    known = read_product((product.out / "product.json").read_text())
    macros = {
        **names,
        "GENERATED_SOURCE": '"gen/src/api.cpp"',
        "PRODUCT_CHECK": "product_check",
        "METHOD_CHECK": "product_model_forward_check",
    }
    firmware = with_application(product.out, FLIPPER, macros)
    data = carry_out(known, firmware, (), timeout_s=240).response
    before, method, after = *struct.unpack_from("<II", data), data[-4:]
    at, regions = 8, []
    while at < len(data) - 4:
        kind, count = struct.unpack_from("<II", data, at)
        regions.append(Region(kind=kind, refused=data[at + 8 : at + 8 + count]))
        at += 8 + count
    statuses = (before, method, int.from_bytes(after, "little"))
    return Flips(statuses=statuses, regions=tuple(regions))


def _product(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    case: str,
    cpu: str,
    toolchain: str,
    load: str,
) -> Workspace:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    extra = f'load = "{load}"\n[integrity]\ncheck = "start"\n'
    write_product(folder, case=case, cpu=cpu, toolchain=toolchain, extra=extra)
    product = Workspace(folder=folder, capsys=capsys)
    product.build()
    return product


@pytest.mark.parametrize(("cpu", "toolchain"), TARGETS)
def test_every_flipped_bit_of_a_program_is_noticed(
    cpu: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = _product(
        *(tmp_path, capsys), case="add_mul", cpu=cpu, toolchain=toolchain, load="pte"
    )
    flips = _flip(product, _PTE)
    assert flips.statuses == (0, 0, 0)
    size = (product.out / "models" / "model.pte").stat().st_size
    assert flips.regions == (Region(kind=_BYTES, refused=b"\xff" * size),)


@pytest.mark.parametrize(("cpu", "toolchain"), dict(TARGETS).items())
@pytest.mark.parametrize("case", _VALUE_TABLES)
def test_every_flipped_bit_of_a_prelinked_method_is_noticed(
    case: str, cpu: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But those of addresses, and of bytes between fields, which nothing reads."""
    product = _product(
        *(tmp_path, capsys), case=case, cpu=cpu, toolchain=toolchain, load="prelinked"
    )
    names = {name: text.format(values=_VALUE_TABLES[case]) for name, text in _PRELINKED.items()}
    flips = _flip(product, names)
    assert flips.statuses == (0, 0, 0)
    blocks = [region for region in flips.regions if region.kind == _BYTES]
    assert len(blocks) > 3
    assert all(set(region.refused) == {255} for region in blocks)
    width = 8 if cpu == "host" else 4
    (table,) = (r for r in flips.regions if r.kind == _VALUES)
    slots = list(_slots(table.refused, 3 * width))
    assert all(slot[0] == 255 for slot in slots)  # the kind of value
    tensors = [slot for slot in slots if slot == _tensor(width)]
    scalars = [slot for slot in slots if slot == _scalar(width)]
    assert len(tensors) > 2
    assert scalars
    lists = len(slots) - len(tensors) - len(scalars)
    assert lists == sum(slot == _list(width) for slot in slots)
    (table,) = (r for r in flips.regions if r.kind == _INSTRUCTIONS)
    # A function, where arguments begin, how many there are, a kind; or, in place of
    # the function, two numbers, and no arguments.
    kernel = bytes(width) + b"\xff" * 4 + bytes(width - 4)
    other = b"\xff" * 4 + bytes(width - 4) + b"\0\0\xff\xff" + bytes(width - 4)
    calls = [*_slots(table.refused, 2 * width)]
    assert set(calls) == ({kernel, other} if case == "cond_branch" else {kernel})


def _slots(refused: bytes, size: int) -> Iterator[bytes]:
    assert len(refused) % size == 0
    return (refused[i : i + size] for i in range(0, len(refused), size))


def _tensor(width: int) -> bytes:
    """Kind, dtype, rank and flags; then addresses."""
    return b"\xff" * 4 + bytes(3 * width - 4)


def _scalar(width: int) -> bytes:
    """Kind; 8 bytes after 3 that nothing reads."""
    return b"\xff\0\0\0" + b"\xff" * 8 + bytes(3 * width - 12)


def _list(width: int) -> bytes:
    """Kind; a count after 3 bytes that nothing reads; an address."""
    return b"\xff\0\0\0" + b"\xff" * 4 + bytes(3 * width - 8)
