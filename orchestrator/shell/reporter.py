"""Progress of a build."""

from __future__ import annotations


class Reporter:
    """Receives the progress of a build; does not affect the build.

    This one ignores everything.
    """

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


class StepsOnly(Reporter):
    """Forwards the steps of a variant's build, without messages about the product.

    Args:
        reporter: Receives the steps.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def stage(self, label: str, reason: str) -> None:
        """See `Reporter`."""
        self._reporter.stage(label, reason)

    def skipped(self, label: str) -> None:
        """See `Reporter`."""
        self._reporter.skipped(label)

    def working(self, text: str, number: int = 1, total: int = 1) -> None:
        """See `Reporter`."""
        self._reporter.working(text, number, total)

    def progress(self, done: int, total: int, text: str) -> None:
        """See `Reporter`."""
        self._reporter.progress(done, total, text)

    def close(self) -> None:
        """See `Reporter`."""
        self._reporter.close()
