"""The int8 kernels on the boards: the calls that the C++ tests make on the host.

One firmware per target runs all of them, so that the variants for DSP and MVE give the
same bits as plain C++, and write nothing besides. Others of their kind, with edges,
must give what plain C++ gives on this machine.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.emit.compile import CompileUnit, plan_compile
from orchestrator.emit.generate.linker import linker_script
from orchestrator.emit.generate.tables import selected_headers
from orchestrator.memory.plan import MemoryPlan
from orchestrator.selection.op_info import Selection
from orchestrator.selection.resolve import resolve
from orchestrator.shell.ninja import ninja_program
from orchestrator.shell.toolchain import find_emulator, find_toolchain, with_builtins
from orchestrator.targets.cores import resolve_target
from tests.integration.host_kernels import recorded
from tests.integration.random_int8 import int8_calls
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import calls_bytes, read_calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.selection.resolution import Resolution
    from tests.unit.method.recorded_calls import Call

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

ROOT: Final = Path(__file__).parents[2]
MAIN: Final = Path(__file__).with_name("kernel_calls.cpp")
CALLS: Final = ROOT / "tests" / "data" / "cortex_m" / "calls.bin"
LIBRARY: Final = ROOT / "kernels" / "cortex_m" / "functions.yaml"
SOURCES: Final = (
    "freestanding/mem.cpp",
    "platform/cortex_m/semihosting.cpp",
    "platform/cortex_m/startup.cpp",
    "src/error.cpp",
    "src/tensor.cpp",
)
TARGETS: Final = (
    ("cortex-m4", "gnu"),
    ("cortex-m4", "zig"),
    ("cortex-m55", "gnu"),
    ("cortex-m55", "zig"),
)


def _run(command: Sequence[str | Path], folder: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def _write_generated(folder: Path) -> Resolution:
    """Headers that select every dtype, and the table of the kernels."""
    text = LIBRARY.read_text(encoding="utf-8")
    catalog = read_catalog([LibraryText(name="cortex_m", file=str(LIBRARY), text=text)])
    kernels = tuple(k for _, offered in catalog.libraries for k in offered)
    resolution = resolve(
        Selection(every_operator=True),
        catalog,
        every_dtype=True,
        span_of=lambda _: None,
    )
    for header in selected_headers("For tests.", resolution, kernels):
        path = folder / header.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header.text, encoding="utf-8")
    declared, rows = "", ""
    for kernel in kernels:
        namespace, _, function = kernel.function.rpartition("::")
        declared += f"namespace {namespace} {{\nError {function}(const Args&);\n}}\n"
        rows += f'  {{"{kernel.operator}", {kernel.function}}},\n'
    (folder / "kernel_table.h").write_text(
        f'#pragma once\n#include "orch/kernel.h"\n{declared}'
        "struct Entry {\n  const char* name;\n  orch::KernelFn kernel;\n};\n"
        f"constexpr Entry kKernels[] = {{\n{rows}}};\n",
        encoding="utf-8",
    )
    return resolution


def _build(cpu: str, name: str, folder: Path) -> tuple[str, ...]:
    """Builds firmware.elf with the flags of a product; returns the emulator."""
    target = resolve_target(
        cpu=cpu, isa=None, board=None, toolchain=name, optimize="size"
    )
    assert target.board is not None
    toolchain = with_builtins(find_toolchain(target), target)
    (folder / "src").symlink_to(ROOT)
    resolution = _write_generated(folder)
    script = linker_script("test", target.board, MemoryPlan(models=()))
    (folder / script.path).parent.mkdir(exist_ok=True)
    (folder / script.path).write_text(script.text, encoding="utf-8")
    plan = plan_compile(
        profile="test",
        target=target,
        toolchain=toolchain,
        resolution=resolution,
        runtime_sources=SOURCES,
        models=(),
    )
    wanted = {f"src/runtime/{source}" for source in SOURCES}
    wanted |= {
        f"src/kernels/{library}/{source}"
        for library, sources in resolution.sources
        for source in sources
    }
    units = [u for u in plan.units if u.source in wanted]
    assert len(units) == len(wanted)
    platform = next(u for u in units if "semihosting" in u.source)
    units.append(CompileUnit(str(MAIN), "obj/main.o", (*platform.flags, "-I.")))
    lines = []
    for number, unit in enumerate(units):
        command = " ".join((*toolchain.compiler, *unit.flags, "-c", unit.source))
        lines += [f"rule c{number}", f"  command = {command} -o $out"]
        lines.append(f"build {unit.object}: c{number}")
    objects = " ".join(u.object for u in units)
    link = " ".join((*toolchain.linker, *plan.link_flags, objects))
    builtins = toolchain.builtins or "-lgcc"
    lines += ["rule link", f"  command = {link} {builtins} -o $out"]
    lines += [f"build firmware.elf: link | {objects}", ""]
    (folder / "build.ninja").write_text("\n".join(lines), encoding="utf-8")
    _run((ninja_program(), "-j2", "--quiet"), folder)
    return find_emulator(target.board.emulator)


def _edge_calls(folder: Path) -> Iterator[Call]:
    """Calls with other items and factors, with their results on this machine."""
    calls = int8_calls()
    for call, results in zip(calls, recorded(calls, folder), strict=True):
        if results is not None:
            (data,) = results
            *inputs, out = call.args
            yield replace(call, args=(*inputs, replace(out, data=data)))


@pytest.mark.parametrize(
    ("cpu", "toolchain"), TARGETS, ids=[f"{c}-{t}" for c, t in TARGETS]
)
def test_calls_have_their_results(cpu: str, toolchain: str, tmp_path: Path) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    emulator = _build(cpu, toolchain, tmp_path)
    calls = [*read_calls(CALLS), *_edge_calls(tmp_path)]
    (tmp_path / "request").write_bytes(calls_bytes(calls))
    paths = "enable=on,target=native,arg=firmware,arg=request,arg=response"
    options = ("-semihosting-config", paths, "-kernel", "firmware.elf")
    _run((*emulator, *options), tmp_path)
    found = np.fromfile(tmp_path / "response", "<u4").reshape(-1, 3)
    assert len(found) == len(calls)
    wrong = [
        f"call {i}: error {found[i, 0]}, {found[i, 1]} wrong bytes,"
        f" {found[i, 2]} written outside"
        for i in np.flatnonzero(found.any(axis=1))
    ]
    assert not wrong, f"{len(wrong)} of {len(found)}: " + "; ".join(wrong[:9])
