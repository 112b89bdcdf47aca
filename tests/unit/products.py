"""Everything stages make of corpus programs, without a compiler."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.memory.product import plan_memory
from orchestrator.program.external import read_flat_tensors, with_data
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolve import resolve
from orchestrator.shell import sources
from orchestrator.targets.cores import Target, Toolchain, resolve_target
from tests.conftest import CASES, CORPUS, model_bytes

if TYPE_CHECKING:
    from orchestrator.memory.plan import MemoryPlan
    from orchestrator.program.program import Program
    from orchestrator.selection.resolution import Resolution

DATA = {"external_constants": "_default_external_constant.ptd"}
"""Cases that leave constants outside of the program: where these are."""
SUPPORTED = CASES


@cache
def program_of(case: str) -> Program:
    """The program of a case."""
    program = read_program(model_bytes(case), file=case)
    if case not in DATA:
        return program
    found = read_flat_tensors((CORPUS / case / DATA[case]).read_bytes(), file=case)
    return with_data(program, {DATA[case]: found}, model=case, where=None)


def target_of(cpu: str, toolchain: str, optimize: str = "size") -> Target:
    """A target with the core's defaults."""
    return resolve_target(cpu=cpu, isa=None, board=None, toolchain=toolchain, optimize=optimize)


def memory_of(programs: dict[str, Program], target: Target) -> MemoryPlan:
    """The memory plan of a product with these models."""
    return plan_memory(
        programs, pointer_bytes=target.cpu.pointer_bytes, board=target.board, spans={}
    )


@cache
def catalog() -> Catalog:
    """Kernels of the library `portable`."""
    return read_catalog(
        [
            LibraryText(
                name="portable",
                file="kernels/portable/functions.yaml",
                text=sources.library_file("portable").read_text(encoding="utf-8"),
            )
        ]
    )


@cache
def resolution_of(*cases: str) -> Resolution:
    """Kernels of a product with the programs of these cases."""
    infos = [extract(program_of(case), model=case) for case in cases]
    return resolve(aggregate(infos, []), catalog(), every_dtype=False, span_of=lambda _: None)


GNU = Toolchain(
    name="gnu",
    version="gcc 12.2.0",
    compiler=("/usr/bin/g++",),
    archiver=("/usr/bin/ar",),
    linker=("/usr/bin/g++",),
    programs=(("ar", "a" * 64), ("compiler", "c" * 64)),
)
ZIG = Toolchain(
    name="zig",
    version="ziglang 0.17.0 (clang 22.1.8)",
    compiler=("/opt/zig", "clang"),
    archiver=("/opt/zig", "ar"),
    linker=("/opt/zig", "ld.lld"),
    programs=(("zig", "b" * 64),),
    builtins="/cache/compiler_rt.o",
)
