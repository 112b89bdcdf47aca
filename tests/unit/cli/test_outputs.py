"""Options that name files for results never cost the user a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.command_table import COMMANDS
from orchestrator.cli.main import run
from orchestrator.shell.output_file import ANY, FOLDER, lost

WRITERS = {"--output", "--junit", "--markdown", "--depfile", "--results"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder with files whose content is their name."""
    monkeypatch.chdir(tmp_path)
    for name in ("fw.toml", "fw.lock", "net.pte", "main.cpp", "odd", "blocks.csv", "key.pem"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.xml").symlink_to("odd")
    return tmp_path


def test_every_option_that_writes_a_file_says_so() -> None:
    for name, command in COMMANDS.items():
        for option in command.options:
            is_writer = option.long_name in WRITERS or option.value == "F.svg"
            assert bool(option.writes) == is_writer, f"{name} {option.line}"


@pytest.mark.parametrize(
    ("line", "option", "path", "found"),
    [
        ("build fw.toml --depfile fw.toml", "--depfile", "fw.toml", "an input of the command"),
        ("build fw.toml --depfile net.pte", "--depfile", "net.pte", "a .pte file"),
        ("build fw.toml --depfile main.cpp", "--depfile", "main.cpp", "a .cpp file"),
        ("build fw.toml --depfile folder", "--depfile", "folder", "a folder"),
        ("test --junit fw.lock", "--junit", "fw.lock", "a .lock file"),
        ("build --junit link.xml", "--junit", "link.xml", "a link to odd"),
        ("check --junit /dev/null", "--junit", "/dev/null", "a device or a pipe"),
        ("check --junit new --markdown ./new", "--markdown", "new", "what --junit writes"),
        ("sbom fw.toml --output fw.toml", "--output", "fw.toml", "an input of the command"),
        ("evaluate fw.toml --data odd --results odd", "--results", "odd", "an input"),
        ("run fw.toml --junit odd --input odd", "--junit", "odd", "an input of the command"),
        ("plumbing memory-plan odd --svg odd", "--svg", "odd", "an input of the command"),
        ("plumbing oplist --model odd --output odd", "--output", "odd", "an input"),
        ("plumbing oplist --all --output net.pte", "--output", "net.pte", "a .pte file"),
        ("signature create odd --key key.pem --output key.pem", "--output", "key.pem", "an input"),
        ("update pack odd --key key.pem --output odd", "--output", "odd", "an input"),
    ],
)
def test_what_an_option_must_not_write_over(
    line: str, option: str, path: str, found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path()
    before = {p: p.read_text() for p in folder.iterdir() if p.is_file()}
    assert run(line.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error[would-overwrite]: {option} would write over {path}\n")
    assert f"= found: {found}" in said
    assert "hint: name a new file, or the one of an earlier run" in said
    assert {p: p.read_text() for p in folder.iterdir() if p.is_file()} == before


def test_what_an_earlier_run_left_is_written_over(folder: Path) -> None:
    (folder / "x.D").write_text("x: y\n")
    (folder / "empty.py").touch()
    (folder / "sources.yaml").write_text("- x")
    assert not lost("x.D", (".d",), ["fw.toml", "missing"])
    assert not lost("odd", (".d",), ["fw.toml"])
    assert not lost("empty.py", (".d",), [])
    assert not lost("sources.yaml", (".yaml",), [])
    assert not lost("folder", (".yaml", FOLDER), [])
    assert not lost("main.cpp", (ANY,), ["fw.toml"])
    assert not lost("missing/main.cpp", (".d",), ["fw.toml"])


def test_an_input_by_another_name_is_an_input(folder: Path) -> None:
    (folder / "hard").hardlink_to(folder / "odd")
    (folder / "soft").symlink_to("odd")
    assert lost("hard", (ANY,), ["odd"]) == "an input of the command"
    assert lost("./odd", (ANY,), ["soft"]) == "an input of the command"


def test_plumbing_writes_lists(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "plumbing oplist --all --output folder --depfile folder/list.d"
    assert [run(line.split()), run(line.split())] == [0, 0]
    capsys.readouterr()
    (folder / "odd.yaml").write_text("operators: {}\n")
    line = "plumbing oplist --yaml odd.yaml --output new.yaml --depfile new.yaml"
    assert run(line.split()) == 2
    assert "--depfile would write over new.yaml" in capsys.readouterr().err
