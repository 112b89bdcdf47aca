"""The CMake functions refuse what they cannot use, and find the program to start.

Scripts, not projects: problems of a call are reported before any target is made.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.shell import sources
from orchestrator.shell.ninja import ninja_program
from tests.integration.workspace import ROOT
from tests.tools import need_cmake

PROFILE = 'schema = 1\nname = "doorbell"\n[target]\ncpu = "host"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(PROFILE)
    return tmp_path


def script(
    text: str, *definitions: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script that has included the module."""
    module = ROOT / "cmake" / "Orchestrator.cmake"
    Path("script.cmake").write_text(f'include("{module}")\n{text}\n')
    return subprocess.run(
        [need_cmake(), *(f"-D{d}" for d in definitions), "-P", "script.cmake"],
        env={"PATH": "", "PYTHONPATH": ""} | (env or {}),
        capture_output=True,
        text=True,
        check=False,
    )


def refusal(text: str, *definitions: str, env: dict[str, str] | None = None) -> str:
    """What an error says, in one line."""
    done = script(text, *definitions, env=env)
    assert done.returncode != 0
    message = re.search(r"\(message\):\n(.*?)\n(?:Call Stack|\n\n|\Z)", done.stderr, re.DOTALL)
    assert message, done.stderr
    return " ".join(message[1].split())


ADD, GEN = "orchestrator_add_profile", "orchestrator_gen_selected_ops"
KNOWN_ADD = "PROFILE, OUT, LOCKED, EXCLUDE_FROM_ALL, JOBS, DEPENDS, EXECUTABLE"
KNOWN_GEN = (
    "MODELS, OPS, OPS_DICT, YAML, ALL, OUTPUT_DIR, PRIM_OPS, EXCLUDE_FROM_ALL, DEPENDS, EXECUTABLE"
)


@pytest.mark.parametrize(
    ("call", "problem", "remedy"),
    [
        (f"{ADD}(t)", "there is no PROFILE", "add PROFILE <file.toml>"),
        (f"{ADD}(t PROFILE)", "no value follows PROFILE", "give one, or leave the word out"),
        (
            f"{ADD}(t PROFILE p.toml MODEL m.pte)",
            "unknown arguments: MODEL m.pte",
            f"use only {KNOWN_ADD}",
        ),
        (
            f"{ADD}(t PROFILE p.toml JOBS 0)",
            'JOBS cannot be "0"',
            "give a number from 1 on, or leave JOBS out",
        ),
        (
            f'{ADD}("a b" PROFILE p.toml)',
            "that is no name of a target",
            "use letters, digits, _ . + and -",
        ),
        (
            f"{ADD}(t PROFILE missing.toml)",
            "the profile is no file: {folder}/missing.toml",
            "PROFILE is relative to the folder of this CMakeLists.txt;"
            " `orchestrator plumbing schema` describes profiles",
        ),
        (
            f"{GEN}(t)",
            "nothing is selected",
            "add MODELS, OPS, OPS_DICT, YAML or ALL; all may be combined",
        ),
        (f"{GEN}(t ALL MODEL m.pte)", "unknown arguments: MODEL m.pte", f"use only {KNOWN_GEN}"),
        (f"{GEN}(t ALL OPS)", "no value follows OPS", "give one, or leave the word out"),
        (
            f"{GEN}(t ALL PRIM_OPS few)",
            'PRIM_OPS cannot be "few"',
            "give the number of prim ops that ExecuTorch registers, or leave PRIM_OPS out",
        ),
    ],
    ids=lambda text: text if text.startswith(("orchestrator_",)) else "",
)
def test_a_wrong_call_tells_the_remedy(call: str, problem: str, remedy: str, folder: Path) -> None:
    function, _, rest = call.partition("(")
    target = "a b" if rest.startswith('"') else "t"
    problem = problem.format(folder=folder)
    expected = f"{function}({target}): {problem} Remedy: {remedy}."
    assert refusal(call) == expected


@pytest.mark.parametrize(
    "text",
    [
        '[target]\nname = "host"\n',
        '"name" = "doorbell"\n',
        'name = "Door Bell"\n',
        '# name = "doorbell"\n',
        "",
    ],
)
def test_a_name_in_another_form_is_not_guessed(text: str, folder: Path) -> None:
    (folder / "p.toml").write_text(text)
    assert refusal(f"{ADD}(t PROFILE p.toml)") == (
        f"{ADD}(t): no line of {folder}/p.toml gives the name of the product"
        ' Remedy: write name = "..." on a line of its own before the first [table];'
        " CMake names the files to link after it."
    )


