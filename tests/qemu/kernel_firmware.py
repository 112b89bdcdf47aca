"""Firmware that carries out calls of kernels: `kernel_calls.cpp` with kernels."""

from __future__ import annotations

import os
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.emit.compile import CompileUnit, plan_compile
from orchestrator.emit.generate.linker import linker_script
from orchestrator.emit.generate.tables import selected_headers
from orchestrator.memory.plan import MemoryPlan
from orchestrator.selection.op_info import SelectedOperator, Selection
from orchestrator.selection.resolve import resolve
from orchestrator.shell.launcher import compiler_launcher
from orchestrator.shell.ninja import ninja_program
from orchestrator.shell.toolchain import find_emulator, find_toolchain, with_builtins
from orchestrator.targets.cores import resolve_target
from tests.qemu.bare_firmware import platform_sources
from tests.unit.method.recorded_calls import calls_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.core.operator import OperatorName
    from orchestrator.selection.resolution import Resolution
    from tests.unit.method.recorded_calls import Call

ROOT: Final = Path(__file__).parents[2]
MAIN: Final = Path(__file__).with_name("kernel_calls.cpp")
SOURCES: Final = (
    "freestanding/soft_double.cpp",
    "freestanding/soft_float.cpp",
    *(f"src/{name}.cpp" for name in ("error", "math", "math_double", "random")),
    "src/tensor.cpp",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call: the error, bytes changed around tensors, the outputs."""

    error: int
    changed: int
    outs: tuple[bytes, ...]


class KernelFirmware:
    """Firmware with some kernels of libraries, for every dtype or those selected.

    Args:
        folder: An empty one.
        target: Cpu and toolchain.
        libraries: Whose kernels.
        operators: Which of these kernels; all if none are named.
        selection: Kernels and dtypes, in place of `operators`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        target: tuple[str, str],
        libraries: Sequence[str],
        operators: Sequence[OperatorName] = (),
        selection: Selection | None = None,
    ) -> None:
        cpu, name = target
        resolved = resolve_target(cpu=cpu, isa=None, board=None, toolchain=name, optimize="size")
        assert resolved.board is not None
        self.folder = folder
        self._emulator = find_emulator(resolved.board.emulator)
        toolchain = with_builtins(find_toolchain(resolved), resolved)
        self.compiler = toolchain.version
        folder.mkdir(exist_ok=True)
        (folder / "src").symlink_to(ROOT)
        if selection is None:
            chosen = tuple(
                SelectedOperator(name=name, every_dtype=True) for name in sorted(operators)
            )
            selection = Selection(operators=chosen, every_operator=not operators)
        resolution = self._write_generated(libraries, selection)
        script = linker_script("test", resolved.board, MemoryPlan(models=()))
        self._write(script.path, script.text)
        sources = (*platform_sources(resolved), *SOURCES)
        plan = plan_compile(
            profile="test",
            target=resolved,
            toolchain=toolchain,
            resolution=resolution,
            runtime_sources=sources,
            models=(),
        )
        wanted = {f"src/runtime/{source}" for source in sources}
        wanted |= {
            f"src/kernels/{library}/{source}"
            for library, own in resolution.sources
            for source in own
        }
        units = [u for u in plan.units if u.source in wanted]
        assert len(units) == len(wanted)
        platform = next(u for u in units if "semihosting" in u.source)
        units.append(CompileUnit(str(MAIN), "obj/main.o", (*platform.flags, "-I.")))
        lines = []
        self._environment = dict(os.environ)
        compiler = toolchain.compiler
        if launcher := compiler_launcher():
            compiler = (launcher.program, *compiler)
            version = toolchain.version.encode()
            self._environment |= launcher.environment(version)
        for number, unit in enumerate(units):
            # Debugging information takes a compiler a quarter of its time.
            flags = (flag for flag in unit.flags if flag != "-gdwarf-4")
            command = " ".join((*compiler, *flags, "-c", unit.source))
            lines += [f"rule c{number}", f"  command = {command} -o $out"]
            lines.append(f"build {unit.object}: c{number}")
        objects = " ".join(u.object for u in units)
        link = " ".join((*toolchain.linker, *plan.link_flags, "@objects"))
        builtins = toolchain.builtins or "-lgcc"
        lines += ["rule link", f"  command = {link} {builtins} -o $out"]
        lines += [f"build firmware.elf: link | {objects}", ""]
        self._write("objects", objects)
        self._write("build.ninja", "\n".join(lines))
        self._run((ninja_program(), "-j2", "--quiet"))

    def answers(self, calls: Sequence[Call], *, options: Sequence[str] = ()) -> list[Answer]:
        """Carry out calls; `options` are the emulator's."""
        (self.folder / "request").write_bytes(calls_bytes(calls))
        paths = "enable=on,target=native,arg=firmware,arg=request,arg=response"
        run = ("-semihosting-config", paths, "-kernel", "firmware.elf")
        self._run((*self._emulator, *options, *run))
        data = (self.folder / "response").read_bytes()
        found, at = [], 0
        for call in calls:
            error, changed = struct.unpack_from("<II", data, at)
            at += 8
            outs = []
            for out in () if error else call.outs:
                outs.append(data[at : at + len(out.data)])
                at += len(out.data)
            found.append(Answer(error, changed, tuple(outs)))
        assert at == len(data)
        return found

    def _write_generated(self, libraries: Sequence[str], selection: Selection) -> Resolution:
        """Headers of the dtypes, and the table of the kernels."""
        texts = []
        for library in libraries:
            file = ROOT / "kernels" / library / "functions.yaml"
            text = file.read_text(encoding="utf-8")
            texts.append(LibraryText(name=library, file=str(file), text=text))
        catalog = read_catalog(texts)
        kernels = tuple(k for _, offered in catalog.libraries for k in offered)
        resolution = resolve(
            selection, catalog, every_dtype=selection.every_operator, span_of=lambda _: None
        )
        for header in selected_headers("For tests.", resolution, kernels):
            self._write(header.path, header.text)
        declared, rows = "", ""
        names = {operator.name for operator in selection.operators}
        for kernel in kernels:
            if names and kernel.operator not in names:
                continue
            namespace, _, function = kernel.function.rpartition("::")
            declared += f"namespace {namespace} {{\n"
            declared += f"Error {function}(const Args&);\n}}\n"
            rows += f'  {{"{kernel.operator}", {kernel.function}}},\n'
        self._write(
            "kernel_table.h",
            f'#pragma once\n#include "orch/kernel.h"\n{declared}'
            "struct Entry {\n  const char* name;\n  orch::KernelFn kernel;\n};\n"
            f"constexpr Entry kKernels[] = {{\n{rows}}};\n",
        )
        return resolution

    def _write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def _run(self, command: Sequence[str | Path]) -> None:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
