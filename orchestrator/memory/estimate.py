"""What a firmware takes besides planned memory, at most, before anything is compiled.

`code_sizes.json` has the flash of every kernel function with what it calls, for some
cores and toolchains (`python -m benchmarks.code_sizes` measures it). Sections that
several functions need count once, as for a linker; tables follow from the methods.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.core.bounds import SizeBound, bounds_of
from orchestrator.core.dtype import ScalarType
from orchestrator.memory.plan import FirmwareNeeds, MemoryPlan
from orchestrator.method.compact import TableLayout, instruction_bytes, table_layout
from orchestrator.method.effects import MethodEffects
from orchestrator.method.lifetimes import Lifetime, lifetimes, live_bytes
from orchestrator.method.linked import LinkedCall, LinkedMethod, Numbers
from orchestrator.method.steps import step_table
from orchestrator.program.program import Program
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Resolution
    from orchestrator.targets.cores import Board, Target

CODE_SIZES: Final = Path(__file__).parent / "code_sizes.json"
_OPTIMIZE: Final = {"size": 1.0, "speed": 2.2, "debug": 1.6}
"""Most that code grows by: of the corpus, with zig for a Cortex-M4."""
# Chosen by hand; docs/memory.md tells users of it.
_UNKNOWN_BYTES: Final = 2048
"""For a kernel or delegate of the user's, whose size nobody has measured."""
# tests/integration/test_estimates.py holds it for profiles and programs of the corpus.
_SLACK: Final = (4096, 1.25)
"""An estimate is above the truth by no more: tests hold it."""
_METHOD_WORDS: Final = {False: 18, True: 4}
"""Pointers and counts of a `ModelMethod`, by whether tables are compact."""
_PRELINKED_WORDS: Final = 16
"""Those of a `PrelinkedMethod`, and of its steps."""
_LOADED_WORDS: Final = 11
"""Words of RAM of a method that is not compact: `LoadedMethod`."""
_ORDER_WORD: Final = 4
"""Dimensions of a dim order in a word."""
_STEP_BYTES: Final = 256
"""RAM for the largest call of a method by rows: 28 words of header, and the struct."""
_RUNNER_BYTES: Final = 256
"""Variables of the runner and the platform."""
_HOST_BYTES: Final = 1024
"""Variables of host programs: GCC's dynamic linker adds its own."""


def firmware_needs(
    programs: Mapping[str, Program],
    linked: Mapping[str, Sequence[LinkedMethod]],
    resolution: Resolution,
    target: Target,
    *,
    parts: Collection[str] = (),
) -> FirmwareNeeds:
    """What a product's firmware takes for its code and tables.

    Args:
        programs: By model name.
        linked: By name of a prelinked model: its methods.
        resolution: Of the kernels that the firmware links.
        target: What is built for.
        parts: Of the runtime that the profile asks for: `integrity`, `update`.
    """
    layout = table_layout(programs, linked)
    methods = [m for of_model in linked.values() for m in of_model]
    functions = {i.function for m in methods for i in m.instructions if isinstance(i, LinkedCall)}
    loads = any(name not in linked for name in programs)
    parts = {"base", *parts} | ({"prelinked"} if methods else set())
    # The loader finds kernels by name, so it keeps all that the product was resolved for.
    if loads or not programs:
        parts |= {"loaded"}
        functions |= {entry.function for entry in resolution.table_entries}
    if resolution.delegates:
        parts |= {"load_delegates"}
    size, least, unknown = _code_bytes(resolution, functions, parts, target)
    is_bare = bool(target.cpu.default_board)
    least *= is_bare  # nothing is sure of the development machine: no column is its own
    pointer = target.cpu.pointer_bytes
    count = sum(len(p.methods) for p in programs.values())
    tables = sum(_method_bytes(m, layout, pointer) for m in methods)
    tables += count * pointer * _METHOD_WORDS[layout.compact] + sum(
        4 * pointer * (len(m.arena_bytes) + len(m.delegates)) + len(m.name) + len(name)
        for name, program in programs.items()
        for m in program.methods
        if not layout.compact
    )
    texts = {
        text
        for e in resolution.table_entries
        for text in (str(e.operator), e.signature, str(e.key or ""))
    }
    if loads:
        # `Kernel` of runtime/include/orch/kernel.h has four pointers and 32 bits of dtypes: one
        # word less, as an estimate must not be too low.
        tables += 6 * pointer * len(resolution.table_entries)
        tables += sum(len(text) + 1 for text in texts)
    loaded = pointer if layout.compact else _LOADED_WORDS * pointer
    code = ceil(size * _OPTIMIZE[target.optimize])
    above, times = _SLACK
    return FirmwareNeeds(
        code_bytes=code,
        table_bytes=tables,
        variable_bytes=(_RUNNER_BYTES if is_bare else _HOST_BYTES)
        + count * loaded
        + sum(_STEP_BYTES for m in methods if m.by_rows),
        smallest_code_bytes=size,
        # The estimate is at most so much too large, so this much is certain.
        sure_code_bytes=max(0, int((least + tables - above) / times) - tables),
        is_guess=bool(unknown),
    )


