"""Stack use in the public header: known once the firmware is linked."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.emit.artifact import comment_text
from orchestrator.emit.generate.api_header import END, unknown_stack
from orchestrator.measure.size import MethodStack, SizeMethod
from orchestrator.memory.plan import identifier, method_symbol


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
