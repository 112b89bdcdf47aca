"""Names in generated C++, and which of them cannot be as they are.

Whatever a product, a model and a method are called, the code compiles: names that mean
something else get a `_`. No two names become one by that, as those that differ only in
`_` at the end get one more, too.
"""

from __future__ import annotations

import re
from typing import Final

from orchestrator.memory.plan import identifier
from orchestrator.targets.c_names import is_c_global, is_c_macro

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t
char32_t char8_t class co_await co_return co_yield compl concept const const_cast
consteval constexpr constinit continue decltype default delete do double dynamic_cast
else enum explicit export extern false float for friend goto if inline int long
mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
public register reinterpret_cast requires return short signed sizeof static
static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
xor_eq
"""
"""Of C++20; alternative tokens included."""
_TYPES: Final = frozenset(
    ["orch_status", *(f"{s}int{n}_t" for s in ("", "u") for n in (8, 16, 32, 64))]
)
"""What the header itself uses."""
_RESERVED: Final = (
    frozenset(_KEYWORDS.split()) | _TYPES | {"i386", "linux", "orch", "std", "unix"}
)
"""Keywords, types, namespaces of others, and what GNU dialects define as macros."""
_MACRO_LIKE: Final = re.compile("__.*|_[A-Z].*|[^a-z]*")
"""Names that compilers keep for themselves, and those without a small letter."""


def cpp_name(name: str) -> str:
    """The name of a model or method in C++."""
    found = identifier(name)
    stem = found.rstrip("_")
    if stem in _RESERVED or is_c_macro(stem) or _MACRO_LIKE.fullmatch(found):
        return f"{found}_"
    return found


def cpp_namespace(profile: str) -> str:
    """The namespace of a product, which stands beside all that headers declare."""
    found = cpp_name(profile)
    return f"{found}_" if is_c_global(found) else found
