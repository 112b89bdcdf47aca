"""Worst stack use: of the whole firmware, and of each method.

Where the calls of a firmware are known, it is the deepest way through them. On hosts it
is estimated from the frame sizes that compilers write. The estimate follows how the
firmware is built: start-up and application call either the loader or the executor; the
executor calls one kernel; kernels call helpers. Of each of these, it takes all
functions at once. That is an upper bound as long as

- no function calls itself, directly or through others (the runtime has none that do);
- of the instances of one template, or of one lambda, one at a time is on the stack:
  they count once, with the largest frame;
- the toolchain's own functions, with unknown frame sizes, are small.

Interrupts and what a product does around the call of a model come on top.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from orchestrator.measure.call_graph import EXECUTOR
from orchestrator.measure.demangle import demangle
from orchestrator.measure.frames import Frame, read_frames
from orchestrator.measure.functions import plain
from orchestrator.measure.size import MethodStack, SizeMethod, StackEstimate, StackPart
from orchestrator.memory.plan import method_symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from orchestrator.measure.call_graph import CallGraph, Depth
    from orchestrator.measure.size import SizeSymbol
    from orchestrator.memory.plan import MemoryPlan, MethodMemory
    from orchestrator.selection.resolution import Resolution

_API_SUFFIX: Final = re.compile(
    r"(_(run|run_at|load|check|(set_)?(in|out)put\d+(_item\d*|_count|_length)?))?"
)
"""What follows the name of a method in those of its functions."""
_RESET: Final = "orch_reset"
_LOADERS: Final = ("_ZN4orch11load_linkedE", "_ZN4orch15start_prelinkedE")
_CLONE: Final = re.compile(r"\.(?:part|constprop|isra|cold|lto_priv)\b.*$")
_FUNCTION: Final = re.compile(r"([A-Za-z_]\w*)(?:\(|$)")
_UNSURE: Final = re.compile(r"\b(?:operator|decltype|noexcept)\b|\(\*")
"""Declarations whose first parenthesis need not follow the function's name."""
_HELPERS: Final = re.compile(r"^runtime/(src/(tensor|error|status|math)|freestanding/)")
_LOADER: Final = re.compile(r"^runtime/src/(load|program|find_kernel)")
_EXECUTOR: Final = re.compile(r"^runtime/src/executor")
_MODEL: Final = re.compile(r"^runtime/src/model")
_ENTRY: Final = re.compile(r"^runtime/(app|platform)/")
_KERNEL: Final = re.compile(r"^kernels/")
_API: Final = re.compile(r"^gen/src/api")


def firmware_stack(
    graph: CallGraph, resolution: Resolution, *, reserve_bytes: int
) -> StackEstimate:
    """Worst stack use of the whole firmware, whatever method runs.

    Args:
        graph: Its calls.
        resolution: Names the kernels.
        reserve_bytes: What the linker script reserves.
    """
    depth = graph.depth(_RESET, _kernels(graph, resolution), _starts(graph, resolution))
    return StackEstimate(
        stack_bytes=depth.stack_bytes,
        reserve_bytes=reserve_bytes,
        parts=tuple(
            StackPart(name=_shown(name), stack_bytes=size) for name, size in depth.path
        ),
        dynamic=(),
        unknown=_unknown(depth),
        is_computed=True,
    )


def size_methods(
    profile: str, memory: MemoryPlan, graph: CallGraph | None, resolution: Resolution
) -> tuple[SizeMethod, ...]:
    """All memory of every method.

    Args:
        profile: Name of the profile.
        memory: The plan of the product.
        graph: Calls of its firmware; None where they are unknown.
        resolution: Names the kernels of each method.
    """
    return tuple(
        SizeMethod(
            model=method.model,
            method=method.method,
            arena_bytes=tuple(a.size_bytes for a in method.arenas),
            state_bytes=method.state_bytes,
            temporary_bytes=method.temporary_bytes,
            input_bytes=method.input_bytes,
            output_bytes=method.output_bytes,
            stack=_method_stack(profile, method, graph, resolution) if graph else None,
        )
        for model in memory.models
        for method in model.methods
    )


def _method_stack(
    profile: str, method: MethodMemory, graph: CallGraph, resolution: Resolution
) -> MethodStack:
    kernels = _kernels(graph, resolution, method)
    starts = _starts(graph, resolution)
    base = method_symbol(profile, method.model, method.method)
    loaders = {graph.symbol(start) for start in _LOADERS} & graph.reached(base)
    load = max(
        (graph.depth(name, (), starts) for name in sorted(loaders)),
        key=lambda depth: depth.stack_bytes,
    )
    run = graph.depth(graph.symbol(EXECUTOR), kernels)
    entries = {
        name: graph.depth(name, kernels, starts)
        for name in graph.names
        if name.startswith(base) and _API_SUFFIX.fullmatch(name, len(base))
    }
    return MethodStack(
        load_bytes=load.stack_bytes,
        run_bytes=run.stack_bytes,
        entries=tuple(
            StackPart(name=name, stack_bytes=depth.stack_bytes)
            for name, depth in entries.items()
        ),
        unknown=_unknown(load, run, *entries.values()),
    )


