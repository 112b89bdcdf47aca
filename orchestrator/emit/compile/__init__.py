"""Stage `compile`: what to compile and link, as text for ninja.

This stage only describes the build; ninja runs it. All paths are relative to
ninja's folder, so that objects do not depend on the machine.
"""

from orchestrator.emit.compile.object_keys import object_keys
from orchestrator.emit.compile.plan import has_floats, plan_compile, sums_flags
from orchestrator.emit.compile.units import (
    API_OBJECT,
    BUILTINS,
    SOURCES,
    CompilePlan,
    CompileUnit,
    LibraryOptions,
    compile_commands,
    is_empty,
    toolchain_text,
)

__all__ = [
    "API_OBJECT",
    "BUILTINS",
    "SOURCES",
    "CompilePlan",
    "CompileUnit",
    "LibraryOptions",
    "compile_commands",
    "has_floats",
    "is_empty",
    "object_keys",
    "plan_compile",
    "sums_flags",
    "toolchain_text",
]
