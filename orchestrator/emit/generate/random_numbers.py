"""Functions of the generator that kernels draw random numbers from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.memory.plan import identifier

if TYPE_CHECKING:
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