def _kernels(
    graph: CallGraph, resolution: Resolution, method: MethodMemory | None = None
) -> set[str]:
    """Symbols of what the executor calls for a method; without one, all there are.

    These are kernels, and of delegates the functions that run them.
    """
    called = [
        (binding.kernel.function, binding.origins)
        for operator in resolution.operators
        for binding in operator.bindings
    ]
    called += [(d.code.functions[1], d.origins) for d in resolution.delegates]
    return {
        graph.kernel(function)
        for function, origins in called
        if method is None
        or any(
            origin.source == method.model and origin.method == method.method
            for origin in origins
        )
    }


def _starts(graph: CallGraph, resolution: Resolution) -> set[str]:
    """Symbols of what the loader calls to make delegates ready."""
    return {graph.kernel(d.code.functions[0]) for d in resolution.delegates}


def _unknown(*depths: Depth) -> tuple[str, ...]:
    # Distinct functions may be shown alike.
    names = {name for depth in depths for name in depth.unknown}
    return tuple(sorted(map(_shown, names)))


def _shown(name: str) -> str:
    return demangle(plain(name))


def estimate_stack(
    stack_usage: Mapping[str, str],
    symbols: Sequence[SizeSymbol],
    *,
    reserve_bytes: int,
) -> StackEstimate:
    """Estimate the worst stack use of the firmware.

    Args:
        stack_usage: Texts of the `.su` files by source, `kernels/portable/op_add.cpp`.
        symbols: Of the firmware: what is not linked does not count. Without any, all
            functions do.
        reserve_bytes: What the linker script reserves; 0 on hosts.
    """
    linked = _linked_names(symbols)
    frames = {
        source: [f for f in read_frames(text) if linked(f.function)]
        for source, text in sorted(stack_usage.items())
    }
    parts = _parts(frames)
    return StackEstimate(
        stack_bytes=sum(p.stack_bytes for p in parts),
        reserve_bytes=reserve_bytes,
        parts=parts,
        dynamic=tuple(
            f"{source}: {frame.function}"
            for source, found in frames.items()
            for frame in found
            if frame.is_dynamic
        ),
        unknown=tuple(
            sorted(
                s.name for s in symbols if s.is_function and s.object not in stack_usage
            )
        ),
    )


def _parts(frames: Mapping[str, Sequence[Frame]]) -> tuple[StackPart, ...]:
    """Who is on the stack in the worst case."""

    def of(pattern: re.Pattern[str]) -> Sequence[str]:
        return [s for s in frames if pattern.match(s)]

    def together(sources: Iterable[str]) -> int:
        return sum(_source_bytes(frames[s]) for s in sources)

    # A product calls one function of the API; the runner calls the model itself.
    api = max((f.size_bytes for s in of(_API) for f in frames[s]), default=0)
    runner = together(of(_ENTRY))
    entry = (
        StackPart(name="application and platform", stack_bytes=runner)
        if runner >= api
        else StackPart(name="api", stack_bytes=api)
    )
    load = [StackPart(name="loader", stack_bytes=together(of(_LOADER)))]
    run = [StackPart(name="executor", stack_bytes=together(of(_EXECUTOR)))]
    kernels = sorted((-together([s]), s) for s in of(_KERNEL))
    if kernels:
        run.append(StackPart(name=kernels[0][1], stack_bytes=-kernels[0][0]))
    worst = max(load, run, key=lambda parts: sum(p.stack_bytes for p in parts))
    return (
        entry,
        StackPart(name="model", stack_bytes=together(of(_MODEL))),
        *worst,
        StackPart(name="helpers", stack_bytes=together(of(_HELPERS))),
    )


def _source_bytes(frames: Iterable[Frame]) -> int:
    """All functions of a source at once; instances of one place count once."""
    largest: dict[str, int] = {}
    for frame in frames:
        # A clone can be called by what it was split off: it counts on its own.
        clone = _CLONE.search(frame.function)
        place = frame.place + (clone[0] if clone else "")
        largest[place] = max(frame.size_bytes, largest.get(place, 0))
    return sum(largest.values())


def _linked_names(symbols: Sequence[SizeSymbol]) -> Callable[[str], bool]:
    """Whether a function of a `.su` file may be in the firmware.

    clang names the symbol, gcc writes the declaration: its own name occurs in the
    symbol. Where that is not sure, the function counts.
    """
    names = {n for s in symbols if s.is_function for n in (s.symbol, *s.aliases)}
    everything = "\n".join(sorted(names))

    def linked(function: str) -> bool:
        if not names or function in names:
            return True
        if function.startswith("_Z"):
            return False
        plain = function.replace("{anonymous}", "").replace("(anonymous namespace)", "")
        found = _FUNCTION.search(plain)
        if found is None or _UNSURE.search(plain):
            return True
        return found[1] in everything

    return linked
