"""Int8 kernels with the instructions of a core against those in plain C++.

One firmware has both, the plain ones under another name. It makes random calls of the
inner functions: sums and scales at the edges of 32 bits, any address, memory guarded.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from orchestrator.core.memory import MemoryPlan
from orchestrator.core.resolution import Resolution
from orchestrator.shell.toolchain import find_emulator, find_toolchain, with_builtins
from orchestrator.stages.compile import CompileUnit, plan_compile
from orchestrator.stages.generate.linker import linker_script
from orchestrator.targets import resolve_target
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

ROOT: Final = Path(__file__).parents[2]
HERE: Final = Path(__file__).parent
SOURCES: Final = (
    "freestanding/mem.cpp",
    "platform/cortex_m/semihosting.cpp",
    "platform/cortex_m/startup.cpp",
)
FIELDS: Final = (
    *("kind", "batch", "height", "width", "channels", "groups", "outputs"),
    *("kernel_h", "kernel_w", "stride_h", "stride_w", "padding_h", "padding_w"),
    *("dilation_h", "dilation_w", "x_offset", "w_offset", "step", "offset"),
    *("low", "high"),
)
"""Numbers of kernel_variant.h's `Problem`."""
TARGETS: Final = tuple(
    (cpu, isa, optimize, toolchain)
    for cpu, isa, optimize in (
        ("cortex-m4", "dsp", "size"),
        ("cortex-m4", "dsp", "speed"),
        ("cortex-m55", "mve", "size"),
        ("cortex-m55", "dsp", "size"),
    )
    for toolchain in ("gnu", "zig")
)
"""Tiles of several pixels are for speed, on cores with DSP."""


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


@pytest.mark.parametrize(("cpu", "isa", "optimize", "name"), TARGETS)
def test_variants_agree(
    cpu: str, isa: str, optimize: str, name: str, tmp_path: Path
) -> None:
    need_toolchain(cpu, name)
    need_emulator(cpu)
    target = resolve_target(
        cpu=cpu, isa=isa, board=None, toolchain=name, optimize=optimize
    )
    assert target.board is not None
    toolchain = with_builtins(find_toolchain(target), target)
    (tmp_path / "src").symlink_to(ROOT)
    script = linker_script("test", target.board, MemoryPlan(models=()))
    (tmp_path / script.path).parent.mkdir()
    (tmp_path / script.path).write_text(script.text)
    plan = plan_compile(
        profile="test",
        target=target,
        toolchain=toolchain,
        resolution=Resolution(),
        runtime_sources=SOURCES,
        models=(),
    )
    units = [u for u in plan.units if u.source.startswith("src/runtime/")]
    flags = next(u for u in units if "platform" in u.source).flags
    plain = tuple(f for f in flags if not f.startswith("-DORCH_ISA"))
    scalar = ("-DORCH_ISA=0", "-Dcortex_m=cortex_m_scalar", "-DRUN=run_scalar")
    variant = str(HERE / "kernel_variant.cpp")
    units += [
        CompileUnit(str(HERE / "kernel_variants.cpp"), "obj/main.o", flags),
        CompileUnit(variant, "obj/scalar.o", (*plain, *scalar)),
        CompileUnit(variant, "obj/vectors.o", (*flags, "-DRUN=run_vectors")),
    ]
    for unit in units:
        (tmp_path / unit.object).parent.mkdir(parents=True, exist_ok=True)
        command = (*toolchain.compiler, *unit.flags, "-Werror", "-c", unit.source)
        _run((*command, "-o", unit.object), tmp_path)
    builtins = toolchain.builtins or "-lgcc"
    objects = [u.object for u in units]
    _run(
        (*toolchain.linker, *plan.link_flags, *objects, builtins, "-o", "test.elf"),
        tmp_path,
    )
    (tmp_path / "request").write_bytes(np.array([20261122, 3000], "<u4").tobytes())
    paths = "enable=on,target=native,arg=firmware,arg=request,arg=response"
    emulator = find_emulator(target.board.emulator)
    _run(
        (*emulator, "-semihosting-config", paths, "-kernel", "test.elf"),
        tmp_path,
    )
    found = np.fromfile(tmp_path / "response", "<i4").tolist()
    *made, different = found[:4]
    first = dict(zip(FIELDS, found[4:], strict=False))
    assert different == 0, f"{different} of {sum(made)} differ, the first: {first}"
    assert min(made) > 300
