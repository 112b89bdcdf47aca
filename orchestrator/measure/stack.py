"""Worst stack use: of a whole firmware, and of each method.

It is the deepest chain of calls (`call_graph`). Interrupts, and what a product does
before it calls a model, come on top. Hosts have no number: libraries of the system are
called there, and the stack is large.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.emit.artifact import comment_text
from orchestrator.emit.generate.api_header import END, unknown_stack
from orchestrator.measure.call_graph import EXECUTOR
from orchestrator.measure.functions import plain
from orchestrator.measure.owner import demangle
from orchestrator.measure.size import FirmwareStack, MethodStack, SizeMethod, StackPart
from orchestrator.memory.plan import MemoryPlan, MethodMemory, identifier, method_symbol
from orchestrator.method.linked import LinkedCall, LinkedMethod

if TYPE_CHECKING:
    from orchestrator.measure.call_graph import CallGraph, Depth
    from orchestrator.selection.resolution import Resolution

# The functions that emit/generate/ports.py names. Without it, functions of a method
# whose name begins alike would count as this one's. A function that comes to the header
# comes here, or has no constant of its stack.
_API_SUFFIX: Final = re.compile(
    r"(_(run|run_at|prepare|step|load|check|begin|push_rows|finish|(set_)?(in|out)put\d+(_item\d*|_count|_length)?))?"
)
"""What follows the name of a method in those of its functions."""
# The entry in templates/firmware.ld.jinja, where the stack pointer is the top of the
# reserved stack.
_RESET: Final = "orch_reset"
_LOADERS: Final = ("_ZN4orch11load_linkedE", "_ZN4orch15start_prelinkedE")


class CalledKernels:
    """What the executor and the loader call, and for which methods.

    Args:
        resolution: Names the kernels of methods that the device loads.
        linked: All other methods; passes chose kernels for their calls.
    """

    def __init__(self, resolution: Resolution, linked: Iterable[LinkedMethod]) -> None:
        self._linked = {
            (method.model, method.name): {
                call.function for call in method.instructions if isinstance(call, LinkedCall)
            }
            for method in linked
        }
        self._resolution = resolution

    def run(self, graph: CallGraph, method: MethodMemory | None = None) -> set[str]:
        """Symbols of what the executor calls for a method; without one, all there are.

        These are kernels, and of delegates the functions that run them.
        """
        called = [
            (binding.kernel.function, binding.origins)
            for operator in self._resolution.operators
            for binding in operator.bindings
        ]
        delegates = self._resolution.delegates
        # Delegates have two functions: one makes ready, one executes.
        called += [(d.code.functions[1], d.origins) for d in delegates]
        found: set[str] = set()
        for function, origins in called:
            users = {(origin.source, origin.method) for origin in origins}
            # Prelinked methods call what the linker chose, which may be other variants
            # than the loader would bind.
            users -= self._linked.keys()
            if users if method is None else (method.model, method.method) in users:
                found.add(function)
        if method is None:
            found.update(*self._linked.values())
        else:
            found |= self._linked.get((method.model, method.method), set())
        return {graph.kernel(function) for function in found}

    def start(self, graph: CallGraph) -> set[str]:
        """Symbols of what the loader calls to make delegates ready."""
        return {graph.kernel(d.code.functions[0]) for d in self._resolution.delegates}


def firmware_stack(
    graph: CallGraph, kernels: CalledKernels, *, reserve_bytes: int
) -> FirmwareStack:
    """Worst stack use of the whole firmware, whatever method runs.

    Args:
        graph: Its calls.
        kernels: What it calls.
        reserve_bytes: What the linker script reserves.
    """
    depth = graph.depth(_RESET, kernels.run(graph), kernels.start(graph))
    return FirmwareStack(
        stack_bytes=depth.stack_bytes,
        reserve_bytes=reserve_bytes,
        parts=tuple(StackPart(name=_shown(name), stack_bytes=size) for name, size in depth.path),
        unknown=_unknown(depth),
    )


def size_methods(
    profile: str, memory: MemoryPlan, graph: CallGraph | None, kernels: CalledKernels
) -> tuple[SizeMethod, ...]:
    """All memory of every method.

    Args:
        profile: Name of the profile.
        memory: The plan of the product.
        graph: Calls of its firmware; None where they are unknown.
        kernels: What each method calls.
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
            stack=_method_stack(profile, method, graph, kernels) if graph else None,
        )
        for model in memory.models
        for method in model.methods
    )


