"""Packages of sources compile, link and pass their self test with a debugger's flags.

Their inner loops are functions in assembly: nothing that flags leave of the registers, or
decide about size, may matter. Only sources of int8 and int16 kernels are compiled with
each set of flags; the others, which have no assembly, once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from orchestrator.shell.toolchain import zig_program
from orchestrator.targets.cores import CPUS
from tests.integration.cross import Cross
from tests.integration.packages import MODEL, PROFILE, Packages, need, tool
from tests.integration.workspace import ROOT
from tests.tools import need_emulator, need_tool, need_toolchain

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

FLAGS: Final = (
    *("-O0", "-Og", "-O2", "-O3", "-Os"),
    *(f"{level} -fno-omit-frame-pointer" for level in ("-O2", "-Os", "-O3")),
    *("-Os -flto", "-O2 -flto", "-O3 -funroll-loops", "-O2 -fno-inline"),
    *("-O2 -fstack-protector-all", "-Os -ffixed-r9", "-Os -fsanitize=kernel-address"),
    "-O2 -finstrument-functions",
)
QUICK: Final = ("-O0", "-O2 -fno-omit-frame-pointer")
"""Those of debuggers, with gcc; the rest are nightly."""
CORES: Final = ("cortex-m4", "cortex-m55")
PRODUCTS: Final = {
    "loaded": ('load = "prelinked"', 'load = "pte"'),
    "prelinked": ("[kernels]", 'optimize = "speed"\n[kernels]'),
}
"""Every int8 and int16 kernel, none of them with packed weights in use; packed ones that
the build chose for speed. Each as a change of the profile."""
EVERY_KERNEL: Final = """\
[operators]
include_yaml = ["kernels/cortex_m/functions.yaml", "kernels/cortex_m_int16/functions.yaml"]
[passes]
skip = ["pack_weights"]
[kernels]
"""
APPLICATION: Final = """\
#include "kws.h"
#include "kws_self_test.h"
#define PLAIN __attribute__((no_instrument_function, no_stack_protector))
extern "C" {
PLAIN void __cyg_profile_func_enter(void*, void*) {}
PLAIN void __cyg_profile_func_exit(void*, void*) {}
unsigned __stack_chk_guard = 0x5AFE;
void __stack_chk_fail() { __builtin_trap(); }
}
static int check() { return kws_self_test(nullptr); }
int orch_application(const char*, const char*) {
  // The base of static data where r9 is that.
  int before = 0x5AFE, after, status;
  asm volatile(
      "mov r4, r9\\n mov r9, %2\\n blx %3\\n mov %1, r9\\n mov r9, r4\\n mov %0, r0\\n"
      : "=&r"(status), "=&r"(after)
      : "r"(before), "r"(&check)
      : "r0", "r1", "r2", "r3", "r4", "r12", "lr", "memory", "cc");
  return status != 0 ? status : after == before ? 0 : 99;
}
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A package, and objects of its sources without assembly.

    These are by compiler, whose `int32_t` differ.
    """

    package: Path
    cross: Cross
    kernels: tuple[Path, ...]
    others: dict[str, tuple[str, ...]]


Made = Callable[[str, str], Program]


def _product(folder: Path, cpu: str, kind: str, name: str = "kws") -> Packages:
    need_toolchain(cpu, "zig")
    text = PROFILE.replace("CPU", cpu).replace("TOOLCHAIN", "zig").replace(*PRODUCTS[kind])
    text = text.replace('"cortex_m",', '"cortex_m", "cortex_m_int16",')
    text = text.replace('name = "kws"', f'name = "{name}"', 1)
    if kind == "loaded":
        text = text.replace("[kernels]\n", EVERY_KERNEL)
        shutil.copytree(ROOT / "kernels", folder / "kernels")
    (folder / f"{name}.toml").write_text(text)
    shutil.copy(MODEL, folder)
    return Packages(folder, name, () if name != "kws" else Packages(folder).more)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A package of each kind for each core, made once."""
    programs: dict[tuple[str, str], Program] = {}

    def one(cpu: str, kind: str) -> Program:
        if (cpu, kind) not in programs:
            folder = tmp_path_factory.mktemp("flags")
            packages = _product(folder, cpu, kind)
            package = packages.make("arduino", folder / "out")
            cross = Cross(packages, cpu, "arm-none-eabi")
            sources = set((package / "src").rglob("*.c*"))
            kernels = {s for s in sources if s.parent.name.startswith("cortex_m")}
            others = {}
            for compiler in ("gcc", "clang"):
                (folder / compiler).mkdir()
                rest = sources - kernels
                others[compiler] = _compile(cross, compiler, "-Os", rest, folder / compiler)
            programs[cpu, kind] = Program(package, cross, tuple(sorted(kernels)), others)
        return programs[cpu, kind]

    return one


