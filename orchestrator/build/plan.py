"""The build plan: which stages run, on what, and why.

Pure: it compares digests of each stage's inputs with those of the last build.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

Inputs = tuple[tuple[str, str], ...]
"""Sorted (label, digest) pairs: `("model kws", "3f…")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStage:
    """One run of a stage.

    Args:
        name: Of the stage, see `orchestrator.build.table`.
        subject: The model, for stages that run per model; else "".
        inputs: What it depends on.
        reason: Why it runs; "" if its recorded result still holds.
    """

    name: str
    subject: str
    inputs: Inputs
    reason: str

    @property
    def label(self) -> str:
        """`extract kws`."""
        return f"{self.name} {self.subject}".strip()

    @property
    def key(self) -> str:
        """Digest of the inputs, under which the stage's result is recorded."""
        return key_of(self.label, self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """Stages in the order they run."""

    stages: tuple[PlannedStage, ...]

    def stage(self, name: str, subject: str = "") -> PlannedStage:
        """The stage with this name. Raises KeyError if there is none."""
        for stage in self.stages:
            if (stage.name, stage.subject) == (name, subject):
                return stage
        raise KeyError(name)

    @property
    def is_current(self) -> bool:
        """Whether nothing has to run."""
        return not any(stage.reason for stage in self.stages)


def key_of(label: str, inputs: Inputs) -> str:
    """Digest of a stage's label and inputs."""
    text = "\n".join((label, *(f"{name}\t{digest}" for name, digest in inputs)))
    return hashlib.sha256(text.encode()).hexdigest()


def reason_of(inputs: Mapping[str, str], previous: Mapping[str, str] | None) -> str:
    """Why a stage runs: which of its inputs changed."""
    if previous is None:
        return "first build"
    changed = [
        f"{name} {_change(previous.get(name), digest)}"
        for name, digest in inputs.items()
        if previous.get(name) != digest
    ]
    changed += [f"{name} is gone" for name in previous if name not in inputs]
    if len(changed) > _SHOWN:
        return f"{', '.join(changed[:_SHOWN])} and {len(changed) - _SHOWN} more"
    return ", ".join(changed)


_SHOWN = 3


def _change(before: str | None, after: str) -> str:
    if before is None:
        return "is new"
    return "was not looked at" if not after else "changed"
