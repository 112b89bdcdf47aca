"""Sections that the profile names, in libraries and in packages of sources."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from orchestrator.shell.toolchain import zig_program
from orchestrator.targets.cores import BOARDS, CPUS
from tests.conftest import CORPUS
from tests.integration.packages import Packages, need, tool
from tests.integration.workspace import ROOT
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

PROFILE: Final = """\
schema = 1
name = "net"
[target]
cpu = "cortex-m4"
toolchain = "{}"
[[models]]
name = "fast"
path = "net.pte"
load = "prelinked"
[[models]]
name = "other"
path = "net.pte"
[memory.sections]
weights = ".qspi_rodata"
code = ".itcm"
arenas = ".dtcm_bss"
"""
APPLICATION: Final = """\
#include "net.h"
static float in[NET_FAST_FORWARD_INPUT0_COUNT], out[NET_FAST_FORWARD_OUTPUT0_COUNT];
int reset(void) { return net_fast_forward(in, out) + net_other_forward(in, out); }
"""
SCRIPT: Final = """\
ENTRY(reset)
MEMORY {
  flash : ORIGIN = 0x08000000, LENGTH = 1M
  qspi : ORIGIN = 0x90000000, LENGTH = 1M
  itcm : ORIGIN = 0x00000000, LENGTH = 1M
  dtcm : ORIGIN = 0x20000000, LENGTH = 1M
  sram : ORIGIN = 0x24000000, LENGTH = 1M
}
SECTIONS {
  .flash : { *(.text .text.* .rodata .rodata.*) } > flash
  .weights : { *(.qspi_rodata .qspi_rodata.*) } > qspi
  .fast : { *(.itcm .itcm.*) } > itcm AT > flash
  .arenas (NOLOAD) : { *(.dtcm_bss .dtcm_bss.*) } > dtcm
  .sram : { *(.data .data.* .bss .bss.* COMMON) } > sram
  /DISCARD/ : { *(.ARM.exidx*) }
}
"""
STATUS_TEXT: Final = {"orch_status_text"}
ARENAS: Final = [".dtcm_bss.fast_forward_1", ".dtcm_bss.other_forward_1"]
TARGET: Final = CPUS["cortex-m4"]
SELF_TEST: Final = """\
#include "net.h"
#include "net_self_test.h"
static float in[NET_FAST_FORWARD_INPUT0_COUNT], out[NET_FAST_FORWARD_OUTPUT0_COUNT];
int orch_application(const char*, const char*) {
  if (net_fast_forward(in, out) + net_other_forward(in, out) != ORCH_OK) return 1;
  return net_self_test(nullptr);
}
"""
LIBC: Final = ("-idirafter", ROOT / "runtime" / "freestanding")  # string.h
CPP: Final = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
FLAGS: Final = (*TARGET.isas["dsp"].machine_flags, "-Os", "-ffreestanding", "-w", "-c")


@pytest.fixture(scope="module", params=["gnu", "zig"])
def package(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A package of sources, in a folder that has its product in `build/net`.

    The product has a prelinked and a loaded model.
    """
    need_toolchain("cortex-m4", request.param)
    need_emulator("cortex-m4")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "net.toml").write_text(PROFILE.format(request.param))
    shutil.copy(CORPUS / "linear_softmax" / "model.pte", folder / "net.pte")
    return Packages(folder, name="net", more=()).make("cmake", folder)


def test_a_linker_script_places_the_parts_of_a_library(package: Path, tmp_path: Path) -> None:
    gcc, product = need_tool("arm-none-eabi-gcc"), package.parent / "build" / "net"
    (tmp_path / "app.c").write_text(APPLICATION)
    (tmp_path / "app.ld").write_text(SCRIPT)
    include = f"-I{product}/include"
    need(tool(gcc, *FLAGS, include, "app.c", "-o", "app.o", cwd=tmp_path))
    made = product / ".work" / "obj"
    objects: list[object] = [*(made / "runtime" / "freestanding").glob("*.o")]
    objects += [product / "libnet.a", *made.glob("compiler_rt.o"), "-lgcc"]
    link = ("-nostdlib", "-T", "app.ld", "-Wl,--gc-sections")
    command = (gcc, *TARGET.isas["dsp"].machine_flags, *link, "app.o", *objects)
    need(tool(*command, "-o", "app.elf", cwd=tmp_path))
    with (tmp_path / "app.elf").open("rb") as file:
        elf = ELFFile(file)
        names = [section.name for section in elf.iter_sections()]
        places = {
            symbol.name: (names[symbol["st_shndx"]], symbol["st_info"]["type"])
            for table in elf.iter_sections()
            if isinstance(table, SymbolTableSection)
            for symbol in table.iter_symbols()
            if isinstance(symbol["st_shndx"], int)
        }
    assert places["reset"][0] == places["memcpy"][0] == ".flash"
    veneer = "__"  # of the linker, for calls from far away
    own = {n: place for n, place in places.items() if "net" in n and veneer != n[:2]}
    functions = {place for place, kind in own.values() if kind == "STT_FUNC"}
    assert functions == {".fast"}
    begins = ("orch_constant_", "orch_model_")
    assert {p[0] for n, p in own.items() if n.startswith(begins)} == {".weights"}
    arenas = {name for name, (place, _) in own.items() if place == ".arenas"}
    assert len(arenas) == 2
    assert dict(_sections(tmp_path / "app.elf"))[".arenas"] == ("SHT_NOBITS", "WA")


