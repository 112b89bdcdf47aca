"""Firmware with the sources of a package: compiled, linked, and run in QEMU."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.targets.cores import BOARDS, CPUS
from tests.integration.packages import need, tool
from tests.integration.workspace import ROOT
from tests.tools import need_tool

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.integration.packages import Packages

PAGE = ROOT / "docs" / "packages.md"
MEASURED_WITH = "12"
"""Compiler of the figures there; others make other code."""
STACK = 4096
"""Bytes that the linker script of the firmware keeps for it."""
CALL = """\
#include "kws.h"
static float input[KWS_KWS_FORWARD_INPUT0_COUNT];
static float output[KWS_KWS_FORWARD_OUTPUT0_COUNT];
int orch_application(const char*, const char*) {
  return kws_kws_forward(input, output);
}
"""
SELF_TEST = """\
#include "kws.h"
#include "kws_self_test.h"
int orch_application(const char*, const char*) { return kws_self_test(nullptr); }
"""
PARTS = """\
#include <string.h>
#include "kws.h"
static float input[KWS_KWS_FORWARD_INPUT0_COUNT];
static float whole[KWS_KWS_FORWARD_OUTPUT0_COUNT];
static int in_parts(unsigned instructions, bool is_cancelled) {
  int parts = 0;
  orch_status status = ORCH_NOT_DONE;
  memcpy(kws_kws_forward_input0(), input, sizeof input);
  for (; status == ORCH_NOT_DONE; ++parts) {
    if (is_cancelled && parts == 2) {
      kws_kws_forward_cancel();
      return in_parts(instructions, false);
    }
    status = kws_kws_forward_step(instructions);
  }
  if (status != ORCH_OK) return 0;
  return memcmp(kws_kws_forward_output0(), whole, sizeof whole) == 0 ? parts : -1;
}
int orch_application(const char*, const char*) {
  for (unsigned i = 0; i < sizeof input / 4; ++i) input[i] = 3.0f * (i % 7) - 9.0f;
  if (kws_kws_forward(input, whole) != ORCH_OK) return 1;
  const int all = in_parts(1, false);
  if (all < 5 || in_parts(2, false) != (all + 1) / 2) return 2;
  return in_parts(1, true) == all ? 0 : 3;
}
"""
"""Steps of one and two instructions, and a run that is cancelled and begun again."""


@dataclass(frozen=True, slots=True)
class Cross:
    """Compiles and runs firmware with packages of a product, on its board in QEMU.

    Start-up code and linker script are those of the product's own firmware. `flags`
    take the place of those of the core.
    """

    made_by: Packages
    cpu: str
    gnu: str
    flags: tuple[str, ...] = ()

    @property
    def machine(self) -> list[str]:
        """Flags of the core."""
        if self.flags:
            return [*self.flags]
        isas, default = CPUS[self.cpu].isas, CPUS[self.cpu].default_isa
        return [*isas[default].machine_flags]

    @property
    def freestanding(self) -> list[str]:
        """No C library is installed with these compilers: string.h is ours."""
        return ["-w", "-idirafter", f"{ROOT}/runtime/freestanding"]

    @property
    def link_flags(self) -> list[str]:
        """Flags, and the objects that start the firmware."""
        build = self.made_by.folder / "build" / "kws"
        made = build / ".work" / "obj"
        flags = f"-nostdlib -T {build}/gen/firmware.ld"
        flags += " -Wl,--gc-sections,--no-warn-rwx-segments,--print-memory-usage"
        objects = (
            *(made / "runtime" / "platform").rglob("*.o"),
            *(made / "runtime" / "freestanding").glob("*.o"),
            *made.glob("compiler_rt.o"),
        )
        return [*self.machine, *flags.split(), *map(str, objects)]

    def compile(
        self, sources: Iterable[Path], folder: Path, *flags: str, cpp: Iterable[str] = ()
    ) -> list[str]:
        """Objects in a folder; `cpp` are flags of C++ alone."""
        objects = []
        for number, source in enumerate(sorted(sources)):
            kind = "gcc" if source.suffix == ".c" else "g++"
            compiler = need_tool(f"{self.gnu}-{kind}")
            options = (*self.machine, *self.freestanding, *flags)
            options += tuple(cpp) if kind == "g++" else ()
            objects.append(f"{number}.o")
            command = ("ccache", compiler, *options, "-c", source, "-o", objects[-1])
            need(tool(*command, cwd=folder))
        return objects

    def link(self, application: str, package: Path, folder: Path, *code: object) -> dict[str, int]:
        """Link app.elf; bytes of each memory that it takes."""
        (headers,) = {path.parent for path in package.rglob("kws.h")}
        (folder / "app.cpp").write_text(application)
        cpp = need_tool(f"{self.gnu}-g++")
        flags = (*self.freestanding, *self.link_flags, "-Os", "-fno-exceptions")
        files = ("app.cpp", f"-I{headers}", *code, "-lgcc", "-o", "app.elf")
        said = need(tool(cpp, *flags, *files, cwd=folder))
        used = re.findall(r"^ +(\w+): +(\d+) (B|KB)", said, re.MULTILINE)
        return {memory: int(n) * (1024 if u == "KB" else 1) for memory, n, u in used}

    def run(self, elf: Path) -> None:
        """Its application returned 0 and said nothing."""
        product = json.loads((self.made_by.folder / "build" / "kws" / "product.json").read_text())
        semihosting = "enable=on,target=native,arg=app,arg=a,arg=b"
        command = (*BOARDS[product["board"]].emulator, "-kernel", elf)
        done = tool(*command, "-semihosting-config", semihosting, cwd=elf.parent)
        assert need(done) == ""

    def check(self, package: Path, folder: Path, *code: object) -> None:
        """Run the self test, and runs in parts."""
        for application in (PARTS, SELF_TEST):
            self.link(application, package, folder, *code)
            self.run(folder / "app.elf")

    def check_page(
        self, row: str, package: Path, folder: Path, *code: object, update: bool
    ) -> None:
        """Hold a row of docs/packages.md equal to what the linker says.

        Args:
            row: First cell.
            package: Has headers.
            folder: For files.
            code: Objects and libraries of the package.
            update: Write the row instead.
        """
        compiler = tool(f"{self.gnu}-gcc", "-dumpversion", cwd=folder)
        if need(compiler).split(".")[0] != MEASURED_WITH:
            return
        used = self.link(CALL, package, folder, *code)
        tested = self.link(SELF_TEST, package, folder, *code)["flash"]
        cells = (row, f"{used['flash']:,}", f"{tested:,}", f"{used['sram'] - STACK:,}")
        line = f"| {' | '.join(cells)} |"
        text = PAGE.read_text()
        three = r" \| [\d,]+" * 3
        (found,) = re.findall(rf"^\| {re.escape(row)}{three} \|$", text, re.MULTILINE)
        if update:
            PAGE.write_text(text.replace(found, line))
        else:
            assert found == line
