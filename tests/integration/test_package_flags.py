"""Packages compiled with the flags of their ecosystems, and run with some of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.cross import Cross
from tests.integration.ecosystem_flags import ALL, NANO_33_BLE, UNO_R4, WITHOUT_FLOATS, ZERO, Flags
from tests.integration.packages import Packages, files_of, need, packages_for, tool
from tests.integration.workspace import ROOT
from tests.tools import need_emulator, need_tool

pytestmark = pytest.mark.toolchain

FREESTANDING = ("-idirafter", f"{ROOT}/runtime/freestanding")
SOFTFP = 'float_abi = "softfp"\n'
PRODUCTS = {
    "softfp": ("cortex-m4", "zig", SOFTFP),
    "hard": ("cortex-m4", "zig", ""),
    "cortex-m7": ("cortex-m7", "zig", SOFTFP),
    "cortex-m33": ("cortex-m33", "zig", ""),
    "cortex-m0plus": ("cortex-m0plus", "zig", ""),
    "riscv": ("rv32imac", "gnu", ""),
}
"""What packages are made of: core, toolchain, further lines of `[target]`."""
PRODUCT_OF = {
    "cortex-m0plus": "cortex-m0plus",
    "cortex-m33": "cortex-m33",
    "cortex-m4": "softfp",
    "rv32imac": "riscv",
    "rv32imafc": "riscv",
}
ARDUINO = """\
#pragma once
#include <stdint.h>
struct Printer {
  void begin(long) {}
  explicit operator bool() const { return true; }
  template <typename T> void print(const T&) {}
  template <typename T> void println(const T&) {}
};
static Printer Serial;
inline unsigned long micros() { return 0; }
"""
Make = Callable[..., tuple[Packages, Path]]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A package of one of the products, made once."""
    folder = tmp_path_factory.mktemp("flags")
    products: dict[str, Packages] = {}
    made: dict[tuple[str, ...], Path] = {}

    def one(product: str, *key: str) -> tuple[Packages, Path]:
        if product not in products:
            cpu, toolchain, target = PRODUCTS[product]
            (folder / product).mkdir()
            where = folder / product
            products[product] = packages_for(where, cpu, toolchain, target)
        if (product, *key) not in made:
            out = folder / f"{product}-{len(made)}"
            made[product, *key] = products[product].make(key[0], out, *key[1:])
        return products[product], made[product, *key]

    return one


def compiled(flags: Flags, source: Path, at: Path, *more: str, out: str = "one.o") -> str:
    """What the compiler says about a source."""
    is_c = source.suffix == ".c"
    gnu = "riscv64-unknown-elf" if "rv32" in flags.machine else "arm-none-eabi"
    compiler = need_tool(f"{gnu}-{'gcc' if is_c else 'g++'}")
    own = f"{flags.machine} {flags.both} {flags.c if is_c else flags.cpp}"
    options = (*own.split(), *FREESTANDING, *more, "-c", source, "-o", out)
    return tool("ccache", compiler, *options, cwd=at).stderr


def firmware(packages: Packages, flags: Flags) -> Cross:
    """Firmware whose application is compiled with the flags."""
    cpu = "cortex-m0plus" if "cortex-m0plus" in flags.machine else "cortex-m4"
    need_emulator(cpu)
    cpp = f"{flags.machine} {flags.both} {flags.cpp}"
    return Cross(packages, cpu, "arm-none-eabi", tuple(cpp.split()))


def _named(flags: Flags) -> str:
    return flags.name


@pytest.mark.parametrize("flags", [f for f in ALL if f.has_cpp17], ids=_named)
def test_sources(flags: Flags, make: Make, tmp_path: Path) -> None:
    """Every one compiles without a warning."""
    (core,) = (part for part in re.split(r"[ =_]", flags.machine) if part in PRODUCT_OF)
    _, package = make(PRODUCT_OF[core], flags.ecosystem)
    sources = sorted((package / "src").rglob("*.c*"))
    said = "".join(compiled(flags, source, tmp_path) for source in sources)
    assert (said, len(sources) > len(ALL)) == ("", True)


LIBRARIES = {
    "arduino Nano 33 BLE": ("softfp", "cortex-m4/fpv4-sp-d16-softfp"),
    "arduino Portenta H7, M7 core": ("cortex-m7", "cortex-m7/fpv5-d16-softfp"),
    "arduino Nano RP2040 Connect": ("cortex-m0plus", "cortex-m0plus"),
    "arduino Zero, MKR, Nano 33 IoT": ("cortex-m0plus", "cortex-m0plus"),
    "arduino STM32duino, Cortex-M4": ("hard", "cortex-m4/fpv4-sp-d16-hard"),
}
"""Cores without C++17: the product for them, and the folder of its library.

Source: Arduino library specification, "Precompiled binaries".
"""


