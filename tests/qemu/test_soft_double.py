"""Arithmetic of cores without a double or any FPU against the host's, bit by bit.

Everything a compiler turns into a call of its support library: ours in
`runtime/freestanding/soft_double.cpp`, the toolchain's where that is right. The oracle
is numpy on the host, whose processor has a double unit. NaN stands for any NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from orchestrator.emit.compile import CompileUnit
from tests.qemu import double_operands as operands
from tests.qemu.bare_firmware import Firmware, link_firmware, run_command
from tests.targets import with_toolchains
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

ROOT: Final = Path(__file__).parents[2]
MAIN: Final = Path(__file__).with_name("double_operations.cpp")
SOURCES: Final = ("freestanding/soft_double.cpp", "freestanding/soft_float.cpp")
TARGETS: Final = with_toolchains(
    *("cortex-m0plus", "cortex-m3", "cortex-m4", "rv32imac", "rv32imafc")
)
"""Each with support functions of its own: three without an FPU, two with a single one.
"""

Bits = npt.NDArray[np.uint64]


def _compare(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Bits:
    unordered = np.isnan(a) | np.isnan(b)
    found = np.zeros(len(a), np.uint64)
    for bit in (a < b, a <= b, a == b, a != b, a >= b, a > b, unordered):
        found = found << np.uint64(1) | bit.astype(np.uint64)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the firmware.

    Args:
        operands: Pairs of bit patterns.
        expected: Results for both columns, of the dtype that tells what they are.
    """

    operands: Callable[[], tuple[Bits, Bits]]
    expected: Callable[[Bits, Bits], npt.NDArray[np.generic]]


def _binary(
    function: Callable[..., npt.NDArray[np.generic]],
) -> Callable[[Bits, Bits], npt.NDArray[np.generic]]:
    return lambda a, b: function(a.view(np.float64), b.view(np.float64))


def _single(
    function: Callable[..., npt.NDArray[np.generic]],
) -> Callable[[Bits, Bits], npt.NDArray[np.generic]]:
    return lambda a, b: function(*(x.astype(np.uint32).view(np.float32) for x in (a, b)))


def _convert(source: str, to: str) -> Callable[[Bits, Bits], npt.NDArray[np.generic]]:
    def convert(a: Bits, _: Bits) -> npt.NDArray[np.generic]:
        narrow = a.astype(np.uint32) if source.endswith("32") else a
        values: npt.NDArray[np.generic] = narrow.view(source).astype(to)
        return values

    return convert


def _integer(source: str, to: str) -> Operation:
    return Operation(operands=lambda: operands.in_range(source, to), expected=_convert(source, to))


# In the order of double_operations.cpp.
OPERATIONS: Final = {
    "add": Operation(operands=operands.doubles, expected=_binary(np.add)),
    "subtract": Operation(operands=operands.doubles, expected=_binary(np.subtract)),
    "reverse_subtract": Operation(operands=operands.doubles, expected=_binary(lambda a, b: b - a)),
    "multiply": Operation(operands=operands.factors, expected=_binary(np.multiply)),
    "divide": Operation(operands=operands.factors, expected=_binary(np.divide)),
    "compare": Operation(operands=operands.doubles, expected=_binary(_compare)),
    "float_to_double": Operation(operands=operands.floats, expected=_convert("float32", "float64")),
    "double_to_float": Operation(
        operands=operands.near_floats, expected=_convert("float64", "float32")
    ),
    "int32_to_double": Operation(operands=operands.integers, expected=_convert("int32", "float64")),
    "uint32_to_double": Operation(
        operands=operands.integers, expected=_convert("uint32", "float64")
    ),
    "int64_to_double": Operation(operands=operands.integers, expected=_convert("int64", "float64")),
    "uint64_to_double": Operation(
        operands=operands.integers, expected=_convert("uint64", "float64")
    ),
    "int64_to_float": Operation(operands=operands.integers, expected=_convert("int64", "float32")),
    "uint64_to_float": Operation(
        operands=operands.integers, expected=_convert("uint64", "float32")
    ),
    "double_to_int32": _integer("float64", "int32"),
    "double_to_uint32": _integer("float64", "uint32"),
    "double_to_int64": _integer("float64", "int64"),
    "double_to_uint64": _integer("float64", "uint64"),
    "float_to_int64": _integer("float32", "int64"),
    "float_to_uint64": _integer("float32", "uint64"),
    "float_add": Operation(operands=operands.float_sums, expected=_single(np.add)),
    "float_subtract": Operation(operands=operands.float_sums, expected=_single(np.subtract)),
    "float_reverse_subtract": Operation(
        operands=operands.float_sums, expected=_single(lambda a, b: b - a)
    ),
    "float_multiply": Operation(operands=operands.float_factors, expected=_single(np.multiply)),
    "float_divide": Operation(operands=operands.float_factors, expected=_single(np.divide)),
    "float_compare": Operation(operands=operands.float_sums, expected=_single(_compare)),
    "int32_to_float": Operation(operands=operands.integers, expected=_convert("int32", "float32")),
    "uint32_to_float": Operation(
        operands=operands.integers, expected=_convert("uint32", "float32")
    ),
    "float_to_int32": _integer("float32", "int32"),
    "float_to_uint32": _integer("float32", "uint32"),
}


