"""Packages: each taken by its ecosystem's own tool, built, run, and compared.

The product is the int8 keyword spotter, for this machine. Its self test has the case of
the examples, so that an application which says "passed" has computed every bit of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import yaml

from orchestrator.cli.main import run
from orchestrator.package.ecosystem import ECOSYSTEMS, Family
from orchestrator.shell.ninja import ninja_program
from orchestrator.targets.cores import BOARDS, CPUS
from tests.integration.workspace import ROOT
from tests.tools import (
    need_cmake,
    need_emulator,
    need_script,
    need_tool,
    need_toolchain,
    optional_tool,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.toolchain

CASES = ROOT / "examples" / "cases"
SCENARIO = CASES / "kws-int8-m4.json"
MODEL = ROOT / "examples" / "models" / "kws_dscnn_int8.pte"
INPUT, OUTPUT = (CASES / "kws_dscnn_int8" / f"{name}0.npy" for name in ("in", "out"))
PASSED = "kws: self test passed\nrun_kws_kws_forward: Ok\n"
RAN = PASSED.partition("\n")[2]
BOTH = pytest.mark.parametrize(
    ("arguments", "said"), [((), PASSED), (("--binary",), RAN)], ids=("src", "lib")
)
"""Packages of sources and of the library, with what their examples print."""
PROFILE = """\
schema = 1
name = "kws"
version = "1.4.0"
description = "Keyword spotting"
[target]
cpu = "CPU"
toolchain = "TOOLCHAIN"
[kernels]
libraries = ["cortex_m", "quantized", "portable"]
[[models]]
name = "kws"
path = "kws_dscnn_int8.pte"
load = "prelinked"
"""
FAST = 'error: #error "kws has exact floats: compile it without -ffast-math'


_CACHE = {
    name: value
    for name, value in {
        "CCACHE_DIR": os.environ.get("CCACHE_DIR", ""),
        "CCACHE_BASEDIR": "/tmp",  # noqa: S108  # paths below are relative to folders
        "CCACHE_NOHASHDIR": "1",
        "CMAKE_C_COMPILER_LAUNCHER": shutil.which("ccache") or "",
        "CMAKE_CXX_COMPILER_LAUNCHER": shutil.which("ccache") or "",
    }.items()
    if value
}
"""Ecosystems compile the same sources: what they compile is in ccache."""


@dataclass(frozen=True, slots=True)
class Packages:
    """Makes packages of one product."""

    folder: Path
    name: str = "kws"
    more: tuple[str, ...] = ("--scenario", str(SCENARIO))

    def run(self, ecosystem: str, out: Path, *arguments: str) -> int:
        """Exit code of `orchestrator package`."""
        profile = str(self.folder / f"{self.name}.toml")
        command = ["package", profile, "--for", ecosystem, "--out", str(out)]
        command += [*self.more, *arguments]
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            return run(command)
        finally:
            os.chdir(before)

    def make(self, ecosystem: str, out: Path, *arguments: str) -> Path:
        """A package in a folder that it did not know when it was made."""
        assert self.run(ecosystem, out / "made", *arguments) == 0
        return (out / "made").rename(out / self.name)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    need_tool("g++")
    return _packages(tmp_path_factory.mktemp("host"), "host")


@pytest.fixture(scope="module")
def for_m4(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    need_emulator("cortex-m4")
    return _packages(tmp_path_factory.mktemp("m4"), "cortex-m4")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Another product with a model of the same name, which programs can replace."""
    folder = tmp_path_factory.mktemp("sum")
    need_toolchain("host", "zig")
    (folder / "sum.toml").write_text(
        'schema = 1\nname = "sum"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
        f'[[models]]\nname = "kws"\npath = "{ROOT}/examples/models/add_mul.pte"\n'
        'load = "pte"\n'
        '[operators]\ninclude = ["aten::rand.out"]\n'
    )
    return Packages(folder, name="sum", more=())


def _packages(folder: Path, cpu: str, toolchain: str = "zig") -> Packages:
    need_toolchain(cpu, toolchain)
    text = PROFILE.replace("CPU", cpu).replace("TOOLCHAIN", toolchain)
    (folder / "kws.toml").write_text(text)
    shutil.copy(MODEL, folder)
    return Packages(folder)


