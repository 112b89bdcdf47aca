"""Memory a product needs, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.document import picked
from orchestrator.planner.blocks import aligned
from orchestrator.targets.boards import ARENA_ALIGNMENT

if TYPE_CHECKING:
    from orchestrator.core.lazy_bytes import Bytes
    from orchestrator.method.linked import LinkedMethod
    from orchestrator.program.program import Program
    from orchestrator.scratch.needs import ScratchNeed


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonPlace:
    """Where an arena lies in a block that several methods use, one at a time.

    Args:
        name: Of the block.
        offset_bytes: Of the arena in it.
    """

    name: str
    offset_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonArena:
    """A block in which arenas of several methods overlap.

    Args:
        name: `common`, or with the memory of the board it has to lie in.
        size_bytes: Of the largest that any method has there.
        region: That memory; None leaves it to the build.
    """

    name: str
    size_bytes: int
    region: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """One static block that planned tensors of a method lie in.

    Args:
        memory_id: By which tensors name it.
        size_bytes: Of the block.
        peak_live_bytes: Most bytes that are in use at once.
        shared: Methods that have this block in common, in the program's order; empty
            for a method's own. It counts as the first one's.
        file_bytes: Size in the program, where the arena was planned again.
        planner: What found the offsets then.
        common: Where it lies in a block that methods have in common, if it does.
    """

    memory_id: int
    size_bytes: int
    peak_live_bytes: int
    shared: tuple[str, ...] = ()
    file_bytes: int | None = None
    planner: str = "file"
    common: CommonPlace | None = None

    def owner(self, method: str) -> str:
        """The method whose block it is: that one, or the first of those that share."""
        return self.shared[0] if self.shared else method

    @property
    def gap_percent(self) -> float:
        """How far the arena is above the peak of live bytes, its lower bound."""
        if self.peak_live_bytes == 0:
            return 0.0
        return 100.0 * (self.size_bytes - self.peak_live_bytes) / self.peak_live_bytes

    @property
    def text(self) -> str:
        """`arena 1: 16,000 -> 12,800 bytes, gap 0.0 %`; one size if it stayed."""
        before = self.file_bytes
        change = f"{before:,} -> " if before not in (None, self.size_bytes) else ""
        return (
            f"arena {self.memory_id}: {change}{self.size_bytes:,} bytes,"
            f" gap {self.gap_percent:.1f} %"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateState:
    """What a part of a method keeps for its delegate, inside the method state."""

    backend: str
    state_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodMemory:
    """What one method of one model needs in RAM, apart from the stack.

    Args:
        arenas: Planned arenas in order of their memory id; empty ones included.
        state_bytes: Static block for values and instructions; exact.
        input_bytes: Per input, upper bound.
        output_bytes: Per output, upper bound.
        temporary_bytes: What kernels take while they run. None takes any: their
            interface has nothing to take memory from, scratch tensors are planned.
        delegates: Of the parts that delegates of the product run, in the program's
            order; `state_bytes` counts them, with their handles.
        caller_bytes: Inputs and outputs that are not planned, each at a multiple of 16:
            they lie in memory of the caller.
        scratch: Of its calls, in the program's order; they lie in its arenas.
    """

    model: str
    method: str
    arenas: tuple[Arena, ...]
    state_bytes: int
    input_bytes: tuple[int, ...]
    output_bytes: tuple[int, ...]
    temporary_bytes: int = 0
    delegates: tuple[DelegateState, ...] = ()
    caller_bytes: int = 0
    scratch: tuple[ScratchNeed, ...] = ()

    @property
    def own_arenas(self) -> tuple[Arena, ...]:
        """Those that are counted with this method: each shared one is with one."""
        return tuple(
            a for a in self.arenas if a.owner(self.method) == self.method and a.common is None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMemory:
    """One model: its program in flash and its methods."""

    model: str
    program_bytes: int
    methods: tuple[MethodMemory, ...]


MODEL_SECTIONS = ".rodata.orch_model_"
"""What linker sections of programs and constants begin with."""
ARENA_SECTIONS = ".bss.orch_arena"
"""What linker sections of arenas begin with."""


def model_section(model: str) -> str:
    """Linker section of a model's program."""
    return f"{MODEL_SECTIONS}{model}"


