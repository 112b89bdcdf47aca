"""Makes the linked programs in this folder: ELF, map, stack usage, memory plan.

Each case is one small firmware, built by the stages themselves: two models of the
corpus on every target and toolchain. Needs ninja, zig (the package ziglang) and GNU
compilers; run it from the top of the repository: `python -m
tests.data.measure.make_data [CASE...]`. It rewrites the cases and `digests.txt`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import ninja

from orchestrator.catalog.model import LibraryText
from orchestrator.catalog.read import read_catalog
from orchestrator.pte.reader import read_program
from orchestrator.shell.toolchain import find_toolchain, with_builtins
from orchestrator.stages.aggregate import aggregate
from orchestrator.stages.compile import plan_compile
from orchestrator.stages.extract import extract
from orchestrator.stages.generate import generate
from orchestrator.stages.memory import plan_memory
from orchestrator.stages.resolve import resolve
from orchestrator.targets import Target, resolve_target

if TYPE_CHECKING:
    from orchestrator.core.toolchain import Toolchain

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
        f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(HERE)}\n"
        for p in files
    )
    (HERE / "digests.txt").write_text("".join(digests))


def make_case(case: str) -> None:
    """Build one case and store what `measure` reads of it."""
    cpu, name = CASES[case]
    target = resolve_target(
        cpu=cpu, isa=None, board=None, toolchain=name, optimize="size"
    )
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        memory = write_build(work, target)
        subprocess.run(  # noqa: S603  # our own build
            [Path(ninja.BIN_DIR) / "ninja", "-j1", "--quiet"], cwd=work, check=True
        )
        out = HERE / case
        out.mkdir(exist_ok=True)
        stack_usage = {
            str(p.relative_to(work).with_suffix(".o")): p.read_text()
            for p in sorted(work.glob("obj/**/*.su"))
        }
        store(out / "firmware.elf.gz", (work / "firmware.elf").read_bytes())
        store(out / "firmware.map.gz", (work / "firmware.map").read_bytes())
        facts = {"memory": memory, "stack_usage": stack_usage}
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
    resolution = resolve(
        selection, catalog, every_dtype=False, span_of=lambda _: None
    )
    memory = plan_memory(
        programs,
        pointer_bytes=target.cpu.pointer_bytes,
        board=target.board,
        spans={},
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
    return asdict(memory)


def runtime_sources(target: Target) -> tuple[str, ...]:
    """Files under runtime/ that the target compiles."""
    folders = ["src", f"platform/{target.platform}", "app"]
    folders += ["freestanding"] if target.freestanding else []
    runtime = ROOT / "runtime"
    paths = [p for f in folders for p in sorted((runtime / f).glob("*.cpp"))]
    return tuple(str(p.relative_to(runtime)) for p in paths)


def builtins_link(work: Path, toolchain: Toolchain) -> None:
    """Put zig's support functions where build.ninja expects them."""
    if toolchain.builtins:
        (work / "obj").mkdir()
        (work / "obj/compiler_rt.o").symlink_to(toolchain.builtins)


def store(path: Path, data: bytes) -> None:
    """Write compressed, the same bytes each time."""
    path.write_bytes(gzip.compress(data, 9, mtime=0))


if __name__ == "__main__":
    main()