def tool(
    *command: object, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a tool says, without settings of the user."""
    clean = {"PATH": os.environ["PATH"], "HOME": str(cwd), "LC_ALL": "C", **_CACHE}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**clean, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def need(done: subprocess.CompletedProcess[str]) -> str:
    """Output of a tool that succeeded."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cmake(
    source: Path, out: Path, *settings: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Configure and build."""
    program, ninja = need_cmake(), f"-DCMAKE_MAKE_PROGRAM={ninja_program()}"
    folders = ("-S", source, "-B", out)
    arguments = (program, *folders, "-GNinja", ninja, *settings)
    need(tool(*arguments, cwd=source, env=env))
    return tool(program, "--build", out, cwd=source, env=env)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def in_cmake(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packages.make("cmake", tmp_path_factory.mktemp("cmake"))


def test_cmake(in_cmake: Path, tmp_path: Path) -> None:
    """The example, and an application whose outputs are those of ExecuTorch."""
    app = tmp_path / "app"
    app.mkdir()
    (app / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES C CXX)\n"
        f'find_package(kws 1.4 CONFIG REQUIRED PATHS "{in_cmake}" NO_DEFAULT_PATH)\n'
        f'add_executable(example "{in_cmake}/example/main.c")\n'
        "add_executable(app main.c)\n"
        "foreach(one app example)\n"
        "  target_link_libraries(${one} PRIVATE orchestrator::kws)\nendforeach()\n"
    )
    (app / "main.c").write_text(
        '#include <stdio.h>\n#include "kws.h"\n'
        "static float in[KWS_KWS_FORWARD_INPUT0_COUNT];\n"
        "static float out[KWS_KWS_FORWARD_OUTPUT0_COUNT];\n"
        "int main(void) {\n"
        "  return fread(in, sizeof in, 1, stdin) != 1 ||\n"
        "         kws_kws_forward(in, out) != ORCH_OK ||\n"
        "         fwrite(out, sizeof out, 1, stdout) != 1;\n}\n"
    )
    need(cmake(app, tmp_path / "out"))
    assert need(tool(tmp_path / "out" / "example", cwd=tmp_path)) == PASSED
    (library,) = (tmp_path / "out").glob("libkws.a")
    symbols = need(tool("nm", "-gj", "--defined-only", library, cwd=tmp_path)).split()
    names = {name for name in symbols if not name.endswith((".o:", ".a:"))}
    # Nothing that the package of another product defines, too.
    assert {name for name in names if "kws" not in name} == {"orch_status_text"}
    done = subprocess.run(
        [tmp_path / "out" / "app"],
        input=np.load(INPUT).transpose(0, 2, 1, 3).tobytes(),
        capture_output=True,
        check=True,
    )
    found, wanted = np.frombuffer(done.stdout, "<f4"), np.load(OUTPUT).ravel()
    assert np.abs(found - wanted).max() <= 1e-6


def test_two_products_in_one_program(
    in_cmake: Path, loaded: Packages, tmp_path: Path
) -> None:
    """Both have a model of the same name, and both self tests pass."""
    loaded.make("cmake", tmp_path)
    app = tmp_path / "app"
    app.mkdir()
    (app / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES C CXX)\n"
        f'find_package(kws CONFIG REQUIRED PATHS "{in_cmake}" NO_DEFAULT_PATH)\n'
        f'find_package(sum CONFIG REQUIRED PATHS "{tmp_path}/sum" NO_DEFAULT_PATH)\n'
        "add_executable(app main.cpp)\n"
        "target_link_libraries(app PRIVATE orchestrator::kws orchestrator::sum)\n"
    )
    (app / "main.cpp").write_text(
        '#include "kws.h"\n#include "kws_self_test.h"\n'
        '#include "sum.h"\n#include "sum_self_test.h"\n'
        "int main() {\n"
        "  sum_random_seed(42);\n"
        "  if (sum_random_next() != 0xc2f57bd6) return 1;\n"
        "  return kws_self_test(nullptr) + sum_self_test(nullptr) +\n"
        "         kws_self_test(nullptr);\n}\n"
    )
    need(cmake(app, tmp_path / "out"))
    need(tool(tmp_path / "out" / "app", cwd=tmp_path))


def test_installed(in_cmake: Path, tmp_path: Path) -> None:
    """pkg-config names what a compiler needs, wherever the prefix is moved."""
    pkg_config = need_tool("pkg-config")
    prefix, out = tmp_path / "prefix", tmp_path / "out"
    need(cmake(in_cmake, out, f"-DCMAKE_INSTALL_PREFIX={prefix}"))
    need(tool(need_cmake(), "--install", out, cwd=tmp_path))
    prefix = prefix.rename(tmp_path / "moved")
    (pc,) = prefix.rglob("kws.pc")
    env = {"PKG_CONFIG_PATH": str(pc.parent)}
    flags = need(tool(pkg_config, "--cflags", "--libs", "kws", cwd=tmp_path, env=env))
    main = in_cmake / "example" / "main.c"
    need(tool("gcc", main, *flags.split(), "-o", "app", cwd=tmp_path))
    assert need(tool(tmp_path / "app", cwd=tmp_path)) == PASSED


def test_flags_that_change_bits_are_refused(in_cmake: Path, tmp_path: Path) -> None:
    for flags in ("-ffast-math", "-O2 -ffinite-math-only"):
        done = cmake(in_cmake, tmp_path / flags[-9:], f"-DCMAKE_CXX_FLAGS={flags}")
        assert done.returncode != 0
        assert FAST in done.stdout
    source = in_cmake / "src" / "runtime" / "error.cpp"
    done = tool("g++", "-std=c++14", "-c", source, cwd=tmp_path)
    assert "kws is C++17: compile with -std=c++17 or newer" in done.stderr


def test_products_are_not_fused_into_sums(in_cmake: Path, tmp_path: Path) -> None:
    """By gcc for a core with such instructions, whatever its flags."""
    gcc = need_tool("arm-none-eabi-g++")
    config = (in_cmake / "src" / "kws_config.h").read_text()
    text = "float f(float a, float b, float c) { return a * b + c; }\n"
    attributes = '#include "runtime/attributes.h"\n'
    flags = "-O2 -mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard -S -o -"
    found = []
    for before in ("", config.replace(attributes, "")):
        (tmp_path / "f.cpp").write_text(before.replace("#pragma once", "") + text)
        found.append(need(tool(gcc, *flags.split(), "f.cpp", cwd=tmp_path)))
    fused, separate = found
    assert "vfma" in fused
    assert "vfma" not in separate


def test_a_damaged_weight_is_found(in_cmake: Path, tmp_path: Path) -> None:
    # As deep as in other tests, so that ccache knows the other sources.
    package = shutil.copytree(in_cmake, tmp_path / "cmake0" / "kws")
    models = package / "src" / "product" / "models.c"
    text = models.read_text()
    first = max(re.finditer(r"\[(\d+)\] = \{\n  (\d+)", text), key=lambda m: int(m[1]))
    damaged = f"{int(first[2]) ^ 127}"
    models.write_text(text[: first.start(2)] + damaged + text[first.end(2) :])
    need(cmake(package / "example", tmp_path / "a" / "out"))
    done = tool(tmp_path / "a" / "out" / "example", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == "kws: self test failed: ImageDamaged, kws.forward\n"


def test_the_library_in_its_place(packages: Packages, tmp_path: Path) -> None:
    package = packages.make("cmake", tmp_path, "--binary")
    assert not (package / "src").exists()
    need(cmake(package / "example", tmp_path / "out"))
    said = need(tool(tmp_path / "out" / "example", cwd=tmp_path))
    assert said == RAN
    library, lock = package / "lib" / "libkws.a", package / "orchestrator" / "kws.lock"
    assert run(["verify", "--artefact", str(library), "--lock", str(lock)]) == 0


def test_same_bytes_from_another_folder(
    packages: Packages, for_m4: Packages, tmp_path: Path
) -> None:
    """Of all ecosystems; nothing is compiled again there."""
    left = dict(ECOSYSTEMS)
    for one, family in ((packages, Family.LINUX), (for_m4, Family.ARM)):
        names = [name for name, found in left.items() if family in found.families]
        folder, made = tmp_path / family, {}
        for name in names:
            assert one.run(name, folder / name) == 0
            made[name] = files_of(folder / name)
        two = Packages(tmp_path / "elsewhere" / family / "deeper")
        shutil.copytree(one.folder, two.folder, symlinks=True)
        for name in names:
            assert two.run(name, two.folder / name) == 0
            assert files_of(two.folder / name) == made[name]
            del left[name]
    assert not left


def test_nobody_elses_files(
    packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        assert packages.run("cmake", folder) == 0
    (one / "notes.txt").write_text("mine")
    # What the package no longer has goes, what is the user's stays.
    assert packages.run("meson", one) == 0
    assert not (one / "CMakeLists.txt").exists()
    assert not (one / "cmake").exists()
    assert (one / "notes.txt").read_text() == "mine"
    capsys.readouterr()
    readme = two / "README.md"
    readme.write_text("mine")
    assert packages.run("cmake", two) == 2
    error = capsys.readouterr().err
    assert f"cannot write {readme}: it was not made or was changed since" in error
    assert readme.read_text() == "mine"
    other = tmp_path / "other"
    other.mkdir()
    (other / "a").touch()
    assert packages.run("cmake", other) == 2
    error = capsys.readouterr().err
    assert f"{other} is not a package of Orchestrator, and not empty" in error
    assert sorted(files_of(other)) == ["a"]


def test_what_the_package_says_of_itself(packages: Packages, in_cmake: Path) -> None:
    folder = in_cmake / "orchestrator"
    facts = json.loads((folder / "package.json").read_text())
    assert (facts["name"], facts["version"]) == ("kws", "1.4.0")
    assert facts["digest"] in (in_cmake / "README.md").read_text()
    bom = json.loads((folder / "sbom.cdx.json").read_text())
    firmware = (packages.folder / "build" / "kws" / "firmware.elf").read_bytes()
    (found,) = bom["metadata"]["component"]["hashes"]
    assert found["content"] == hashlib.sha256(firmware).hexdigest()
    assert bom["metadata"]["component"]["version"] == "1.4.0"
    for name in ("sbom.cdx.json", "provenance.intoto.json"):
        document, lock = str(folder / name), str(folder / "kws.lock")
        assert run(["verify", "--artefact", document, "--lock", lock]) == 0


def test_the_version_is_that_of_the_profile_or_of_the_command(
    packages: Packages, tmp_path: Path
) -> None:
    package = packages.make("bazel", tmp_path, "--version", "2.0.1")
    assert 'version = "2.0.1",\n' in (package / "MODULE.bazel").read_text()


def test_firmware_with_a_package_and_later_programs(
    loaded: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lock in the package says what fits, and which profile decodes its status."""
    package, profile = loaded.make("meson", tmp_path), str(loaded.folder / "sum.toml")
    lock = str(package / "orchestrator" / "sum.lock")
    own = loaded.folder / "build" / "sum" / "models" / "kws.pte"
    assert run(["compat", lock, str(own)]) == 0
    capsys.readouterr()
    assert run(["compat", lock, str(MODEL)]) == 12
    error = capsys.readouterr().err
    assert "the firmware has no kernel for cortex_m::quantized_conv2d.out" in error
    assert run(["lock", profile, "--check", "--lock", lock]) == 0
    capsys.readouterr()
    assert run(["decode", "10", "--instruction", "1", "--profile", profile]) == 0
    assert "which calls aten::add.out, failed with Invalid" in capsys.readouterr().out


def test_unknown_ecosystem(
    packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert packages.run("cmaek", tmp_path / "x") == 2
    error = capsys.readouterr().err
    assert 'there are no packages for "cmaek"' in error
    assert 'did you mean "cmake"?' in error
    assert not (tmp_path / "x").exists()


@BOTH
def test_conan(
    packages: Packages, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """Offline: recipe, package and test package."""
    conan = need_script("conan")
    package = packages.make("conan", tmp_path, *arguments)
    env = {
        "CONAN_HOME": str(tmp_path / "home"),
        "PATH": f"{Path(need_cmake()).parent}:{os.environ['PATH']}",
    }
    need(tool(conan, "profile", "detect", cwd=tmp_path, env=env))
    need(tool(conan, "remote", "disable", "*", cwd=tmp_path, env=env))
    settings = ("-s", "build_type=Debug", "--build=missing")
    done = tool(conan, "create", package, *settings, cwd=tmp_path, env=env)
    need(done)
    assert said in done.stderr


@BOTH
def test_meson(
    packages: Packages, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """As a subproject of the example."""
    meson = need_script("meson")
    package = packages.make("meson", tmp_path, *arguments)
    app = shutil.copytree(package / "example", tmp_path / "app")
    (app / "subprojects").mkdir()
    shutil.copytree(package, app / "subprojects" / "kws")
    shutil.copy(package / "kws.wrap", app / "subprojects")
    env = {"NINJA": str(ninja_program())}
    need(tool(meson, "setup", "out", cwd=app, env=env))
    need(tool(meson, "compile", "-C", "out", cwd=app, env=env))
    assert need(tool(app / "out" / "example", cwd=app)) == said


ZEPHYR = """\
# A stand-in for Zephyr: what a module and an application use of it.
cmake_minimum_required(VERSION 3.20)
project(zephyr LANGUAGES C CXX)
file(STRINGS "$ENV{DOT_CONFIG}" lines REGEX "^CONFIG_")
foreach(line IN LISTS lines)
  string(REGEX MATCH "^(CONFIG_[A-Z0-9_]+)=(.*)$" found "${line}")
  set(${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
endforeach()
function(zephyr_include_directories)
  include_directories(${ARGV})
  target_include_directories(app PRIVATE ${ARGV})
endfunction()
function(zephyr_link_libraries)
  target_link_libraries(app PRIVATE ${ARGV})
endfunction()
function(zephyr_library_named name)
  add_library(${name} STATIC)
  target_link_libraries(app PRIVATE ${name})
  set(ZEPHYR_CURRENT_LIBRARY ${name} PARENT_SCOPE)
endfunction()
function(zephyr_library_sources)
  target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGV})
endfunction()
function(zephyr_library_sources_ifdef feature)
  if(${feature})
    target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
  endif()
endfunction()
function(zephyr_library_compile_options)
  target_compile_options(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGV})
endfunction()
set(CMAKE_CXX_STANDARD 17)
add_executable(app)
add_library(native_simulator INTERFACE)
target_link_libraries(app PRIVATE native_simulator)
foreach(module IN LISTS ZEPHYR_EXTRA_MODULES)
  add_subdirectory("${module}/zephyr" module)
endforeach()
"""


@BOTH
def test_zephyr(
    packages: Packages, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """Kconfig by kconfiglib; module and sample by CMake, with a stand-in for Zephyr."""
    python = need_script("kconfiglib", program="genconfig")
    package = packages.make("zephyr", tmp_path, *arguments)
    module = yaml.safe_load((package / "zephyr" / "module.yml").read_text())
    assert (package / module["build"]["cmake"] / "CMakeLists.txt").is_file()
    sample = package / module["samples"][0] / "kws"
    test = yaml.safe_load((sample / "sample.yaml").read_text())
    (one,) = test["tests"].values()
    assert one["platform_allow"] == ["native_sim/native/64"]
    assert test["common"]["harness_config"]["regex"] == said.splitlines()
    (tmp_path / "Kconfig").write_text(
        'config CPP\n\tbool\n\tprompt "C++"\n'
        'config STD_CPP17\n\tbool\n\tprompt "C++17"\n'
        'config PRINTK\n\tbool\n\tprompt "printk"\n'
        'config MAIN_STACK_SIZE\n\tint\n\tprompt "stack"\n'
        f'source "{package / module["build"]["kconfig"]}"\n'
    )
    env = {"KCONFIG_CONFIG": str(sample / "prj.conf"), "KCONFIG_WARN_UNDEF": "1"}
    options = ("Kconfig", "--header-path", "autoconf.h", "--config-out", ".config")
    done = tool(python, *options, cwd=tmp_path, env=env)
    assert (need(done), done.stderr) == ("", "")
    config = (tmp_path / "autoconf.h").read_text()
    assert "#define CONFIG_ORCHESTRATOR_KWS 1\n" in config
    assert ("CONFIG_ORCHESTRATOR_KWS_SELF_TEST 1\n" in config) == (said == PASSED)
    zephyr = tmp_path / "share" / "zephyr-package" / "cmake"
    zephyr.mkdir(parents=True)
    (zephyr / "ZephyrConfig.cmake").write_text(ZEPHYR)
    os_env = {"ZEPHYR_BASE": str(zephyr), "DOT_CONFIG": str(tmp_path / ".config")}
    need(cmake(sample, tmp_path / "out", f"-DZephyr_DIR={zephyr}", env=os_env))
    assert need(tool(tmp_path / "out" / "app", cwd=tmp_path)) == said


def test_zephyrs_own_build(packages: Packages, tmp_path: Path) -> None:
    """The sample on this machine, in a checkout of Zephyr."""
    base = os.environ.get("ZEPHYR_BASE", "")
    if not base:
        pytest.skip("needs ZEPHYR_BASE: a checkout of Zephyr")
    west = optional_tool("west")
    package = packages.make("zephyr", tmp_path)
    env = {"ZEPHYR_BASE": base, "ZEPHYR_TOOLCHAIN_VARIANT": "host"}
    arguments = ("build", "-b", "native_sim/native/64", "-d", tmp_path / "out")
    need(tool(west, *arguments, package / "samples" / "kws", cwd=Path(base), env=env))
    done = subprocess.run(
        [tmp_path / "out" / "zephyr" / "zephyr.exe", "-stop_at=5"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert PASSED.split("\n", maxsplit=1)[0] in done.stdout


@BOTH
def test_esp_idf(
    packages: Packages, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """compote packs the component; a stand-in for ESP-IDF's CMake builds it."""
    compote = need_script("compote")
    package = packages.make("esp-idf", tmp_path, *arguments)
    options = ("component", "pack", "--name", "kws", "--dest-dir", tmp_path / "dist")
    need(tool(compote, *options, cwd=package))
    with tarfile.open(tmp_path / "dist" / "kws_1.4.0.tgz") as archive:
        names = {name.removeprefix("./") for name in archive.getnames()}
    code = "lib/libkws.a" if arguments else "src/product/models.c"
    assert {"idf_component.yml", "include/kws.h", code} <= names
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES C CXX)\n"
        "set(CONFIG_ORCHESTRATOR_KWS_SELF_TEST y)\n"
        "macro(idf_component_register)\n"
        '  cmake_parse_arguments(_ "" "" "SRCS;INCLUDE_DIRS" ${ARGN})\n'
        "  set(COMPONENT_LIB __idf_kws)\n"
        "  if(__SRCS)\n    set(kind STATIC)\n    set(scope PUBLIC)\n"
        "  else()\n    set(kind INTERFACE)\n    set(scope INTERFACE)\n  endif()\n"
        "  add_library(${COMPONENT_LIB} ${kind} ${__SRCS})\n"
        "  target_include_directories(${COMPONENT_LIB} ${scope} ${__INCLUDE_DIRS})\n"
        "endmacro()\n"
        "function(add_prebuilt_library name path)\n"
        "  add_library(${name} STATIC IMPORTED GLOBAL)\n"
        "  set_target_properties(${name} PROPERTIES\n"
        "    IMPORTED_LOCATION ${CMAKE_CURRENT_SOURCE_DIR}/${path})\n"
        "endfunction()\n"
        "add_subdirectory(kws)\n"
        "add_executable(app kws/examples/hello/main/main.c start.c)\n"
        "target_link_libraries(app PRIVATE __idf_kws)\n"
    )
    (tmp_path / "start.c").write_text(
        "void app_main(void);\nint main(void) { app_main(); return 0; }\n"
    )
    need(cmake(tmp_path, tmp_path / "out"))
    assert need(tool(tmp_path / "out" / "app", cwd=tmp_path)) == said


def _platformio_project(folder: Path, scons: str) -> None:
    """A project, and what PlatformIO would fetch from its registry for it."""
    ccache = "ccache " if shutil.which("ccache") else ""
    version = f'"name": "tool-scons", "version": "{scons}"'
    files = {
        "project/platformio.ini": "[env:native]\n"
        f"platform = symlink://{folder}/native\n"
        "build_unflags = -std=gnu++11 -std=gnu++14\nbuild_flags = -std=gnu++17\n",
        "native/platform.json": '{"name": "native", "version": "1.0.0",'
        ' "title": "native", "description": "-"}',
        "native/platform.py": "from platformio.platform.base import PlatformBase\n"
        "class NativePlatform(PlatformBase):\n    pass\n",
        "native/builder/main.py": "from SCons.Script import DefaultEnvironment\n"
        "env = DefaultEnvironment()\n"
        f'env.Replace(CC="{ccache}gcc", CXX="{ccache}g++")\n'
        "env.Default(env.BuildProgram())\n",
        "pio/packages/tool-scons/package.json": f"{{{version}}}",
        "pio/packages/tool-scons/.piopm": f'{{"type": "tool", {version},'
        ' "spec": {"owner": "platformio", "id": null, "name": "tool-scons",'
        ' "requirements": null, "uri": null}}',
        "pio/packages/tool-scons/scons.py": "from SCons.Script import main\nmain()\n",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@BOTH
def test_platformio(
    packages: Packages, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """PlatformIO reads the manifest, packs the library and builds the example.

    With a stand-in for its platform `native`, and SCons from PyPI: both are packages of
    its own registry.
    """
    pio = need_script("pio")
    package = packages.make("platformio", tmp_path, *arguments)
    # Its check of licences fetches a list of them.
    offline = (
        "from platformio.package.manifest import schema\n"
        "schema.load_spdx_licenses = None\n"
        "schema.ManifestSchema.load_spdx_licenses = staticmethod(\n"
        '    lambda: {"licenses": [{"licenseId": "Apache-2.0"}]})\n'
        "from platformio.__main__ import main\n"
        "main()\n"
    )
    python = Path(pio).resolve().read_text().partition("\n")[0].removeprefix("#!")
    options = ("pkg", "pack", package, "-o", tmp_path / "kws.tar.gz")
    env = {"PLATFORMIO_CORE_DIR": str(tmp_path / "pio")}
    need(tool(python, "-c", offline, *options, cwd=tmp_path, env=env))
    with tarfile.open(tmp_path / "kws.tar.gz") as archive:
        names = set(archive.getnames())
    code = "lib/libkws.a" if arguments else "src/product/models.c"
    assert {"library.json", "include/kws.h", code} <= names
    wanted = (
        "from platformio.dependencies import get_core_dependencies\n"
        'print(get_core_dependencies()["tool-scons"].lstrip("~"))\n'
    )
    scons = need(tool(python, "-c", wanted, cwd=tmp_path, env=env)).strip()
    _platformio_project(tmp_path, scons)
    project = tmp_path / "project"
    shutil.copytree(package / "examples" / "hello", project / "src")
    shutil.copytree(package, project / "lib" / "kws")
    need(tool(pio, "run", "-d", project, cwd=tmp_path, env=env))
    assert need(tool(project / ".pio/build/native/program", cwd=tmp_path)) == said


def run_in_qemu(
    made_by: Packages, package: Path, folder: Path, *, cpu: str, gnu: str
) -> None:
    """Compile all sources of a package as a core for Arduino would, and its self test.

    Start-up code and linker script are those of the product's own firmware.
    """
    gcc, cpp = need_tool(f"{gnu}-gcc"), need_tool(f"{gnu}-g++")
    build = made_by.folder / "build" / "kws"
    facts = json.loads((build / "product.json").read_text())
    board = BOARDS[facts["board"]]
    machine = CPUS[cpu].isas[CPUS[cpu].default_isa].machine_flags
    (folder / "app.cpp").write_text(
        "#include <kws.h>\n#include <kws_self_test.h>\n"
        "int orch_application(const char*, const char*) {\n"
        "  return kws_self_test(nullptr);\n}\n"
    )
    (headers,) = {path.parent for path in package.rglob("kws_self_test.h")}
    # No C library is installed with these compilers: string.h is ours.
    flags = "-O2 -ffunction-sections -fdata-sections -fno-exceptions -w -c"
    flags += f" -I{headers} -idirafter {ROOT}/runtime/freestanding"
    objects: list[str] = []
    sources = sorted((package / "src").rglob("*.c*"))
    for number, source in enumerate([*sources, folder / "app.cpp"]):
        compiler = gcc if source.suffix == ".c" else cpp
        objects.append(f"{number}.o")
        command = ("ccache", compiler, *machine, *flags.split(), source)
        need(tool(*command, "-o", objects[-1], cwd=folder))
    defined = need(tool(f"{gnu}-nm", "-g", "--defined-only", *objects, cwd=folder))
    found = re.findall(r"^[0-9a-f]+ [TDBR] (\w+)$", defined, re.MULTILINE)
    # A program may have several packages.
    (own,) = (name for name in found if "kws" not in name)
    assert "orch_application" in own  # that of app.cpp
    made = build / ".work" / "obj"
    start = [
        *(made / "runtime" / "platform").rglob("*.o"),
        *(made / "runtime" / "freestanding").glob("*.o"),
        *made.glob("compiler_rt.o"),
    ]
    link = f"-nostdlib -T {build}/gen/firmware.ld"
    link += " -Wl,--gc-sections,--no-warn-rwx-segments"
    files = (*objects, *start, "-lgcc", "-o", "app.elf")
    need(tool(cpp, *machine, *link.split(), *files, cwd=folder))
    semihosting = "enable=on,target=native,arg=app,arg=a,arg=b"
    arguments = ("-semihosting-config", semihosting, "-kernel", "app.elf")
    assert need(tool(*board.emulator, *arguments, cwd=folder)) == ""


def test_arduino_in_qemu(for_m4: Packages, tmp_path: Path) -> None:
    """All sources below src/, on a Cortex-M4."""
    package = for_m4.make("arduino", tmp_path)
    lines = (package / "library.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    assert {"name", "version", "sentence", "architectures"} <= properties.keys()
    assert (package / "src" / properties["includes"]).is_file()
    sketch = (package / "examples" / "hello" / "hello.ino").read_text()
    assert "kws_self_test(&failed)" in sketch
    run_in_qemu(for_m4, package, tmp_path, cpu="cortex-m4", gnu="arm-none-eabi")


def test_cmsis(for_m4: Packages, tmp_path: Path) -> None:
    """Layer and pack name every source, and files that exist."""
    package = for_m4.make("cmsis", tmp_path)
    layer = yaml.safe_load((package / "kws.clayer.yml").read_text())["layer"]
    (group,) = layer["groups"]
    named = {entry["file"] for entry in group["files"]}
    sources = {
        path.relative_to(package).as_posix()
        for path in (package / "src").rglob("*")
        if path.suffix in (".c", ".cpp")
    }
    assert {name for name in named if name.startswith("src/")} == sources
    assert all((package / name).is_file() for name in named)
    project = yaml.safe_load((package / "example/example.cproject.yml").read_text())
    (used,) = project["project"]["layers"]
    assert (package / "example" / used["layer"]).is_file()
    pack = ET.parse(package / "Orchestrator.kws.pdsc")  # noqa: S314  # ours
    files = {file.attrib["name"] for file in pack.iter("file")}
    assert sources < files
    assert all((package / name).exists() for name in files)
    cores = {found.attrib["Dcore"] for found in pack.iter("accept")}
    assert cores == {"Cortex-M4"}


def test_a_board_without_emulator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its firmware cannot be run here: all of a package but the self test."""
    need_toolchain("cortex-m23", "zig")
    (tmp_path / "sum.toml").write_text(
        'schema = 1\nname = "sum"\n[target]\ncpu = "cortex-m23"\ntoolchain = "zig"\n'
        f'[[models]]\nname = "sum"\npath = "{ROOT}/examples/models/add_mul.pte"\n'
    )
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert run(["package", "sum.toml", "--for", "zephyr"]) == 0
        assert (
            "sum: no self test, as firmware for generic-m23" in capsys.readouterr().err
        )
        assert run(["package", "sum.toml", "--for", "arduino"]) == 0
    finally:
        os.chdir(before)
    files = {**files_of(tmp_path / "packages")}
    assert "arduino/sum/src/sum.h" in files
    assert [name for name in files if "self_test" in name or "runner" in name] == []
    about = re.compile(rb"self.test", re.IGNORECASE)
    mentions = {name for name, data in files.items() if about.search(data)}
    assert {name for name in mentions if "/orchestrator/" not in name} == set()


def test_a_core_that_an_ecosystem_lacks(
    for_m4: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert for_m4.run("esp-idf", tmp_path / "x") == 2
    error = capsys.readouterr().err
    assert "a product for cortex-m4 does not fit ESP-IDF" in error
    assert not (tmp_path / "x").exists()


@BOTH
def test_bazel(
    packages: Packages, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """In its sandbox, with Debian's Bazel and its rules."""
    bazel = optional_tool("bazel")
    rules = Path("/usr/share/bazel/rules")
    if not (rules / "java").is_dir():
        pytest.skip("needs bazel-rules-java, bazel-rules-proto, bazel-skylib")
    package = packages.make("bazel", tmp_path, *arguments)
    if buildifier := shutil.which("buildifier"):
        built = [package / "MODULE.bazel", *package.rglob("BUILD.bazel")]
        need(tool(buildifier, "--mode=check", "--lint=warn", *built, cwd=tmp_path))
    (package / "WORKSPACE").touch()
    # rules_cc that fit this old Bazel: its own rules, under their names of today.
    own = tmp_path / "rules_cc" / "cc"
    own.mkdir(parents=True)
    (own.parent / "WORKSPACE").touch()
    (own / "BUILD").touch()
    names = "cc_library cc_binary cc_test cc_import cc_toolchain cc_toolchain_suite"
    (own / "defs.bzl").write_text(
        "".join(
            f"def {name}(**arguments):\n    native.{name}(**arguments)\n\n"
            for name in names.split()
        )
    )
    repositories = {
        "rules_cc": own.parent,
        "rules_java": rules / "java",
        "rules_proto": rules / "proto",
        "bazel_skylib": "/usr/share/bazel/tools/skylib",
        "platforms": "/usr/share/bazel/platforms",
    }
    start = (bazel, f"--output_user_root={tmp_path / 'bazel'}", "--batch")
    options = [f"--override_repository={n}={p}" for n, p in repositories.items()]
    need(tool(*start, "build", *options, "//example", cwd=package))
    program = package / "bazel-bin" / "example" / "example"
    assert need(tool(program, cwd=tmp_path)) == said


@BOTH
def test_rust(
    packages: Packages, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """With Debian's crate cc."""
    cargo = optional_tool("cargo")
    registry = Path("/usr/share/cargo/registry")
    if not list(registry.glob("cc-*")):
        pytest.skip("needs librust-cc-dev")
    package = packages.make("rust", tmp_path, *arguments)
    (package / ".cargo").mkdir()
    (package / ".cargo" / "config.toml").write_text(
        '[source.crates-io]\nreplace-with = "debian"\n'
        f'[source.debian]\ndirectory = "{registry}"\n'
    )
    env = {"HOME": os.environ["HOME"]}  # rustup finds its toolchain there
    done = tool(cargo, "run", "--offline", "--example", "hello", cwd=package, env=env)
    assert need(done) == said


def test_esp_idf_on_risc_v(tmp_path: Path) -> None:
    """All sources of a component, on the core of an ESP32-C6."""
    need_emulator("rv32imac")
    # GNU ld crashes on RISC-V objects of zig beside its own.
    packages = _packages(tmp_path, "rv32imac", "gnu")
    package = packages.make("esp-idf", tmp_path)
    gnu = "riscv64-unknown-elf"
    run_in_qemu(packages, package, tmp_path, cpu="rv32imac", gnu=gnu)
