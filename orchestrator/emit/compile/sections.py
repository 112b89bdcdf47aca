"""Names of sections in the library and in packages, as the profile wants them.

Firmware for `run` keeps the build's names: its linker script is generated with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.memory.plan import ARENA_SECTIONS, MODEL_SECTIONS

_CODE: Final = ".text"


def named_section(section: str, names: Mapping[str, str]) -> str:
    """The name of a section that the build calls `section`.

    `.text.f` becomes `.itcm.f`, `.bss.orch_arena_kws_forward_1` becomes
    `.dtcm.kws_forward_1`: linker scripts take `.itcm .itcm.*`, and can still drop or
    place single functions, constants and arenas.

    Args:
        section: The build's name.
        names: The profile's, by the keys of `[memory.sections]`.
    """
    if section == _CODE or section.startswith(f"{_CODE}."):
        return names.get("code", _CODE) + section.removeprefix(_CODE)
    if "weights" in names and section.startswith(MODEL_SECTIONS):
        return f"{names['weights']}.{section.removeprefix(MODEL_SECTIONS)}"
    if "arenas" in names and section.startswith(ARENA_SECTIONS):
        _, _, rest = section.removeprefix(ARENA_SECTIONS).partition("_")
        return f"{names['arenas']}.{rest}"
    return section
