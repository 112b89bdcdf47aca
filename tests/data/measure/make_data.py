"""Makes the linked programs in this folder: ELF, map, stack usage, memory plan.

Each case is one small firmware, built by the stages themselves: two models of the
corpus on every target and toolchain. For boards, facts.json also has what others say:
`used_bytes`, by memory, from the linker itself (--print-memory-usage), and
`deepest_stack_bytes`, from QEMU, which logs the stack pointer before each instruction
while both models run once.

Needs ninja, zig (the package ziglang), GNU compilers, qemu-system-arm and numpy; run it
from the top of the repository: `python -m tests.data.measure.make_data [CASE...]`. It
rewrites the cases and `digests.txt`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import ninja
import numpy as np

from orchestrator.catalog.entry import LibraryText
from orchestrator.catalog.read import read_catalog
from orchestrator.emit.compile import plan_compile, toolchain_text
from orchestrator.emit.generate import generate
from orchestrator.memory.product import plan_memory
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolve import resolve
from orchestrator.shell.toolchain import find_toolchain, with_builtins
from orchestrator.targets.cores import TOOLCHAIN_FILE, Target, resolve_target

if TYPE_CHECKING:
    from orchestrator.targets.cores import Board, Toolchain

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CORPUS = HERE.parent / "corpus"
MODELS = {"sum": "add_mul", "nets": "two_arenas"}
CASES = {
    "m55-gnu": ("cortex-m55", "gnu"),
    "m55-zig": ("cortex-m55", "zig"),
    "m4-gnu": ("cortex-m4", "gnu"),
    "m4-zig": ("cortex-m4", "zig"),
    "host-gnu": ("host", "gnu"),
    "host-zig": ("host", "zig"),
}
PROFILE = "demo"


def main() -> None:
    """Make the cases named on the command line, or all."""
    for case in sys.argv[1:] or CASES:
        make_case(case)
    files = sorted(p for p in HERE.glob("*/*") if p.parent.name in CASES)
    digests = (
        f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(HERE)}\n" for p in files
    )
    (HERE / "digests.txt").write_text("".join(digests))


def make_case(case: str) -> None:
    """Build one case and store what `measure` reads of it."""
    cpu, name = CASES[case]
    target = resolve_target(cpu=cpu, isa=None, board=None, toolchain=name, optimize="size")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        memory = write_build(work, target)
        subprocess.run([Path(ninja.BIN_DIR) / "ninja", "-j1", "--quiet"], cwd=work, check=True)
        out = HERE / case
        out.mkdir(exist_ok=True)
        stack_usage = {
            str(p.relative_to(work).with_suffix(".o")): p.read_text()
            for p in sorted(work.glob("obj/**/*.su"))
        }
        store(out / "firmware.elf.gz", (work / "firmware.elf").read_bytes())
        store(out / "firmware.map.gz", (work / "firmware.map").read_bytes())
        facts: dict[str, object] = {"memory": memory, "stack_usage": stack_usage}
        if target.board is not None:
            facts["used_bytes"] = linker_memory_usage(work, name)
            facts["deepest_stack_bytes"] = deepest_stack(work, target.board)
        text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
        store(out / "facts.json.gz", text.encode())


def write_build(work: Path, target: Target) -> dict[str, object]:
    """Write sources and build.ninja; returns the memory plan as JSON values."""
    data = {m: (CORPUS / c / "model.pte").read_bytes() for m, c in MODELS.items()}
    programs = {m: read_program(d, file=m) for m, d in data.items()}
    yaml = ROOT / "kernels/portable/functions.yaml"
    library = LibraryText(name="portable", file=str(yaml), text=yaml.read_text())
    catalog = read_catalog([library])
    selection = aggregate(extract(p, model=m) for m, p in programs.items())
    resolution = resolve(selection, catalog, every_dtype=False, span_of=lambda _: None)
    memory = plan_memory(
        programs, pointer_bytes=target.cpu.pointer_bytes, board=target.board, spans={}
    )
    generated = generate(
        profile=PROFILE,
        generator="make_data",
        programs=programs,
        resolution=resolution,
        kernels=tuple(k for _, kernels in catalog.libraries for k in kernels),
        memory=memory,
        target=target,
    )
    for file in generated:
        path = work / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
    (work / "models").mkdir()
    for model, program in data.items():
        (work / f"models/{model}.pte").write_bytes(program)
    (work / "src").symlink_to(ROOT)
    toolchain = with_builtins(find_toolchain(target), target)
    builtins_link(work, toolchain)
    plan = plan_compile(
        profile=PROFILE,
        target=target,
        toolchain=toolchain,
        resolution=resolution,
        runtime_sources=runtime_sources(target),
        models=tuple(programs),
    )
    (work / "build.ninja").write_text(plan.ninja)
    (work / TOOLCHAIN_FILE).write_text(toolchain_text(toolchain))
    return asdict(memory)


def runtime_sources(target: Target) -> tuple[str, ...]:
    """Files under runtime/ that the target compiles."""
    folders = ["src", *(f"platform/{name}" for name in target.platforms), "app"]
    folders += ["freestanding"] if target.freestanding else []
    runtime = ROOT / "runtime"
    paths = [p for f in folders for p in sorted((runtime / f).glob("*.cpp"))]
    return tuple(str(p.relative_to(runtime)) for p in paths)


def builtins_link(work: Path, toolchain: Toolchain) -> None:
    """Put zig's support functions where build.ninja expects them."""
    if toolchain.builtins:
        (work / "obj").mkdir()
        (work / "obj/compiler_rt.o").symlink_to(toolchain.builtins)


