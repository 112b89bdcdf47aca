"""Libraries of one compiler in programs of another."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import ARMAttributesSection

from orchestrator.shell.toolchain import find_toolchain, zig_program
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.product import Product, make_product
from tests.tools import need_tool, need_toolchain
from tests.unit.products import target_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.toolchain
FLAGS = ("-mthumb", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
LINK = ("--fatal-warnings", "--unresolved-symbols=ignore-all")
"""Without a C library, whose own objects might warn."""
USER = """\
#include "add-mul-cortex-m4-@.h"

enum small { kOne };  /* its size is what the flags say */
typedef char status_is_a_byte[sizeof(orch_status) == 1 ? 1 : -1];

int choice(enum small which);
int choice(enum small which) { return (int)which; }

void _start(void);
void _start(void) {
  uint32_t instruction;
  const orch_status status =
      add_mul_cortex_m4_@_model_forward_run_at(&instruction);
  if (status != ORCH_OK && orch_status_text(status)[0] == 'O') choice(kOne);
  for (;;) {
  }
}
"""


@pytest.fixture(scope="module", params=["zig", "gnu"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Product:
    """A product for a board, by each toolchain."""
    toolchain: str = request.param
    need_toolchain("cortex-m4", toolchain)
    folder = tmp_path_factory.mktemp(toolchain)
    product = make_product(folder, "add_mul", cpu="cortex-m4", toolchain=toolchain)
    assert product.run("build") == 0
    return product


def _name(product: Product) -> str:
    return product.profile.stem.rpartition("-")[2]


def _run(*command: object) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.stderr:
        pytest.fail(done.stderr)
    assert done.returncode == 0


@pytest.mark.parametrize("own", ["-fshort-enums", "-fno-short-enums", "-fshort-wchar"], ids=str)
def test_a_program_of_gcc_links_without_a_warning(
    library: Product, tmp_path: Path, own: str
) -> None:
    gcc, name = need_tool("arm-none-eabi-gcc"), _name(library)
    for language, standard in (("c", "c99"), ("c++", "c++11")):
        source = tmp_path / f"use.{'c' if language == 'c' else 'cpp'}"
        text = USER.replace("@", name)
        # Not with its name of C++: there is no code that calls it.
        source.write_text(
            text.replace("void _start", 'extern "C" void _start') if language == "c++" else text
        )
        _run(
            *(gcc, *FLAGS, own, f"-std={standard}", "-Wall", "-Wextra", "-Werror"),
            *(f"-I{library.out}/include", "-nostdlib", source),
            *(library.out / f"lib{library.profile.stem}.a", f"-Wl,{','.join(LINK)}"),
            *("-o", tmp_path / "program.elf"),
        )


def test_a_program_of_clang_links_without_a_warning(library: Product, tmp_path: Path) -> None:
    need_toolchain("cortex-m4", "zig")
    zig, name = str(zig_program()), _name(library)
    source, part = tmp_path / "use.c", tmp_path / "use.o"
    source.write_text(USER.replace("@", name))
    target = target_of("cortex-m4", "zig")
    _run(
        *(zig, "clang", f"--target={target.cpu.clang_triple}", *FLAGS, "-std=c11"),
        *("-Wall", "-Wextra", "-Werror", "-ffreestanding"),
        *(f"-I{library.out}/include", f"-I{ROOT}/runtime/freestanding"),
        *("-c", source, "-o", part),
    )
    _run(
        *(zig, "ld.lld", *LINK, part, library.out / f"lib{library.profile.stem}.a"),
        *("-o", tmp_path / "program.elf"),
    )


def _attributes(path: Path) -> Iterator[tuple[str, object]]:
    with path.open("rb") as file:
        (section,) = (
            s for s in ELFFile(file).iter_sections() if isinstance(s, ARMAttributesSection)
        )
        for part in section.iter_subsections():
            for below in part.iter_subsubsections():
                for attribute in below.iter_attributes():
                    yield attribute.tag, attribute.value


def test_every_object_says_what_it_is(library: Product) -> None:
    """Core and float ABI, which linkers compare; no size of enums or of wchar_t."""
    find_toolchain(target_of("cortex-m4", _name(library)))
    work = library.out / ".work/obj"
    objects = sorted(work.rglob("*.cpp.o"))
    assert len(objects) > 15
    for path in objects:
        found = dict(_attributes(path))
        assert found.get("TAG_ABI_ENUM_SIZE", 0) == 0, path
        assert found.get("TAG_ABI_PCS_WCHAR_T", 0) == 0, path
        assert found["TAG_CPU_ARCH"] == 13, path  # Armv7E-M
        assert found["TAG_CPU_ARCH_PROFILE"] == ord("M"), path
        assert found["TAG_ABI_VFP_ARGS"] == 1, path


NAMES = ("status", "load", "reset", "run", "lib", "gen", "models", "errno", "float")


def test_names_that_mean_something_else_link(tmp_path: Path) -> None:
    """Of the product: a function of POSIX; of models: ends of functions, files."""
    need_toolchain("host", "gnu")
    (tmp_path / "model.pte").write_bytes((CORPUS / "add_mul/model.pte").read_bytes())
    profile = tmp_path / "product.toml"
    profile.write_text(
        'schema = 1\nname = "select"\ntarget = {cpu = "host", toolchain = "gnu"}\n'
        + "".join(f'[[models]]\nname = "{n}"\npath = "model.pte"\n' for n in NAMES)
    )
    product = Product(profile=profile, out=tmp_path / "out")
    assert product.run("build") == 0
    calls = "".join(
        f"  failed |= select_::{n}{'_' * (n in ('errno', 'float'))}"
        "::forward(x, x, x, y) != ORCH_OK;\n"
        f"  failed |= select_{n}_forward_run() != ORCH_OK;\n"
        for n in NAMES
    )
    source = tmp_path / "use.cpp"
    source.write_text(
        "#include <errno.h>\n#include <sys/select.h>\n#include <time.h>\n"
        '#include "select.h"\n'
        "int main() {\n  const float x[4] = {1, 1, 1, 1};\n  float y[4];\n"
        f"  bool failed = false;\n{calls}  return failed;\n}}\n"
    )
    _run(
        *(need_tool("g++"), "-no-pie", "-Wl,--fatal-warnings"),
        *(f"-I{product.out}/include", source, product.out / "libselect.a"),
        *("-o", tmp_path / "use"),
    )
    _run(tmp_path / "use")
