"""Progress as plain lines, for logs."""

from __future__ import annotations

from orchestrator.cli.terminal import say
from orchestrator.printable import printable, printable_lines


def _say(text: str) -> None:
    say(f"{printable_lines(text)}\n")


class Lines:
    """Writes a line for each compile step, and for each stage with `--explain`."""

    def __init__(self, *, explain: bool) -> None:
        self._explain = explain

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

    def progress(self, done: int, total: int, text: str) -> None:
        """A compile step ended."""
        _say(f"[{done}/{total}] {printable(text)}")

    def note(self, text: str) -> None:
        """A message for the user."""
        _say(text.rstrip())

    def close(self) -> None:
        """Nothing to close."""
