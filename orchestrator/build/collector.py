"""Problems of several stages at once."""

from __future__ import annotations

from orchestrator.errors import OrchestratorError


class Collector:
    """Runs stages that do not depend on each other, and reports all their problems."""

    def __init__(self) -> None:
        self.errors: list[OrchestratorError] = []

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if isinstance(error, OrchestratorError):
            self.errors.append(error)
            return True
        return False

    def raise_first(self) -> None:
        """Raise the first error, with the diagnostics of all."""
        if not self.errors:
            return
        seen = dict.fromkeys(d for e in self.errors for d in e.diagnostics)
        raise type(self.errors[0])(tuple(seen))
