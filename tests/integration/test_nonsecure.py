"""Entry functions for the non-secure side of TrustZone: linked, called, attacked."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.shell.toolchain import zig_program
from orchestrator.targets.cores import BOARDS, CPUS
from tests.conftest import CORPUS
from tests.integration.packages import Packages, need, tool
from tests.integration.workspace import ROOT
from tests.product import Product
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

MODELS: Final = ("linear_softmax", "scalar_sizes", "multi_method", "io_not_planned")
STRICT: Final = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
CMSE: Final = """\
#pragma once
#include <stddef.h>
#define CMSE_NONSECURE 2
#define CMSE_MPU_READ 8
#define CMSE_MPU_READWRITE 1
extern unsigned char shared[4096], rom[4096];
static inline void* cmse_check_address_range(void* p, size_t size, int flags) {
  const unsigned char *at = (unsigned char*)p, *ends[2] = {shared, rom};
  for (int i = 0; i < (flags & CMSE_MPU_READWRITE ? 1 : 2); ++i) {
    if (at >= ends[i] && size <= 4096 && at <= ends[i] + 4096 - size) return p;
  }
  return NULL;
}
"""
"""A stand-in: the non-secure side has two arrays, one of them to read only."""
ATTACKS: Final = """\
#include "net_nonsecure.c"

_Alignas(16) unsigned char shared[4096], rom[4096];
static float secret[48];

static int wrong(orch_status status) { return status != ORCH_INVALID_ARGUMENT; }

static int fixed(void) {
  typedef struct net_linear_softmax_forward_arguments A;
  A* const a = (A*)shared;
  float* const in = (float*)(shared + 64);
  float* const out = (float*)(shared + 2048);
  for (int i = 0; i < IN_COUNT; ++i) in[i] = (float)i / 7;
  *a = (A){in, out};
  if (net_linear_softmax_forward_entry(a) != ORCH_OK) return 1;
  float own[OUT_COUNT];
  if (net_linear_softmax_forward(in, own) != ORCH_OK) return 2;
  if (memcmp(own, out, sizeof own) != 0) return 3;
  static A hidden;
  hidden = *a;
  if (wrong(net_linear_softmax_forward_entry(&hidden))) return 4;
  if (wrong(net_linear_softmax_forward_entry(NULL))) return 5;
  A* const odd = (A*)(shared + 33);
  memcpy(odd, a, sizeof *a);
  if (wrong(net_linear_softmax_forward_entry(odd))) return 6;
  *a = (A){secret, out};
  if (wrong(net_linear_softmax_forward_entry(a))) return 7;
  *a = (A){in, secret};
  if (wrong(net_linear_softmax_forward_entry(a))) return 8;
  *a = (A){in, (float*)(shared + sizeof shared - 4)};
  if (wrong(net_linear_softmax_forward_entry(a))) return 9;
  *a = (A){in, (float*)rom};
  if (wrong(net_linear_softmax_forward_entry(a))) return 10;
  *a = (A){(float*)rom, out};
  if (net_linear_softmax_forward_entry(a) != ORCH_OK) return 11;
  busy = 1;
  if (net_linear_softmax_forward_entry(a) != ORCH_NOT_DONE) return 12;
  busy = 0;
  for (unsigned i = 0; i < sizeof secret / sizeof *secret; ++i) {
    if (secret[i] != 0) return 13;
  }
  return 0;
}

static int sizes_and_numbers(void) {
  typedef struct net_scalar_sizes_forward_arguments A;
  A* const a = (A*)shared;
  int32_t* const sizes = (int32_t*)(shared + 128);
  int64_t* const number = (int64_t*)(shared + 256);
  float* const out = (float*)(shared + 2048);
  const A good = {(float*)(shared + 512), sizes, out, sizes + 2, number, out + 100};
  sizes[0] = 5;
  sizes[1] = 3;
  *a = good;
  if (net_scalar_sizes_forward_entry(a) != ORCH_OK) return 21;
  float own[48], last[1];
  int64_t count;
  int32_t given[2] = {5, 3}, found[2];
  const orch_status status =
      net_scalar_sizes_forward(good.input0, given, own, found, &count, last);
  if (status != ORCH_OK || *number != count) return 22;
  if (sizes[2] != found[0] || sizes[3] != found[1]) return 23;
  static int32_t hidden[2] = {5, 3};
  a->input0_sizes = hidden;
  if (wrong(net_scalar_sizes_forward_entry(a))) return 24;
  *a = good;
  a->output0_sizes = hidden;
  if (wrong(net_scalar_sizes_forward_entry(a))) return 25;
  *a = good;
  a->output1 = &count;
  if (wrong(net_scalar_sizes_forward_entry(a))) return 26;
  *a = good;
  sizes[0] = 1000;
  return net_scalar_sizes_forward_entry(a) == ORCH_OK ? 27 : 0;
}