@pytest.mark.parametrize(
    "text", [PROFILE, "name='doorbell' # it\n[a]\n", '\ufeff\n name  = "doorbell"\n']
)
def test_the_name_of_the_product(text: str, folder: Path) -> None:
    (folder / "p.toml").write_text(text)
    said = script('_orchestrator_profile_name(p.toml name)\nmessage("<${name}>")')
    assert said.stderr == "<doorbell>\n"


# The program --------------------------------------------------------------------

ASK = '_orchestrator_command("${GIVEN}" command)\nmessage("${command}")'
NOWHERE = ("CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", "Python3_EXECUTABLE=/nowhere/python3")


def program(path: Path) -> Path:
    """A program that exists."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_program_is_missing() -> None:
    assert refusal(ASK, *NOWHERE) == (
        "The program orchestrator is not installed where CMake looks for it: beside"
        " this package, on the PATH, as a module of python3. Install it with"
        f' `pip install -e "{ROOT}"`, or say where it is with'
        " -DORCHESTRATOR_EXECUTABLE=<path>."
    )


@pytest.mark.parametrize("name", ["EXECUTABLE", "ORCHESTRATOR_EXECUTABLE"])
def test_the_program_that_is_named_is_missing(name: str) -> None:
    variable = name.replace("EXECUTABLE", "GIVEN") if name == "EXECUTABLE" else name
    assert refusal(ASK, f"{variable}=/nowhere/orchestrator") == (
        f"{name} is no program: /nowhere/orchestrator Give the path of the program"
        " orchestrator, or leave it out to have it looked for."
    )


def test_the_program_by_precedence(folder: Path) -> None:
    one = program(folder / "one" / "orchestrator")
    two = program(folder / "two" / "orchestrator")
    env = {"PATH": str(one.parent)}
    assert script(ASK, *NOWHERE, env=env).stderr == f"{one}\n"
    cached = f"ORCHESTRATOR_EXECUTABLE={two};-v"
    assert script(ASK, *NOWHERE, cached, env=env).stderr == f"{two};-v\n"
    given = f"GIVEN={one};-m"
    assert script(ASK, *NOWHERE, cached, given, env=env).stderr == f"{one};-m\n"


def test_the_program_as_a_module_of_python() -> None:
    definitions = (NOWHERE[0], f"Python3_EXECUTABLE={sys.executable}")
    said = script(ASK, *definitions, env={"PYTHONPATH": str(ROOT)})
    assert said.stderr == f"{sys.executable};-m;orchestrator\n"


def test_the_program_beside_an_installed_package(folder: Path) -> None:
    """In a virtual environment CMake finds the program without any PATH."""
    package = folder / "venv/lib/python3.12/site-packages/orchestrator/_native/cmake"
    package.mkdir(parents=True)
    for path in (ROOT / "cmake").iterdir():
        (package / path.name).write_bytes(path.read_bytes())
    own = program(folder / "venv" / "bin" / "orchestrator")
    Path("other.cmake").write_text(f'include("{package}/Orchestrator.cmake")\n{ASK}')
    done = subprocess.run(
        [need_cmake(), *(f"-D{d}" for d in NOWHERE), "-P", "other.cmake"],
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stderr.strip()).resolve() == own


def test_the_folder_of_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "--cmakedir"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout == f"{sources.native_root() / 'cmake'}\n"
    assert (Path(done.stdout.strip()) / "OrchestratorConfig.cmake").is_file()


# Projects without a language: what is written into the build ----------------------


FAKE = """\
import json, pathlib, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(words) + "\\n")
if "--depfile" in words:
    path = pathlib.Path(words[words.index("--depfile") + 1])
    path.parent.mkdir(parents=True, exist_ok=True)
    target = words[words.index("--depfile-target") + 1]
    path.write_text(target.replace(" ", "\\\\ ") + ":\\n")