def test_nothing_of_a_library_has_another_section(package: Path, tmp_path: Path) -> None:
    """Compilers give each function its own, which goes on after the name."""
    library = package.parent / "build" / "net" / "libnet.a"
    need(tool(need_tool("arm-none-eabi-ar"), "x", library, cwd=tmp_path))
    found = {name: f for path in tmp_path.iterdir() for name, f in _sections(path)}
    begins = (".text", ".bss.orch_arena", ".rodata.orch_model")
    assert not [name for name in found if name.removeprefix(".rel").startswith(begins)]
    assert sum(name.startswith(".itcm._ZN4orch") for name in found) > 20
    assert found[".itcm"] == found[".itcm.net_fast_forward"] == ("SHT_PROGBITS", "AX")
    assert found[".qspi_rodata.other"] == ("SHT_PROGBITS", "A")
    assert {n for n in found if n.startswith(".dtcm_bss")} == {*ARENAS}
    assert {found[name] for name in ARENAS} == {("SHT_NOBITS", "WA")}


def test_a_package_of_sources_has_them(package: Path, tmp_path: Path) -> None:
    """Those of weights and arenas."""
    product = package / "src" / "product"
    for compiler in _compilers():
        found: dict[str, tuple[str, str]] = {}
        for source in (product / "api.cpp", product / "models.c"):
            need(tool(*compiler, *FLAGS, *LIBC, source, "-o", "made.o", cwd=tmp_path))
            found |= dict(_sections(tmp_path / "made.o"))
        assert not [n for n in found if "orch_arena" in n or "orch_model" in n]
        assert found[".qspi_rodata.other"] == ("SHT_PROGBITS", "A")
        assert ".qspi_rodata.fast.c0" in found
        assert sorted(name for name in found if name.startswith(".dtcm_bss")) == ARENAS


def test_a_linker_script_places_the_code_of_a_package(package: Path, tmp_path: Path) -> None:
    """It names all functions of the package alone; the self test passes there.

    By gcc and GNU ld, by clang and lld. In QEMU the loader puts code into RAM.
    """
    build = package.parent / "build" / "net"
    script = (build / "gen" / "firmware.ld").read_text()
    place = "  .itcm : { INCLUDE net_code.ld } > psram\n"
    before, text, after = script.partition("  .text :")
    (tmp_path / "app.ld").write_text(before + place + text + after)
    (tmp_path / "app.cpp").write_text(SELF_TEST)
    made = build / ".work" / "obj"
    objects: list[object] = [*(made / "runtime" / "platform").rglob("*.o")]
    objects += [*(made / "runtime" / "freestanding").glob("*.o")]
    objects += [*made.glob("compiler_rt.o")]
    sources = [tmp_path / "app.cpp", *sorted((package / "src").rglob("*.c*"))]
    gcc, zig = _compilers()
    by_zig = package.parent.name.startswith("zig")
    compiler = zig if by_zig else gcc
    link = ("-T", "app.ld", f"-L{package}", "-o", "app.elf")
    linker: list[object] = [zig[0], "ld.lld", *link, "--gc-sections"]
    if not by_zig:
        machine = (*TARGET.isas["dsp"].machine_flags, "-nostdlib")
        flags = ("-Wl,--gc-sections,--no-warn-rwx-segments",)
        linker = [*gcc, *machine, *flags, *link]
        objects += ["-lgcc"]
    for number, source in enumerate(sources):
        kind = ("-x", "c") if source.suffix == ".c" else CPP
        options = (*FLAGS, "-ffunction-sections", *kind, f"-I{package}/include")
        command = ("ccache", *compiler, *options, *LIBC, source)
        need(tool(*command, "-o", f"{number}.o", cwd=tmp_path))
    own = [f"{number}.o" for number in range(len(sources))]
    need(tool(*linker, *own, *objects, cwd=tmp_path))
    names = _functions(tmp_path / "app.elf")
    ours = {name for name in names if "net_" in name and name[:2] != "__"}
    assert {"net_fast_forward", "net_other_forward", "net_self_test"} < ours
    assert len(ours) > 20
    stays = {name for name in ours if "self_test" in name}
    assert {names[name] for name in ours - stays} == {".itcm"}
    found = {n for n, place in names.items() if place == ".itcm"}
    veneers = {n for n in found if "Thunk" in n or n.endswith("_veneer")}
    assert found - ours - veneers <= STATUS_TEXT
    assert names["memcpy"] == names["orch_reset"] == ".text"
    semihosting = "enable=on,target=native,arg=app,arg=a,arg=b"
    run = (*BOARDS["mps2-an386"].emulator, "-kernel", "app.elf")
    done = tool(*run, "-semihosting-config", semihosting, cwd=tmp_path)
    assert need(done) == ""


def _compilers() -> tuple[list[object], list[object]]:
    """Commands of gcc and clang."""
    need_toolchain("cortex-m4", "zig")
    program = zig_program()
    assert program is not None
    zig: list[object] = [program, "clang", f"--target={TARGET.clang_triple}"]
    zig += ["-isystem", program.parent / "lib" / "include"]
    return [need_tool("arm-none-eabi-gcc")], zig


def _functions(path: Path) -> dict[str, str]:
    """Functions of a program, and their sections."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        names = [section.name for section in elf.iter_sections()]
        return {
            symbol.name: names[symbol["st_shndx"]]
            for table in elf.iter_sections()
            if isinstance(table, SymbolTableSection)
            for symbol in table.iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC"
        }


def _sections(path: Path) -> list[tuple[str, tuple[str, str]]]:
    """Name, kind and flags, as readelf shows them, of each section of an object."""
    letters = (("W", 1), ("A", 2), ("X", 4))
    with path.open("rb") as file:
        return [
            (s.name, (s["sh_type"], "".join(x for x, b in letters if s["sh_flags"] & b)))
            for s in ELFFile(file).iter_sections()
        ]
