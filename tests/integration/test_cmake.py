"""CMake projects on products of Orchestrator: what they compute, when they rebuild."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.cli.main import run
from orchestrator.program.flatbuffer import PROGRAM, Buffer
from orchestrator.shell.ninja import ninja_program
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT, copy_checkout
from tests.tools import need_cmake, need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.toolchain

CASE = CORPUS / "add_mul"
MODULE = ROOT / "cmake"

LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES C)
find_package(Orchestrator CONFIG REQUIRED)
orchestrator_add_profile(model PROFILE "the product.toml" JOBS 2)
orchestrator_gen_selected_ops(ops
  MODELS model.pte OPS aten::mul.out aten::sub.out YAML more.yaml
  OPS_DICT [[{"aten::abs.out": ["v1/6;0,1|6;0,1", "v1/3;0|3;0"], "a::b": []}]]
  PRIM_OPS 5)
add_executable(app main.c)
target_link_libraries(app PRIVATE model)
add_executable(slots slots.c)
target_link_libraries(slots PRIVATE ops)
get_target_property(list ops ORCHESTRATOR_SELECTED_OPERATORS)
add_custom_command(OUTPUT list.copy
  COMMAND "${CMAKE_COMMAND}" -E copy "${list}" list.copy
  DEPENDS ops "${list}" VERBATIM)
add_custom_target(use_list ALL DEPENDS list.copy)
"""
PROFILE = """\
schema = 1
name = "add-mul-host"
extends = "base.toml"
[[models]]
name = "add_mul"
path = "model.pte"
[operators]
include_yaml = ["more.yaml"]
"""
BASE = """\
schema = 1
[target]
cpu = "host"
toolchain = "gnu"
"""
SLOTS = """\
#include <stdio.h>
#include "selected_max_kernel_num.h"
#include "selected_prim_ops.h"
int main(void) { return printf("%d\\n", EXECUTORCH_SELECTED_MAX_KERNEL_NUM) < 0; }
"""
STEP = re.compile(
    r"(Building profile|Selecting operators|Building C object|Linking C executable)"
    r" (?:.*[ /])?(\S+)$",
    re.MULTILINE,
)
PROFILE_STEP = ("Building profile", "add-mul-host")
LINK_STEP = ("Linking C executable", "app")
OPS_STEP = ("Selecting operators", "ops")
SLOTS_STEP = ("Linking C executable", "slots")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A CMake project and the copy of Orchestrator that it builds with."""

    source: Path
    out: Path
    checkout: Path
    generator: str

    def cmake(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run CMake, as a shell with none of the user's settings would."""
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.checkout)}
        return subprocess.run(
            [need_cmake(), *map(str, arguments)],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )

    def configure(self) -> None:
        """Make the build folder."""
        program = f"{sys.executable};-m;orchestrator"
        settings = [
            f"-DOrchestrator_DIR={self.checkout / 'cmake'}",
            f"-DORCHESTRATOR_EXECUTABLE={program}",
        ]
        if self.generator == "Ninja":
            settings.append(f"-DCMAKE_MAKE_PROGRAM={ninja_program()}")
        done = self.cmake(*("-S", self.source, "-B", self.out, "-G", self.generator), *settings)
        assert done.returncode == 0, done.stdout + done.stderr

    def build(self, *arguments: str) -> set[tuple[str, str]]:
        """Bring everything up to date; the steps that ran."""
        done = self.cmake("--build", self.out, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return set(STEP.findall(done.stdout))

    def program(self, name: str, *arguments: str) -> str:
        """What a program of the project prints."""
        command = [str(self.out / name), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def outputs(self) -> list[float]:
        """What the model gives for the inputs of the corpus case."""
        inputs = [np.load(CASE / f"in{i}.npy").ravel() for i in range(3)]
        numbers = [repr(float(x)) for tensor in inputs for x in tensor]
        return [float(line) for line in self.program("app", *numbers).split()]

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a text of the project or of the checkout."""
        path = self.source / name
        if not path.exists():
            path = self.checkout / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of Orchestrator that tests may edit."""
    need_toolchain("host", "gnu")
    need_tool("cc")
    folder = tmp_path_factory.mktemp("cmake") / "a check-out"
    copy_checkout(folder, "cmake", "examples", "profiles")
    return folder


@pytest.fixture(scope="module", params=["Ninja", "Unix Makefiles"])
def project(
    request: pytest.FixtureRequest, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Project]:
    """A project that is built; folders and files have blanks in their names."""
    if request.param == "Unix Makefiles":
        need_tool("make", "gmake")
    source = tmp_path_factory.mktemp("project") / "the source"
    source.mkdir()
    shutil.copyfile(CASE / "model.pte", source / "model.pte")
    for name, text in {
        "CMakeLists.txt": LISTS,
        "the product.toml": PROFILE,
        "base.toml": BASE,
        "more.yaml": "- op: relu.out\n",
        "slots.c": SLOTS,
        "main.c": (ROOT / "examples" / "cmake" / "main.c").read_text(),
    }.items():
        (source / name).write_text(text)
    made = Project(
        source=source, out=source.parent / "the build", checkout=checkout, generator=request.param
    )
    made.configure()
    steps = made.build()
    assert steps >= {PROFILE_STEP, LINK_STEP, OPS_STEP, SLOTS_STEP}
    yield made
    shutil.rmtree(source.parent)


# A folder of one's own builds, and the example ----------------------------------

PACKAGE_LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES C)
foreach(time RANGE 1)  # twice does no harm
  find_package(add-mul-host CONFIG REQUIRED PATHS "built here/cmake" NO_DEFAULT_PATH)
endforeach()
add_executable(app main.c)
target_link_libraries(app PRIVATE orchestrator::add-mul-host)
"""


def test_the_package_of_a_build_folder(checkout: Path, tmp_path: Path) -> None:
    """Built by `orchestrator build`, whenever that is, and found by CMake."""
    source = tmp_path / "the source"
    source.mkdir()
    shutil.copyfile(CASE / "model.pte", source / "model.pte")
    main = (ROOT / "examples" / "cmake" / "main.c").read_text()
    profile = PROFILE.replace('extends = "base.toml"\n', "").split("[operators]")[0]
    for name, text in {
        "CMakeLists.txt": PACKAGE_LISTS,
        "p.toml": profile + BASE.removeprefix("schema = 1\n"),
        "main.c": main,
    }.items():
        (source / name).write_text(text)
    built = source / "built here"
    build = ["build", str(source / "p.toml"), "--out", str(built)]
    assert run(build) == 0
    project = Project(source=source, out=tmp_path / "out", checkout=checkout, generator="Ninja")
    project.configure()
    assert LINK_STEP in project.build()
    _close(project.outputs(), np.load(CASE / "out0.npy"))
    assert project.build() == set()
    # Another library under the same name is linked anew.
    (source / "p.toml").write_text((source / "p.toml").read_text() + 'optimize = "speed"\n')
    assert run(build) == 0
    assert project.build() == {LINK_STEP}
    text = (built / "cmake" / "add-mul-hostConfig.cmake").read_text()
    assert str(tmp_path) not in text


def test_the_example(checkout: Path, tmp_path: Path) -> None:
    need_toolchain("host", "zig")
    project = Project(
        source=checkout / "examples" / "cmake",
        out=tmp_path / "out",
        checkout=checkout,
        generator="Ninja",
    )
    project.configure()
    project.build()
    words = map(str, (*(1, 2, 3, 4), *(0, 1, 1, 0), *(10, 20, 30, 40)))
    assert project.program("add_mul", *words) == "12\n21\n34\n43\n"
    done = subprocess.run(
        [project.out / "add_mul", "1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "three matrices of 4 numbers" in done.stderr


# A project ----------------------------------------------------------------------


def _close(found: list[float], expected: np.ndarray) -> None:
    tolerance = json.loads((CASE / "case.json").read_text())["tolerance"]
    np.testing.assert_allclose(found, expected.ravel(), **tolerance)


def test_the_executable_gives_what_executorch_gives(project: Project) -> None:
    _close(project.outputs(), np.load(CASE / "out0.npy"))


def test_nothing_to_do(project: Project) -> None:
    project.build()
    done = project.cmake("--build", project.out)
    assert done.returncode == 0
    if project.generator == "Ninja":
        assert done.stdout == "ninja: no work to do.\n"
    else:
        lines = done.stdout.splitlines()
        assert lines
        assert [line for line in lines if "Built target" not in line] == []


EDITS = {
    "the profile": ("the product.toml", "[operators]", '[operators]\ninclude = ["aten::tanh.out"]'),
    "an operator list": ("more.yaml", "relu.out", "permute_copy.out"),
    "a kernel": (
        "kernels/portable/op_mm.cpp",
        "namespace orch::portable {",
        "namespace orch::portable {\nextern const int more;\nconst int more = 1;\n",
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_is_built_and_linked(project: Project, what: str) -> None:
    project.build()
    name, old, new = EDITS[what]
    project.edit(name, old, new)
    steps = project.build()
    assert {PROFILE_STEP, LINK_STEP} <= steps
    assert (OPS_STEP in steps) == (name == "more.yaml")
    assert project.build() == set()
    _close(project.outputs(), np.load(CASE / "out0.npy"))
    if name.startswith("kernels"):
        project.edit(name, new, old)


def _with_alpha(program: bytes, alpha: int) -> bytes:
    """The program with another factor in its sum: its value 5."""
    root = Buffer(program, len(program), PROGRAM).root()
    method = root.entry("execution_plan", root["execution_plan"][0])
    number = method.entry("values", method["values"][5])["val"]
    at = number.place("int_val")
    assert program[at : at + 8] == struct.pack("<q", 1)
    return program[:at] + struct.pack("<q", alpha) + program[at + 8 :]


def test_another_model_is_built_and_linked(project: Project) -> None:
    project.build()
    model = project.source / "model.pte"
    model.write_bytes(_with_alpha(model.read_bytes(), 2))
    steps = project.build()
    assert {PROFILE_STEP, LINK_STEP, OPS_STEP} <= steps
    assert SLOTS_STEP not in steps  # the headers have kept their bytes
    assert project.build() == set()
    x, y, z = (np.load(CASE / f"in{i}.npy") for i in range(3))
    _close(project.outputs(), x @ y + 2 * z)


def test_what_is_only_touched_is_not_linked(project: Project) -> None:
    project.build()
    for name in ("model.pte", "the product.toml"):
        (project.source / name).touch()
    steps = project.build()
    assert PROFILE_STEP in steps
    assert LINK_STEP not in steps
    assert project.build() == set()


@pytest.mark.parametrize("project", ["Ninja"], indirect=True)
def test_another_orchestrator_builds_again(project: Project) -> None:
    project.build()
    with (project.checkout / "orchestrator" / "build" / "engine.py").open("a") as file:
        file.write("# more\n")
    steps = project.build()
    assert {PROFILE_STEP, OPS_STEP} <= steps
    assert LINK_STEP not in steps  # the library has kept its bytes
    assert project.build() == set()


def test_a_source_that_is_gone_is_no_obstacle(project: Project) -> None:
    header = project.checkout / "kernels" / "util" / "not_needed.h"
    header.write_text("#pragma once\n")
    (project.source / "model.pte").touch()
    assert PROFILE_STEP in project.build()
    header.unlink()
    assert PROFILE_STEP in project.build()
    assert project.build() == set()


def test_a_broken_profile_fails_until_it_is_repaired(project: Project) -> None:
    """Also if it is the base that is broken."""
    project.build()
    project.edit("base.toml", 'cpu = "host"', 'cpu = "hots"')
    for _ in range(2):
        done = project.cmake("--build", project.out)
        assert done.returncode != 0
        assert 'did you mean "host"?' in done.stdout + done.stderr
    project.edit("base.toml", 'cpu = "hots"', 'cpu = "host"')
    assert PROFILE_STEP in project.build()
    assert project.build() == set()


def test_clean_removes_what_was_built(project: Project) -> None:
    project.build()
    project.build("--target", "clean")
    assert not (project.out / "app").exists()
    assert not (project.out / "orchestrator" / "add-mul-host").exists()
    assert project.build() >= {PROFILE_STEP, LINK_STEP, OPS_STEP, SLOTS_STEP}
    assert project.build() == set()


def test_an_operator_list_and_its_headers(project: Project, tmp_path: Path) -> None:
    project.build()
    folder = project.out / "orchestrator" / "ops"
    own = tmp_path / "own.yaml"
    arguments = ["--model", str(project.source / "model.pte")]
    arguments += ["--ops", "aten::mul.out", "--ops", "aten::sub.out"]
    arguments += ["--yaml", str(project.source / "more.yaml"), "--ops-dict"]
    arguments += ['{"aten::abs.out": ["v1/6;0,1|6;0,1", "v1/3;0|3;0"], "a::b": []}']
    assert run(["plumbing", "oplist", *arguments, "--output", str(own)]) == 0
    assert (folder / "selected_operators.yaml").read_text() == own.read_text()
    # Two of the model, two names, one of the list, two keys and an operator; prim ops.
    assert project.program("slots") == "13\n"
    variants = (folder / "selected_op_variants.h").read_text()
    assert 'compare("abs.out")' in variants
    # Whoever depends on target and list is rebuilt with the list.
    project.edit("more.yaml", "- op: ", "- op: mm.out\n- op: ")
    assert OPS_STEP in project.build()
    assert "aten::mm.out" in (project.out / "list.copy").read_text()
    assert project.build() == set()
