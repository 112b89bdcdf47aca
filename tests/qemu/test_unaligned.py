"""Products for firmware that makes unaligned accesses a fault (`CCR.UNALIGN_TRP`).

Their start-up code sets the bit, as it does on cores that have no such accesses, so
that every load and store of a run is checked by the emulator.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.emit.compile import CompileUnit
from tests.integration.test_corpus import INT8, corpus_product, outputs_of
from tests.qemu.bare_firmware import link_firmware
from tests.same_bits import check_same_bits
from tests.targets import with_toolchains
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

FLOAT = ("mlp", "half_mlp")
LOAD = """
#include <stdint.h>
int orch_application(const char*, const char*);
int orch_application(const char* request, const char*) {
  uint32_t words[2] = {0x04030201, 0x08070605};
  uint32_t found;
  uintptr_t odd = reinterpret_cast<uintptr_t>(words) + 1;
  asm volatile("ldr %0, [%1]" : "=r"(found) : "r"(odd) : "memory");
  return request != nullptr && found == 0x05040302 ? 7 : 8;
}
"""


@pytest.mark.parametrize("unaligned", [True, False])
def test_the_emulator_knows_the_fault(tmp_path: Path, *, unaligned: bool) -> None:
    """Or what follows would show nothing."""
    need_toolchain("cortex-m4", "zig")
    need_emulator("cortex-m4")
    source = tmp_path / "load.cpp"
    source.write_text(LOAD)
    folder = tmp_path / "build"
    folder.mkdir()
    firmware = link_firmware(
        folder,
        target=("cortex-m4", None, "zig"),
        unaligned=unaligned,
        sources=(),
        units=lambda flags: [CompileUnit(str(source), "obj/load.o", flags)],
    )
    paths = "enable=on,target=native,arg=firmware,arg=request,arg=response"
    done = subprocess.run(
        [*firmware.emulator, "-semihosting-config", paths, "-kernel", "test.elf"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    assert done.returncode == (7 if unaligned else 99)


@pytest.fixture(
    scope="module", params=[*with_toolchains("cortex-m4"), ("cortex-m55", "zig")], ids="-".join
)
def product(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Product]:
    """All int8 models in one product."""
    cpu, toolchain = request.param
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    built = corpus_product(
        tmp_path_factory.mktemp("unaligned"),
        "aligned",
        (*INT8, *FLOAT),
        cpu=cpu,
        toolchain=toolchain,
        extra="unaligned = false\n",
    )
    assert built.run("build") == 0
    return f"{cpu} {toolchain}, aligned", built


@pytest.mark.parametrize("case", [*INT8, *FLOAT])
def test_outputs_are_those_of_any_product(
    product: tuple[str, Product], case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, built = product
    check_same_bits(case, outputs_of(built, case, tmp_path, capsys), where)