def _compile(
    cross: Cross, compiler: str, flags: str, sources: set[Path] | tuple[Path, ...], folder: Path
) -> tuple[str, ...]:
    options = (*flags.split(), "-ffunction-sections", "-fdata-sections", f"-I{folder}")
    cpp = ("-std=gnu++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
    if compiler == "gcc":
        made = cross.compile(sources, folder, *options, cpp=cpp)
        return tuple(str(folder / name) for name in made)
    zig = (need_clang(), "clang", f"--target={CPUS[cross.cpu].clang_triple}")
    objects = []
    for number, source in enumerate(sorted(sources)):
        language = ("-xc",) if source.suffix == ".c" else ("-xc++", *cpp)
        objects.append(str(folder / f"{number}.o"))
        command = (*zig, *cross.machine, *cross.freestanding, *options, *language)
        need(tool(*command, "-c", source, "-o", objects[-1], cwd=folder))
    return tuple(objects)


def need_clang() -> Path:
    """The compiler that zig has."""
    program = zig_program()
    if program is None:
        pytest.skip("needs the Python package ziglang")
    return program


def _parameters() -> list[object]:
    return [
        pytest.param(
            *(cpu, compiler, flags, kind),
            id="-".join((cpu, compiler, kind, flags.replace(" -", " "))),
            marks=()
            if compiler == "gcc" and flags in QUICK and kind == "loaded"
            else pytest.mark.nightly,
        )
        for cpu in CORES
        for kind in PRODUCTS
        for compiler in ("gcc", "clang")
        for flags in FLAGS
        # With -flto LLVM forgets what core assembly beside functions is for: no MVE.
        if (cpu, compiler) != ("cortex-m55", "clang") or "-flto" not in flags
    ]


@pytest.mark.parametrize(("cpu", "compiler", "flags", "kind"), _parameters())
def test_any_flags(  # noqa: PLR0917  # fixtures
    cpu: str, compiler: str, flags: str, kind: str, made: Made, tmp_path: Path
) -> None:
    """Every bit of the case is right, and r9 is kept."""
    need_tool("arm-none-eabi-g++")
    need_emulator(cpu)
    program = made(cpu, kind)
    objects = _compile(program.cross, compiler, flags, program.kernels, tmp_path)
    if "kernel-address" in flags:
        return  # needs a runtime to link
    if "-flto" in flags and compiler == "clang":
        zig = need_clang()
        joined = (zig, "ld.lld", "-r", *objects, "-o", "joined.o")
        need(tool(*joined, cwd=tmp_path))
        objects = (str(tmp_path / "joined.o"),)
    others = program.others[compiler]
    lto = ("-flto",) if "-flto" in flags and compiler == "gcc" else ()
    program.cross.link(APPLICATION, program.package, tmp_path, *lto, *others, *objects)
    program.cross.run(tmp_path / "app.elf")


@pytest.mark.nightly
@pytest.mark.parametrize("cpu", CORES)
def test_two_packages_with_lto(cpu: str, made: Made, tmp_path: Path) -> None:
    """Their assembly, which is one text then, has no name twice."""
    first = made(cpu, "prelinked")
    (tmp_path / "second").mkdir()
    packages = _product(tmp_path / "second", cpu, "prelinked", "other")
    package = packages.make("arduino", tmp_path / "out")
    sources = (
        *first.kernels,
        *(s for s in (package / "src").rglob("*.cpp") if s.parent.name.startswith("cortex_m")),
    )
    cross = replace(first.cross)
    objects = _compile(cross, "gcc", "-Os -flto", sources, tmp_path)
    options = ("-flto", "-r", "-nostdlib", "-flinker-output=nolto-rel", "-o", "both.o")
    need(tool(need_tool("arm-none-eabi-g++"), *cross.machine, *objects, *options, cwd=tmp_path))