def estimated_costs(
    memory: MemoryPlan, board: Board | None, *, least: bool = False
) -> Mapping[str, Mapping[str, int]]:
    """Bytes of `flash` and `ram`, by what takes them, that are known before a build.

    They are the most that the firmware needs; the least, of which one is sure, if
    `least`. What counts is what reports of a firmware count.
    """
    needs = memory.needs or FirmwareNeeds()
    code = needs.sure_code_bytes if least else needs.code_bytes
    return {
        "flash": {
            "models": sum(m.program_bytes for m in memory.models),
            "code and tables": code + needs.table_bytes,
        },
        "ram": {
            "arenas": memory.arena_bytes,
            "method states": memory.state_bytes,
            "memory of the application": memory.caller_bytes,
            "stack": board.stack_bytes if board else 0,
            "variables": 0 if least else needs.variable_bytes,
            "code": code if board and board.copies_code else 0,
        },
    }


@cache
def _columns() -> Any:  # noqa: ANN401  # JSON
    return json.loads(CODE_SIZES.read_text(encoding="utf-8"))


def column_of(target: Target) -> tuple[str, float]:
    """The nearest column of the table, and how much larger code for a target is."""
    cpu = target.cpu
    if not cpu.is_arm:
        core, times = "rv32imac", 1.0 if cpu.pointer_bytes == 4 else 1.3  # noqa: PLR2004
    elif target.isa.name == "mve":
        core, times = "cortex-m55", 1.0
    elif cpu.has_unaligned:
        core, times = "cortex-m4", 1.0 if cpu.float_abi == "hard" else 1.3
    else:
        core, times = "cortex-m0plus", 1.0
    exact = f"{core} {target.toolchain}"
    # RISC-V and hosts have been measured with Zig alone.
    return (exact, times) if exact in _columns() else (f"{core} zig", times)


def _code_bytes(
    resolution: Resolution, functions: Collection[str], parts: Iterable[str], target: Target
) -> tuple[int, int, int]:
    """Code with `optimize = "size"`: with all that functions call; of first dtypes.

    And how many functions and delegates are unknown.
    """
    chosen = {name: set[int]() for name in (*parts, *functions)}
    for operator in resolution.operators:
        for binding in operator.bindings:
            if binding.kernel.function in chosen:
                more = binding.dtypes - binding.kernel.closure
                chosen[binding.kernel.function] |= more
    column, times = column_of(target)
    table = _columns()[column]
    known = len(table["functions"])
    together = table.get("together", known)
    weights: dict[int, tuple[float, float, float]] = {}
    unknown = len(chosen) + len(resolution.delegates)
    for number, (name, first, second, others, power) in enumerate(table["functions"]):
        if name in chosen:
            unknown -= 1
            new = chosen[name] - {*first}
            count = max(len(chosen[name]) - len(first), bool(new))
            # Its code is larger than that of most: it counts beside the second one.
            count += ScalarType.Double in new.difference(second)
            weights[number] = 1, 0, 0
            if count:
                share = _share(count, others, power)
                weights[number] = weights[number + known] = 0, 1 - share, share
                weights[number + 2 * known] = 0, 0, share
    total = least = 0.0
    for one, two, every, *users in table["groups"]:
        found = [user for user in users if user in weights]
        if found:
            # A section that several functions need is there once, in the largest form that one of
            # them needs.
            total += max(
                a * one + b * two + c * every for a, b, c in (weights[user] for user in found)
            )
            least += one if found[0] < together else 0
    code = ceil(total * times) + unknown * _UNKNOWN_BYTES
    return code, int(least * times), unknown


