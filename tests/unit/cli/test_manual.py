"""Help, completion and man pages: complete, and true."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess

import pytest

from orchestrator.cli.arguments import parser
from orchestrator.cli.main import run
from orchestrator.cli.man_page import commands_of, man_pages
from orchestrator.cli.manual import (
    MANUALS,
    MEANINGS,
    SYNONYMS,
    command_line,
    epilog,
)
from orchestrator.errors import ExitCode
from tests.tools import need_tool

COMMANDS = commands_of(parser())
WIDTH = 80


def test_every_command_has_a_manual_and_every_exit_code_a_meaning() -> None:
    assert set(MANUALS) == set(COMMANDS)
    assert set(MEANINGS) == set(ExitCode)


@pytest.mark.parametrize("name", COMMANDS)
def test_help(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    for action in COMMANDS[name]._actions:  # noqa: SLF001  # argparse has no public way
        assert action.help, f"{name} {action.dest}"
    with pytest.raises(SystemExit) as ended:
        run([name, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= WIDTH
    assert epilog(name) in text
    with pytest.raises(SystemExit):
        run(["help", name])
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("name", "text"),
    [(name, text) for name, manual in MANUALS.items() for text, _ in manual.examples],
)
def test_examples_are_understood(name: str, text: str) -> None:
    whole = re.sub(r'eval "\$\((.*)\)"', r"\1", command_line(text))
    (ours,) = [part for part in whole.split("|") if "orchestrator" in part]
    words = shlex.split(ours.partition(">")[0])
    assert words.pop(0) == "orchestrator"
    assert parser().parse_args(words).command == name


def test_commands_by_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(SYNONYMS.values()) <= set(COMMANDS)
    assert not set(SYNONYMS) & set(COMMANDS)
    for word, meant in (
        ("compile", "build"),
        ("Validate", "check"),
        ("biuld", "build"),
    ):
        assert run([word]) == 2
        assert capsys.readouterr().err == (
            f'error[usage]: there is no command "{word}"\n'
            f'   hint: did you mean "{meant}"?\n'
        )
    assert run(["xyzzy"]) == 2
    hint = "run `orchestrator --help` to see all commands"
    assert capsys.readouterr().err.endswith(f"   hint: {hint}\n")


AFTER = (
    "options of a command follow it: `orchestrator COMMAND --option`; only -q, -v,"
    " --json and --color may come first"
)


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("--no-lock build x.toml", "unrecognized arguments: --no-lock", AFTER),
        ("--out d build x.toml", "--out stands before the command", AFTER),
        (
            "check x.toml --frozen",
            "unrecognized arguments: --frozen",
            "--frozen is an option of build, run, test, evaluate, report, package,"
            " sbom, provenance",
        ),
        (
            "check x.toml --colour never",
            "unrecognized arguments: --colour never",
            'did you mean "--color"?',
        ),
        (
            "check x.toml y.toml",
            "unrecognized arguments: y.toml",
            "run `orchestrator check --help` to see its arguments",
        ),
        ("hlep", 'there is no command "hlep"', 'did you mean "help"?'),
        ("watsh", 'there is no command "watsh"', 'did you mean "watch"?'),
        (
            "completoin",
            'there is no command "completoin"',
            'did you mean "completion"?',
        ),
        ("help buidl", 'there is no command "buidl"', 'did you mean "build"?'),
    ],
)
def test_arguments_in_the_wrong_place(
    line: str, message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split()) == 2
    assert capsys.readouterr().err == f"error[usage]: {message}\n   hint: {hint}\n"


@pytest.mark.parametrize(
    ("line", "quiet", "verbose", "json", "color"),
    [
        ("-q plan x.toml", True, False, False, "auto"),
        ("plan x.toml -q", True, False, False, "auto"),
        ("--color never -v plan x.toml", False, True, False, "never"),
        ("--color never plan x.toml --color always", False, False, False, "always"),
        ("--json plan x.toml", False, False, True, "auto"),
        ("plan x.toml", False, False, False, "auto"),
    ],
)
def test_options_of_all_commands_before_and_after(
    line: str, *, quiet: bool, verbose: bool, json: bool, color: str
) -> None:
    found = parser().parse_args(line.split())
    assert (found.quiet, found.verbose, found.json, found.color) == (
        *(quiet, verbose, json, color),
    )


def test_help_of_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for line in (["--help"], ["help"], ["help", "help"]):
        with pytest.raises(SystemExit):
            run(line)
        text = capsys.readouterr().out
        assert "COMMAND ..." in text
        assert "orchestrator help COMMAND" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", script), name
        for action in command._actions:  # noqa: SLF001  # argparse has no public way
            for option in action.option_strings:
                assert option.lstrip("-") in script, (name, option)
    if program := shutil.which(shell):
        check = subprocess.run([program, "-n"], input=script, text=True, check=False)
        assert check.returncode == 0


def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "bash"]) == 0
    script = capsys.readouterr().out

    def completed(*words: str) -> list[str]:
        quoted = " ".join(map(shlex.quote, words))
        ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMPREPLY=()\n"
        done = subprocess.run(
            [
                "/bin/bash",
                "-c",
                f'{script}\n{ask}_shtab_orchestrator\necho "${{COMPREPLY[*]}}"',
            ],
            env={"PATH": os.defpath},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert completed("orchestrator", "wa") == ["watch"]
    assert completed("orchestrator", "completion", "") == ["bash", "zsh", "fish"]
    assert "--frozen" in completed("orchestrator", "build", "--fr")


def test_man_pages(capsys: pytest.CaptureFixture[str]) -> None:
    pages = man_pages(parser())
    names = {f"orchestrator-{name}.1" for name in COMMANDS}
    assert set(pages) == names | {"orchestrator.1"}
    for name, command in COMMANDS.items():
        text = pages[f"orchestrator-{name}.1"]
        plain = text.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
        for action in command._actions:  # noqa: SLF001  # argparse has no public way
            assert all(f"{option}" in plain for option in action.option_strings)
        assert all(command_line(t) in plain for t, _ in MANUALS[name].examples)
        assert not re.search(r"^['.](?!TH|SH|TP|B )", text, re.MULTILINE)
    assert run(["man", "build"]) == 0
    assert capsys.readouterr().out == pages["orchestrator-build.1"]
    assert run(["man", "bild"]) == 2
    assert 'did you mean "build"?' in capsys.readouterr().err


def test_groff_has_no_complaints() -> None:
    need_tool("groff")
    for text in man_pages(parser()).values():
        done = subprocess.run(
            [shutil.which("groff") or "groff", "-man", "-ww", "-Tutf8", "-z"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_parsers_are_described() -> None:
    for command in COMMANDS.values():
        assert isinstance(command, argparse.ArgumentParser)
        assert (command.description or "").endswith(".")
