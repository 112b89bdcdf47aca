"""Budgets: upper bounds of the profile for flash and RAM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.errors import Diagnostic, MemoryPlanError
from orchestrator.measure.size import ContributorKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.errors import SourceSpan
    from orchestrator.measure.size import Contributor, SizeReport
    from orchestrator.profile.tables import BudgetTable

_CULPRITS: Final = 5
_KIB: Final = 1024


def check_budget(
    report: SizeReport, budget: BudgetTable, span_of: Callable[..., SourceSpan | None]
) -> None:
    """Compare a firmware with its budget.

    Args:
        report: What it costs.
        budget: Upper bounds, inclusive; RAM is static RAM with the reserved stack.
        span_of: Line of a bound in the profile, by its key: "budget", then "flash" or
            "ram".

    Raises:
        MemoryPlanError: A bound is exceeded (`over-budget`): numbers and the largest
            contributors, for each. Or the firmware can use more stack than is reserved
            for it (`stack-too-small`).
    """
    totals = report.totals
    problems = []
    stack = report.stack
    if stack is not None and stack.stack_bytes > stack.reserve_bytes:
        worst = sorted(stack.parts, key=lambda part: -part.stack_bytes)[:_CULPRITS]
        problems.append(
            Diagnostic(
                code="stack-too-small",
                message="the firmware can use more stack than the board reserves",
                notes=(
                    ("needs", f"{stack.stack_bytes} bytes"),
                    ("reserved", f"{stack.reserve_bytes} bytes"),
                    *(("takes", f"{p.stack_bytes} {p.name}") for p in worst),
                ),
                hint="choose kernels that need less, or a board that reserves more",
            )
        )
    flash_bytes, ram_bytes = budget.flash_bytes, budget.ram_bytes
    if flash_bytes is not None and totals.flash_bytes > flash_bytes:
        flash = [(c, c.flash_bytes) for c in report.contributors]
        hint = "choose smaller models, fewer operators or dtypes, or raise budget.flash"
        problems.append(
            _over("flash", totals.flash_bytes, flash_bytes, flash, hint, span_of)
        )
    if ram_bytes is not None and totals.ram_bytes > ram_bytes:
        ram = [(c, c.ram_bytes) for c in report.contributors]
        hint = "choose models with smaller activations, or raise budget.ram"
        problems.append(_over("ram", totals.ram_bytes, ram_bytes, ram, hint, span_of))
    if problems:
        raise MemoryPlanError(problems)


def _over(  # noqa: PLR0917  # the parts of one message
    memory: str,
    needed: int,
    allowed: int,
    costs: list[tuple[Contributor, int]],
    hint: str,
    span_of: Callable[..., SourceSpan | None],
) -> Diagnostic:
    largest = sorted(
        ((c, n) for c, n in costs if n and c.kind is not ContributorKind.PADDING),
        key=lambda cost: (-cost[1], cost[0].kind, cost[0].name),
    )
    return Diagnostic(
        code="over-budget",
        message=f"the firmware needs {_bytes(needed - allowed)} more"
        f" {memory if memory == 'flash' else memory.upper()} than its budget",
        where=span_of("budget", memory),
        notes=(
            ("needed", _with_kib(needed)),
            ("allowed", _with_kib(allowed)),
            ("over", _with_kib(needed - allowed)),
            *(("largest", _culprit(c, n, needed)) for c, n in largest[:_CULPRITS]),
        ),
        hint=hint,
    )


def _culprit(contributor: Contributor, count: int, needed: int) -> str:
    kind = contributor.kind.replace("_", " ")
    what = kind if contributor.name == kind else f"{kind} {contributor.name}"
    return f"{what}: {_bytes(count)} ({100 * count / needed:.1f} %)"


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count:,} bytes"


def _with_kib(count: int) -> str:
    """Profiles give budgets in KiB."""
    return (
        f"{_bytes(count)} ({count / _KIB:.1f} KiB)" if count >= _KIB else _bytes(count)
    )
