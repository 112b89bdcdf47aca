"""Ecosystems as data: which files a package of each has, and where.

Adding one means adding a row here and a folder of templates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.errors import Diagnostic, UsageError, did_you_mean

if TYPE_CHECKING:
    from orchestrator.targets.cores import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Ecosystem:
    """A build system or package manager.

    Args:
        name: As `--for` takes it.
        title: As its makers write it.
        templates: (template below its folder, path in the package); `{name}`, `{base}`
            and `{upper}` are those of the product.
        headers: Folder of headers for applications.
        sources: Folder of sources.
        library: Where the library goes in a package of the library; "" if there can
            be none.
        hosts: Whether a product for the development machine can be packaged.
        arm: Whether one for Cortex-M can.
    """

    name: str
    title: str
    templates: tuple[tuple[str, str], ...]
    headers: str = "include"
    sources: str = "src"
    library: str = "lib/lib{name}.a"
    hosts: bool = True
    arm: bool = True


_CMAKE_LIBRARY: Final = (
    ("../cmake/CMakeLists.txt.j2", "CMakeLists.txt"),
    ("../cmake/library.cmake.j2", "cmake/{name}-library.cmake"),
    ("../cmake/config.cmake.j2", "{name}Config.cmake"),
    ("../cmake/version.cmake.j2", "{name}ConfigVersion.cmake"),
    ("../cmake/pkgconfig.pc.j2", "cmake/{name}.pc.in"),
)

_ALL: Final = (
    Ecosystem(
        name="cmake",
        title="CMake",
        templates=(
            *_CMAKE_LIBRARY,
            ("example.cmake.j2", "example/CMakeLists.txt"),
            ("../main.c.j2", "example/main.c"),
        ),
    ),
    Ecosystem(
        name="conan",
        title="Conan",
        templates=(
            *_CMAKE_LIBRARY,
            ("conanfile.py.j2", "conanfile.py"),
            ("test_conanfile.py.j2", "test_package/conanfile.py"),
            ("test_package.cmake.j2", "test_package/CMakeLists.txt"),
            ("../main.c.j2", "test_package/main.c"),
        ),
    ),
    Ecosystem(
        name="meson",
        title="Meson",
        templates=(
            ("meson.build.j2", "meson.build"),
            ("subproject.wrap.j2", "{name}.wrap"),
            ("example.build.j2", "example/meson.build"),
            ("../main.c.j2", "example/main.c"),
        ),
    ),
)

ECOSYSTEMS: Final = {ecosystem.name: ecosystem for ecosystem in _ALL}


def ecosystem_of(name: str) -> Ecosystem:
    """The ecosystem of a name.

    Raises:
        UsageError: There is none (`unknown-ecosystem`).
    """
    if name in ECOSYSTEMS:
        return ECOSYSTEMS[name]
    raise UsageError(
        Diagnostic(
            code="unknown-ecosystem",
            message=f'there are no packages for "{name}"',
            notes=(("known", ", ".join(ECOSYSTEMS)),),
            hint=did_you_mean(name, ECOSYSTEMS) or "choose one of these with --for",
        )
    )


def check_fit(ecosystem: Ecosystem, target: Target, *, has_library: bool) -> None:
    """Reject a product that an ecosystem cannot take.

    Raises:
        UsageError: The core is none of its own, or it takes no libraries
            (`package-does-not-fit`).
    """
    cpu = target.cpu
    fits = ecosystem.arm if cpu.is_arm else ecosystem.hosts
    if not fits:
        raise UsageError(
            Diagnostic(
                code="package-does-not-fit",
                message=f"{ecosystem.title} has no firmware for {cpu.name}",
                notes=(("found", f"a profile for {cpu.name}"),),
                hint="package a profile for a core of this ecosystem",
            )
        )
    if has_library and not ecosystem.library:
        raise UsageError(
            Diagnostic(
                code="package-does-not-fit",
                message=f"packages for {ecosystem.title} have sources only",
                hint="leave out --binary",
            )
        )
