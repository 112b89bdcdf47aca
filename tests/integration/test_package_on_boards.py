"""Packages for other cores: compiled with the flags of their ecosystems, run in QEMU.

The self test of each has the case of the examples, so that it computes every bit of it.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from orchestrator.cli.main import run
from orchestrator.package.ecosystem import ECOSYSTEMS, Family
from tests.integration.cross import PARTS, SELF_TEST, Cross
from tests.integration.packages import Packages, files_of, need, packages_for, tool
from tests.integration.platformio import PlatformIO
from tests.integration.workspace import ROOT
from tests.tools import need_emulator, need_script, need_tool, need_toolchain

pytestmark = pytest.mark.toolchain


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    need_tool("g++")
    return packages_for(tmp_path_factory.mktemp("host"), "host")


@pytest.fixture(scope="module")
def for_m4(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    need_emulator("cortex-m4")
    return packages_for(tmp_path_factory.mktemp("m4"), "cortex-m4")


def test_same_bytes_from_another_folder(
    packages: Packages, for_m4: Packages, tmp_path: Path
) -> None:
    """Of all ecosystems; nothing is compiled again there."""
    left = dict(ECOSYSTEMS)
    for one, family in ((packages, Family.LINUX), (for_m4, Family.ARM)):
        names = [name for name, found in left.items() if family in found.families]
        folder, made = tmp_path / family, {}
        for name in names:
            assert one.run(name, folder / name) == 0
            made[name] = files_of(folder / name)
        two = Packages(tmp_path / "elsewhere" / family / "deeper")
        shutil.copytree(one.folder, two.folder, symlinks=True)
        for name in names:
            assert two.run(name, two.folder / name) == 0
            assert files_of(two.folder / name) == made[name]
            del left[name]
    assert not left


def test_arduino_in_qemu(for_m4: Packages, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """All sources below src/, on a Cortex-M4, with the flags of a core for Arduino."""
    package = for_m4.make("arduino", tmp_path)
    lines = (package / "library.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    assert {"name", "version", "sentence", "architectures"} <= properties.keys()
    assert (package / "src" / properties["includes"]).is_file()
    header = (package / "src" / "kws.h").read_text()
    built = (for_m4.folder / "build" / "kws" / "include" / "kws.h").read_text()
    worst = re.findall(r"#define KWS_\w*STACK_BYTES \d+\n", built)
    assert worst
    assert re.findall(r"#define KWS_\w*STACK_BYTES \d+\n", header) == worst
    assert re.search(r" \* Compiled by (gcc|ziglang) \d[^:]*: other compilers", header)
    sketch = (package / "examples" / "hello" / "hello.ino").read_text()
    assert "kws_self_test(&failed)" in sketch
    cross = Cross(for_m4, "cortex-m4", "arm-none-eabi")
    flags = ("-Os", "-ffunction-sections", "-fdata-sections", f"-I{package}/src")
    objects = cross.compile(
        (package / "src").rglob("*.c*"),
        tmp_path,
        *flags,
        cpp=("-std=gnu++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"),
    )
    symbols = tool("arm-none-eabi-nm", "-g", "--defined-only", *objects, cwd=tmp_path)
    names = re.findall(r"^[0-9a-f]+ [TDBR] (\w+)$", need(symbols), re.MULTILINE)
    # A program may have several packages.
    assert [name for name in names if "kws" not in name] == []
    cross.check(package, tmp_path, *objects)
    update = pytestconfig.getoption("--update-golden")
    cross.check_page("`arduino`", package, tmp_path, *objects, update=update)


def test_platformio_in_qemu(for_m4: Packages, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """PlatformIO compiles all sources with the flags of the manifest."""
    pio = PlatformIO(tmp_path, need_script("pio"))
    package = for_m4.make("platformio", tmp_path)
    names = pio.pack(package)
    assert {"library.json", "include/kws.h", "src/product/models.c"} <= names
    cross = Cross(for_m4, "cortex-m4", "arm-none-eabi")
    (tmp_path / "app.cpp").write_text(SELF_TEST)
    # Flags that its platforms have.
    flags = ("-Os", "-ffunction-sections", "-fdata-sections", *cross.freestanding)
    program = pio.build(
        package,
        tmp_path / "app.cpp",
        {
            "CC": f"ccache {cross.gnu}-gcc",
            "CXX": f"ccache {cross.gnu}-g++",
            "LINK": f"{cross.gnu}-g++",
        },
        CCFLAGS=[*cross.machine, *flags],
        CXXFLAGS=["-fno-rtti", "-fno-threadsafe-statics"],
        LINKFLAGS=cross.link_flags,
        LIBS=["gcc"],
    )
    cross.run(program)
    (library,) = program.parent.rglob("libkws.a")
    cross.check(package, tmp_path, library)
    update = pytestconfig.getoption("--update-golden")
    cross.check_page("`platformio`", package, tmp_path, library, update=update)


def test_cmsis(for_m4: Packages, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Layer and pack name every source, and files that exist; runs on a Cortex-M4."""
    package = for_m4.make("cmsis", tmp_path)
    layer = yaml.safe_load((package / "kws.clayer.yml").read_text())["layer"]
    (group,) = layer["groups"]
    named = {entry["file"] for entry in group["files"]}
    sources = {
        path.relative_to(package).as_posix()
        for path in (package / "src").rglob("*")
        if path.suffix in (".c", ".cpp")
    }
    assert {name for name in named if name.startswith("src/")} == sources
    assert all((package / name).is_file() for name in named)
    project = yaml.safe_load((package / "example/example.cproject.yml").read_text())
    (used,) = project["project"]["layers"]
    assert (package / "example" / used["layer"]).is_file()
    pack = ET.parse(package / "Orchestrator.kws.pdsc")  # noqa: S314  # ours
    files = {file.attrib["name"] for file in pack.iter("file")}
    assert sources < files
    assert all((package / name).exists() for name in files)
    cores = {found.attrib["Dcore"] for found in pack.iter("accept")}
    assert cores == {"Cortex-M4"}
    project = yaml.safe_load((package / "example/example.csolution.yml").read_text())
    assert project["solution"]["language-CPP"] == "c++17"
    (gcc,) = (one for one in layer["misc"] if one["for-compiler"] == "GCC")
    cross = Cross(for_m4, "cortex-m4", "arm-none-eabi")
    # What CMSIS-Toolbox gives to gcc for `optimize: size` and `language-CPP`.
    flags = ("-Os", "-ffunction-sections", "-fdata-sections", *gcc["C-CPP"])
    objects = cross.compile(
        (package / name for name in sources),
        tmp_path,
        *(*flags, *(f"-I{package / folder}" for folder in layer["add-path"])),
        cpp=("-std=c++17", *gcc["CPP"]),
    )
    cross.check(package, tmp_path, *objects)
    update = pytestconfig.getoption("--update-golden")
    cross.check_page("`cmsis`", package, tmp_path, *objects, update=update)