def linker_memory_usage(work: Path, toolchain: str) -> dict[str, int]:
    """Bytes used of each memory, as the linker counts them."""
    ninja_program = Path(ninja.BIN_DIR) / "ninja"
    commands = subprocess.check_output(
        [ninja_program, "-t", "commands", "firmware.elf"], cwd=work, text=True
    )
    flag = {"gnu": "-Wl,--print-memory-usage", "zig": "--print-memory-usage"}
    command = [*shlex.split(commands.splitlines()[-1]), flag[toolchain]]
    table = subprocess.check_output(command, cwd=work, text=True)
    rows = re.findall(r"^ *(\w+): +(\d+) (B|KB|GB) ", table, re.MULTILINE)
    units = {"B": 1, "KB": 1024, "GB": 1 << 30}
    return {region: int(count) * units[unit] for region, count, unit in rows}


def deepest_stack(work: Path, board: Board) -> int:
    """Bytes of stack in use at the deepest point of one run of each model."""
    calls = b"".join(request_call(i, CORPUS / case) for i, case in enumerate(MODELS.values()))
    (work / "request").write_bytes(struct.pack("<4sI", b"ORQ1", len(MODELS)) + calls)
    semihosting = "enable=on,target=native,arg=firmware,arg=request,arg=response"
    subprocess.run(
        [
            *board.emulator,
            *("-singlestep", "-d", "cpu,nochain", "-D", "registers.log"),
            *("-semihosting-config", semihosting, "-kernel", "firmware.elf"),
        ],
        cwd=work,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=300,
    )
    ram = next(r for r in board.regions if r.kind == "ram")
    top = ram.origin + board.stack_bytes
    log = (work / "registers.log").read_text()
    pointers = [int(x, 16) for x in re.findall(r"R13=([0-9a-f]{8})", log)]
    return top - min(p for p in pointers if ram.origin <= p <= top)


def request_call(index: int, case: Path) -> bytes:
    """One call of the runner protocol, with the inputs of a case."""
    paths = sorted(case.glob("in*.npy"))
    call = struct.pack("<III", index, 1, len(paths))
    for path in paths:
        array = np.load(path)
        call += struct.pack("<II", 1, array.ndim)
        call += struct.pack(f"<{array.ndim}i", *array.shape) + array.tobytes()
    return call


def store(path: Path, data: bytes) -> None:
    """Write compressed, the same bytes each time."""
    path.write_bytes(gzip.compress(data, 9, mtime=0))


if __name__ == "__main__":
    main()
