"""Firmware of sources of a test's own, with the flags that products get."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.emit.compile import CompileUnit, plan_compile
from orchestrator.emit.generate.linker import linker_script
from orchestrator.memory.plan import MemoryPlan
from orchestrator.selection.resolution import Resolution
from orchestrator.shell.toolchain import find_emulator, find_toolchain, with_builtins
from orchestrator.targets.cores import resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.targets.cores import Target, Toolchain

_ROOT: Final = Path(__file__).parents[2]
Flags = tuple[str, ...]


def platform_sources(target: Target) -> tuple[str, ...]:
    """Start-up code, files and memory functions of a board, relative to runtime/."""
    runtime = _ROOT / "runtime"
    found = (
        path.relative_to(runtime).as_posix()
        for name in target.platforms
        for path in sorted((runtime / "platform" / name).glob("*.cpp"))
    )
    return ("freestanding/mem.cpp", *found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Firmware:
    """What was built.

    Args:
        elf: What the emulator loads.
        objects: Of the runtime's sources, by path under runtime/.
        toolchain: That built it.
        machine: Flags that select the core.
        emulator: Its command.
    """

    elf: Path
    objects: dict[str, Path]
    toolchain: Toolchain
    machine: tuple[str, ...]
    emulator: tuple[str, ...]


def link_firmware(
    folder: Path,
    *,
    target: tuple[str, str | None, str],
    optimize: str = "size",
    unaligned: bool = True,
    sources: Sequence[str],
    units: Callable[[Flags], Sequence[CompileUnit]],
    libraries: Sequence[Path] = (),
    sections: str = "",
) -> Firmware:
    """Build firmware.

    Args:
        folder: An empty one.
        target: Cpu, isa (None is the cpu's own) and toolchain.
        optimize: As in a profile.
        unaligned: As in a profile.
        sources: Of the runtime, relative to it, beside start-up and files.
        units: From the flags of the target to what else is compiled.
        libraries: What else is linked.
        sections: Of the linker script, in front of what else has no contents.
    """
    cpu, isa, name = target
    resolved = resolve_target(
        cpu=cpu, isa=isa, board=None, toolchain=name, optimize=optimize, unaligned=unaligned
    )
    assert resolved.board is not None
    toolchain = with_builtins(find_toolchain(resolved), resolved)
    (folder / "src").symlink_to(_ROOT)
    script = linker_script("test", resolved.board, MemoryPlan(models=()))
    (folder / script.path).parent.mkdir()
    bss = "  .bss (NOLOAD)"
    assert bss in script.text
    (folder / script.path).write_text(script.text.replace(bss, sections + bss))
    platform = platform_sources(resolved)
    plan = plan_compile(
        profile="test",
        target=resolved,
        toolchain=toolchain,
        resolution=Resolution(),
        runtime_sources=(*platform, *sources),
        models=(),
    )
    runtime = [u for u in plan.units if u.source.startswith("src/runtime/")]
    assert len(runtime) == len(platform) + len(sources)
    flags = next(u for u in runtime if "platform" in u.source).flags
    compiled = [*runtime, *units(flags)]
    for unit in compiled:
        (folder / unit.object).parent.mkdir(parents=True, exist_ok=True)
        command = (*toolchain.compiler, *unit.flags, "-Werror", "-c", unit.source)
        run_command((*command, "-o", unit.object), folder)
    link = (*toolchain.linker, *plan.link_flags, *(u.object for u in compiled))
    link += tuple(map(str, libraries))
    run_command((*link, toolchain.builtins or "-lgcc", "-o", "test.elf"), folder)
    return Firmware(
        elf=folder / "test.elf",
        objects={u.source.removeprefix("src/runtime/"): folder / u.object for u in runtime},
        toolchain=toolchain,
        machine=resolved.isa.machine_flags,
        emulator=find_emulator(resolved.board.emulator),
    )


def run_firmware(
    folder: Path,
    *,
    target: tuple[str, str, str],
    optimize: str = "size",
    sources: Sequence[str],
    units: Callable[[Flags], Sequence[CompileUnit]],
    libraries: Sequence[Path] = (),
    sections: str = "",
    request: Sequence[int],
) -> list[int]:
    """Build firmware, let it answer a request; both are words of 32 bits.

    Arguments are those of `link_firmware`, and what `orch_application` reads.
    """
    firmware = link_firmware(
        folder,
        target=target,
        optimize=optimize,
        sources=sources,
        units=units,
        libraries=libraries,
        sections=sections,
    )
    (folder / "request").write_bytes(np.array(request, "<u4").tobytes())
    paths = "enable=on,target=native,arg=firmware,arg=request,arg=response"
    options = ("-semihosting-config", paths, "-kernel", "test.elf")
    run_command((*firmware.emulator, *options), folder)
    found: list[int] = np.fromfile(folder / "response", "<i4").tolist()
    return found


def run_command(command: Sequence[str | Path], folder: Path) -> str:
    """What a command prints; it must succeed and say nothing else."""
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
    return done.stdout
