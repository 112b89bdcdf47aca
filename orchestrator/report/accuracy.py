"""What `orchestrator evaluate --json` found, for the page."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

_MOST_CLASSES: Final = 20
"""Largest confusion matrix that is shown whole."""

Count: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 53)]
Number: TypeAlias = float | Literal["inf", "-inf", "nan"]
"""JSON has no numbers that are not finite."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class Metric(_Record):
    """A metric over all samples; `values` has its parts."""

    name: str
    value: Number
    values: dict[str, Number]
    right: Count | None


class Reference(_Record):
    """How near the outputs are to those of the float model."""

    name: str
    metric: Metric | None
    same_class: Count | None
    max_abs_error: Number
    mean_abs_error: Number
    sqnr_db: Number


class Sample(_Record):
    """A sample that is wrong, or far from the reference."""

    sample: str
    label: str | None
    answer: str | None
    error: Number


class Layer(_Record):
    """A result inside the method, and how far it is from the float one."""

    instruction: Count
    operator: str
    sizes: list[Count]
    reference_operator: str | None
    error: float | None
    sqnr_db: Number | None


class Layers(_Record):
    """All results inside the method."""

    samples: Count
    first_large: Count | None
    layers: list[Layer]

    @property
    def largest(self) -> float:
        """The largest error."""
        return max((layer.error or 0.0 for layer in self.layers), default=0.0)


class Accuracy(_Record):
    """An evaluation of a method over a data set.

    Args:
        on: `host` or a board.
        classes: Names, in the order of `confusion`.
        confusion: Samples by label, then by answer.
    """

    profile: str
    model: str
    method: str
    on: str
    data: str
    samples: Count
    metric: Metric | None
    classes: list[str]
    confusion: list[list[Count]]
    reference: Reference | None
    worst: list[Sample]
    layers: Layers | None

    @property
    def is_shown_whole(self) -> bool:
        """Whether the confusion matrix is small enough for a page."""
        return len(self.classes) <= _MOST_CLASSES

    @property
    def _confusions(self) -> list[tuple[int, str, str]]:
        return sorted(
            (
                (count, label, answer)
                for label, row in zip(self.classes, self.confusion, strict=False)
                for answer, count in zip(self.classes, row, strict=False)
                if count and label != answer
            ),
            key=lambda found: (-found[0], found[1], found[2]),
        )

    @property
    def confusions(self) -> int:
        """Pairs of classes that are confused."""
        return len(self._confusions)

    @property
    def confused(self) -> list[tuple[int, str, str]]:
        """(samples, label, answer) of those that are confused most."""
        return self._confusions[:_MOST_CLASSES]