def test_armclang(for_m4: Packages, tmp_path: Path) -> None:
    """All sources with clang and flags of Arm Compiler 6: short enums and wchar_t.

    Its assembler takes less than gcc's, and less than zig's.
    """
    clang = need_tool("clang++-14", "clang++")
    package = for_m4.make("arduino", tmp_path)
    flags = "--target=arm-arm-none-eabi -mcpu=cortex-m4 -mfloat-abi=hard -Os -c"
    flags += " -fshort-enums -fshort-wchar -fno-exceptions -Wall -Wextra -Werror"
    flags += f" -idirafter {ROOT}/runtime/freestanding -o one.o"
    for source in sorted((package / "src").rglob("*.c*")):
        kind = ("-x", "c") if source.suffix == ".c" else ("-std=c++17",)
        options = (*flags.split(), *kind, source)
        need(tool("ccache", clang, *options, cwd=tmp_path))


def test_the_library_in_qemu(for_m4: Packages, tmp_path: Path) -> None:
    """Made by zig, linked by gcc into an application of its own."""
    package = for_m4.make("cmsis", tmp_path, "--binary")
    layer = yaml.safe_load((package / "kws.clayer.yml").read_text())["layer"]
    (group,) = layer["groups"]
    named = {entry["file"] for entry in group["files"]}
    assert "lib/libkws.a" in named
    assert all((package / name).is_file() for name in named)
    cross = Cross(for_m4, "cortex-m4", "arm-none-eabi")
    cross.link(PARTS, package, tmp_path, package / "lib" / "libkws.a")
    cross.run(tmp_path / "app.elf")


def test_a_board_without_emulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its firmware cannot be run here: all of a package but the self test."""
    need_toolchain("cortex-m23", "zig")
    (tmp_path / "sum.toml").write_text(
        'schema = 1\nname = "sum"\n[target]\ncpu = "cortex-m23"\ntoolchain = "zig"\n'
        f'[[models]]\nname = "sum"\npath = "{ROOT}/examples/models/add_mul.pte"\n'
    )
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert run(["package", "sum.toml", "--for", "zephyr"]) == 0
        assert "sum: no self test, as firmware for generic-m23" in capsys.readouterr().err
        assert run(["package", "sum.toml", "--for", "arduino"]) == 0
    finally:
        os.chdir(before)
    files = {**files_of(tmp_path / "packages")}
    assert "arduino/sum/src/sum.h" in files
    assert [name for name in files if "self_test" in name or "runner" in name] == []
    about = re.compile(rb"self.test", re.IGNORECASE)
    mentions = {name for name, data in files.items() if about.search(data)}
    assert {name for name in mentions if "/orchestrator/" not in name} == set()


def test_a_core_that_an_ecosystem_lacks(
    for_m4: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert for_m4.run("esp-idf", tmp_path / "x") == 2
    error = capsys.readouterr().err
    assert "a product for cortex-m4 does not fit ESP-IDF" in error
    assert not (tmp_path / "x").exists()


def test_esp_idf_on_risc_v(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """All sources of a component, on the core of an ESP32-C6."""
    need_emulator("rv32imac")
    # GNU ld crashes on RISC-V objects of zig beside its own.
    packages = packages_for(tmp_path, "rv32imac", "gnu")
    package = packages.make("esp-idf", tmp_path)
    cross = Cross(packages, "rv32imac", "riscv64-unknown-elf")
    headers = f"-I{package}/include"
    flags = ("-Os", "-ffunction-sections", "-fdata-sections", headers)
    sources = (package / "src").rglob("*.c*")
    cpp = ("-std=gnu++17", "-fno-exceptions", "-fno-rtti")
    objects = cross.compile(sources, tmp_path, *flags, cpp=cpp)
    cross.check(package, tmp_path, *objects)
    update = pytestconfig.getoption("--update-golden")
    cross.check_page("`esp-idf`, RISC-V", package, tmp_path, *objects, update=update)
