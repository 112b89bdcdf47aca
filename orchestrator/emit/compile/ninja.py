"""Write the build as text for ninja."""

from __future__ import annotations

import shlex
from io import StringIO
from typing import TYPE_CHECKING

from orchestrator.emit.compile.units import BUILTINS
from orchestrator.targets.toolchain import TOOLCHAIN_FILE, Toolchain

if TYPE_CHECKING:
    from orchestrator.emit.compile.units import CompileUnit


def ninja_text(
    profile: str,
    toolchain: Toolchain,
    library: str,
    *,
    library_units: list[CompileUnit],
    firmware_units: list[CompileUnit],
    link_flags: tuple[str, ...],
) -> str:
    """Text of build.ninja.

    Args:
        profile: Name of the profile.
        toolchain: Compiler, linker and archiver.
        library: File name of the static library.
        library_units: Its objects.
        firmware_units: Objects that are linked with it.
        link_flags: Flags for linking the firmware.
    """
    from ninja.ninja_syntax import Writer  # noqa: PLC0415  # only real builds need it

    out = StringIO()
    n = Writer(out, width=1000)  # type: ignore[arg-type]  # takes any text file
    n.comment(f"Build of profile {profile}. Do not edit.")
    n.variable("ninja_required_version", "1.10")
    n.variable("cxx", _command(toolchain.compiler))
    n.variable("ar", _command(toolchain.archiver))
    n.variable("ld", _command(toolchain.linker))
    n.newline()
    n.rule(
        "cxx",
        "$cxx $flags -MMD -MF $out.d -c $in -o $out",
        description="compile $in",
        depfile="$out.d",
        deps="gcc",
    )
    n.rule("as", "$cxx $flags -c $in -o $out", description="assemble $in")
    n.rule("ar", "rm -f $out && $ar rcsD $out $in", description="archive $out")
    n.rule("link", "$ld $flags $in $libs -o $out", description="link $out")
    n.newline()
    for unit in (*library_units, *firmware_units):
        n.build(
            [unit.object],
            "as" if unit.source.endswith(".S") else "cxx",
            [unit.source],
            implicit=[*unit.inputs, TOOLCHAIN_FILE],
            variables={"flags": _command(unit.flags)},
        )
    n.newline()
    n.build([library], "ar", [u.object for u in library_units], implicit=[TOOLCHAIN_FILE])
    builtins = [BUILTINS] if toolchain.needs_builtins else []
    script = ["gen/firmware.ld"] if "gen/firmware.ld" in link_flags else []
    n.build(
        ["firmware.elf"],
        "link",
        [u.object for u in firmware_units] + [library, *builtins],
        implicit=[*script, TOOLCHAIN_FILE],
        implicit_outputs=["firmware.map"],
        variables={
            "flags": _command(link_flags),
            "libs": "-lgcc" if "-nostdlib" in link_flags else "",
        },
    )
    n.newline()
    n.default(["firmware.elf", library])
    return out.getvalue()


def _command(words: tuple[str, ...]) -> str:
    """Words quoted for a shell, and escaped for ninja."""
    return shlex.join(words).replace("$", "$$")


def toolchain_text(toolchain: Toolchain) -> str:
    """The toolchain's identity: when it changes, objects are compiled again."""
    lines = (f"{role} {digest}\n" for role, digest in toolchain.programs)
    return f"{toolchain.version}\n{''.join(lines)}"
