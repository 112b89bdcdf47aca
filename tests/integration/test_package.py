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
from pathlib import Path

import numpy as np
import pytest
import yaml

from orchestrator.cli.main import run
from orchestrator.shell.ninja import ninja_program
from tests import list_program
from tests.conftest import CORPUS
from tests.integration.packages import (
    CASES,
    MODEL,
    PASSED,
    RAN,
    Packages,
    cmake,
    files_of,
    need,
    packages_for,
    tool,
)
from tests.integration.platformio import PlatformIO
from tests.tools import (
    need_cmake,
    need_emulator,
    need_script,
    need_tool,
    need_toolchain,
    optional_tool,
)

pytestmark = pytest.mark.toolchain

INPUT, OUTPUT = (CASES / "kws_dscnn_int8" / f"{name}0.npy" for name in ("in", "out"))
BOTH = pytest.mark.parametrize("arguments", [(), ("--binary",)], ids=("src", "lib"))
"""Packages of sources and of the library; examples of either print `PASSED`."""
FAST = 'error: #error "kws has exact floats: compile it without -ffast-math'


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    need_tool("g++")
    return packages_for(tmp_path_factory.mktemp("host"), "host")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Another product with a model of the same name, which programs can replace."""
    folder = tmp_path_factory.mktemp("sum")
    need_toolchain("host", "zig")
    (folder / "sum.toml").write_text(
        'schema = 1\nname = "sum"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
        '[[models]]\nname = "kws"\npath = "model.pte"\n'
        'load = "pte"\n'
        '[operators]\ninclude = ["aten::rand.out"]\n[trace]\nenable = true\n'
    )
    shutil.copy(CORPUS / "multi_method" / "model.pte", folder)
    return Packages(folder, name="sum", more=())


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


def test_two_products_in_one_program(in_cmake: Path, loaded: Packages, tmp_path: Path) -> None:
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
        "static int traced;\n"
        "orch_ticks sum_trace_ticks() { return 0; }\n"
        "void sum_trace_record(uint32_t, uint32_t, orch_ticks, orch_ticks) {\n"
        "  ++traced;\n}\n"
        "int main() {\n"
        "  sum_random_seed(42);\n"
        "  if (sum_random_next() != 0xc2f57bd6) return 1;\n"
        "  const int failed = kws_self_test(nullptr) + sum_self_test(nullptr) +\n"
        "                     kws_self_test(nullptr);\n"
        "  return failed != 0 ? failed : traced == 0;\n}\n"
    )
    need(cmake(app, tmp_path / "out"))
    need(tool(tmp_path / "out" / "app", cwd=tmp_path))


THREADS = """\
#include <cstring>
#include <thread>
#include "sum.h"

static float in[4][64], out[4][64];
static_assert(SUM_KWS_ENCODE_INPUT0_COUNT <= 64 && SUM_KWS_ENCODE_OUTPUT0_COUNT <= 64);
static_assert(SUM_KWS_DECODE_INPUT0_COUNT <= 64 && SUM_KWS_DECODE_OUTPUT0_COUNT <= 64);

orch_ticks sum_trace_ticks() { return 0; }
void sum_trace_record(uint32_t, uint32_t, orch_ticks, orch_ticks) {}

