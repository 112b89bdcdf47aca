"""Progress as plain lines, for logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from orchestrator.cli.terminal import say
from orchestrator.printable import printable, printable_lines
from orchestrator.shell.reporter import Reporter

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