"""


def project(folder: Path, calls: str) -> subprocess.CompletedProcess[str]:
    """Configure a project whose Orchestrator only notes how it was started."""
    (folder / "fake.py").write_text(FAKE.format(log=str(folder / "log")))
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES NONE)\n"
        f'include("{ROOT}/cmake/Orchestrator.cmake")\n{calls}\n'
    )
    return subprocess.run(
        [
            *(need_cmake(), "-S", folder, "-B", folder / "b", "-G", "Ninja"),
            f"-DCMAKE_MAKE_PROGRAM={ninja_program()}",
            f"-DORCHESTRATOR_EXECUTABLE={sys.executable};{folder / 'fake.py'}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def started(folder: Path, *targets: str) -> list[list[str]]:
    """How building targets starts Orchestrator."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    subprocess.run([ninja_program(), "-C", folder / "b", *targets], check=True)
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_every_argument_reaches_the_program(folder: Path) -> None:
    done = project(
        folder,
        "add_custom_command(OUTPUT made COMMAND ${CMAKE_COMMAND} -E touch made)\n"
        'orchestrator_add_profile(t PROFILE p.toml OUT "o ut" LOCKED JOBS 3\n'
        "  EXCLUDE_FROM_ALL DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/made)\n"
        "get_target_property(library t ORCHESTRATOR_LIBRARY)\n"
        'message(STATUS "<${library}>")',
    )
    assert done.returncode == 0, done.stderr
    out = folder / "b" / "o ut"
    assert f"<{out}/libdoorbell.a>" in done.stdout
    assert started(folder) == []  # it is left out of all
    stamp = f"{out}/.work/cmake.stamp"
    assert started(folder, "t_build") == [
        [
            *("build", f"{folder}/p.toml", "--out", str(out), "--locked"),
            *("--jobs", "3", "--depfile", f"{stamp}.d", "--depfile-target", stamp),
        ]
    ]
    assert (folder / "b" / "made").exists()


def test_clean_leaves_files_of_the_user_in_a_folder_that_they_named(folder: Path) -> None:
    """Orchestrator refuses to build there; CMake would not ask."""
    done = project(folder, 'orchestrator_add_profile(t PROFILE p.toml OUT "${CMAKE_SOURCE_DIR}")')
    assert done.returncode == 0, done.stderr
    names = ("include/mine.h", "current/mine", ".work/mine", ".out/mine", "mine.c")
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine")
    started(folder, "clean")
    assert all((folder / name).read_text() == "mine" for name in names)


def test_every_source_of_a_list_reaches_the_program(folder: Path) -> None:
    (folder / "m 1.pte").touch()
    (folder / "f.yaml").touch()
    done = project(
        folder,
        'orchestrator_gen_selected_ops(t ALL MODELS "m 1.pte" YAML f.yaml\n'
        "  OPS a::b c::d OUTPUT_DIR o PRIM_OPS 0\n"
        '  OPS_DICT [[{"a::b": ["v1/6;0,1|6;0,1", "$x\\\\"]}]])',
    )
    assert done.returncode == 0, done.stderr
    out = folder / "b" / "o"
    stamp = f"{out}/.orchestrator.stamp"
    assert started(folder) == [
        [
            *("plumbing", "oplist", "--model", f"{folder}/m 1.pte", "--yaml", f"{folder}/f.yaml"),
            *("--ops", "a::b", "--ops", "c::d", "--all", "--ops-dict"),
            '{"a::b": ["v1/6;0,1|6;0,1", "$x\\\\"]}',
            *("--output", f"{out}/selected_operators.yaml"),
            *("--depfile", f"{stamp}.d", "--depfile-target", stamp),
        ],
        [
            *("plumbing", "headers", "--oplist", f"{out}/selected_operators.yaml"),
            *("--output-dir", str(out), "--prim-ops", "0"),
        ],
    ]


@pytest.mark.parametrize(
    ("calls", "problem", "remedy"),
    [
        (
            f"{ADD}(a PROFILE p.toml OUT o)\n{ADD}(t PROFILE p.toml OUT x/../o)",
            "its folder is that of target a: {folder}/b/o",
            "give each target a folder of its own with OUT",
        ),
        (
            f"{GEN}(a ALL OUTPUT_DIR o)\n{GEN}(t ALL OUTPUT_DIR o)",
            "its folder is that of target a: {folder}/b/o",
            "give each target a folder of its own with OUTPUT_DIR",
        ),
        (
            f"add_custom_target(t)\n{GEN}(t ALL)",
            "there is a target t already",
            "choose another name",
        ),
        (
            f"add_custom_target(t_build)\n{ADD}(t PROFILE p.toml)",
            "there is a target t_build already",
            "choose another name",
        ),
    ],
    ids=["OUT", "OUTPUT_DIR", "target", "target behind it"],
)
def test_targets_that_would_meet(calls: str, problem: str, remedy: str, folder: Path) -> None:
    done = project(folder, calls)
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert f"(t): {problem.format(folder=folder)} Remedy: {remedy}." in said
