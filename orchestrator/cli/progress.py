"""Progress as a bar, for terminals."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from orchestrator.printable import printable, printable_lines


class Bar:
    """One bar over all compile steps; it disappears when the build ends."""

    def __init__(self, *, explain: bool) -> None:
        self._explain = explain
        self._console = Console(stderr=True, highlight=False)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task("compiling", total=None)
        self._started = False

    def stage(self, label: str, reason: str) -> None:
        """A stage begins."""
        if self._explain:
            self._console.print(
                printable(f"{label}: runs ({reason})"), markup=False, style="bold"
            )

    def skipped(self, label: str) -> None:
        """A stage is up to date."""
        if self._explain:
            self._console.print(printable(f"{label}: known"), markup=False, style="dim")

    def explained(self, text: str) -> None:
        """What a stage did."""
        if self._explain:
            self._console.print(printable_lines(text), markup=False)

    def progress(self, done: int, total: int, text: str) -> None:
        """A compile step ended."""
        if not self._started:
            self._progress.start()
            self._started = True
        self._progress.update(
            self._task, completed=done, total=total, description=printable(text)[:48]
        )

    def note(self, text: str) -> None:
        """A message for the user."""
        self._console.print(printable_lines(text.rstrip()), markup=False)

    def close(self) -> None:
        """Remove the bar."""
        if self._started:
            self._progress.stop()
