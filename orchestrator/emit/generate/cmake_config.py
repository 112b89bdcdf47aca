"""The CMake package of a build folder: cmake/<profile>Config.cmake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.emit.artifact import GeneratedFile

if TYPE_CHECKING:
    from orchestrator.targets.cores import Target


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