def identifier(name: str) -> str:
    """A profile, model or method name as part of a C identifier."""
    return "".join(c if c.isalnum() else "_" for c in name)


def method_symbol(profile: str, model: str, method: str) -> str:
    """What the names of a method's functions and variables begin with."""
    return f"{identifier(profile)}_{model}_{identifier(method)}"


def arena_section(model: str, method: str, memory_id: int) -> str:
    """Linker section of an arena."""
    return f"{ARENA_SECTIONS}_{model}_{method}_{memory_id}"


def common_section(name: str) -> str:
    """Linker section of a block that methods have in common."""
    return f"{ARENA_SECTIONS}s_{name}"


def common_symbol(name: str) -> str:
    """Name of its variable."""
    return f"{name}_arena"


CALLER_SECTION = ".bss.orch_caller_memory"
"""Linker section of the memory that the application of `run` has for inputs and outputs
that are not planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which memory of the board a block lies in.

    Args:
        section: Linker section, `.rodata.orch_model_kws`.
        region: Name of the board's region.
        size_bytes: Of the block.
    """

    section: str
    region: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareNeeds:
    """What a firmware takes besides planned memory, at most.

    Args:
        code_bytes: Functions, and the constants that they read.
        table_bytes: Constant tables of methods and kernels.
        variable_bytes: RAM besides stack, arenas and method states.
        smallest_code_bytes: Code with `optimize = "size"`.
        sure_code_bytes: No less code: what does not fit with it does not fit at all.
        is_guess: Whether it has kernels or delegates of unknown size.
    """

    code_bytes: int = 0
    table_bytes: int = 0
    variable_bytes: int = 0
    smallest_code_bytes: int = 0
    sure_code_bytes: int = 0
    is_guess: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Every byte of RAM the product needs apart from the stack, and its program flash.

    `placements` is empty for hosts, which have no memory map. `alignment` is that of
    arenas. `needs` is the estimate that the placements left room for, if there was one,
    and `tight` names memories that it may exceed: (name, most bytes).
    """

    models: tuple[ModelMemory, ...]
    placements: tuple[Placement, ...] = ()
    common: tuple[CommonArena, ...] = ()
    alignment: int = ARENA_ALIGNMENT
    needs: FirmwareNeeds | None = None
    tight: tuple[tuple[str, int], ...] = ()

    @property
    def arena_bytes(self) -> int:
        """All arenas together; what methods share or have in common counts once."""
        own = sum(a.size_bytes for m in self.models for x in m.methods for a in x.own_arenas)
        return own + sum(c.size_bytes for c in self.common)

    def placed_bytes(self, region: str) -> int:
        """Programs and arenas in a memory of the board."""
        return sum(aligned(p.size_bytes) for p in self.placements if p.region == region)

    @property
    def caller_bytes(self) -> int:
        """What the application of `run` needs to be the caller of any method."""
        return max((x.caller_bytes for m in self.models for x in m.methods), default=0)

    @property
    def caller_model(self) -> str:
        """The model that this is for; "" if there is none."""
        needs = self.caller_bytes
        methods = (x for m in self.models for x in m.methods)
        return next((x.model for x in methods if x.caller_bytes == needs > 0), "")

    @property
    def state_bytes(self) -> int:
        """Method state of all methods together."""
        return sum(x.state_bytes for m in self.models for x in m.methods)


# `memory_plan.json`: the memory plan for people and tools.


def memory_plan_json(plan: MemoryPlan) -> str:
    """Canonical JSON text, ending in a newline. All sizes are bytes."""
    document = {
        "schema": 1,
        **picked(plan, "arena_bytes", "state_bytes"),
        "models": [
            {
                **picked(model, "model", "program_bytes"),
                "methods": [_method(method) for method in model.methods],
            }
            for model in plan.models
        ],
        **_unless_empty(common_arenas=[picked(c, "name", "size_bytes") for c in plan.common]),
        **picked(plan, "placements"),
    }
    return json.dumps(document, indent=2) + "\n"


def _unless_empty(**values: object) -> dict[str, object]:
    """Keys that most products do not need appear only in those that do."""
    return {key: value for key, value in values.items() if value}


def _method(method: MethodMemory) -> dict[str, object]:
    sizes = ("temporary_bytes", "input_bytes", "output_bytes")
    scratch = [_scratch(need) for need in method.scratch]
    return {
        **picked(method, "method", "state_bytes", "delegates", *sizes),
        **_unless_empty(caller_bytes=method.caller_bytes, scratch=scratch),
        "arenas": [_arena(arena) for arena in method.arenas],
    }


def _scratch(need: ScratchNeed) -> dict[str, object]:
    return {
        **picked(need, "instruction", "operator", "library", "argument"),
        "file_bytes": need.reserved_bytes,
        "size_bytes": need.size_bytes,
    }


def _arena(arena: Arena) -> dict[str, object]:
    facts: dict[str, object] = {
        **picked(arena, "memory_id", "size_bytes"),
        "lower_bound_bytes": arena.peak_live_bytes,
        "gap_percent": round(arena.gap_percent, 2),
        **_unless_empty(shared=arena.shared),
    }
    if arena.file_bytes is not None:
        facts |= picked(arena, "file_bytes", "planner")
    if arena.common is not None:
        facts |= {"common": arena.common.name, "offset_bytes": arena.common.offset_bytes}
    return facts


# What of models is in flash once, though several of them have it.


def constants_of(methods: Iterable[LinkedMethod]) -> tuple[Bytes, ...]:
    """Distinct constants of a model's methods, in order of first use."""
    return tuple(dict.fromkeys(d for m in methods for d in m.constants))


