"""Names of sections in the library and in packages, as the profile wants them.

Firmware for `run` keeps the build's names: its linker script is generated with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.memory.plan import ARENA_SECTIONS, MODEL_SECTIONS

if TYPE_CHECKING:
    from orchestrator.targets.regions import SectionNames

_CODE: Final = ".text"


def named_section(section: str, names: SectionNames) -> str:
    """The name of a section that the build calls `section`.

    `.text.f` becomes `.itcm.f`, `.bss.orch_arena_kws_forward_1` becomes
    `.dtcm.kws_forward_1`: linker scripts take `.itcm .itcm.*`, and can still drop or
    place single functions, constants and arenas.
    """
    if section == _CODE or section.startswith(f"{_CODE}."):
        return (names.code or _CODE) + section.removeprefix(_CODE)
    if names.weights and section.startswith(MODEL_SECTIONS):
        return f"{names.weights}.{section.removeprefix(MODEL_SECTIONS)}"
    if names.arenas and section.startswith(ARENA_SECTIONS):
        _, _, rest = section.removeprefix(ARENA_SECTIONS).partition("_")
        return f"{names.arenas}.{rest}"
    return section