static void encode(int n) {
  for (int i = 0; i < 20; ++i) sum_kws_encode(in[n], out[n]);
}
static void decode(int n) {
  for (int i = 0; i < 20; ++i) sum_kws_decode(in[n], out[n]);
}
int main(int count, char**) {
  std::thread one(encode, 0), two(count == 1 ? decode : encode, 1);
  one.join();
  two.join();
  sum_kws_encode(in[0], out[2]);
  sum_kws_decode(in[1], out[3]);
  return memcmp(out[0], out[2], sizeof out[0]) |
         (count == 1 ? memcmp(out[1], out[3], sizeof out[1]) : 0);
}
"""


def test_methods_in_threads(loaded: Packages, tmp_path: Path) -> None:
    """Each may be prepared and run by another thread; ThreadSanitizer finds no race.

    Two threads that call the same method are one that it finds.
    """
    package = loaded.make("cmake", tmp_path)
    (tmp_path / "main.cpp").write_text(THREADS)
    flags = ["-std=c++17", "-g", "-O1", "-fsanitize=thread", "-w", "-Isum/include"]
    objects = []
    for number, source in enumerate(sorted((package / "src").rglob("*.c*"))):
        language = "c" if source.suffix == ".c" else "c++"
        objects.append(f"{number}.o")
        options = (*flags[language == "c" :], "-x", language, "-c", source)
        need(tool("ccache", "g++", *options, "-o", objects[-1], cwd=tmp_path))
    need(tool("g++", *flags, "main.cpp", *objects, "-o", "app", cwd=tmp_path))
    # Its shadow memory needs addresses that a kernel may have given away; a container
    # may forbid to ask for them.
    fixed = ("setarch", "-R")
    start: tuple[str | Path, ...] = (tmp_path / "app",)
    if tool(*fixed, "true", cwd=tmp_path).returncode == 0:
        start = (*fixed, *start)
    done = tool(*start, cwd=tmp_path)
    assert (need(done), done.stderr) == ("", "")
    done = tool(*start, "same", cwd=tmp_path)
    assert "WARNING: ThreadSanitizer: data race" in done.stderr


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
    assert need(tool(tmp_path / "out" / "example", cwd=tmp_path)) == PASSED
    library, lock = package / "lib" / "libkws.a", package / "orchestrator" / "kws.lock"
    assert run(["verify", "--artefact", str(library), "--lock", str(lock)]) == 0


KINDS = (
    *("item_scalar", "scalar_sizes", "dynamic_batch", "channels_last", "bool_logic"),
    *("io_not_planned", "kv_cache", "multi_method", "half_mlp"),
    *("cond_branch", "optional_arguments", "list_arguments"),
)
"""Cases with numbers, sizes, layouts, types, memory of the caller, and state."""


def test_self_tests_of_libraries(tmp_path: Path) -> None:
    """A header, in C and C++; models are loaded and prelinked, arguments of all kinds.

    One other bit in an output is found, and its method named.
    """
    need_toolchain("host", "zig")
    gcc = need_tool("gcc")
    models = ""
    for number, case in enumerate(KINDS):
        shutil.copy(CORPUS / case / "model.pte", tmp_path / f"{case}.pte")
        load = ("pte", "prelinked")[number % 2]
        models += f'[[models]]\npath = "{case}.pte"\nload = "{load}"\n'
    lists = list_program.program(list_program.list_plan())
    (tmp_path / "lists.pte").write_bytes(lists)
    models += '[[models]]\npath = "lists.pte"\n'
    (tmp_path / "kinds.toml").write_text(
        f'schema = 1\nname = "kinds"\n[target]\ncpu = "host"\ntoolchain = "zig"\n{models}'
    )
    packages = Packages(tmp_path, name="kinds", more=())
    package = packages.make("cmake", tmp_path / "out", "--binary")
    header = package / "include" / "kinds_self_test.h"
    text = header.read_text()
    app = (
        '#include <stdio.h>\n#include "kinds_self_test.h"\n'
        "int main(void) {\n"
        '  const char* failed = "";\n'
        "  const orch_status first = kinds_self_test(NULL);\n"
        "  const orch_status again = kinds_self_test(&failed);\n"
        '  return printf("%d %d %s\\n", first, again, failed ? failed : "-") < 0;\n}\n'
    )
    for name, language in (("app.c", "-std=c99"), ("app.cpp", "-std=c++11")):
        (tmp_path / name).write_text(app)
        flags = (language, "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
        where = (f"-I{package}/include", name, package / "lib" / "libkinds.a")
        command = (gcc, *flags, *where, "-no-pie", "-o", "app")
        need(tool(*command, cwd=tmp_path))
        assert need(tool(tmp_path / "app", cwd=tmp_path)) == "0 0 -\n"
    found = [*re.finditer(r"output0(?:_item0)?_bytes\[\d+\] [^{]*\{\s*(\d+)", text)]
    assert len(found) == len(re.findall(r"static inline orch_status \w+_test_\d", text))
    damaged = found[-2]
    bit = f"{int(damaged[1]) ^ 1}"
    header.write_text(text[: damaged.start(1)] + bit + text[damaged.end(1) :])
    need(tool(*command, cwd=tmp_path))
    named = re.findall(r'name = "(\S+)";', text)[-2]
    assert need(tool(tmp_path / "app", cwd=tmp_path)) == f"14 14 {named}\n"


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
    assert f"{MODEL} has no method decode" in error
    assert run(["lock", profile, "--check", "--lock", lock]) == 0
    capsys.readouterr()
    where = ("--method", "encode", "--instruction", "1", "--profile", profile)
    assert run(["decode", "10", *where]) == 0
    assert "which calls aten::tanh.out, failed with" in capsys.readouterr().out


def test_unknown_ecosystem(
    packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert packages.run("cmaek", tmp_path / "x") == 2
    error = capsys.readouterr().err
    assert 'there are no packages for "cmaek"' in error
    assert 'did you mean "cmake"?' in error
    assert not (tmp_path / "x").exists()


@BOTH
def test_conan(packages: Packages, tmp_path: Path, arguments: tuple[str, ...]) -> None:
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
    assert PASSED in done.stderr


@BOTH
def test_meson(packages: Packages, tmp_path: Path, arguments: tuple[str, ...]) -> None:
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
    assert need(tool(app / "out" / "example", cwd=app)) == PASSED


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
def test_zephyr(packages: Packages, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Kconfig by kconfiglib; module and sample by CMake, with a stand-in for Zephyr."""
    python = need_script("kconfiglib", program="genconfig")
    package = packages.make("zephyr", tmp_path, *arguments)
    module = yaml.safe_load((package / "zephyr" / "module.yml").read_text())
    assert (package / module["build"]["cmake"] / "CMakeLists.txt").is_file()
    sample = package / module["samples"][0] / "kws"
    test = yaml.safe_load((sample / "sample.yaml").read_text())
    (one,) = test["tests"].values()
    assert one["platform_allow"] == ["native_sim/native/64"]
    assert test["common"]["harness_config"]["regex"] == PASSED.splitlines()
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
    assert ("CONFIG_ORCHESTRATOR_KWS_SELF_TEST 1\n" in config) == (not arguments)
    zephyr = tmp_path / "share" / "zephyr-package" / "cmake"
    zephyr.mkdir(parents=True)
    (zephyr / "ZephyrConfig.cmake").write_text(ZEPHYR)
    os_env = {"ZEPHYR_BASE": str(zephyr), "DOT_CONFIG": str(tmp_path / ".config")}
    need(cmake(sample, tmp_path / "out", f"-DZephyr_DIR={zephyr}", env=os_env))
    assert need(tool(tmp_path / "out" / "app", cwd=tmp_path)) == PASSED


