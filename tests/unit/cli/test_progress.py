"""Progress: few lines in a log, one line with a clock on a terminal, none with -q."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console as RichConsole

from orchestrator.cli.console import Console
from orchestrator.cli.progress import Bar, Lines
from orchestrator.shell.reporter import Reporter

if TYPE_CHECKING:
    import pytest


class Clock:
    """Seconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    lines = Lines(explain=False, clock=clock)
    name = "compile " + "x" * 200
    for step in range(1, 31):
        clock.now += 1
        lines.progress(step, 30, name)
    clock.now += 10
    lines.working("memory of wake", 3, 5)
    lines.working("memory of wake", 4, 5)
    assert capsys.readouterr().err == (
        f"[10/30] {name}, 10 s\n[20/30] {name}, 20 s\n[30/30] {name}, 30 s\n"
        "memory of wake (3 of 5), 40 s\n"
    )


def test_verbose_lines_are_all_steps(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(explain=False, verbose=True, clock=Clock())
    lines.working("extract kws")
    lines.progress(1, 2, "compile a.cpp")
    lines.progress(2, 2, "compile b.cpp")
    assert capsys.readouterr().err == "[1/2] compile a.cpp\n[2/2] compile b.cpp\n"


def test_the_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    screen = RichConsole(file=stream, force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr("orchestrator.cli.progress.Console", lambda **_: screen)
    bar = Bar(explain=False)
    bar.working("passes kws", 2, 30)
    bar._progress.refresh()  # noqa: SLF001  # it does so by a clock
    bar.progress(3, 4, "compile " + "x" * 100)
    bar._progress.refresh()  # noqa: SLF001
    bar.working("measure")
    bar._progress.refresh()  # noqa: SLF001
    bar.close()
    shown = stream.getvalue()
    assert "passes kws" in shown
    assert "1/30" in shown
    assert "xxx…" in shown
    assert "3/4" in shown
    last = shown.rpartition("measure")[2]
    assert "0:00:00" in last
    assert "/4" not in last
    assert " 0/4" not in shown  # nor for a moment, as the kind of step changes


def test_settings(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(json=False)
    console.settings(color="always", quiet=True, verbose=False)
    assert console.color
    console.status("unseen")
    assert isinstance(console.reporter(), Reporter)
    console.data("seen")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("seen\n", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    console = Console(json=False)
    console.settings(color="never", quiet=False, verbose=True)
    assert not console.color
    assert isinstance(console.reporter(), Lines)
