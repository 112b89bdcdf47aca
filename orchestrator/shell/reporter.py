"""Progress of a build, told to whoever runs it."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Receives what happens; nothing it does changes the build."""

    def stage(self, label: str, reason: str) -> None:
        """A stage begins; `reason` says why."""

    def skipped(self, label: str) -> None:
        """A stage is up to date."""

    def explained(self, text: str) -> None:
        """What a stage did, for those who asked why."""

    def progress(self, done: int, total: int, text: str) -> None:
        """A compile step ended."""

    def note(self, text: str) -> None:
        """Something worth knowing."""

    def close(self) -> None:
        """The build ended, well or not."""


class Silent:
    """Tells nobody."""

    def stage(self, label: str, reason: str) -> None:
        """Ignore."""

    def skipped(self, label: str) -> None:
        """Ignore."""

    def explained(self, text: str) -> None:
        """Ignore."""

    def progress(self, done: int, total: int, text: str) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""

    def close(self) -> None:
        """Nothing to do."""
