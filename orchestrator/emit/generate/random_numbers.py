"""Functions of the generator that kernels draw random numbers from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.memory.plan import identifier

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod
    from orchestrator.selection.resolution import Resolution

_DRAWING: Final = frozenset({"op_native_dropout.cpp", "op_rand.cpp", "op_randn.cpp"})
"""Sources of `portable` whose kernels draw."""


def draws(resolution: Resolution) -> bool:
    """Whether a product has kernels that draw random numbers."""
    return not _DRAWING.isdisjoint(dict(resolution.sources).get("portable", ()))


def random_declarations(profile: str) -> str:
    """Declarations of the header."""
    base = identifier(profile)
    return (
        "/* The generator of this product, which all its methods draw from. It begins\n"
        " * with seed 0. Nothing locks it. */\n"
        f"void {base}_random_seed(uint64_t seed);\n"
        "/* The next number; each of its bits is random. */\n"
        f"uint32_t {base}_random_next(void);"
    )


def random_functions(profile: str) -> str:
    """Definitions, in `extern "C"`."""
    base = identifier(profile)
    return (
        f"void {base}_random_seed(uint64_t seed) noexcept"
        " { orch_random_seed(seed); }\n\n"
        f"uint32_t {base}_random_next() noexcept {{ return orch_random_next(); }}"
    )


# Hooks of a product that is traced: the application defines them.

_HOOKS: Final = ("ticks", "record")


def hook_names(profile: str) -> dict[str, str]:
    """Names of the hooks in the runtime, and in the library of a product.

    Each product has its own, as numbers of methods are only its own, too.
    """
    base = identifier(profile)
    return {f"orch_trace_{hook}": f"{base}_trace_{hook}" for hook in _HOOKS}


def trace_declarations(profile: str, methods: Sequence[ApiMethod]) -> str:
    """Declarations of the hooks, and numbers of methods."""
    ticks, record = hook_names(profile).values()
    align = " " * len(f"void {record}(")
    numbers = "".join(
        f"\n#define {method.base.upper()}_METHOD {number}" for number, method in enumerate(methods)
    )
    return (
        "/* Hooks, which you define. The counter, in any unit: */\n"
        f"orch_ticks {ticks}(void);\n"
        "/* Called after every instruction, one that failed included, within the run:\n"
        " * it must not call functions of the product.\n"
        " *\n"
        " * method:      ..._METHOD\n"
        " * instruction: index in the method\n"
        " * begin, end:  readings before and after */\n"
        f"void {record}(uint32_t method, uint32_t instruction,\n"
        f"{align}orch_ticks begin, orch_ticks end);{numbers}"
    )
