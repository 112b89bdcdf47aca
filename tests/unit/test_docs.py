"""The documentation says what the program does: codes, commands, targets, links."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import orchestrator
from orchestrator.cli.arguments import commands_of, name_of, parser
from orchestrator.cli.manual import GROUPS
from orchestrator.errors import ExitCode
from orchestrator.targets.cores import CPUS
from tests.unit.source_codes import codes_in_source

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    path for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md") for path in ROOT.glob(pattern)
)


def _doc(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def _documented_codes() -> list[str]:
    return re.findall(r"^\| `([a-z-]+)` \|", _doc("errors.md"), re.MULTILINE)


def test_codes_are_found_in_the_source() -> None:
    assert {"usage", "stale-lock", "unknown-cpu", "bad-value", "bad-arg-meta"} <= (
        codes_in_source()
    )


def test_every_diagnostic_code_is_documented() -> None:
    documented = _documented_codes()
    assert len(documented) == len(set(documented))
    assert sorted(codes_in_source() - set(documented)) == []
    assert sorted(set(documented) - codes_in_source()) == []


def test_every_exit_code_is_documented() -> None:
    documented = re.findall(r"^\| (\d+) \|", _doc("errors.md"), re.MULTILINE)
    assert sorted(map(int, documented)) == sorted(code.value for code in ExitCode)


COMMON = frozenset({*("-h", "--help", "--json", "-q", "--quiet", "-v", "--verbose", "--color")})
"""Options that every command has."""


COMMANDS = commands_of(parser())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    typed = name_of(COMMANDS[name])
    section = rf"^### `{typed}(?: .*?)?`\n(.*?)(?=^##{{1,2}} |\Z)"
    match = re.search(section, _doc("commands.md"), re.MULTILINE | re.DOTALL)
    assert match, f"docs/commands.md has no section on {name}"
    options = {
        option
        for action in COMMANDS[name]._actions  # noqa: SLF001  # no public way
        for option in action.option_strings
        if option not in COMMON
    }
    written = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", match[0]))
    assert options - written == set()
    assert written - options - COMMON == set()


def test_pages_have_the_groups_of_commands_in_their_order() -> None:
    found = re.findall(
        r"^(?:## (.*)|### `(?:plumbing )?([a-z-]+).*`)$", _doc("commands.md"), re.MULTILINE
    )
    assert [title or name for title, name in found] == [
        word for title, names in GROUPS.items() for word in (title.capitalize(), *names)
    ]
    listed = re.findall(
        r"^## (.*)\n\n\[Commands\]\(commands\.md#(.*)\): ([^.]*)\.$",
        _doc("README.md"),
        re.MULTILINE,
    )
    assert [(title, re.findall("`(.*?)`", names)) for title, _, names in listed] == [
        (title.capitalize(), list(names)) for title, names in GROUPS.items()
    ]
    for title, anchor, _ in listed:
        assert anchor == title.lower().replace(" ", "-")


@pytest.mark.parametrize(
    ("word", "page"),
    [
        *(("Conv1d", "export"), ("LSTM", "export"), ("GRU", "howto-streaming")),
        *(("CSV", "planner"), ("CSV", "scratch"), ("KV cache", "howto-streaming")),
        *(("LSTM", "README"), ("CSV", "README"), ("STM32", "README")),
    ],
)
def test_words_that_people_search_for(word: str, page: str) -> None:
    assert re.search(rf"\b{word}\b", _doc(f"{page}.md"))


def test_the_readme_has_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## Two commands\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\$ (\w+) (\w+)", section, re.MULTILINE)
    assert lines == [("orchestrator", "build"), ("orchestrator", "run")]


def test_the_options_of_all_commands_are_documented() -> None:
    head = _doc("commands.md").partition("\n## ")[0]
    assert COMMON - set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", head)) == set()


def test_every_portable_kernel_has_a_size() -> None:
    sources = {p.stem for p in (ROOT / "kernels" / "portable").glob("op_*.cpp")}
    rows = re.findall(r"^\| `(op_\w+)` \|", _doc("kernel-sizes.md"), re.MULTILINE)
    assert set(rows) - {"op_prepared_matmul"} == sources
    assert rows == sorted(rows)


def test_every_target_is_documented() -> None:
    text = _doc("targets.md")
    for cpu in CPUS.values():
        row = re.search(rf"^\| `{cpu.name}` \|.*$", text, re.MULTILINE)
        assert row, f"docs/targets.md has no row for {cpu.name}"
        for name in (*cpu.isas, *cpu.toolchains):
            assert f"`{name}`" in row[0]


def test_links_in_the_documentation_lead_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in PAGES
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
        if not target.startswith(("http", "#"))
        and not path.parent.joinpath(target.partition("#")[0]).exists()
    ]
    assert broken == []


def test_links_to_other_sites_are_well_formed() -> None:
    """Without a network, no more can be said of them."""
    found = [
        (path.relative_to(ROOT), target)
        for path in PAGES
        for target in re.findall(r"\]\((\w+:[^)]*)\)", path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 100
    wrong = []
    for path, target in found:
        url = urlsplit(target)
        host = re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", url.netloc)
        if url.scheme != "https" or not host or re.search(r"[\s\"<>]|[.,;]$", target):
            wrong.append((path, target))
    assert wrong == []


def test_every_page_is_reached_from_the_index() -> None:
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    linked = set(re.findall(r"\]\(([^)#\s]+\.md)\)", _doc("README.md")))
    assert pages - linked == {"README.md", "index.md"}


def test_the_changelog_begins_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", text, re.MULTILINE)
    assert newest
    assert newest[1] == orchestrator.__version__


def test_files_that_the_readme_names_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:profiles|examples|tests)/[\w./-]+\w", text))
    assert named
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_every_promise_has_tests_that_exist() -> None:
    rows = [
        line
        for line in _doc("promises.md").splitlines()
        if line.startswith("| ") and not line.startswith(("| promise |", "| --- |"))
    ]
    assert len(rows) > 60
    for row in rows:
        held = re.findall(r"`(tests/[\w/]+\.(?:py|cpp))(?:::(\w+))?`", row)
        assert held, row
        for path, name in held:
            text = (ROOT / path).read_text(encoding="utf-8")
            assert not name or f"def {name}(" in text, (path, name)
