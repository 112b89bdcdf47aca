"""Progress as plain lines, for logs."""

from __future__ import annotations

import sys


class Lines:
    """Writes a line for each compile step, and for each stage if asked to explain."""

    def __init__(self, *, explain: bool) -> None:
        self._explain = explain

    def stage(self, label: str, reason: str) -> None:
        """A stage begins."""
        if self._explain:
            sys.stderr.write(f"{label}: runs ({reason})\n")

    def skipped(self, label: str) -> None:
        """A stage's result is known."""
        if self._explain:
            sys.stderr.write(f"{label}: known\n")

    def explained(self, text: str) -> None:
        """What a stage did."""
        if self._explain:
            sys.stderr.write(f"{text}\n")

    def progress(self, done: int, total: int, text: str) -> None:
        """A compile step ended."""
        sys.stderr.write(f"[{done}/{total}] {text}\n")

    def note(self, text: str) -> None:
        """Something worth knowing."""
        sys.stderr.write(f"{text.rstrip()}\n")

    def close(self) -> None:
        """Nothing to close."""
