"""Progress as one line with a clock, for terminals."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from orchestrator.cli.terminal import say
from orchestrator.printable import printable, printable_lines
from orchestrator.shell.reporter import Reporter

# Progress as plain lines, for logs.

# Seconds. Chosen by hand.
_EVERY_S: Final = 10.0
"""A log shows that something still happens, and no more."""


class Explained(Reporter):
    """Says why stages run and what they do, where that is wanted.

    Args:
        explain: Whether it is.
    """

    def __init__(self, *, explain: bool) -> None:
        self._explain = explain

    def stage(self, label: str, reason: str) -> None:
        """A stage begins."""
        if self._explain:
            self.say(f"{label}: runs ({reason})", style="bold")

    def skipped(self, label: str) -> None:
        """A stage is up to date."""
        if self._explain:
            self.say(f"{label}: known", style="dim")

    def explained(self, text: str) -> None:
        """What a stage did."""
        if self._explain:
            self.say(text)

    def note(self, text: str) -> None:
        """A message for the user."""
        self.say(text.rstrip())

    def say(self, text: str, style: str = "") -> None:  # noqa: ARG002  # plain
        """Print lines of text."""
        say(f"{printable_lines(text)}\n")


class Lines(Explained):
    """A line now and then about what runs; with `verbose` one for each compile step.

    Args:
        explain: Show why stages run, and what they do.
        verbose: Show every step.
        clock: In seconds.
    """

    def __init__(
        self, *, explain: bool, verbose: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(explain=explain)
        self._verbose = verbose or explain
        self._clock = clock
        self._start = self._last = clock()

    def working(self, text: str, number: int = 1, total: int = 1) -> None:
        """Something that may take seconds begins."""
        count = f" ({number} of {total})" if total > 1 else ""
        self._now_and_then(f"{printable(text)}{count}")

    def progress(self, done: int, total: int, text: str) -> None:
        """A compile step ended."""
        line = f"[{done}/{total}] {printable(text)}"
        if self._verbose:
            self.say(line)
        else:
            self._now_and_then(line)

    def _now_and_then(self, line: str) -> None:
        now = self._clock()
        if now - self._last >= _EVERY_S:
            self._last = now
            self.say(f"{line}, {now - self._start:.0f} s")


class _Counts(ProgressColumn):
    """`3/30`; nothing for a step that is alone."""

    def render(self, task: Task) -> Text:
        """The text of a task."""
        if task.total is None or task.total <= 1:
            return Text("")
        return Text(f"{int(task.completed)}/{int(task.total)}")


class Bar(Explained):
    """What runs now, how much of it is done, and since when; gone at the end.

    Args:
        explain: Show why stages run, and what they do.
        color: Use colours.
    """

    def __init__(self, *, explain: bool, color: bool = True) -> None:
        super().__init__(explain=explain)
        self._console = Console(stderr=True, highlight=False, no_color=not color)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _Counts(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=None)
        self._kind = ""
        self._started = False

    def working(self, text: str, number: int = 1, total: int = 1) -> None:
        """Something that may take seconds begins."""
        # A stage that is alone has no end in sight, and shows only its clock.
        self._show(text, number - 1, total if total > 1 else None)

    def progress(self, done: int, total: int, text: str) -> None:
        """A compile step ended."""
        self._show(text, done, total)

    def _show(self, text: str, done: int, total: int | None) -> None:
        if not self._started:
            self._progress.start()
            self._started = True
        # One line: the end of a long name is out of the window, not of the log.
        room = max(self._console.width - _REST, _LEAST)
        shown = printable(text)
        if len(shown) > room:
            shown = f"{shown[: room - 1]}…"
        kind = text.partition(" ")[0]
        is_new = kind != self._kind and (total is None or done <= 1)
        self._kind = kind
        self._progress.tasks[0].total = total  # the calls keep it where it is None
        # The clock begins again with each kind of step.
        change = self._progress.reset if is_new else self._progress.update
        change(self._task, completed=done, description=shown)

    def say(self, text: str, style: str = "") -> None:
        """Print lines of text above the bar."""
        self._console.print(printable_lines(text), markup=False, style=style)

    def close(self) -> None:
        """Remove the bar."""
        if self._started:
            self._progress.stop()
            self._started = False


# Spinner, bar of 24, count and clock, with their spaces.
_REST = 50
"""Columns of everything but the text."""
_LEAST = 20
