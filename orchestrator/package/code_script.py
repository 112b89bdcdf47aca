"""A piece of linker script that takes the functions of a package of sources.

In a library the sections of functions are renamed. Compilers of a package cannot do
that: gcc has no flag for it, and an attribute would give all functions of a source one
section, which linkers keep or drop as a whole. But with `-ffunction-sections` each
section has the name of its function, and all of these begin with the product's name or
have its namespace. So the linker finds them wherever their objects are: in an archive,
among those of the application, or made anew by `-flto`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from orchestrator.emit.compile import SOURCES

if TYPE_CHECKING:
    from orchestrator.package.sources import Unit

_MANGLED: Final = "_Z"


def code_script(
    head: str, base: str, section: str, *, api: Iterable[str], files: Iterable[str]
) -> str:
    """The text, for an output section of a linker script.

    Args:
        head: Text of the first line.
        base: Name of the product in C.
        section: What the profile calls the section.
        api: Functions in C without the product's namespace in their names.
        files: Sources whose functions may have any name; names without folder.
    """
    namespace = f"{base}_orch"
    patterns = [
        f".text.*{len(namespace)}{namespace}*",
        f".text.{namespace}_* .text.*.{namespace}_*",
        *(f".text.{n} .text.*.{n} .text.{n}.* .text.*.{n}.*" for n in sorted(api)),
    ]
    lines = [f"*({pattern})" for pattern in patterns]
    lines += [f"*{name}.*(.text .text.*)" for name in sorted(files)]
    return "".join(
        [
            f"/* {head} */\n",
            f"/* Functions of the product, for {section}: INCLUDE it in that section\n",
            " * of your linker script, before others take .text. The compiler needs\n",
            " * -ffunction-sections. */\n",
            *(f"{line}\n" for line in lines),
        ]
    )


def api_names(symbols: Iterable[str]) -> frozenset[str]:
    """Symbols of the library that are not of one product alone: see `own_symbols`."""
    return frozenset(name for name in symbols if "." not in name and not name.startswith(_MANGLED))


def user_files(units: Iterable[Unit], names: Iterable[str]) -> frozenset[str]:
    """Names of the sources of libraries and delegates of the user, without suffix."""
    folders = tuple(
        f"{SOURCES}/{kind}/{name}/" for kind in ("kernels", "delegates") for name in names
    )
    return frozenset(
        posixpath.splitext(posixpath.basename(unit.path))[0]
        for unit in units
        if unit.path.startswith(folders)
    )
