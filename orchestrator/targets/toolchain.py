"""A compiler and its companions, as found on this machine."""

from __future__ import annotations

from dataclasses import dataclass

TOOLCHAIN_FILE = "toolchain.txt"
"""File in ninja's folder on which all steps depend: the toolchain's identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """Programs of a toolchain.

    Args:
        name: `gnu` or `zig`.
        version: "gcc 12.2.0" or "ziglang 0.17.0 (clang 22.1.8)": in the lock file.
        compiler: Command that compiles C++ and assembly; absolute.
        archiver: Command that makes static libraries.
        linker: Command that links firmware; the compiler's driver for gnu.
        programs: (role, digest of the program's file) sorted; in the lock file.
        files: Absolute paths of these programs' files; a build depends on them.
        builtins: Object with the compiler's support functions, if the linker does not
            bring them; absolute, or "".
    """

    name: str
    version: str
    compiler: tuple[str, ...]
    archiver: tuple[str, ...]
    linker: tuple[str, ...]
    programs: tuple[tuple[str, str], ...]
    files: tuple[str, ...] = ()
    builtins: str = ""

    @property
    def needs_builtins(self) -> bool:
        """Whether firmware links an object with the compiler's support functions."""
        return self.name == "zig"
