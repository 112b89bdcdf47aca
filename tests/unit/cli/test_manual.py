"""Help, completion and man pages: complete, and true."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli import command_table
from orchestrator.cli.arguments import commands_of, name_of, parser
from orchestrator.cli.command_table import WORKSPACE
from orchestrator.cli.commands.workspace import needs_profile
from orchestrator.cli.main import run
from orchestrator.cli.man_page import man_pages, page_of
from orchestrator.cli.manual import EXAMPLES, GROUPS, MEANINGS, PLUMBING, RENAMED, SYNONYMS, epilog
from orchestrator.errors import ExitCode, UsageError
from tests.tools import need_tool

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = commands_of(parser())
OF_WORKSPACES = {name: c for name, c in command_table.COMMANDS.items() if WORKSPACE in c.arguments}
WIDTH = 80


def test_every_command_has_a_manual_and_every_exit_code_a_meaning() -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    assert set(MEANINGS) == set(ExitCode)


@pytest.mark.parametrize("name", COMMANDS)
def test_help(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    for action in COMMANDS[name]._actions:  # noqa: SLF001  # argparse has no public way
        assert action.help, f"{name} {action.dest}"
    words = name_of(COMMANDS[name]).split()
    with pytest.raises(SystemExit) as ended:
        run([*words, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= WIDTH
    assert epilog(name) in text
    with pytest.raises(SystemExit):
        run(["help", *words])
    assert capsys.readouterr().out == text
    with pytest.raises(SystemExit):
        run(["help", " ".join(words)])
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, examples in EXAMPLES.items() for text, _ in examples]
)
def test_examples_are_understood(name: str, text: str) -> None:
    whole = re.sub(r'eval "\$\((.*)\)"', r"\1", text)
    (ours,) = [part for part in whole.split("|") if "orchestrator" in part]
    words = shlex.split(ours.partition(">")[0])
    assert words.pop(0) == "orchestrator"
    assert parser().parse_args(words).command == name


def test_commands_by_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(SYNONYMS.values()) <= set(COMMANDS)
    assert not set(SYNONYMS) & set(RENAMED)
    assert not set(SYNONYMS) & set(COMMANDS)
    for word, meant in (("compile", "build"), ("Validate", "check"), ("biuld", "build")):
        assert run([word]) == 2
        assert capsys.readouterr().err == (
            f'error[usage]: there is no command "{word}"\n   hint: did you mean "{meant}"?\n'
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
            "--frozen is an option of build, run, test, flash, evaluate, report, package,"
            " sbom, provenance",
        ),
        (
            "check x.toml --colour never",
            "unrecognized arguments: --colour never",
            'did you mean "--color"?',
        ),
        ("evaluate x.toml --date a", "unrecognized arguments: --date", 'did you mean "--data"?'),
        ("signature create --kye=a x", "unrecognized arguments: --kye", 'did you mean "--key"?'),
        (
            "evaluate x.toml --inputs a",
            "the following arguments are required: --data",
            "run `orchestrator evaluate --help` to see its options",
        ),
        (
            "check x.toml y.toml",
            "unrecognized arguments: y.toml",
            "it takes one PROFILE; for several products: -p NAME -p y.toml",
        ),
        (
            "targets --bord",
            "unrecognized arguments: --bord",
            "run `orchestrator targets --help` to see its arguments",
        ),
        (
            "plan x.toml y.toml",
            "unrecognized arguments: y.toml",
            "run `orchestrator plan --help` to see its arguments",
        ),
        (
            "signature\\ create",
            'there is no command "signature create"',
            "leave out the quotes: `orchestrator signature create`",
        ),
        ("hlep", 'there is no command "hlep"', 'did you mean "help"?'),
        ("watsh", 'there is no command "watsh"', 'did you mean "watch"?'),
        ("completoin", 'there is no command "completoin"', 'did you mean "completion"?'),
        (
            "plumbing oplits --all",
            'there is no command "plumbing oplits"',
            'did you mean "oplist"?',
        ),
        ("docs", 'there is no command "docs"', 'did you mean "plumbing man"?'),
        (
            "plumbing xyzzy",
            'there is no command "plumbing xyzzy"',
            "run `orchestrator plumbing --help` to see all commands",
        ),
        (
            "plumbing schema --oplist a.yaml",
            "unrecognized arguments: --oplist a.yaml",
            "--oplist is an option of plumbing headers",
        ),
        ("singature", 'there is no command "singature"', 'did you mean "signature"?'),
        ("wy-not", 'there is no command "wy-not"', 'did you mean "why --not"?'),
        ("help buidl", 'there is no command "buidl"', 'did you mean "build"?'),
    ],
)
def test_arguments_in_the_wrong_place(
    line: str, message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(line)) == 2
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


def _help(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        run([*words])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_help_of_all_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    text = _help(capsys)
    assert {_help(capsys, *line) for line in (["--help"], ["help"], ["help", "help"])} == {text}
    assert "COMMAND ..." in text
    assert "orchestrator help COMMAND" in text
    assert max(map(len, text.splitlines())) <= WIDTH
    groups = dict(re.findall(r"^([a-z ]+):\n((?:  .*\n)+)", text, re.MULTILINE))
    del groups["options"]
    plumbing = groups.pop(PLUMBING)
    listed = {g: re.findall(r"^  (\S+)", t, re.MULTILINE) for g, t in groups.items()}
    assert listed == {g: list(n) for g, n in GROUPS.items() if g != PLUMBING}
    assert ", ".join(GROUPS[PLUMBING]) in plumbing
    below = _help(capsys, "plumbing")
    assert below == _help(capsys, "plumbing", "-h") == _help(capsys, "help", "plumbing")
    for name in COMMANDS:
        is_below = re.search(rf"^    {name} ", below, re.MULTILINE) is not None
        assert is_below == (name in GROUPS[PLUMBING]), name


def test_every_command_is_in_one_group() -> None:
    assert sorted(n for names in GROUPS.values() for n in names) == sorted(COMMANDS)


def test_options_without_a_command_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    for line in (["-q"], ["--color", "never"], ["plumbing", "--verbose"]):
        assert run(line) == 2
        assert "required: COMMAND" in capsys.readouterr().err


FORMER = {
    "why-not x.toml relu.out": "why --not x.toml relu.out",
    "why-not x.toml relu.out Half": "why --not x.toml relu.out --dtype Half",
    "sign a --key k": "signature create a --key k",
    "verify-signature a --key k --output b": "signature verify a --key k --output b",
    "memory-plan a.csv": "plumbing memory-plan a.csv",
    "oplist --all --output a": "plumbing oplist --all --output a",
    "headers --oplist a --output-dir b": "plumbing headers --oplist a --output-dir b",
    "schema --workspace": "plumbing schema --workspace",
    "completion bash": "plumbing completion bash",
    "man build": "plumbing man build",
}


@pytest.mark.parametrize("before", FORMER)
def test_former_commands_work_and_say_what_is_typed_now(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    word = before.split(maxsplit=1)[0]
    assert word in RENAMED
    now = FORMER[before].split()
    code, expected = run(now), capsys.readouterr()
    assert "note:" not in expected.err
    note = f"note: `orchestrator {word}` is now `orchestrator {RENAMED[word]}`\n"
    assert run(["--color", "never", *before.split()]) == code
    assert capsys.readouterr() == (expected.out, note + expected.err)
    assert run([*before.split(), "--quiet"]) == code
    assert capsys.readouterr().err == expected.err
    assert run([*now, "--json"]) == code
    expected = capsys.readouterr()
    assert run(["--json", *before.split()]) == code
    assert capsys.readouterr() == expected
    assert _help(capsys, "help", word) == _help(capsys, *now[:2], "--help")


def test_all_former_commands_are_tested() -> None:
    assert {line.split()[0] for line in FORMER} == set(RENAMED)
    assert not set(RENAMED) & set(map(name_of, COMMANDS.values()))


def test_a_file_may_have_the_name_of_a_former_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["inspect", "sign"]) == 4
    assert "note:" not in capsys.readouterr().err


@pytest.mark.parametrize("name", OF_WORKSPACES)
def test_options_are_for_a_profile_or_for_a_workspace(name: str) -> None:
    options = [*OF_WORKSPACES[name].options]
    for option in options:
        given = dict.fromkeys((one.key for one in options), None) | {option.key: "x"}
        args = argparse.Namespace(command=name, **given)
        for named in (None, "p.toml"):
            is_wrong = option in WORKSPACE.options if named else option.needs_profile
            if not is_wrong:
                assert needs_profile(args, named) == bool(named)
                continue
            says = "works on a workspace" if named else "requires PROFILE"
            with pytest.raises(UsageError, match=f"^{option.long_name} {says}"):
                needs_profile(args, named)


def test_a_dtype_is_for_what_is_absent(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "x.toml", "relu", "--dtype", "Half"]) == 2
    assert capsys.readouterr().err == (
        "error[usage]: --dtype requires --not\n"
        "   hint: `why --not` explains why a kernel lacks a dtype\n"
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plumbing", "completion", shell]) == 0
    script = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", script), name
        for action in command._actions:  # noqa: SLF001  # argparse has no public way
            for option in action.option_strings:
                assert option.lstrip("-") in script, (name, option)
    assert not re.search("why-not|verify-signature", script)
    if shell != "bash":  # which shows no descriptions
        for title, names in GROUPS.items():
            assert script.count(f"'{title}: ") == len(names)
    if program := shutil.which(shell):
        check = subprocess.run([program, "-n"], input=script, text=True, check=False)
        assert check.returncode == 0


def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plumbing", "completion", "bash"]) == 0
    script = capsys.readouterr().out

    def completed(*words: str) -> list[str]:
        quoted = " ".join(map(shlex.quote, words))
        ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMPREPLY=()\n"
        done = subprocess.run(
            ["/bin/bash", "-c", f'{script}\n{ask}_shtab_orchestrator\necho "${{COMPREPLY[*]}}"'],
            env={"PATH": os.defpath},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert completed("orchestrator", "wa") == ["watch"]
    assert completed("orchestrator", "plumbing", "completion", "") == [*("bash", "zsh", "fish")]
    assert completed("orchestrator", "plumbing", "op") == ["oplist"]
    assert completed("orchestrator", "op") == []
    assert "--frozen" in completed("orchestrator", "build", "--fr")


def test_man_pages(capsys: pytest.CaptureFixture[str]) -> None:
    pages = man_pages(parser())
    names = {f"{page_of(command)}.1" for command in COMMANDS.values()}
    assert set(pages) == names | {"orchestrator.1"}
    assert "orchestrator-plumbing-man.1" in names
    listed = re.findall(
        r"^(?:\.SS (.*)|\\fBorchestrator(?:\\-plumbing)?\\-(.*)\\fR\(1\))$",
        pages["orchestrator.1"],
        re.MULTILINE,
    )
    assert [title or name.replace("\\", "") for title, name in listed] == [
        word for title, names in GROUPS.items() for word in (title.capitalize(), *names)
    ]
    for name, command in COMMANDS.items():
        text = pages[f"{page_of(command)}.1"]
        plain = text.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
        for action in command._actions:  # noqa: SLF001  # argparse has no public way
            assert all(f"{option}" in plain for option in action.option_strings)
        assert all(text in plain for text, _ in EXAMPLES[name])
        assert not re.search(r"^['.](?!TH|SH|TP|B )", text, re.MULTILINE)
    for words, page in (
        (["build"], "orchestrator-build.1"),
        (["man"], "orchestrator-plumbing-man.1"),
        (["plumbing", "man"], "orchestrator-plumbing-man.1"),
        ([], "orchestrator.1"),
        (["plumbing"], "orchestrator.1"),
    ):
        assert run(["plumbing", "man", *words]) == 0
        assert capsys.readouterr().out == pages[page]
    for name, near in (("bild", "build"), ("why-not", "why --not")):
        assert run(["plumbing", "man", name]) == 2
        assert f'did you mean "{near}"?' in capsys.readouterr().err


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