int main(void) {
  const int first = fixed();
  return first != 0 ? first : sizes_and_numbers();
}
"""
LINKED: Final = "-Wl,--no-warn-rwx-segments"
HOST: Final = """\
#include <stdio.h>

#include "calls.h"

void say(const char* text) { fputs(text, stdout); }
int main(void) {
  call_models();
  return 0;
}
"""
TRUSTZONE: Final = ROOT / "tests" / "integration" / "trustzone"
REFUSED: Final = """\
a call in a call: not done
its FPU: empty
arguments in secure memory: refused
input in secure memory: refused
output in secure memory: refused
output at the other address of secure memory: refused
output that ends in secure memory: refused
output that ends after the last address: refused
output in the security controller: refused
input in the entry functions: refused
output in memory to read only: refused
input in memory to read only: taken
its own memory: taken
SecureFault, the secret is whole
"""
ENTRIES: Final = {
    *(f"net_{name}_forward_entry" for name in MODELS[:2]),
    *(f"net_multi_method_{name}_entry" for name in ("decode", "encode", "scale")),
    *(f"net_multi_method_{name}_entry" for name in ("version", "width")),
}


def _product(folder: Path, cpu: str) -> Product:
    need_toolchain(cpu, "gnu")
    text = f'schema = 1\nname = "net"\n[target]\ncpu = "{cpu}"\ntoolchain = "gnu"\n'
    text += "nonsecure_entries = true\n" if cpu != "host" else ""
    for name in MODELS:
        shutil.copy(CORPUS / name / "model.pte", folder / f"{name}.pte")
        text += f'[[models]]\npath = "{name}.pte"\n'
    (folder / "net.toml").write_text(text)
    return Product(profile=folder / "net.toml", out=folder / "build" / "net")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Built, with a package for CMSIS."""
    need_emulator("cortex-m33")
    folder = tmp_path_factory.mktemp("secure")
    product = _product(folder, "cortex-m33")
    Packages(folder, name="net", more=()).make("cmsis", folder)
    return product


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """The same models, built for this machine."""
    product = _product(tmp_path_factory.mktemp("host"), "host")
    assert product.run("build", "--quiet") == 0
    return product


def _flags(out: Path) -> list[object]:
    """Of both sides; compilers have no C library, string.h is ours."""
    flags: list[object] = [*CPUS["cortex-m33"].isas["dsp"].machine_flags]
    flags += ["-ffreestanding", "-Os", *STRICT, f"-I{out}/include"]
    return [*flags, f"-I{out}/nonsecure", "-idirafter", ROOT / "runtime/freestanding"]


def _made(out: Path) -> list[object]:
    """What both sides have in the place of a C library."""
    return [*(out / ".work" / "obj" / "runtime" / "freestanding").glob("*.o"), "-lgcc"]


