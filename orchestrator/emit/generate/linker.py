"""The linker script: one template for all boards, filled from their memory maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.emit.artifact import GeneratedFile
from orchestrator.memory.plan import MemoryPlan

if TYPE_CHECKING:
    from orchestrator.targets.cores import Board, Region, Target

_CODE = "  .text : {{ *(.text .text.*) }} > {region}"
_COPIED_CODE = """\
  .start : {{ *(.text.orch_start) }} > {flash}
  .text : ALIGN(4) {{
    orch_code_begin = .;
    *(.text .text.*)
    . = ALIGN(4);
    orch_code_end = .;
  }} > {region} AT > {flash}
  orch_code_load = LOADADDR(.text);"""
"""For a memory that the start-up fills."""

_TEMPLATE = """\
/* {head} */

ENTRY(orch_reset)

MEMORY {{
{regions}
}}

orch_flash_begin = ORIGIN({flash});
orch_flash_end = ORIGIN({flash}) + LENGTH({flash});

SECTIONS {{
  .vectors : {{ KEEP(*(.vectors)) }} > {flash}
{code}
{models}
  .rodata : {{ *(.rodata .rodata.*) . = ALIGN(4); }} > {flash}

  /* At the bottom of the memory: an overflow leaves it and faults, or is caught by
     the stack limit register. */
  .stack (NOLOAD) : {{
    orch_stack_base = .;
    . += {stack_bytes};
    orch_stack_top = .;
  }} > {ram}
  .data : ALIGN(4) {{
    orch_data_begin = .;
    *(.data .data.*)
    . = ALIGN(4);
    orch_data_end = .;
  }} > {ram} AT > {flash}
  orch_data_load = LOADADDR(.data);
{arenas}
  .bss (NOLOAD) : ALIGN(4) {{
    orch_bss_begin = .;
    *(.bss .bss.* COMMON)
    . = ALIGN(4);
    orch_bss_end = .;
  }} > {ram}

  /* Nothing in the firmware may need code to run before the application. */
  .init_array : {{
    KEEP(*(.preinit_array .init_array .init_array.* .ctors .ctors.*))
  }} > {flash}
  ASSERT(SIZEOF(.init_array) == 0, "static constructors are not supported")

  /DISCARD/ : {{
    *(.ARM.exidx* .ARM.extab* .eh_frame* .comment .note.* .ARM.attributes)
  }}
}}
"""


def linker_script(head: str, board: Board, memory: MemoryPlan) -> GeneratedFile:
    """A script for GNU ld and lld.

    Programs and arenas lie where the memory plan places them, code where the profile
    wants it; everything else is in the first flash and the first RAM region of the
    board.
    """
    flash = next(r.name for r in board.regions if r.kind == "flash")
    ram = next(r.name for r in board.regions if r.kind == "ram")
    models = [p for p in memory.placements if p.section.startswith(".rodata")]
    arenas = [p for p in memory.placements if p.section.startswith(".bss")]
    text = _TEMPLATE.format(
        head=head,
        regions="\n".join(
            f"  {r.name} ({_access(r, board)}) : ORIGIN = {r.origin:#x}, LENGTH = {r.size_bytes}"
            for r in board.regions
        ),
        flash=flash,
        ram=ram,
        code=(_COPIED_CODE if board.copies_code else _CODE).format(
            region=board.code_region.name, flash=flash
        ),
        stack_bytes=board.stack_bytes,
        models="\n".join(
            f"  {p.section.replace('.rodata', '', 1)} : ALIGN(16)"
            f" {{ *({p.section} {p.section}.*) }} > {p.region}"
            for p in models
        ),
        arenas="\n".join(
            f"  {p.section.replace('.bss', '', 1)} (NOLOAD) : ALIGN({memory.alignment})"
            f" {{ *({p.section}) }} > {p.region}"
            for p in arenas
        ),
    )
    return GeneratedFile("gen/firmware.ld", text)


def _access(region: Region, board: Board) -> str:
    if region.kind == "flash":
        return "rx"
    return "rwx" if region == board.code_region else "rw"


# The CMake package of a build folder: cmake/<profile>Config.cmake.


def cmake_config(profile: str, head: str, target: Target) -> GeneratedFile:
    """An imported library `orchestrator::<profile>` for projects that use CMake.

    All paths are relative to the file, so its text is the same on every machine.

    Args:
        profile: Name of the profile, and of the package.
        head: One line: generator and profile.
        target: Target of the build; a host's library is not position independent.
    """
    name = f"orchestrator::{profile}"
    properties = [
        f'IMPORTED_LOCATION "${{_orchestrator_folder}}/lib{profile}.a"',
        'IMPORTED_LINK_INTERFACE_LANGUAGES "C"',
        'INTERFACE_INCLUDE_DIRECTORIES "${_orchestrator_folder}/include"',
    ]
    if target.board is None:
        properties.append('INTERFACE_LINK_OPTIONS "-no-pie"')
    lines = "\n".join(f"    {line}" for line in properties)
    text = f"""\
# {head}
#
#   find_package({profile} CONFIG REQUIRED PATHS <this folder>)
#   target_link_libraries(<executable> PRIVATE {name})

if(NOT TARGET {name})
  get_filename_component(_orchestrator_folder "${{CMAKE_CURRENT_LIST_DIR}}" DIRECTORY)
  add_library({name} STATIC IMPORTED)
  set_target_properties({name} PROPERTIES
{lines})
  unset(_orchestrator_folder)
endif()
"""
    return GeneratedFile(f"cmake/{profile}Config.cmake", text)