def _method_stack(
    profile: str, method: MethodMemory, graph: CallGraph, called: CalledKernels
) -> MethodStack:
    kernels = called.run(graph, method)
    starts = called.start(graph)
    base = method_symbol(profile, method.model, method.method)
    # A method has one of both ways; which one, its own function tells.
    loaders = {graph.symbol(start) for start in _LOADERS} & graph.reached(base)
    load = max(
        (graph.depth(name, (), starts) for name in sorted(loaders)),
        key=lambda depth: depth.stack_bytes,
    )
    run = graph.depth(graph.symbol(EXECUTOR), kernels)
    entries = {
        name: graph.depth(name, kernels, starts)
        for name in graph.symbols(base)
        if _API_SUFFIX.fullmatch(name, len(base))
    }
    return MethodStack(
        load_bytes=load.stack_bytes,
        run_bytes=run.stack_bytes,
        entries=tuple(
            StackPart(name=name, stack_bytes=depth.stack_bytes) for name, depth in entries.items()
        ),
        unknown=_unknown(load, run, *entries.values()),
    )


def _unknown(*depths: Depth) -> tuple[str, ...]:
    # Distinct functions may be shown alike.
    names = {name for depth in depths for name in depth.unknown}
    return tuple(sorted(map(_shown, names)))


def _shown(name: str) -> str:
    return demangle(plain(name))


# Stack use in the public header: known once the firmware is linked.


def with_stacks(header: str, profile: str, methods: Sequence[SizeMethod], *, compiler: str) -> str:
    """The public header with the worst stack use of every function.

    Args:
        header: Text of gen/include/<profile>.h, which the library is compiled with.
        profile: Name of the profile.
        methods: Measured in the firmware; those without `stack` are left out.
        compiler: That it was built with, and its version.
    """
    parts = [
        _constants(method_symbol(profile, m.model, m.method), m.stack, compiler)
        for m in methods
        if m.stack is not None
    ]
    worst = max((m.stack.worst_bytes for m in methods if m.stack), default=0)
    # No line is added for hosts: their headers have no figures of stacks.
    if not parts:
        return header
    available = f"{identifier(profile).upper()}_STACK_AVAILABLE"
    total = f"{identifier(profile).upper()}_STACK_BYTES"
    parts.append(
        f"/** The worst of all. To have the stack of the calling task checked, define\n"
        f" * {available} as its bytes before including this. */\n"
        f"#define {total} {worst}\n"
        f"#ifdef {available}\n"
        f"ORCH_ASSERT({available} >= {total});\n"
        "#endif"
    )
    # In front of the structs of sizes, which name these constants in place of the mark
    # that `unknown_stack` left.
    start, end, rest = header.rpartition(END)
    for m in methods:
        base = method_symbol(profile, m.model, m.method)
        if m.stack is not None:
            rest = rest.replace(unknown_stack(base), f"{base.upper()}_CALL_STACK_BYTES")
    return start + "\n\n".join(parts) + "\n\n" + end + rest


def _constants(base: str, stack: MethodStack, compiler: str) -> str:
    upper = base.upper()
    lines = [
        "/** Bytes of stack below the caller's, in the worst case; interrupts come on\n"
        " * top. Of loading, of running, and of each function, which may load.\n"
        f" * Compiled by {comment_text(compiler)}: other compilers differ. */"
    ]
    if stack.unknown:
        lines.append(
            "/* Not counted, frame size unknown:\n"
            + "".join(f" *   {comment_text(name)}\n" for name in stack.unknown)
            + " */"
        )
    lines += [
        f"#define {upper}_LOAD_STACK_BYTES {stack.load_bytes}",
        f"#define {upper}_RUN_STACK_BYTES {stack.run_bytes}",
    ]
    for entry in stack.entries:
        what = entry.name.removeprefix(base).upper()
        lines.append(f"#define {upper}_CALL{what}_STACK_BYTES {entry.stack_bytes}")
    return "\n".join(lines)
