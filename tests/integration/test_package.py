"""Packages: each taken by its ecosystem's own tool, built, run, and compared.

The product is the int8 keyword spotter, for this machine. Its self test has the case of
the examples, so that an application which says "passed" has computed every bit of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.cli.main import run
from orchestrator.shell.ninja import ninja_program
from tests.integration.workspace import ROOT
from tests.tools import need_cmake, need_script, need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.toolchain

CASES = ROOT / "examples" / "cases"
SCENARIO = CASES / "kws-int8-m4.json"
INPUT, OUTPUT = (CASES / "kws_dscnn_int8" / f"{name}0.npy" for name in ("in", "out"))
PASSED = "kws: self test passed\nrun_kws_kws_forward: Ok\n"
PROFILE = f"""\
schema = 1
name = "kws"
description = "Keyword spotting"
[target]
cpu = "host"
toolchain = "zig"
[kernels]
libraries = ["cortex_m", "quantized", "portable"]
[[models]]
name = "kws"
path = "{ROOT}/examples/models/kws_dscnn_int8.pte"
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

    def run(self, ecosystem: str, out: Path, *arguments: str) -> int:
        """Exit code of `orchestrator package`."""
        command = ["package", str(self.folder / "kws.toml"), "--for", ecosystem]
        command += ["--scenario", str(SCENARIO), "--out", str(out), *arguments]
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            return run(command)
        finally:
            os.chdir(before)

    def make(self, ecosystem: str, out: Path, *arguments: str) -> Path:
        """A package in a folder that it did not know when it was made."""
        assert self.run(ecosystem, out / "made", *arguments) == 0
        (out / "made").rename(out / "kws")
        return out / "kws"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    need_toolchain("host", "zig")
    need_tool("g++")
    folder = tmp_path_factory.mktemp("packages")
    (folder / "kws.toml").write_text(PROFILE)
    return Packages(folder)


def tool(
    *command: str | Path, cwd: Path, env: Mapping[str, str] | None = None
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


def cmake(source: Path, out: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    """Configure and build."""
    program, ninja = need_cmake(), f"-DCMAKE_MAKE_PROGRAM={ninja_program()}"
    need(
        tool(program, "-S", source, "-B", out, "-GNinja", ninja, *settings, cwd=source)
    )
    return tool(program, "--build", out, cwd=source)


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
        f'find_package(kws 0.1 CONFIG REQUIRED PATHS "{in_cmake}" NO_DEFAULT_PATH)\n'
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
    done = subprocess.run(
        [tmp_path / "out" / "app"],
        input=np.load(INPUT).transpose(0, 2, 1, 3).tobytes(),
        capture_output=True,
        check=True,
    )
    found, wanted = np.frombuffer(done.stdout, "<f4"), np.load(OUTPUT).ravel()
    assert np.abs(found - wanted).max() <= 1e-6


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
    assert not (package / "src" / "product" / "models.c").exists()
    need(cmake(package / "example", tmp_path / "out"))
    assert need(tool(tmp_path / "out" / "example", cwd=tmp_path)) == PASSED


def test_same_bytes_and_nobody_elses_files(
    packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        assert packages.run("cmake", folder) == 0
    files = files_of(one)
    assert files == files_of(two)
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


def test_what_the_package_says_of_itself(in_cmake: Path) -> None:
    facts = json.loads((in_cmake / "orchestrator" / "package.json").read_text())
    assert (facts["name"], facts["version"]) == ("kws", "0.1.0")
    assert facts["digest"] in (in_cmake / "README.md").read_text()
    lock = in_cmake / "orchestrator" / "kws.lock"
    program = ROOT / "examples" / "models" / "kws_dscnn_int8.pte"
    assert run(["compat", str(lock), str(program)]) in (0, 12)


def test_unknown_ecosystem(
    packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert packages.run("cmaek", tmp_path / "x") == 2
    error = capsys.readouterr().err
    assert 'there are no packages for "cmaek"' in error
    assert 'did you mean "cmake"?' in error
    assert not (tmp_path / "x").exists()


def test_conan(packages: Packages, tmp_path: Path) -> None:
    """Offline: recipe, package and test package."""
    conan = need_script("conan")
    package = packages.make("conan", tmp_path)
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


def test_meson(packages: Packages, tmp_path: Path) -> None:
    """As a subproject of the example."""
    meson = need_script("meson")
    package = packages.make("meson", tmp_path)
    app = shutil.copytree(package / "example", tmp_path / "app")
    (app / "subprojects").mkdir()
    shutil.copytree(package, app / "subprojects" / "kws")
    shutil.copy(package / "kws.wrap", app / "subprojects")
    env = {"NINJA": ninja_program()}
    need(tool(meson, "setup", "out", cwd=app, env=env))
    need(tool(meson, "compile", "-C", "out", cwd=app, env=env))
    assert need(tool(app / "out" / "example", cwd=app)) == PASSED
