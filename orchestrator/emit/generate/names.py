"""Names in generated C++, changed where they would clash.

The code compiles for all names of products, models and methods: names that mean
something else get a `_`. Names stay distinct, as those that already end in
`_` get one more, too.
"""

from __future__ import annotations

import re
from collections.abc import Container
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
"""Keywords of C++20, with alternative tokens."""
_TYPES: Final = frozenset(
    [
        "orch_status",
        "orch_update_result",
        # A function or constant of one of these names would hide the type in the rest
        # of the header.
        *(f"{s}int{n}_t" for s in ("", "u") for n in (8, 16, 32, 64)),
    ]
)
"""Names that the header itself uses."""
_RESERVED: Final = frozenset(_KEYWORDS.split()) | _TYPES | {"i386", "linux", "orch", "std", "unix"}
"""Keywords, types, namespaces of others, and macros of GNU dialects."""
# ISO C, 7.1.3, and C++ [lex.name]: names with two underscores, or one and a capital,
# are the compiler's. Names without a small letter are those of macros by custom (board
# headers have hundreds).
_MACRO_LIKE: Final = re.compile("__.*|_[A-Z].*|[^a-z]*")
"""Names reserved for compilers, and names without a lower-case letter."""


def cpp_name(name: str) -> str:
    """The name of a model or method in C++."""
    found = identifier(name)
    # `new` and `new_` are two methods: `new_` and `new__` then.
    stem = found.rstrip("_")
    if stem in _RESERVED or is_c_macro(stem) or _MACRO_LIKE.fullmatch(found):
        return f"{found}_"
    return found


def cpp_namespace(profile: str) -> str:
    """The namespace of a product, beside all names that headers declare."""
    found = cpp_name(profile)
    return f"{found}_" if is_c_global(found) else found


def hook_names(profile: str) -> dict[str, str]:
    """Names of the hooks of a traced product, in the runtime and in its library.

    Each product has its own, as numbers of methods are only its own, too. The application
    defines them.
    """
    # All products of a program once had these two functions in common, with numbers of
    # methods that each counts from 0.
    base = identifier(profile)
    return {f"orch_trace_{hook}": f"{base}_trace_{hook}" for hook in ("ticks", "record")}


# Attributes of the functions of the API.

# One declaration in a line, as the templates write them; a test compiles the header in
# every standard (tests/integration/test_header.py).
_FUNCTION: Final = re.compile(
    r"^(?P<inline>(?:static )?inline )?(?P<type>\w+(?: \w+)*\*{0,2}) (?P<name>\w+)"
    r"\((?P<parameters>[^;{}]*)\)(?P<end>;| \{)$",
    re.MULTILINE,
)
_COMMENT: Final = re.compile(
    r"^/\* (?P<text>(?:[^*]|\*(?!/))*?) ?\*/\n"
    r"(?=#define \w+ |(?P<status>ORCH_NODISCARD )?\w[\w *]*\()",
    re.MULTILINE,
)
_RETURNS: Final = "\n * @return ORCH_OK, or what went wrong: see orch/status.h."


def with_attributes(header: str, *, users: Container[str]) -> str:
    """Part of a header: no status may be ignored, nothing throws; with Doxygen.

    Args:
        header: The text.
        users: Functions that the application defines: they have no attributes.
    """

    def attributed(found: re.Match[str]) -> str:
        if found["name"] in users:
            return found[0]
        is_status = found["type"] in {"orch_status", "orch_update_result"}
        return (
            f"{'ORCH_NODISCARD ' if is_status else ''}{found['inline'] or ''}"
            f"{found['type']} {found['name']}({found['parameters']})"
            f" ORCH_NOEXCEPT{found['end']}"
        )

    def documented(found: re.Match[str]) -> str:
        returns = _RETURNS if found["status"] else ""
        return f"/** {found['text']}{returns} */\n"

    return _COMMENT.sub(documented, _FUNCTION.sub(attributed, header))
