"""The project as a whole: stray words, dependencies, sizes of files."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest
import tomli

from orchestrator.targets.cores import CPUS
from tests.unit.modules import PACKAGE, modules

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = ("tests/data/corpus/",)
"""Files as their makers left them."""

MAX_LINES = 700
MAX_TEST_LINES = 1000
"""Tests of one module stay together: their cases read as a list."""

LONG_FILES: dict[str, str] = {}
"""Files that may be longer than that, each with the reason."""


def _listed_by_git() -> list[str] | None:
    """Files that git knows; None without it, or without a checkout that it trusts."""
    git = which("git")
    if git is None or not (ROOT / ".git").exists():
        return None
    listed = subprocess.run(
        [git, "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    return listed.stdout.decode().split("\0") if listed.returncode == 0 else None


@cache
def _tracked() -> tuple[str, ...]:
    """Files of the project, relative; those of git where there is a checkout."""
    names = _listed_by_git()
    if names is None:
        names = [p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*")]
    generated = re.compile(r"(^|/)(\.[^/]*(venv|cache|nox|git)|__pycache__|build)/")
    return tuple(
        sorted(
            name
            for name in names
            if name
            and (ROOT / name).is_file()
            and not name.startswith(NOT_OURS)
            and not generated.search(name)
        )
    )


def _texts() -> Iterator[tuple[str, str]]:
    for name in _tracked():
        data = (ROOT / name).read_bytes()
        if b"\0" not in data:
            yield name, data.decode("utf-8")


# Stray words --------------------------------------------------------------------

STRAY = re.compile(
    r"""
    (?<![\w.<~)])/(?:work|root|home|Users)/\w  # folders of one machine
    | /opt/\w*venv
    | (?:index|extra-index)-url                # where one machine gets packages
    | (?:https?|no)_proxy
    | \bissue\ \#?\d                          # how the project is worked on
    | \bthe\ (?:lead|brief)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def test_no_file_names_a_machine_or_how_it_was_made() -> None:
    found = [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, text in _texts()
        for number, line in enumerate(text.splitlines(), 1)
        if STRAY.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "stray"),
    [
        # Taken apart, so that this file does not find itself.
        ("see /{}/main/x".format("work"), True),
        ("/{}/ada/x".format("home"), True),
        ("--extra-index-{}=x".format("url"), True),
        ("as the {} says".format("brief"), True),
        ("the framework/x", False),
        ("a/home/x", False),
    ],
)
def test_stray_words_are_recognised(line: str, *, stray: bool) -> None:
    assert bool(STRAY.search(line)) is stray


# Dependencies and files ---------------------------------------------------------


OPTIONAL_PARTS = {ROOT / "orchestrator" / name for name in ("export", "lowering")}
"""Folders of what needs the extra `export`."""


def _third_party_imports(*, optional: bool) -> set[str]:
    """Top-level names that the package imports from elsewhere, in such parts or not."""
    found: set[str] = set()
    for name, nodes in modules().items():
        if OPTIONAL_PARTS.isdisjoint((PACKAGE / name).parents) is optional:
            continue
        for node in nodes:
            match node:
                case ast.Import(names=names):
                    found.update(alias.name.partition(".")[0] for alias in names)
                case ast.ImportFrom(module=str() as module):
                    found.add(module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"orchestrator"}


def _canonical(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _named(requirements: list[str]) -> set[str]:
    return {_canonical(re.split(r"[^\w.-]", text)[0]) for text in requirements}


def test_dependencies_are_what_the_package_imports() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    by_import = packages_distributions()
    # pydantic_core is part of pydantic, which pins it.
    names = _third_party_imports(optional=False) - {"pydantic_core"}
    imported = {_canonical(by_import[name][0]) for name in names}
    # Without them, data, pictures, signatures and published objects are errors that
    # name them.
    extras = project["project"]["optional-dependencies"]
    named = {*extras["pictures"], *extras["provenance"], *extras["fleet"]}
    named |= {*extras["s3"], *extras["data"]}
    named = {text for text in named if not text.startswith(("pte-orch", "s3fs"))}
    assert _named([*project["project"]["dependencies"], *named]) == imported
    # They need not be installed here; their packages have their own names.
    extra = extras["export"]
    # ExecuTorch's backend for Ethos-U imports two, but does not depend on them.
    for_ethos_u = {"ethos-u-vela", "tosa-tools"}
    others = {"numpy", "ethosu"}  # what PyTorch needs; a module of ethos-u-vela
    wanted = _third_party_imports(optional=True) - others | for_ethos_u
    assert _named(extra) == wanted


def test_sessions_exist_for_all_targets() -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    (targets,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TARGETS"
    )
    assert sorted(targets) == sorted(CPUS)


def test_files_are_short() -> None:
    long = {
        name
        for name, text in _texts()
        if name.endswith((".py", ".cpp", ".h", ".c"))
        and text.count("\n") > (MAX_TEST_LINES if name.startswith("tests/") else MAX_LINES)
    }
    assert sorted(long - LONG_FILES.keys()) == [], "split them, or give a reason"
    assert sorted(LONG_FILES.keys() - long) == [], "short by now: no reason is needed"


def test_unit_tests_need_no_compiler() -> None:
    """Nor an emulator: those that do are in tests/integration or tests/qemu."""
    needs = re.compile(r"pytest\.mark\.(toolchain|qemu|slow)\b|\bneed_(toolchain|emulator)\(")
    found = [
        name for name, text in _texts() if name.startswith("tests/unit/") and needs.search(text)
    ]
    assert found == []
