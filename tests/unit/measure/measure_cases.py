"""Linked programs and hand-made reports for the tests of the stage `measure`."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.measure import measure
from orchestrator.measure.size import (
    Contributor,
    ContributorKind,
    FirmwareStack,
    RegionUse,
    SizeReport,
    SizeSection,
    SizeSymbol,
    SizeTarget,
    SizeTotals,
    StackPart,
)
from orchestrator.memory.plan import Arena, MemoryPlan, MethodMemory, ModelMemory, Placement
from orchestrator.selection.resolution import Resolution
from orchestrator.targets.cores import Target, resolve_target

DATA = Path(__file__).parents[2] / "data" / "measure"
PROFILE = "demo"
BOARDS = ("m4-gnu", "m4-zig", "m55-gnu", "m55-zig")
HOSTS = ("host-gnu", "host-zig")
CASES = (*BOARDS, *HOSTS)
"""Made by make_data.py in DATA."""

_CPUS = {"m4": "cortex-m4", "m55": "cortex-m55", "host": "host"}
Kind = ContributorKind


@dataclass(frozen=True)
class Case:
    """A linked program, and what others measured of it."""

    target: Target
    elf: bytes
    map_text: str
    stack_usage: dict[str, str]
    memory: MemoryPlan
    facts: dict[str, Any]

    def measure(self, **changes: Any) -> SizeReport:
        arguments = {
            "profile": PROFILE,
            "target": self.target,
            "elf": self.elf,
            "map_text": self.map_text,
            "stack_usage": self.stack_usage,
            "memory": self.memory,
            "objects": {},
            "resolution": Resolution(),
        }
        return measure(**{**arguments, **changes})


@cache
def case(name: str) -> Case:
    cpu, _, toolchain = name.partition("-")
    folder = DATA / name
    facts = json.loads(_read(folder / "facts.json.gz"))
    return Case(
        target=resolve_target(
            cpu=_CPUS[cpu], isa=None, board=None, toolchain=toolchain, optimize="size"
        ),
        elf=_read(folder / "firmware.elf.gz"),
        map_text=_read(folder / "firmware.map.gz").decode(),
        stack_usage=facts["stack_usage"],
        memory=_plan(facts["memory"]),
        facts=facts,
    )


@cache
def report(name: str) -> SizeReport:
    return case(name).measure()


def _read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def _plan(document: dict[str, Any]) -> MemoryPlan:
    return MemoryPlan(
        models=tuple(
            ModelMemory(
                model=model["model"],
                program_bytes=model["program_bytes"],
                methods=tuple(
                    MethodMemory(
                        **{
                            **method,
                            "arenas": tuple(Arena(**a) for a in method["arenas"]),
                            "input_bytes": tuple(method["input_bytes"]),
                            "output_bytes": tuple(method["output_bytes"]),
                        }
                    )
                    for method in model["methods"]
                ),
            )
            for model in document["models"]
        ),
        placements=tuple(Placement(**p) for p in document["placements"]),
    )


def cost(kind: Kind, name: str, flash: int, ram: int) -> Contributor:
    return Contributor(kind=kind, name=name, flash_bytes=flash, ram_bytes=ram)


STACK = FirmwareStack(
    stack_bytes=700,
    reserve_bytes=1_024,
    parts=(
        StackPart(name="application and platform", stack_bytes=220),
        StackPart(name="loader", stack_bytes=480),
    ),
    unknown=("my_ops::fancy",),
)

SMALL = SizeReport(
    profile="doorbell",
    target=SizeTarget(
        cpu="cortex-m55", isa="mve", board="mps3-an547", toolchain="zig", optimize="size"
    ),
    totals=SizeTotals(
        flash_bytes=10_000,
        model_bytes=8_000,
        ram_bytes=2_000,
        arena_bytes=600,
        state_bytes=200,
        data_bytes=176,
        stack_bytes=1_024,
    ),
    regions=(
        RegionUse(name="itcm", kind="flash", size_bytes=524_288, used_bytes=10_000),
        RegionUse(name="dtcm", kind="ram", size_bytes=4_000, used_bytes=2_000),
    ),
    sections=(
        SizeSection(
            name=".text",
            address=0x10000000,
            size_bytes=9_840,
            region="itcm",
            load_region="",
            in_flash=True,
            in_ram=False,
        ),
        SizeSection(
            name=".data",
            address=0x30000000,
            size_bytes=160,
            region="dtcm",
            load_region="itcm",
            in_flash=True,
            in_ram=True,
        ),
    ),
    contributors=(
        cost(Kind.MODEL, "person", 7_000, 0),
        cost(Kind.MODEL, "wake", 1_000, 0),
        cost(Kind.KERNEL, "portable/op_add", 500, 0),
        cost(Kind.RUNTIME, "load_method", 900, 0),
        cost(Kind.RUNTIME, "executor", 430, 0),
        cost(Kind.PLATFORM, "cortex_m/semihosting", 160, 160),
        cost(Kind.ARENA, "person.forward arena 1", 0, 600),
        cost(Kind.METHOD_STATE, "person.forward", 0, 200),
        cost(Kind.STACK, "stack", 0, 1_024),
        cost(Kind.PADDING, "alignment", 10, 16),
    ),
    symbols=(
        SizeSymbol(
            name="orch::execute",
            symbol="_ZN4orch7executeERKNS_11MethodImageEj",
            aliases=("execute",),
            is_function=True,
            address=0x10000040,
            size_bytes=198,
            section=".text",
            object="runtime/src/executor.cpp",
            kind=Kind.RUNTIME,
            contributor="executor",
        ),
    ),
    stack=STACK,
)
"""Numbers of no real firmware, for texts."""