@pytest.fixture(scope="module")
def image(secure: Product, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the secure image, and `names.o`: what the other side links with."""
    gcc, out = need_tool("arm-none-eabi-gcc"), secure.out
    folder = tmp_path_factory.mktemp("image")
    flags = (*_flags(out), "-mcmse")
    entries = out / "nonsecure" / "net_nonsecure.c"
    for source, made in ((entries, "entries.o"), (TRUSTZONE / "secure.c", "secure.o")):
        need(tool(gcc, *flags, "-c", source, "-o", made, cwd=folder))
    link = ("-nostdlib", "-T", TRUSTZONE / "secure.ld", LINKED)
    objects = (
        "-Wl,--cmse-implib,--out-implib=names.o",
        "secure.o",
        "entries.o",
        out / "libnet.a",
        *_made(out),
    )
    need(tool(gcc, *flags, *link, *objects, "-o", "secure.elf", cwd=folder))
    return folder


def test_a_secure_image_and_who_calls_it(secure: Product, image: Path, tmp_path: Path) -> None:
    """The linker makes a veneer of each entry function, and a library of their names.

    The other side compiles its header as C and C++.
    """
    gcc, out = need_tool("arm-none-eabi-gcc"), secure.out
    flags = _flags(out)
    source = out / "nonsecure" / "net_nonsecure.c"
    options = (*flags, "-mcmse", "-c", source, "-o", "entries.o")
    program = zig_program()
    assert program is not None
    zig = [program, "clang", f"--target={CPUS['cortex-m33'].clang_triple}"]
    zig += ["-isystem", program.parent / "lib" / "include"]
    for compiler in (zig, [gcc]):
        need(tool(*compiler, *options, cwd=tmp_path))
        symbols = need(tool("arm-none-eabi-nm", "entries.o", cwd=tmp_path))
        assert {name for name in ENTRIES if f"__acle_se_{name}\n" in symbols} == ENTRIES
        assert symbols.count("__acle_se_") == len(ENTRIES)
    names = need(tool("arm-none-eabi-nm", image / "names.o", cwd=tmp_path)).split()
    assert {name for name in names if name.startswith("net_")} == ENTRIES
    app = (
        '#include "net_nonsecure.h"\n'
        "float in[1000], out[1000];\n"
        "int reset(void) { return net_linear_softmax_forward(in, out); }\n"
    )
    (tmp_path / "app.c").write_text(app)
    for language in ("c", "c++"):
        kind = (*flags, "-x", language, "-c", "app.c", "-o", "app.o")
        need(tool(gcc, *kind, cwd=tmp_path))
    text = (out / "nonsecure" / "net_nonsecure.h").read_text()
    for name in ("multi_method.name", "io_not_planned.forward"):
        assert f"No entry function: {name}," in text


def test_across_the_border_in_qemu(
    secure: Product, host: Product, image: Path, tmp_path: Path
) -> None:
    """The other side gets the outputs of this machine, and nothing of secure memory.

    Instructions are its clock, so that its timer interrupts calls at the same places.
    """
    (tmp_path / "host.c").write_text(HOST)
    flags = (f"-I{TRUSTZONE}", f"-I{host.out}/include", *STRICT, "-std=c11", "-no-pie")
    code = ("host.c", TRUSTZONE / "calls.c", host.out / "libnet.a")
    need(tool(need_tool("gcc"), *flags, *code, "-o", "host", cwd=tmp_path))
    expected = need(tool(tmp_path / "host", cwd=tmp_path))
    assert len(expected.split()) > 100

    gcc, out = need_tool("arm-none-eabi-gcc"), secure.out
    sources = (TRUSTZONE / "calls.c", TRUSTZONE / "nonsecure.c", image / "names.o")
    link = ("-nostdlib", "-T", TRUSTZONE / "nonsecure.ld", LINKED, *_made(out))
    options = (*_flags(out), "-DNONSECURE", *sources, *link, "-o", "nonsecure.elf")
    need(tool(gcc, *options, cwd=tmp_path))
    emulator = (*BOARDS["mps2-an505"].emulator, "-kernel", image / "secure.elf")
    images = ("-device", "loader,file=nonsecure.elf", "-icount", "shift=0")
    semihosting = ("-semihosting-config", "enable=on,target=native")
    done = tool(*emulator, *images, *semihosting, cwd=tmp_path)
    need(done)
    assert done.stderr == expected + REFUSED


def test_packages_have_them(secure: Product) -> None:
    """Beside what the build system compiles."""
    package = secure.profile.parent / "net"
    layer = (package / "net.clayer.yml").read_text()
    assert "src/product/api.cpp" in layer
    assert "nonsecure" not in layer
    for name in ("net_nonsecure.c", "net_nonsecure.h"):
        made = (package / "nonsecure" / name).read_bytes()
        assert made == (secure.out / "nonsecure" / name).read_bytes()


def test_nothing_that_the_other_side_gives_is_trusted(
    secure: Product, host: Product, tmp_path: Path
) -> None:
    """On this machine, with a stand-in for the check of addresses."""
    (tmp_path / "arm_cmse.h").write_text(CMSE)
    header = (host.out / "include" / "net.h").read_text()
    counts = {
        "IN_COUNT": "NET_LINEAR_SOFTMAX_FORWARD_INPUT0_COUNT",
        "OUT_COUNT": "NET_LINEAR_SOFTMAX_FORWARD_OUTPUT0_COUNT",
    }
    assert all(f"#define {name} " in header for name in counts.values())
    (tmp_path / "app.c").write_text(ATTACKS)
    flags = [f"-D{name}={value}" for name, value in counts.items()]
    flags += [f"-I{tmp_path}", f"-I{host.out}/include", f"-I{secure.out}/nonsecure"]
    flags += [*STRICT, "-Wno-attributes", "-std=c11", "-no-pie", "-O2"]
    library = host.out / "libnet.a"
    need(tool(need_tool("gcc"), *flags, "app.c", library, "-o", "app", cwd=tmp_path))
    need(tool(tmp_path / "app", cwd=tmp_path))