@pytest.fixture(scope="module", params=TARGETS, ids="-".join)
def firmware(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    """Built with the flags of a product of this target."""
    cpu, name = request.param
    need_toolchain(cpu, name)
    need_emulator(cpu)
    return link_firmware(
        tmp_path_factory.mktemp(f"{cpu}-{name}"),
        target=(cpu, None, name),
        sources=SOURCES,
        units=lambda flags: [CompileUnit(str(MAIN), "obj/main.o", flags)],
    )


def _bits(values: npt.NDArray[np.generic]) -> Bits:
    """As the firmware returns them: small ones in the lower word, signs extended."""
    if values.dtype == np.float32:
        return values.view(np.uint32).astype(np.uint64)
    if values.dtype == np.float64:
        return values.view(np.uint64)
    if values.dtype.kind == "i":
        return values.astype(np.int64).view(np.uint64)
    return values.astype(np.uint64)


@pytest.mark.parametrize("name", OPERATIONS)
def test_same_bits_as_on_the_host(firmware: Firmware, name: str, tmp_path: Path) -> None:
    operation = OPERATIONS[name]
    a, b = operation.operands()
    assert len(a) == len(b) > 30_000
    head = np.array([list(OPERATIONS).index(name), len(a)], "<u4")
    request = head.tobytes() + np.stack([a, b], axis=1).astype("<u8").tobytes()
    (tmp_path / "request").write_bytes(request)
    paths = "enable=on,target=native,arg=firmware,arg=request,arg=response"
    options = ("-semihosting-config", paths, "-kernel", firmware.elf)
    run_command((*firmware.emulator, *options), tmp_path)
    found = np.fromfile(tmp_path / "response", "<u8").astype(np.uint64)
    with np.errstate(all="ignore"):
        values = operation.expected(a, b)
    expected = _bits(values)
    same = found == expected
    if values.dtype.kind == "f":
        results = found.astype(f"u{values.itemsize}").view(values.dtype)
        same |= np.isnan(results.astype(np.float64)) & np.isnan(values)
    wrong = np.flatnonzero(~same)
    first = [
        f"{name}({a[i]:#018x}, {b[i]:#018x}) = {found[i]:#018x}, expected {expected[i]:#018x}"
        for i in wrong[:3]
    ]
    assert not first, f"{len(wrong)} of {len(a)} wrong: " + "; ".join(first)


def _defined(nm: str, file: Path, member: str = "") -> set[str]:
    """Global symbols of an object, or of the archive member that defines one."""
    lines = run_command((nm, "-A", "-g", "--defined-only", file), file.parent).splitlines()
    fields = [line.rpartition(":") for line in lines if ":" in line]
    symbols = [(place, rest.split()[-1]) for place, _, rest in fields]
    places = {place for place, symbol in symbols if member in ("", symbol)}
    return {symbol for place, symbol in symbols if place in places}


@pytest.mark.parametrize("firmware", [("cortex-m4", "gnu")], indirect=True)
@pytest.mark.parametrize("function", ["__aeabi_dadd", "__aeabi_d2f"])
def test_libgcc_objects_of_ours_are_never_needed(firmware: Firmware, function: str) -> None:
    """Else a firmware that calls another of its functions would not link."""
    compiler = firmware.toolchain.compiler[0]
    ask = (compiler, *firmware.machine, "-print-libgcc-file-name")
    libgcc = Path(run_command(ask, firmware.elf.parent).strip())
    nm = run_command((compiler, "-print-prog-name=nm"), firmware.elf.parent).strip()
    theirs = _defined(nm, libgcc, function)
    assert function in theirs
    ours = _defined(nm, firmware.objects["freestanding/soft_double.cpp"])
    assert theirs <= ours
