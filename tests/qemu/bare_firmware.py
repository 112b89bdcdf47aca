"""Firmware of sources of a test's own, with the flags that products get."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.memory import MemoryPlan
from orchestrator.core.resolution import Resolution
from orchestrator.shell.toolchain import find_emulator, find_toolchain, with_builtins
from orchestrator.stages.compile import CompileUnit, plan_compile
from orchestrator.stages.generate.linker import linker_script
from orchestrator.targets import resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ROOT: Final = Path(__file__).parents[2]
_SOURCES: Final = (
    "freestanding/mem.cpp",
    "platform/cortex_m/semihosting.cpp",
    "platform/cortex_m/startup.cpp",
)
Flags = tuple[str, ...]


def run_firmware(
    folder: Path,
    *,
    target: tuple[str, str, str],
    optimize: str = "size",
    sources: Sequence[str],
    units: Callable[[Flags], Sequence[CompileUnit]],
    request: Sequence[int],
) -> list[int]:
    """Build firmware, let it answer a request; both are words of 32 bits.

    Args:
        folder: An empty one.
        target: Cpu, isa and toolchain.
        optimize: As in a profile.
        sources: Of the runtime, relative to it, beside start-up and files.
        units: From the flags of the target to what else is compiled.
        request: What `orch_application` reads.
    """
    cpu, isa, name = target
    resolved = resolve_target(
        cpu=cpu, isa=isa, board=None, toolchain=name, optimize=optimize
    )
    assert resolved.board is not None
    toolchain = with_builtins(find_toolchain(resolved), resolved)
    (folder / "src").symlink_to(_ROOT)
    script = linker_script("test", resolved.board, MemoryPlan(models=()))
    (folder / script.path).parent.mkdir()
    (folder / script.path).write_text(script.text)
    plan = plan_compile(
        profile="test",
        target=resolved,
        toolchain=toolchain,
        resolution=Resolution(),
        runtime_sources=(*_SOURCES, *sources),
        models=(),
    )
    compiled = [u for u in plan.units if u.source.startswith("src/runtime/")]
    flags = next(u for u in compiled if "platform" in u.source).flags
    compiled += units(flags)
    for unit in compiled:
        (folder / unit.object).parent.mkdir(parents=True, exist_ok=True)
        command = (*toolchain.compiler, *unit.flags, "-Werror", "-c", unit.source)
        _run((*command, "-o", unit.object), folder)
    link = (*toolchain.linker, *plan.link_flags, *(u.object for u in compiled))
    _run((*link, toolchain.builtins or "-lgcc", "-o", "test.elf"), folder)
    (folder / "request").write_bytes(np.array(request, "<u4").tobytes())
    paths = "enable=on,target=native,arg=firmware,arg=request,arg=response"
    emulator = find_emulator(resolved.board.emulator)
    options = ("-semihosting-config", paths, "-kernel", "test.elf")
    _run((*emulator, *options), folder)
    found: list[int] = np.fromfile(folder / "response", "<i4").tolist()
    return found


def _run(command: Sequence[str | Path], folder: Path) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=os.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr}"
    assert done.stderr == ""
