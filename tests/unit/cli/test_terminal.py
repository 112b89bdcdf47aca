"""What a file's text may do to a terminal: nothing."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import pytest
from rich.console import Console as RichConsole

from orchestrator.cli.console import Console
from orchestrator.cli.fastpath import unchanged_build
from orchestrator.cli.main import run
from orchestrator.cli.progress import Bar, Lines
from orchestrator.printable import printable, printable_lines
from tests.conftest import model_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.shell.reporter import Reporter

# One of each: escape, C1 control (a whole CSI), DEL, line separator, override, isolate.
HOSTILE = "a\x1b[2J\x9b31m\x7f\u2028\u202e\u2066\u200fz"
SHOWN = r"a\u001b[2J\u009b31m\u007f\u2028\u202e\u2066\u200fz"


def test_what_steers_a_terminal_is_escaped() -> None:
    assert printable(HOSTILE) == SHOWN
    assert printable("one\ntwo\r\tthree") == r"one\u000atwo\u000d    three"
    assert printable_lines("one\ntwo\r") == "one\ntwo\\u000d"
    plain = "aten::add.out  äöü 漢字 → 🙂"
    assert printable(plain) == plain


def _is_safe(text: str) -> bool:
    return printable_lines(text) == text


@pytest.mark.parametrize("reporter", ["lines", "bar"])
def test_progress_and_commands_show_it(reporter: str, capsys: pytest.CaptureFixture[str]) -> None:
    made: Reporter = Lines(explain=True) if reporter == "lines" else Bar(explain=True)
    name = f"[bold]{HOSTILE}"
    made.stage(name, name)
    made.skipped(name)
    made.explained(f"{name}\n{name}")
    made.note(name)
    if reporter == "lines":
        made.progress(1, 2, name)
    console = Console(json=False)
    console.status(name)
    console.data(name)
    said = capsys.readouterr()
    assert _is_safe(said.out + said.err)
    # Markup of rich is text as well.
    assert said.err.count(f"[bold]{SHOWN}") == 7 + (reporter == "lines")
    assert said.out == f"[bold]{SHOWN}\n"


def test_the_bar_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    screen = RichConsole(file=stream, force_terminal=True, width=200)
    monkeypatch.setattr("orchestrator.cli.progress.Console", lambda **_: screen)
    bar = Bar(explain=False)
    bar.progress(1, 2, "[red]a\x1b[2J")
    bar.close()
    assert r"[red]a\u001b[2J" in stream.getvalue()
    assert "\x1b[2J" not in stream.getvalue()


def test_documents_escape_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    Console(json=True).document({HOSTILE: HOSTILE})
    text = capsys.readouterr().out
    assert text.isascii()
    assert _is_safe(text)
    assert json.loads(text) == {HOSTILE: HOSTILE}


def test_a_build_that_is_up_to_date_shows_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stamp = {"warnings": [HOSTILE]}
    monkeypatch.setattr("orchestrator.cli.fastpath.is_current", lambda *_, **__: stamp)
    assert unchanged_build([f"{HOSTILE}.toml", "--out", "out", "--no-lock"])
    said = capsys.readouterr().err
    assert _is_safe(said)
    assert said.count(SHOWN) == 2


_READERS = ("inspect", "why")
"""Commands that do not ask whether the program can be part of a product."""


# As long as "forward" in UTF-8, in a program that any command reads.
@pytest.mark.parametrize("name", ["f\x1b[2J*/", "f\n\r\x7f\x9bz", 'f"\u202e*/'])
@pytest.mark.parametrize("command", ["inspect", "check", "plan", "build", "why"])
def test_a_hostile_method_name(
    command: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(name.encode()) == len("forward")
    program = model_bytes("kws_dscnn_fp32").replace(b"forward", name.encode())
    (tmp_path / "m.pte").write_bytes(program)
    (tmp_path / "p.toml").write_text(
        'schema = 1\nname = "p"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
        '[[models]]\nname = "m"\npath = "m.pte"\n'
    )
    more = ["aten::relu.out"] if command == "why" else []
    code = run([command, "m.pte" if command == "inspect" else "p.toml", *more])
    said = capsys.readouterr()
    # No C function can have that name, so it gets into no generated file.
    assert code == (0 if command in _READERS else 4), said.err
    assert _is_safe(said.out + said.err)
    shown = printable(name) if command in _READERS else printable_lines(name)
    assert shown.partition("\n")[0] in said.out + said.err
    assert not re.search(r"^\x20*(error|z)", said.out, re.MULTILINE)
