"""Ecosystems as data: which files a package of each has, and where.

Adding one means adding a row here and a folder of templates.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from orchestrator.errors import UsageError, did_you_mean
from orchestrator.targets.cores import Cpu, Target


class Family(StrEnum):
    """Kinds of cores that an ecosystem may support."""

    ARM = "Cortex-M"
    RISCV = "RISC-V"
    LINUX = "Linux"


def family_of(cpu: Cpu) -> Family:
    """The family of a core."""
    if cpu.is_arm:
        return Family.ARM
    is_bare = cpu.default_board is not None
    return Family.RISCV if is_bare else Family.LINUX


@dataclass(frozen=True, slots=True, kw_only=True)
class Ecosystem:
    """A build system or package manager.

    Args:
        name: As `--for` takes it.
        title: As its makers write it.
        templates: (template below its folder, path in the package); `{name}`, `{base}`
            and `{upper}` are those of the product. No text makes no file.
        headers: Folder of headers for applications.
        sources: Folder of sources.
        library: Where the library goes in a package of the library; "" if there can
            be none.
        families: Cores whose products it can take.
        is_c: Whether applications are C or C++, and include headers.
    """

    name: str
    title: str
    templates: tuple[tuple[str, str], ...]
    headers: str = "include"
    sources: str = "src"
    library: str = "lib/lib{name}.a"
    families: frozenset[str] = frozenset(Family)
    is_c: bool = True


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
    Ecosystem(
        name="zephyr",
        title="Zephyr",
        templates=(
            ("module.yml.j2", "zephyr/module.yml"),
            ("CMakeLists.txt.j2", "zephyr/CMakeLists.txt"),
            ("Kconfig.j2", "zephyr/Kconfig"),
            ("aeabi.c.j2", "zephyr/aeabi.c"),
            ("sample.cmake.j2", "samples/{name}/CMakeLists.txt"),
            ("prj.conf.j2", "samples/{name}/prj.conf"),
            ("sample.yaml.j2", "samples/{name}/sample.yaml"),
            ("../main.c.j2", "samples/{name}/src/main.c"),
        ),
    ),
    Ecosystem(
        name="esp-idf",
        title="ESP-IDF",
        templates=(
            ("idf_component.yml.j2", "idf_component.yml"),
            ("CMakeLists.txt.j2", "CMakeLists.txt"),
            ("Kconfig.j2", "Kconfig"),
            ("project.cmake.j2", "examples/hello/CMakeLists.txt"),
            ("main.cmake.j2", "examples/hello/main/CMakeLists.txt"),
            ("main.yml.j2", "examples/hello/main/idf_component.yml"),
            ("main.c.j2", "examples/hello/main/main.c"),
        ),
        # Espressif's chips are RISC-V, or Xtensa, which no target is; Linux is
        # ESP-IDF's own.
        families=frozenset({Family.RISCV, Family.LINUX}),
    ),
    Ecosystem(
        name="arduino",
        title="Arduino",
        templates=(
            ("library.properties.j2", "library.properties"),
            ("hello.ino.j2", "examples/hello/hello.ino"),
        ),
        headers="src",
        # Where Arduino looks for precompiled libraries.
        library="src/{arduino_folder}/lib{name}.a",
        families=frozenset({Family.ARM, Family.RISCV}),
    ),
    Ecosystem(
        name="platformio",
        title="PlatformIO",
        templates=(("library.json.j2", "library.json"), ("../main.c.j2", "examples/hello/main.c")),
    ),
    Ecosystem(
        name="cmsis",
        title="CMSIS",
        templates=(
            ("clayer.yml.j2", "{name}.clayer.yml"),
            ("csolution.yml.j2", "example/example.csolution.yml"),
            ("cproject.yml.j2", "example/example.cproject.yml"),
            ("pack.pdsc.j2", "Orchestrator.{base}.pdsc"),
            ("../main.c.j2", "example/main.c"),
        ),
        families=frozenset({Family.ARM}),
    ),
    Ecosystem(
        name="bazel",
        title="Bazel",
        templates=(
            ("MODULE.bazel.j2", "MODULE.bazel"),
            ("BUILD.bazel.j2", "BUILD.bazel"),
            ("example.bazel.j2", "example/BUILD.bazel"),
            ("../main.c.j2", "example/main.c"),
        ),
    ),
    Ecosystem(
        name="rust",
        title="Rust",
        templates=(
            ("Cargo.toml.j2", "Cargo.toml"),
            ("build.rs.j2", "build.rs"),
            ("lib.rs.j2", "src/lib.rs"),
            ("hello.rs.j2", "examples/hello.rs"),
        ),
        # `src` is the crate's own, of Rust.
        sources="native",
        is_c=False,
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
    raise UsageError.of(
        "unknown-ecosystem",
        f'there are no packages for "{name}"',
        known=", ".join(ECOSYSTEMS),
        hint=did_you_mean(name, ECOSYSTEMS) or "choose one of these with --for",
    )


def check_fit(ecosystem: Ecosystem, target: Target, *, has_library: bool) -> None:
    """Reject a product that an ecosystem cannot take.

    Raises:
        UsageError: The core is none of its own, or it takes no libraries
            (`package-does-not-fit`).
    """
    cpu = target.cpu
    if family_of(cpu) not in ecosystem.families:
        raise UsageError.of(
            "package-does-not-fit",
            f"a product for {cpu.name} does not fit {ecosystem.title}",
            expected=" or ".join(sorted(ecosystem.families)),
            hint="package a profile for a core that it has",
        )
    if has_library and not ecosystem.library:
        raise UsageError.of(
            "package-does-not-fit",
            f"packages for {ecosystem.title} have sources only",
            hint="leave out --binary",
        )
