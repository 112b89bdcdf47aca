"""What the documentation shows can be typed: profiles load, commands are understood.

`tests/integration/test_pages.py` runs the commands.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import tomli
from packaging.requirements import Requirement

from orchestrator.cli.arguments import parser
from orchestrator.profile.load import load_profile
from orchestrator.shell.distribution import DISTRIBUTION
from orchestrator.shell.sources import library_names
from orchestrator.workspace.load import read_workspace
from tests.doc_blocks import PAGES, ROOT, WALKED, Command, SavedFile, blocks, steps
from tests.tutorial import EXAMPLE
from tests.tutorial import PAGE as TUTORIAL

TARGET = '[target]\ncpu = "cortex-m4"\n'
MODEL = '[[models]]\npath = "m.pte"\n'
SOURCE = '[[models]]\nsource = "m.py:build"\nlowering = "ethos-u55-128"\n'
REGIONS = "".join(
    f'[[memory.regions]]\nname = "{name}"\norigin = {origin}\nsize = "1 MiB"\n{kind}\n'
    for name, origin, kind in (
        ("flash", "0x08000000", 'kind = "flash"'),
        ("dtcm", "0x20000000", ""),
        ("sram", "0x24000000", ""),
        ("itcm", "0x00000000", ""),
        ("qspi", "0x90000000", 'kind = "flash"'),
    )
)
LIBRARIES = '[kernels]\nlibraries = ["cmsis_nn", "cortex_m"]\n'
"""What a part of a profile lacks to be one."""

BOARDS = {"my-board.toml": "docs/targets.md 3"}
"""Board files that are shown, and that a profile shown names."""

BEFORE = {
    **dict.fromkeys(("docs/memory.md 4", "docs/targets.md 5"), REGIONS),
    "examples/cmsis_nn/README.md 1": LIBRARIES,
}
AFTER = {"docs/workspaces.md 2": TARGET}
"""What the text around a block says that the profile has, too, before and after it."""

WORKSPACES = (*("docs/orchestrator-toml.md 1", "docs/workspaces.md 1"), "docs/fleet.md 1")
"""Blocks that are `orchestrator.toml`."""


def _whole(text: str) -> str:
    """The profile that a block is, or is a part of."""
    if re.search(r"^schema = ", text, re.MULTILINE):
        return text
    if not text.startswith("[") or text.startswith("[models."):
        text = SOURCE + text
    head = 'schema = 1\nname = "shown"\n'
    if "[target]" not in text:
        head += TARGET
    # Arrays of tables go on: a part may begin below one.
    return head + ("" if "[[models]]" in text else MODEL) + text


@pytest.mark.parametrize("name", sorted({*blocks("toml")} - {*BOARDS.values(), *WORKSPACES}))
def test_a_profile_that_is_shown_is_valid(name: str) -> None:
    text = _whole(BEFORE.get(name, "") + blocks("toml")[name].text) + AFTER.get(name, "")
    boards = {file: blocks("toml")[block].text for file, block in BOARDS.items()}
    profile = load_profile(
        Path("profiles/shown.toml"),
        text_of=lambda path: boards.get(path.name, text),
        is_file=lambda _: True,
        known_libraries=(*library_names(), "cmsis_nn"),
    )
    assert profile.name


@pytest.mark.parametrize("name", WORKSPACES)
def test_a_workspace_that_is_shown_is_valid(name: str, tmp_path: Path) -> None:
    file = tmp_path / "orchestrator.toml"
    file.write_text(blocks("toml")[name].text)
    assert read_workspace(file).table.workspace.profiles


def test_the_profile_of_the_readme_is_checked_in() -> None:
    shown = tomli.loads(blocks("toml")["README.md 1"].text)
    checked_in = tomli.loads((ROOT / f"profiles/{shown['name']}.toml").read_text())
    assert {k: v for k, v in checked_in.items() if k != "description"} == shown


def _understood(words: list[str]) -> None:
    """The program takes these arguments, and profiles of the repository exist."""
    args = parser().parse_args(words[1:])
    for path in (getattr(args, "profile", None), *getattr(args, "profiles", ())):
        if path is not None and str(path).startswith(("profiles/", "examples/")):
            assert (ROOT / path).is_file(), path
    if scenario := getattr(args, "scenario", None):
        assert (ROOT / scenario).is_file(), scenario


def _installs(words: list[str]) -> None:
    """pip finds the project, and it has the extras."""
    project = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    for word in words[words.index("install") + 1 :]:
        if word in ("-e", "-q"):
            continue
        wanted = Requirement(re.sub(r"^\.(?=\[|$)", DISTRIBUTION, word))
        assert wanted.name == DISTRIBUTION, word
        assert wanted.extras <= set(project["optional-dependencies"]), word


@pytest.mark.parametrize("name", blocks("sh"))
def test_commands_that_are_shown_are_understood(name: str) -> None:
    commands = blocks("sh")[name].commands
    assert commands
    for command in commands:
        words = shlex.split(command.partition(" > ")[0])
        match Path(words[0]).name:
            case "orchestrator":
                _understood(words)
            case "pip":
                _installs(words)


@pytest.mark.parametrize("name", blocks("console"))
def test_a_console_begins_with_a_command(name: str) -> None:
    """Lines before it would be output that nothing compares."""
    assert blocks("console")[name].text.startswith("$ ")


def test_sessions_are_marked_as_such() -> None:
    assert [name for name, b in blocks("").items() if b.text.startswith("$ ")] == []


@pytest.mark.parametrize("page", WALKED)
def test_commands_of_a_console_are_understood(page: str) -> None:
    commands = [step.line for step in steps(page) if isinstance(step, Command)]
    assert commands
    for command in commands:
        words = shlex.split(command.partition(" > ")[0])
        match Path(words[0]).name:
            case "orchestrator" if words[1] != "--version":
                _understood(words)
            case "pip":
                _installs(words)


def test_the_code_of_the_tutorial_is_that_of_its_example() -> None:
    saved = {s.path: s.text for s in steps(TUTORIAL) if isinstance(s, SavedFile)}
    code = {path: text for path, text in saved.items() if path.endswith(".py")}
    assert code == {path: (EXAMPLE / path).read_text() for path in code}
    assert code.keys() == {"network.py", "samples.py", "train.py"}
    shown, checked_in = map(
        tomli.loads, (saved["export.toml"], (EXAMPLE / "export.toml").read_text())
    )
    assert all(shown[key] == checked_in[key] for key in ("target", "models"))


def test_hints_in_running_text_name_the_distribution() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in re.findall(r"`pip install ([^`]*orchestrator[^`]*)`", text):
            assert found.strip('"').startswith((DISTRIBUTION, "path/to/")), page
