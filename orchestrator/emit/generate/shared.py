"""Arenas of methods; methods that share state share it, and are loaded together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from orchestrator.emit.generate.ports import memory_of
from orchestrator.memory.plan import (
    Arena,
    MemoryPlan,
    MethodMemory,
    arena_section,
    common_section,
    common_symbol,
    identifier,
)
from orchestrator.targets.boards import ARENA_ALIGNMENT

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod


def sharing(methods: Sequence[ApiMethod], memory: MemoryPlan) -> list[list[ApiMethod]]:
    """Groups of methods that share state, by model."""
    return [
        found
        for _, group in groupby(methods, attrgetter("model"))
        if (found := [m for m in group if any(a.shared for a in memory_of(memory, m).arenas)])
    ]


def shared_arena(method: ApiMethod, arena: Arena) -> str:
    """An alias of the first method's arena, in which passes may leave it nothing."""
    own = method.base.removesuffix(identifier(method.method.name))
    first = own + identifier(arena.shared[0])
    return (
        f"[[maybe_unused]] constexpr uint8_t* {method.base}_arena{arena.memory_id} ="
        f" {first}_arena{arena.memory_id};"
    )


def start_function(method: ApiMethod) -> str:
    """Name of the function that prepares all methods of its model."""
    return f"start_model_{method.model}"


def start_declarations(methods: Sequence[ApiMethod], memory: MemoryPlan) -> Iterator[str]:
    """Declarations of start functions, for models whose methods share state."""
    for group in sharing(methods, memory):
        yield f"Error {start_function(group[0])}(const ModelMethod& method);"


def start_definitions(
    methods: Sequence[ApiMethod],
    memory: MemoryPlan,
    linked: Collection[str],
    *,
    checks: bool = False,
) -> Iterator[str]:
    """Definitions of start functions, after the methods.

    `checks`: they first check that flash holds what was linked.
    """
    for group in sharing(methods, memory):
        first = group[0]
        names = ", ".join(f"&{method.base}_method" for method in group)
        load = "start_prelinked" if first.model in linked else "load_linked"
        table = f"{start_function(first)}_methods"
        # A loaded program is the same for all of these methods.
        checked = group if first.model in linked else group[:1]
        check = "".join(f"  ORCH_TRY({m.base}_intact());\n" for m in checked)
        yield (
            f"constexpr const ModelMethod* {table}[] = {{{names}}};\n\n"
            f"Error {start_function(first)}(const ModelMethod& method) {{\n"
            f"{check if checks else ''}"
            f"  return start_together(method, {table}, {load});\n"
            "}"
        )


def reset_functions(
    methods: Sequence[ApiMethod], memory: MemoryPlan, linked: Collection[str]
) -> Iterator[str]:
    """Functions that reset prelinked methods to the state before the first call.

    Blocks in which methods overlap hold no state; all others are zeroed, as they
    were at start, before initial state is copied.
    """
    groups = {m.base: group for group in sharing(methods, memory) for m in group}
    for method in methods:
        if method.model not in linked:
            continue
        lines = [f"orch_status {method.base}_reset() {{"]
        for each in groups.get(method.base, [method]):
            lines.append(f"  orch::unload(orch::{each.base}_method);")
            lines += [
                f"  memset(orch::{each.base}_arena{arena.memory_id}, 0, {arena.size_bytes});"
                for arena in memory_of(memory, each).own_arenas
                if arena.size_bytes
            ]
        lines.append(f"  return status(orch::prepare(orch::{method.base}_method));")
        yield "\n".join([*lines, "}"])


def alignas(alignment: int) -> str:
    """The alignment of an arena in C++."""
    return f"alignas({alignment})" if alignment != ARENA_ALIGNMENT else "alignas(kArenaAlignment)"


def arena_blocks(method: ApiMethod, memory: MethodMemory, alignment: int) -> list[str]:
    """The arenas of a method; only one method defines a shared one."""
    lines = []
    for arena in memory.arenas:
        section = arena_section(method.model, method.method.name, arena.memory_id)
        if arena.common:
            block = common_symbol(arena.common.name)
            lines.append(
                "[[maybe_unused]] constexpr uint8_t*"
                f" {method.base}_arena{arena.memory_id} ="
                f" {block} + {arena.common.offset_bytes};"
            )
        elif arena.shared and arena.shared[0] != method.method.name:
            lines.append(shared_arena(method, arena))
        elif arena.size_bytes:
            lines.append(
                f"{alignas(alignment)}\n"
                f'__attribute__((section("{section}")))\n'
                f"uint8_t {method.base}_arena{arena.memory_id}"
                f"[{arena.size_bytes}];"
            )
            constant = f"{method.base.upper()}_ARENA{arena.memory_id}_BYTES"
            lines.append(
                f"static_assert(sizeof {method.base}_arena{arena.memory_id}\n"
                f"                  == {constant},\n"
                '              "the header has the size of the arena");'
            )
    return lines


def common_blocks(profile: str, memory: MemoryPlan) -> str:
    """The blocks in which arenas of methods overlap, with asserts on their sizes."""
    return "".join(
        f"{alignas(memory.alignment)}\n"
        f'__attribute__((section("{common_section(common.name)}")))\n'
        f"uint8_t {common_symbol(common.name)}[{common.size_bytes}];\n"
        f"static_assert(sizeof {common_symbol(common.name)}\n"
        f"                  == {common_constant(profile, common.name)},\n"
        '              "the header has the size of the arena");\n\n'
        for common in memory.common
    )


def common_table(memory: MemoryPlan) -> str:
    """The table of these blocks for the loader; "" if there are none."""
    if not memory.common:
        return ""
    spans = ", ".join(f"Span<uint8_t>({common_symbol(common.name)})" for common in memory.common)
    count = len(memory.common)
    return (
        f"static constexpr Span<uint8_t> kCommonBlocks[{count}] = {{{spans}}};\n"
        "extern constexpr Span<const Span<uint8_t>> kCommonArenas{kCommonBlocks};\n"
    )


def common_constant(profile: str, name: str) -> str:
    """Name of the header's constant for the size of a block."""
    return f"{identifier(profile)}_{common_symbol(name)}_BYTES".upper()


def extra_includes(methods: Sequence[ApiMethod], memory: MemoryPlan) -> str:
    """Includes that only some products need."""
    names = ["caller"] if any(m.given for m in methods) else []
    names += ["together"] if sharing(methods, memory) else []
    return "".join(f'#include "orch/{name}.h"\n' for name in names)
