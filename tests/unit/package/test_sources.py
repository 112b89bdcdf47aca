"""Sources that compile alone: macros inside, includes relative."""

from __future__ import annotations

import pytest

from orchestrator.emit.compile import CompileUnit
from orchestrator.package.render import CMSIS_CORES, CMSIS_DEVICES, ZEPHYR_BOARDS, arduino_folder
from orchestrator.package.sources import (
    Places,
    Unit,
    assembly_functions,
    common_defines,
    constants_source,
    library_units,
    packaged_sources,
    symbols_of,
    with_own_symbols,
)
from orchestrator.targets.cores import CPUS, resolve_target

FILES = {
    "src/kernels/a/op_x.cpp": '#include "x.h"\n# include "orch_selected/op_x.h"\n',
    "src/kernels/b/op_x.cpp": '#include <own.h>\n#include "orch_selected/op_x.h"\n',
    "src/kernels/a/x.h": '#include <string.h>\n#include "orch/status.h"\n#define X 1\n',
    "src/kernels/b/inc/own.h": "// own\n",
    "src/runtime/include/orch/status.h": "// public\n",
    "gen/selected/a/orch_selected/op_x.h": "// a\n",
    "gen/selected/b/orch_selected/op_x.h": "// b\n",
}
PLACES = Places(
    headers="include", sources="src", public=frozenset({"src/runtime/include/orch/status.h"})
)


def unit(library: str, *flags: str) -> CompileUnit:
    folders = (f"-Igen/selected/{library}", "-Isrc/runtime/include", "-DALL=1")
    freestanding = "-Isrc/runtime/freestanding"
    source = f"src/kernels/{library}/op_x.cpp"
    return CompileUnit(source, "x.o", (*folders, freestanding, *flags))


UNITS = (unit("a", "-DONLY_A"), unit("b", "-Isrc/kernels/b/inc"))


def packaged(units: tuple[Unit, ...]) -> dict[str, str]:
    found = packaged_sources(
        units,
        {path: text.encode() for path, text in FILES.items()},
        PLACES,
        config="src/p_config.h",
        common=common_defines(units),
    )
    return {path: data.decode() for path, data in found.items()}


def test_each_source_has_its_macros_and_relative_includes() -> None:
    units = library_units(UNITS)
    assert common_defines(units) == (("ALL", "1"),)
    assert packaged(units) == {
        "src/kernels/a/op_x.cpp": '#define ONLY_A 1\n#include "../../p_config.h"\n'
        '#include "x.h"\n# include "../../selected/a/op_x.h"\n',
        "src/kernels/b/op_x.cpp": '#include "../../p_config.h"\n'
        '#include "inc/own.h"\n#include "../../selected/b/op_x.h"\n',
        "src/kernels/a/x.h": "#include <string.h>\n"
        '#include "../../../include/orch/status.h"\n#define X 1\n',
        "src/kernels/b/inc/own.h": "// own\n",
        "include/orch/status.h": "// public\n",
        "src/selected/a/op_x.h": "// a\n",
        "src/selected/b/op_x.h": "// b\n",
    }


def test_only_the_library_is_packaged() -> None:
    names = ("src/runtime/src/a.cpp", "src/runtime/app/a.cpp", "gen/src/models.S")
    others = [CompileUnit(name, "a.o", ()) for name in names]
    paths = [found.path for found in library_units([*others, *UNITS])]
    assert paths == ["src/runtime/src/a.cpp", "src/kernels/a/op_x.cpp", "src/kernels/b/op_x.cpp"]


def test_constants_are_arrays() -> None:
    assembly = (
        '// x\n\n  .section .rodata.m.c0,"a"\n  .balign 16\n  .globl one\none:\n'
        '  .incbin "models/m.constants", 2, 3\n\n'
        '  .section .rodata.m,"a"\n  .balign 16\n  .globl all\nall:\n'
        '  .incbin "models/m.pte"\n\n'
        "  .globl again\n  .set again, all\n\n"
        '#if defined(__ELF__)\n  .section .note.GNU-stack,""\n#endif\n'
    )
    files = {"models/m.constants": bytes(range(9)), "models/m.pte": bytes(25)}
    text = constants_source("head", assembly, files)
    assert text == (
        "/* head */\n#include <stdint.h>\n\n"
        "extern const uint8_t one[3];\n"
        '__attribute__((aligned(16), section(".rodata.m.c0")))\n'
        "const uint8_t one[3] = {\n  2,3,4,\n};\n\n"
        "extern const uint8_t all[25];\n"
        '__attribute__((aligned(16), section(".rodata.m")))\n'
        f"const uint8_t all[25] = {{\n  {','.join('0' * 24)},\n  0,\n}};\n"
    )
    assert symbols_of(assembly) == {"one": "one", "all": "all", "again": "all"}
    with pytest.raises(ValueError, match=r"unknown assembly: \.long 1"):
        constants_source("head", f".long 1\n{assembly}", files)


@pytest.mark.parametrize(
    ("cpu", "folder"),
    [("cortex-m4", "cortex-m4/fpv4-sp-d16-hard"), ("cortex-m0plus", "cortex-m0plus")],
)
def test_folders_of_precompiled_libraries(cpu: str, folder: str) -> None:
    target = resolve_target(cpu=cpu, isa=None, board=None, toolchain=None, optimize="size")
    assert arduino_folder(target) == folder


def test_functions_in_assembly_are_the_products() -> None:
    text = """\
#include "orch_selected/op_x.h"
extern "C" void orch_loop(int x);
asm(R"(
  .macro orch_begin name
  .globl \\name
\\name:
  .endm
  push {)" SAVED R"(}
  orch_begin orch_loop
)");
void run() { orch_loop(orch_other()); }
"""
    renamed = text.replace("orch_loop", "p_orch_loop")
    other = "void any() { orch_loop(orch_more()); }"
    functions = assembly_functions([text, other])
    assert functions == {"orch_loop"}
    assert with_own_symbols(text, "p", functions) == renamed
    # Another source calls it.
    renamed = other.replace("orch_loop", "p_orch_loop")
    assert with_own_symbols(other, "p", functions) == renamed


def test_tables_name_known_cores() -> None:
    arm = {name for name, cpu in CPUS.items() if cpu.is_arm}
    assert CMSIS_CORES.keys() == arm
    assert CMSIS_DEVICES.keys() == arm
    assert ZEPHYR_BOARDS.keys() <= CPUS.keys()
    # Cortex-M cores that neither QEMU nor Zephyr's boards for it have.
    assert arm - ZEPHYR_BOARDS.keys() == {"cortex-m23", "cortex-m35p", "cortex-m85"}
