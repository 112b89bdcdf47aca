"""Progress as plain lines, for logs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from orchestrator.cli.terminal import say
from orchestrator.printable import printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY_S: Final = 10.0
"""A log shows that something still happens, and no more."""


def _say(text: str) -> None:
    say(f"{printable_lines(text)}\n")


class Lines:
    """A line now and then about what runs; with `verbose` one for each compile step.

    Args:
        explain: Show why stages run, and what they do.
        verbose: Show every step.
        clock: In seconds.
    """

    def __init__(
        self,
        *,
        explain: bool,
        verbose: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._explain = explain
        self._verbose = verbose or explain
        self._clock = clock
        self._start = self._last = clock()

    def stage(self, label: str, reason: str) -> None:
        """A stage begins."""
        if self._explain:
            _say(f"{label}: runs ({reason})")

    def skipped(self, label: str) -> None:
        """A stage is up to date."""
        if self._explain:
            _say(f"{label}: known")

    def explained(self, text: str) -> None:
        """What a stage did."""
        if self._explain:
            _say(text)

    def working(self, text: str, number: int = 1, total: int = 1) -> None:
        """Something that may take seconds begins."""
        count = f" ({number} of {total})" if total > 1 else ""
        self._now_and_then(f"{printable(text)}{count}")

    def progress(self, done: int, total: int, text: str) -> None:
        """A compile step ended."""
        line = f"[{done}/{total}] {printable(text)}"
        if self._verbose:
            _say(line)
        else:
            self._now_and_then(line)

    def _now_and_then(self, line: str) -> None:
        now = self._clock()
        if now - self._last >= _EVERY_S:
            self._last = now
            _say(f"{line}, {now - self._start:.0f} s")

    def note(self, text: str) -> None:
        """A message for the user."""
        _say(text.rstrip())

    def close(self) -> None:
        """Nothing to close."""