@pytest.mark.parametrize("flags", [f for f in ALL if not f.has_cpp17], ids=_named)
def test_without_cpp17(flags: Flags, make: Make, tmp_path: Path) -> None:
    """Sources say what to do; the library has a header in C, and a sketch compiles."""
    product, folder = LIBRARIES[flags.name]
    _, package = make(product, "arduino")
    said = compiled(flags, package / "src" / "product" / "api.cpp", tmp_path)
    assert "compile with -std=c++17 or newer, or package with --binary" in said
    _, package = make(product, "arduino", "--binary")
    lines = (package / "library.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    assert (properties["precompiled"], properties["ldflags"]) == ("full", "-lkws")
    found = {path.relative_to(package / "src") for path in package.rglob("src/**/*.*")}
    assert {str(path) for path in found if path.suffix != ".h"} == {f"{folder}/libkws.a"}
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    sketch = (package / "examples" / "hello" / "hello.ino").read_text()
    (tmp_path / "hello.cpp").write_text(f'#include "Arduino.h"\n{sketch}')
    (tmp_path / "hello.c").write_text("#include <kws.h>\n#include <kws_self_test.h>\n")
    for name in ("hello.c", "hello.cpp"):
        where = f"-I{package / 'src'}"
        assert compiled(flags, tmp_path / name, tmp_path, where) == ""
    linker = (need_tool("arm-none-eabi-g++"), *flags.machine.split(), "-nostdlib", "-r")
    library = package / "src" / folder / "libkws.a"
    need(tool(*linker, "-u", "kws_kws_forward", "one.o", library, cwd=tmp_path))


@pytest.mark.parametrize(
    ("flags", "product"),
    [(NANO_33_BLE, "softfp"), (ZERO, "cortex-m0plus")],
    ids=lambda one: getattr(one, "name", one),
)
def test_the_library_runs(flags: Flags, product: str, make: Make, tmp_path: Path) -> None:
    """Linked into a program in C++14 or C++11: every bit of the case is right."""
    packages, package = make(product, "arduino", "--binary")
    (library,) = package.rglob("libkws.a")
    firmware(packages, flags).check(package, tmp_path, library)


def test_a_library_with_another_float_abi(make: Make, tmp_path: Path) -> None:
    """The header rejects it, and the linker without the header."""
    _, package = make("hard", "arduino", "--binary")
    (tmp_path / "app.cpp").write_text('#include "kws.h"\n')
    where = f"-I{package / 'src'}"
    said = compiled(NANO_33_BLE, tmp_path / "app.cpp", tmp_path, where)
    assert "without -mfloat-abi=hard (target.float_abi in the profile)" in said
    options = (where, "-DORCH_ANY_TARGET")
    assert compiled(NANO_33_BLE, tmp_path / "app.cpp", tmp_path, *options) == ""
    (library,) = package.rglob("libkws.a")
    flags = (*NANO_33_BLE.machine.split(), "-nostdlib", "-r", "-u", "kws_kws_forward")
    done = tool("arm-none-eabi-g++", *flags, "one.o", library, cwd=tmp_path)
    assert "uses VFP register arguments" in done.stderr


@pytest.mark.parametrize(
    ("flags", "product"),
    [
        (replace(NANO_33_BLE, cpp="-fno-rtti -std=gnu++17"), "softfp"),
        (UNO_R4, "hard"),
        (WITHOUT_FLOATS, "softfp"),
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_the_sources_run(flags: Flags, product: str, make: Make, tmp_path: Path) -> None:
    """With floats in any registers, and without an FPU: every bit of the case is right.

    `-std=gnu++17` is what a platform.local.txt can add to a core of C++14.
    """
    packages, package = make(product, "arduino")
    objects: list[str] = []
    for source in sorted((package / "src").rglob("*.c*")):
        objects.append(f"{len(objects)}.o")
        compiled(flags, source, tmp_path, out=objects[-1])
    firmware(packages, flags).check(package, tmp_path, *objects)


def test_sources_do_not_depend_on_the_float_abi(make: Make, tmp_path: Path) -> None:
    """They say which core they need, and name no library."""
    _, softfp = make("softfp", "arduino")
    _, hard = make("hard", "arduino")
    assert files_of(softfp / "src") == files_of(hard / "src")
    assert "libkws.a" not in (softfp / "src" / "kws.h").read_text()
    smaller = replace(ZERO, cpp="-std=gnu++17")
    said = compiled(smaller, softfp / "src" / "product" / "api.cpp", tmp_path)
    assert (
        '"kws is made for cortex-m4 (isa dsp), but this program is compiled without'
        ' Thumb-2; compile with -mthumb -mcpu=cortex-m4"'
    ) in said


@pytest.mark.parametrize(("product", "name"), [("hard", "HARD"), ("softfp", "SOFT")])
def test_zephyr_gives_a_library_its_float_abi(product: str, name: str, make: Make) -> None:
    """Sources leave it to the application."""
    _, sources = make(product, "zephyr")
    _, library = make(product, "zephyr", "--binary")
    for file, line in (
        ("zephyr/Kconfig", f"depends on FPU && FP_{name}ABI"),
        ("samples/kws/prj.conf", f"CONFIG_FPU=y\nCONFIG_FP_{name}ABI=y\n"),
        ("README.md", f"needs `CONFIG_FPU=y` and `CONFIG_FP_{name}ABI=y`"),
    ):
        assert line in (library / file).read_text()
        assert "ABI" not in (sources / file).read_text().replace("ORCH", "")
    assert "CONFIG_FPU=y" in (sources / "samples/kws/prj.conf").read_text()
