"""Readable names of C++ symbols.

LLVM's demangler does the reading, in the version that comes with pycxxfilt: every
machine shows the same names.
"""

from __future__ import annotations

from functools import cache
from typing import Final

_PREFIX: Final = "_Z"
_LONGEST: Final = 10_000
"""Longer symbols are shown as they are: the demangler recurses."""


@cache
def demangle(symbol: str) -> str:
    """The qualified name of a symbol, without its parameters and return type.

    For example `orch::portable::(anonymous namespace)::add_same<float>`. What compilers
    append to copies of a function, such as `.isra.0`, stays at the end. Names of C, and
    names that are not valid in C++, stay as they are.

    A mangled function begins with its name, and that name alone is a valid symbol: the
    shortest valid prefix, with its template arguments if there are any.

    Source: Itanium C++ ABI, 5.1.2 (general structure) and 5.1.7 (template arguments).
    """
    mangled, dot, suffix = symbol.partition(".")
    if not mangled.startswith(_PREFIX) or len(mangled) > _LONGEST:
        return symbol
    for end in range(len(_PREFIX) + 1, len(mangled) + 1):
        has_arguments = mangled.startswith("I", end)
        if not has_arguments and (name := _full_name(mangled[:end])):
            return name + dot + suffix
    return symbol


def _full_name(mangled: str) -> str | None:
    # Imported late: most commands read no symbols.
    from pycxxfilt import itanium_demangle  # noqa: PLC0415

    try:
        return itanium_demangle(mangled)
    except ValueError:
        return None
