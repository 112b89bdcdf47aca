"""Two profiles of runs, compared by operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from orchestrator.document import picked
from orchestrator.errors import SourceSpan, UsageError
from orchestrator.plain_table import table_lines
from orchestrator.running.costs import SCALE
from orchestrator.running.invalid import sentence_of

_Count = Annotated[StrictInt, Field(ge=0, lt=1 << 63)]


class _Part(BaseModel):
    """Other keys, such as those of a newer version, are ignored."""

    model_config = ConfigDict(frozen=True)

    total: _Count


class _Operator(_Part):
    operator: StrictStr


class Costs(_Part):
    """What is compared of a profile of a run."""

    unit: StrictStr
    runs: _Count
    operators: list[_Operator]
    executor: _Part
    load: _Part


class _Document(BaseModel):
    profile: Costs


def read_costs(text: str, *, file: str) -> Costs:
    """The costs in what `run --profile --json` printed.

    Raises:
        UsageError: It is something else (`bad-costs`).
    """
    try:
        costs = _Document.model_validate_json(text).profile
        if costs.unit in SCALE:
            return costs
        found = f"the unit {costs.unit}"
    except ValidationError as error:
        found = sentence_of(error.errors()[0])
    raise UsageError.of(
        "bad-costs",
        f"{file} is not what `orchestrator run --profile --json` prints",
        where=SourceSpan(file=file),
        found=found,
        hint="write it again with `orchestrator run PROFILE --profile --json > FILE`",
    )


@dataclass(frozen=True, slots=True)
class Change:
    """A part of two profiles: its name, and its cost in each; None where it is missing."""

    name: str
    before: int | None
    after: int | None

    @property
    def ratio(self) -> float | None:
        """The second as a multiple of the first; None without both, or if the first is 0."""
        return self.after / self.before if self.before and self.after is not None else None


@dataclass(frozen=True, slots=True)
class CostDiff:
    """Two profiles of one unit, compared."""

    before: Costs
    after: Costs

    @property
    def operators(self) -> list[Change]:
        """Each operator of one of them, the dearest first."""
        one, other = ({o.operator: o.total for o in c.operators} for c in (self.before, self.after))
        changes = [Change(name, one.get(name), other.get(name)) for name in {**one, **other}]
        return sorted(changes, key=lambda c: (-max(c.before or 0, c.after or 0), c.name))

    @property
    def parts(self) -> list[Change]:
        """What else there is."""
        a, b = self.before, self.after
        return [
            Change("executor", a.executor.total, b.executor.total),
            Change("total", a.total, b.total),
            Change("load", a.load.total, b.load.total),
        ]

    @property
    def data(self) -> dict[str, Any]:
        """As JSON."""

        def row(change: Change) -> dict[str, Any]:
            return picked(change, "before", "after", "ratio")

        return {
            "unit": self.before.unit,
            "runs": {"before": self.before.runs, "after": self.after.runs},
            "operators": [{"operator": c.name, **row(c)} for c in self.operators],
            **{c.name: row(c) for c in self.parts},
        }

    @property
    def table(self) -> str:
        """As text."""
        scale, decimals, unit = SCALE[self.before.unit]

        def cost(number: int | None) -> str:
            return "-" if number is None else f"{number / scale:,.{decimals}f}"

        rows = [("operator", f"{unit} before", "after", "ratio")]
        for change in (*self.operators, *self.parts):
            ratio = "-" if change.ratio is None else f"{change.ratio:.3f}"
            rows.append((change.name, cost(change.before), cost(change.after), ratio))
        before, after = self.before.runs, self.after.runs
        differ = [f"calls of methods: {before} before, {after} after"] if before != after else []
        return "\n".join([*table_lines(rows, right=range(1, 4)), *differ])


def cost_diff(before: Costs, after: Costs, *, files: tuple[str, str]) -> CostDiff:
    """How one profile differs from another.

    Args:
        before: The first.
        after: The second.
        files: Their names, for messages.

    Raises:
        UsageError: One has another unit than the other (`other-unit`).
    """
    if before.unit == after.unit:
        return CostDiff(before, after)
    raise UsageError.of(
        "other-unit",
        "the profiles cannot be compared: their units differ",
        found=f"{before.unit} in {files[0]}, {after.unit} in {files[1]}",
        hint="compare runs of one kind: on a device (cycles), in an emulator (instructions),"
        " or on a host (ns)",
    )