def _share(count: int, others: int, power: float) -> float:
    """How much of what all dtypes take beyond two of them a kernel needs.

    Measured for each kernel: code grows with the number of other dtypes, or with up to
    its square where there is code for pairs of them.
    """
    if count >= others:
        return float(others > 1)
    return float((count**power - 1) / (others**power - 1))


def _method_bytes(method: LinkedMethod, layout: TableLayout, pointer: int) -> int:
    """Flash of the tables of a prelinked method."""
    tables: dict[object, int] = {}
    for value in method.values[: method.slots]:
        if isinstance(value, TensorValue):
            words = len(value.sizes) + -(-len(value.sizes) // _ORDER_WORD)
            tables[value.sizes, value.dim_order] = 4 * words
        else:
            items = getattr(value, "items", getattr(value, "value", ()))
            text = isinstance(items, str | tuple)
            tables[type(value), items] = 8 * len(items) if text else 0
    for kind in (method.inputs, method.outputs):
        tables[kind] = layout.index_bytes * len(kind)
    calls = [i for i in method.instructions if isinstance(i, LinkedCall)]
    # Pointers of a slot are those of `LinkedMethod.state_bytes`.
    words = _PRELINKED_WORDS + (3 if layout.compact else 4) * method.slots
    size = 4 * method.dynamic_words + pointer * words
    if method.by_rows:
        steps = step_table(method)
        size += sum(map(len, steps.steps))
        for template in steps.templates:
            halves = 2 * len(template.addresses) + len(template.words)
            # `StepTemplate` of runtime/include/orch/steps.h: three pointers and six bytes, with
            # padding.
            size += 5 * pointer + 2 * halves + 4 * len(template.shapes)
        calls = [calls[t.instruction] for t in steps.templates]
    else:
        size += len(method.instructions) * instruction_bytes(pointer, layout=layout)
    for call in calls:
        if call.prepared is None:
            tables[call.args] = layout.index_bytes * len(call.args)
            continue
        size += pointer * (2 + len(call.prepared.memory))
        size += _number_bytes(call.prepared.numbers)
        if call.prepared.shape is not None:
            shape = call.prepared.shape.numbers
            tables[shape] = _number_bytes(shape)
    # An `InitialBytes` of runtime/include/orch/model.h for each state, and two for values and
    # sizes.
    initial = 3 * pointer * (2 + len(method.data)) * layout.initial_bytes
    return size + initial + sum(-(-n // pointer) * pointer for n in tables.values())


def _number_bytes(numbers: tuple[tuple[str, Numbers], ...]) -> int:
    return sum(_number_bytes(item) if isinstance(item, tuple) else 4 for _, item in numbers)


# What dynamic sizes cost: arenas are planned for the largest.


def dynamic_costs(effects: MethodEffects, bounds: tuple[SizeBound, ...]) -> Iterator[str]:
    """What a method would need with the least sizes of its inputs.

    Programs do not say which dimensions change. One that may, such as a batch, is a
    factor of all tensors of dynamic sizes, and these are taken to shrink with it. One
    that shrinks faster, such as scores of attention, makes the figure too large.

    Args:
        effects: Of the method, its memory planned.
        bounds: Least sizes of its inputs, where the export knew them; others are 1.
    """
    planned = {
        i: value
        for i, value in enumerate(effects.values)
        if isinstance(value, TensorValue) and value.allocation
    }
    dynamic = {i: value for i, value in planned.items() if value.is_dynamic}
    arenas = {v.allocation.memory_id for v in planned.values() if v.allocation}
    lives = [lifetimes(effects, arena) for arena in sorted(arenas)]
    for number, index in enumerate(effects.inputs):
        for dim, most in enumerate(dynamic[index].sizes if index in dynamic else ()):
            known = (b.least for b in bounds_of(bounds, number) if b.dim == dim)
            least = next(known, 1)
            # A dimension that does not divide every dynamic tensor is no factor of all.
            if most <= least or any(v.numel % most for v in dynamic.values()):
                continue
            shrunk = [
                [
                    replace(v, end=v.begin + (v.end - v.begin) * least // most)
                    if v.index in dynamic
                    else v
                    for v in arena
                ]
                for arena in lives
            ]
            yield (
                f"input {number}: if dimension {dim} is dynamic, up to {most} there"
                f" costs {_peak(lives) - _peak(shrunk):,} bytes: with {least},"
                f" {_peak(shrunk):,} are live"
            )


def _peak(arenas: Sequence[Sequence[Lifetime]]) -> int:
    return sum(max((n for _, n in live_bytes(arena)), default=0) for arena in arenas)
