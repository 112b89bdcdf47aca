"""The project as a whole: documentation, dependencies, sizes of files, stray words."""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tomli

from orchestrator.cli import parser
from orchestrator.errors import ExitCode
from orchestrator.targets import BOARDS, CPUS
from tests.tools import need_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = ("tests/data/corpus/",)
"""Files as their makers left them."""

MAX_LINES = 400
LONG_FILES: dict[str, str] = {
    "orchestrator/pipeline.py": "the one loop that performs effects, stage by stage",
    "orchestrator/stages/generate/api.py": "header and source mirror each other",
    "runtime/src/load_method.cpp": "one class checks and builds a method, in order",
}
"""Files that may be longer than MAX_LINES, each with the reason."""


@cache
def _tracked() -> tuple[str, ...]:
    """Files of the project, relative; those of git where there is a checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0 and (ROOT / ".git").exists():
        names = listed.stdout.decode().split("\0")
    else:
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


def _doc(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


# Stray words --------------------------------------------------------------------

# Taken apart, so that this file does not find itself.
STRAY = re.compile(
    "|".join(
        (
            r"(?<![\w.<~)])/(?:work|root|home|Users)" r"/\w",
            r"/opt/\w*" r"venv",
            r"(?:index|extra-index)" r"-url",
            r"(?:https?|no)_" r"proxy",
            r"\bissue " r"#?\d",
            r"\bthe (?:lead|brief)\b" r"(?! time)",
        )
    ),
    re.IGNORECASE,
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
        ("see /" + "work/main/x", True),
        ("/" + "home/ada/x", True),
        ("--extra-index" + "-url=x", True),
        ("as the " + "brief says", True),
        ("the framework/x", False),
        ("a/" + "home/x", False),
    ],
)
def test_stray_words_are_recognised(line: str, *, stray: bool) -> None:
    assert bool(STRAY.search(line)) is stray


# Documentation ------------------------------------------------------------------

_CODE = re.compile("[a-z]+(-[a-z]+)*")


def _constants(node: ast.expr) -> Iterator[str]:
    """Strings that an expression may stand for: `"a" if x else "b"` is both."""
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from _constants(body)
            yield from _constants(orelse)


def _carriers(tree: ast.AST) -> Iterator[tuple[str, int | None, ast.expr | None]]:
    """Functions with a parameter `code`: name, position if it has one, default."""
    owners = {
        child: node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for child in node.body
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        name = owners.get(node, "") if node.name == "__init__" else node.name
        places = [*node.args.posonlyargs, *node.args.args]
        places = places[1:] if node in owners else places
        for index, argument in enumerate(places):
            if argument.arg == "code":
                default = index - len(places) + len(node.args.defaults)
                yield name, index, node.args.defaults[default] if default >= 0 else None
        for argument, value in zip(
            node.args.kwonlyargs, node.args.kw_defaults, strict=True
        ):
            if argument.arg == "code":
                yield name, None, value


@cache
def _codes_in_source() -> frozenset[str]:
    """Every diagnostic code that the package can give."""
    trees = [
        ast.parse(path.read_text(encoding="utf-8"))
        for path in (ROOT / "orchestrator").rglob("*.py")
    ]
    positions: dict[str, set[int]] = {"Diagnostic": set()}
    found: set[str] = set()
    for tree in trees:
        for name, position, default in _carriers(tree):
            places = positions.setdefault(name, set())
            if position is not None:
                places.add(position)
            if default is not None:
                found.update(_constants(default))
    for node in (n for tree in trees for n in ast.walk(tree)):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                for keyword in node.keywords:
                    if keyword.arg == "code":
                        found.update(_constants(keyword.value))
                for position in positions.get(name, ()):
                    if position < len(node.args):
                        found.update(_constants(node.args[position]))
            case ast.Assign(targets=[ast.Name(id="code")], value=value):
                found.update(_constants(value))
    # Some parameters of that name are no diagnostic codes: one letter, or a sign.
    return frozenset(c for c in found if len(c) > 2 and _CODE.fullmatch(c))


def _documented_codes() -> list[str]:
    return re.findall(r"^\| `([a-z-]+)` \|", _doc("errors.md"), re.MULTILINE)


def test_codes_are_found_in_the_source() -> None:
    assert {"usage", "stale-lock", "unknown-cpu", "bad-value", "bad-arg-meta"} <= (
        _codes_in_source()
    )


def test_every_diagnostic_code_is_documented() -> None:
    documented = _documented_codes()
    assert len(documented) == len(set(documented))
    assert sorted(_codes_in_source() - set(documented)) == []
    assert sorted(set(documented) - _codes_in_source()) == []


def test_every_exit_code_is_documented() -> None:
    documented = re.findall(r"^\| (\d+) \|", _doc("errors.md"), re.MULTILINE)
    assert sorted(map(int, documented)) == sorted(code.value for code in ExitCode)


def _commands() -> dict[str, argparse.ArgumentParser]:
    for action in parser()._actions:  # noqa: SLF001  # argparse has no public way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    raise AssertionError("no commands")


@pytest.mark.parametrize("name", _commands())
def test_every_command_and_option_is_documented(name: str) -> None:
    match = re.search(
        rf"^## `{name}.*?`\n(.*?)(?=^## |\Z)", _doc("commands.md"), re.M | re.S
    )
    assert match, f"docs/commands.md has no section on {name}"
    options = {
        option
        for action in _commands()[name]._actions  # noqa: SLF001
        for option in action.option_strings
        if option not in ("-h", "--help", "--json")
    }
    written = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", match[0]))
    assert options - written == set()
    assert written - options - {"--json"} == set()


def test_every_target_and_board_is_documented() -> None:
    text = _doc("targets.md")
    for cpu in CPUS.values():
        row = re.search(rf"^\| `{cpu.name}` \|.*$", text, re.MULTILINE)
        assert row, f"docs/targets.md has no row for {cpu.name}"
        for name in (*cpu.isas, *cpu.toolchains):
            assert f"`{name}`" in row[0]
    for board in BOARDS.values():
        assert f"`{board.name}`" in text
        for region in board.regions:
            assert f"`{region.name}` {region.size_bytes // 1024:,} KiB" in text


def test_links_in_the_documentation_lead_somewhere() -> None:
    broken = [
        f"{name}: {target}"
        for name, text in _texts()
        if name.endswith(".md")
        for target in re.findall(r"\]\(([^)\s]+)\)", text)
        if not target.startswith(("http", "#"))
        and not (ROOT / name).parent.joinpath(target.partition("#")[0]).exists()
    ]
    assert broken == []


def test_every_page_is_reached_from_the_index() -> None:
    pages = {
        p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")
    }
    linked = set(re.findall(r"\]\(([^)#\s]+\.md)\)", _doc("README.md")))
    assert pages - linked == {"README.md"}


# Dependencies and files ---------------------------------------------------------


def _third_party_imports() -> set[str]:
    """Top-level names that the package imports from elsewhere."""
    found: set[str] = set()
    for path in (ROOT / "orchestrator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    found.update(alias.name.partition(".")[0] for alias in names)
                case ast.ImportFrom(module=str() as module):
                    found.add(module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"orchestrator"}


def _canonical(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def test_dependencies_are_what_the_package_imports() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = {
        _canonical(re.split(r"[^\w.-]", requirement)[0])
        for requirement in project["project"]["dependencies"]
    }
    by_import = packages_distributions()
    # pydantic_core is part of pydantic, which pins it.
    names = _third_party_imports() - {"pydantic_core"}
    imported = {_canonical(by_import[name][0]) for name in names}
    assert declared == imported


def test_files_are_short() -> None:
    counted = {
        name: text.count("\n")
        for name, text in _texts()
        if name.endswith((".py", ".cpp", ".h"))
    }
    long = {name for name, lines in counted.items() if lines > MAX_LINES}
    assert sorted(long - LONG_FILES.keys()) == [], "split them, or give a reason"
    assert sorted(LONG_FILES.keys() - long) == [], "short by now: no reason is needed"


HEADERS = sorted((ROOT / "runtime" / "include").rglob("*.h"))


@pytest.mark.toolchain
@pytest.mark.parametrize("header", HEADERS, ids=lambda p: p.name)
def test_every_runtime_header_compiles_alone(header: Path) -> None:
    compiler = need_tool("g++", "clang++", "c++")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef"]
    include = header.relative_to(ROOT / "runtime" / "include").as_posix()
    done = subprocess.run(
        [
            *(compiler, *flags, "-Werror", "-fsyntax-only"),
            *("-I", str(ROOT / "runtime" / "include"), "-x", "c++", "-"),
        ],
        # Twice: a header must also bear to be included again.
        input=f'#include "{include}"\n#include "{include}"\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
