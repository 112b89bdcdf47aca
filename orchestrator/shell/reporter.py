"""Progress of a build."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Receives the progress of a build; does not affect the build."""

    def stage(self, label: str, reason: str) -> None:
        """A stage begins; `reason` says why."""

    def skipped(self, label: str) -> None:
        """A stage is up to date."""

    def explained(self, text: str) -> None:
        """What a stage did, for `--explain`."""

    def working(self, text: str, number: int = 1, total: int = 1) -> None:
        """Something that may take seconds begins: number 1 to `total` of its kind."""

    def progress(self, done: int, total: int, text: str) -> None:
        """A compile step ended."""

    def note(self, text: str) -> None:
        """A message for the user."""

    def close(self) -> None:
        """The build ended, successfully or not."""


class StepsOnly:
    """Forwards the steps of a variant's build, without messages about the product.

    Args:
        reporter: Receives the steps.
    """

    def __init__(self, reporter: Reporter) -> None:
        self.stage = reporter.stage
        self.skipped = reporter.skipped
        self.working = reporter.working
        self.progress = reporter.progress
        self.close = reporter.close

    def note(self, text: str) -> None:
        """Ignore."""

    def explained(self, text: str) -> None:
        """Ignore."""


class Silent:
    """Ignores everything."""

    def stage(self, label: str, reason: str) -> None:
        """Ignore."""

    def skipped(self, label: str) -> None:
        """Ignore."""

    def explained(self, text: str) -> None:
        """Ignore."""

    def working(self, text: str, number: int = 1, total: int = 1) -> None:
        """Ignore."""

    def progress(self, done: int, total: int, text: str) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""

    def close(self) -> None:
        """Nothing to do."""