def own_constants(linked: Mapping[str, Iterable[LinkedMethod]]) -> dict[str, tuple[Bytes, ...]]:
    """By model: its constants that no model before it has."""
    seen: dict[Bytes, None] = {}
    found = {}
    for name, methods in linked.items():
        found[name] = tuple(d for d in constants_of(methods) if d not in seen)
        seen |= dict.fromkeys(found[name])
    return found


def same_programs(programs: Mapping[str, Program], linked: Collection[str]) -> dict[str, str]:
    """By loaded model: the first one with the same program and the same constants.

    Args:
        programs: By model name.
        linked: Names of prelinked models, which have none in flash.
    """
    first: dict[tuple[Bytes, ...], str] = {}
    return {
        name: first.setdefault((p.data, *(e.data for e in p.external)), name)
        for name, p in programs.items()
        if name not in linked
    }


# Memory in a lock: the plan, and the scratch memory that it was made for.


def memory_facts(
    plan: MemoryPlan, *, isa: str, library: Callable[[str], str]
) -> tuple[tuple[str, str], ...]:
    """Pairs of a name and a text, sorted.

    Args:
        plan: Of the product.
        isa: For which the scratch sizes were computed.
        library: Identity of a kernel library: its version, or a digest.
    """
    found = {}
    libraries = set()
    for model in plan.models:
        for method in model.methods:
            place = f"{model.model} {method.method}"
            for arena in method.own_arenas:
                planned = arena.file_bytes is not None
                file = f", file {arena.file_bytes}" if planned else ""
                found[f"{place} arena {arena.memory_id}"] = (
                    f"{arena.size_bytes} bytes, lower bound {arena.peak_live_bytes},"
                    f" gap {arena.gap_percent:.2f} %{file}"
                )
            for need in method.scratch:
                libraries.add(need.library)
                found[f"{place} {need.instruction:04} {need.argument}"] = (
                    f"{need.operator} {need.size_bytes} bytes"
                )
    if libraries:
        found["scratch isa"] = isa
    for name in libraries:
        found[f"scratch library {name}"] = library(name)
    return tuple(sorted(found.items()))
