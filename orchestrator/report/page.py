"""The page: one HTML file with styles, script and pictures inside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import jinja2
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.explain.why import reason_of
from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.printable import printable
from orchestrator.report import svg
from orchestrator.report.arena import arena_picture, peak_of, step_name
from orchestrator.report.facts import MethodFacts, ReportFacts, Step
from orchestrator.report.memory_map import flash_tree, memories, memory_map, treemap
from orchestrator.report.pictures import MOST_DRAWN, table_of
from orchestrator.report.svg import asset

if TYPE_CHECKING:
    from orchestrator.report.history import Change, History

_NEAR: Final = 90
"""A gauge above this percentage warns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A quantity, and what bounds it.

    Args:
        title: Of the quantity.
        used: Bytes.
        limit: Bytes; None if nothing bounds it.
        what: The bound in words.
    """

    title: str
    used: int
    limit: int | None
    what: str

    @property
    def percent(self) -> float:
        """Percent of the bound; 0 without one."""
        return 100 * self.used / self.limit if self.limit else 0.0

    @property
    def is_near(self) -> bool:
        """Little is left."""
        return self.percent > _NEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """What the calls of one operator take; numbers are sums.

    Args:
        name: Of the operator.
        calls: Instructions that call it.
        macs: Multiply-accumulates; None where they do not apply.
        instructions: That a profile run counted, or nanoseconds; None without.
        cycles: Estimated; None without.
        weight_bytes: Of constants.
        read_bytes: Of other tensors read.
        written_bytes: Of tensors written.
        code_bytes: Flash of the sources of its kernels.
    """

    name: str
    calls: int
    macs: int | None
    instructions: int | None
    cycles: int | None
    weight_bytes: int
    read_bytes: int
    written_bytes: int
    code_bytes: int


def gauges(facts: ReportFacts) -> tuple[Gauge, ...]:
    """Budgets of the profile, and memories of the board where there is none."""
    totals = facts.size.totals
    found = []
    for title, kind, used, bound in (
        ("Flash", "flash", totals.flash_bytes, facts.budget_flash),
        ("RAM", "ram", totals.ram_bytes, facts.budget_ram),
    ):
        regions = [r for r in facts.size.regions if r.kind == kind]
        if bound is not None:
            limit, what = bound, "budget"
        elif regions:
            limit = sum(r.size_bytes for r in regions)
            what = "of the board, no budget"
        else:
            limit, what = None, "no budget"
        found.append(Gauge(title=title, used=used, limit=limit, what=what))
    if (stack := facts.size.stack) is not None:
        found.append(
            Gauge(
                title="Stack",
                used=stack.stack_bytes,
                limit=stack.reserve_bytes,
                what="reserved, part of RAM",
            )
        )
    return tuple(found)


def operator_rows(facts: ReportFacts) -> tuple[OperatorRow, ...]:
    """A row for each operator that is called; most work first."""
    calls: dict[str, list[tuple[MethodFacts, Step]]] = {}
    for method in facts.methods:
        for step in method.steps:
            calls.setdefault(step.operator, []).append((method, step))
    rows = (_operator_row(facts, name, steps) for name, steps in calls.items())
    return tuple(
        sorted(rows, key=lambda r: (-(r.instructions or 0), -(r.macs or 0), -r.calls, r.name))
    )


def _operator_row(
    facts: ReportFacts, name: str, calls: Sequence[tuple[MethodFacts, Step]]
) -> OperatorRow:
    keys = [(method.model, method.name, step.index) for method, step in calls]
    sizes = [method.bytes_of(step) for method, step in calls]
    weights, reads, writes = (sum(column) for column in zip(*sizes, strict=True))
    return OperatorRow(
        name=name,
        calls=len(calls),
        macs=_sum(step.macs for _, step in calls),
        instructions=_sum(map(facts.costs.get, keys)),
        cycles=_sum(map(facts.cycles.get, keys)),
        weight_bytes=weights,
        read_bytes=reads,
        written_bytes=writes,
        code_bytes=sum(k.code_bytes for k in facts.kernels if k.operator == name),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    """The sum of those there are; None if there are none."""
    found = [number for number in numbers if number is not None]
    return sum(found) if found else None


def page(
    facts: ReportFacts,
    *,
    changes: Sequence[Change] = (),
    history: History | None = None,
    accuracies: Sequence[Accuracy] = (),
) -> str:
    """The page as text; the same facts always give the same text.

    Args:
        facts: What it shows.
        changes: From other builds or locks to this one.
        history: Of the lock.
        accuracies: Evaluations of its methods.
    """
    size = facts.size
    operators = operator_rows(facts)
    return _template().render(
        facts=facts,
        size=size,
        totals=size.totals,
        gauges=gauges(facts),
        operators=operators,
        macs=_sum(row.macs for row in operators),
        most_macs=max((row.macs or 0 for row in operators), default=0),
        tree=flash_tree(facts),
        treemap=treemap(facts),
        memories=memories(facts),
        memory_map=memory_map(facts),
        peaks={
            (m.title, a.plan.memory_id): step_name(m, peak_of(a).step)
            for m in facts.methods
            for a in m.arenas
        },
        arena_picture=arena_picture,
        tables=[table_of(facts, method) for method in facts.methods],
        most_drawn=MOST_DRAWN,
        code_bytes=sum(c.flash_bytes for c in size.contributors if c.kind is Kind.KERNEL),
        others=_others(facts),
        changes=changes,
        history=history,
        accuracies=accuracies,
        Kind=Kind,
    )


def _others(facts: ReportFacts) -> Iterable[tuple[str, str, int, int, str]]:
    """Parts that are no models and no kernels: why each of them is in."""
    return [
        (c.kind.replace("_", " "), c.name, c.flash_bytes, c.ram_bytes, reason_of(c))
        for c in facts.size.contributors
        if c.kind not in (Kind.MODEL, Kind.KERNEL)
    ]


def _calls(instructions: Sequence[int]) -> str:
    """`instructions 1, 3, 5`, the first of many."""
    most = 8
    shown = ", ".join(map(str, instructions[:most]))
    more = f" and {len(instructions) - most} more" if len(instructions) > most else ""
    return f"instruction{'s' if len(instructions) > 1 else ''} {shown}{more}"


def _digits(value: float | str | None) -> str:
    """A number with four digits, or what stands for one that is not finite."""
    if value is None:
        return svg.NOTHING
    return value if isinstance(value, str) else f"{value:.4g}"


def _inline(name: str) -> str:
    lines = asset(name).splitlines()
    # A map of the source would be looked for beside the page.
    kept = (line for line in lines if not line.startswith("//# sourceMappingURL="))
    return "\n".join(kept)


@cache
def _template() -> jinja2.Template:
    # Every value is escaped; what is HTML already says so in the template.
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(asset),
        # Names come from programs: control characters and marks of direction would
        # change what a reader sees.
        finalize=lambda v: printable(v) if type(v) is str else v,
    )
    environment.filters |= {
        "n": lambda v: svg.NOTHING if v is None else f"{v:,}",
        "size": svg.bytes_text,
        "short": svg.short,
        "compact": svg.compact,
        "calls": _calls,
        "hex": lambda v: f"0x{v:08x}",
        "digits": _digits,
        "signed": lambda v: f"{v:+,}" if v else "0",
    }
    # Files of this package are trusted; they hold no `</script>`.
    environment.globals |= {"style": _inline, "script": _inline}
    return environment.get_template("report.html.jinja")


# What `orchestrator evaluate --json` found, for the page.

_MOST_CLASSES: Final = 20
"""Largest confusion matrix that is shown whole."""

# 2 to the 53 is where numbers of JavaScript, and of other readers of JSON, lose digits.
Count: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 53)]
Number: TypeAlias = float | Literal["inf", "-inf", "nan"]
"""JSON has no numbers that are not finite."""


class _Record(BaseModel):
    # Files of a newer version may say more: what this page shows has to be right, the
    # rest is not read.
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