def zephyr_base() -> Path:
    base = os.environ.get("ZEPHYR_BASE", "")
    if not base:
        pytest.skip("needs ZEPHYR_BASE: a checkout of Zephyr")
    return Path(base)


@BOTH
def test_zephyrs_own_build(packages: Packages, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """The sample on this machine, in a checkout of Zephyr."""
    base, west = zephyr_base(), optional_tool("west")
    package = packages.make("zephyr", tmp_path, *arguments)
    env = {"ZEPHYR_BASE": str(base), "ZEPHYR_TOOLCHAIN_VARIANT": "host"}
    is_new = (base / "boards" / "native" / "native_sim").is_dir()
    board = "native_sim/native/64" if is_new else "native_posix_64"
    command = ("build", "-b", board, "-d", tmp_path / "out")
    need(tool(west, *command, package / "samples" / "kws", cwd=base, env=env))
    program = tmp_path / "out" / "zephyr" / "zephyr.exe"
    said = need(tool(program, "-stop_at=5", cwd=tmp_path))
    assert PASSED in said.replace("\r", "")


@BOTH
def test_zephyrs_twister(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """It builds the sample for a Cortex-M3, runs it in QEMU, and reads what it says."""
    base, west = zephyr_base(), optional_tool("west")
    need_emulator("cortex-m3")
    package = packages_for(tmp_path, "cortex-m3").make("zephyr", tmp_path, *arguments)
    env = {
        "ZEPHYR_BASE": str(base),
        "QEMU_BIN_PATH": str(Path(need_tool("qemu-system-arm")).parent),
        "ZEPHYR_TOOLCHAIN_VARIANT": "gnuarmemb",
        "GNUARMEMB_TOOLCHAIN_PATH": str(Path(need_tool("arm-none-eabi-gcc")).parents[1]),
    }
    env |= {n: v for n, v in os.environ.items() if n in env}
    out = ("--outdir", tmp_path / "out", "-p", "qemu_cortex_m3")
    samples = package / "samples"
    done = tool(west, "twister", "-T", samples, *out, cwd=base, env=env)
    assert "1 of 1 test configurations passed" in need(done) + done.stderr


@BOTH
def test_esp_idf(packages: Packages, tmp_path: Path, arguments: tuple[str, ...]) -> None:
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
    assert need(tool(tmp_path / "out" / "app", cwd=tmp_path)) == PASSED


def test_platformio(packages: Packages, tmp_path: Path) -> None:
    """PlatformIO packs the library and builds the example, for this machine."""
    pio = PlatformIO(tmp_path, need_script("pio"))
    package = packages.make("platformio", tmp_path, "--binary")
    assert {"library.json", "include/kws.h", "lib/libkws.a"} <= pio.pack(package)
    example = package / "examples" / "hello" / "main.c"
    program = pio.build(package, example, {"CC": "gcc", "LINK": "gcc"})
    assert need(tool(program, cwd=tmp_path)) == PASSED


@BOTH
def test_bazels_format(packages: Packages, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Of build files, as buildifier writes them, and without what it warns of."""
    buildifier = optional_tool("buildifier")
    package = packages.make("bazel", tmp_path, *arguments)
    files = [package / "MODULE.bazel", *package.rglob("BUILD.bazel")]
    assert len(files) == 3
    need(tool(buildifier, "--mode=check", "--lint=warn", *files, cwd=tmp_path))


@BOTH
def test_bazel(packages: Packages, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """In its sandbox, with Debian's Bazel and its rules."""
    bazel = optional_tool("bazel")
    rules = Path("/usr/share/bazel/rules")
    if not (rules / "java").is_dir():
        pytest.skip("needs bazel-rules-java, bazel-rules-proto, bazel-skylib")
    package = packages.make("bazel", tmp_path, *arguments)
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
    assert need(tool(program, cwd=tmp_path)) == PASSED


@BOTH
def test_rust(packages: Packages, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """With Debian's crate cc."""
    cargo = optional_tool("cargo")
    registry = Path("/usr/share/cargo/registry")
    if not [*registry.glob("cc-*")]:
        pytest.skip("needs librust-cc-dev: not installed")
    package = packages.make("rust", tmp_path, *arguments)
    (package / ".cargo").mkdir()
    (package / ".cargo" / "config.toml").write_text(
        f'[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "{registry}"\n'
    )
    env = {"HOME": os.environ["HOME"]}  # rustup finds its toolchain there
    if shutil.which("ccache"):
        env |= {"CC": "ccache gcc", "CXX": "ccache g++"}
    done = tool(cargo, "run", "--offline", "--example", "hello", cwd=package, env=env)
    assert need(done) == (RAN if arguments else PASSED)
