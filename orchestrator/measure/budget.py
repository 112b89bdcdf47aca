"""Budgets: upper bounds of the profile for flash and RAM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from orchestrator.errors import Diagnostic, MemoryPlanError, OverBudgetError, SourceSpan
from orchestrator.memory.estimate import estimated_costs
from orchestrator.memory.plan import MemoryPlan

if TYPE_CHECKING:
    from orchestrator.measure.size import Contributor, SizeReport
    from orchestrator.profile.tables import BudgetTable
    from orchestrator.targets.cores import Board

# Rows of a message. Chosen by hand.
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
        OverBudgetError: A bound is exceeded (`over-budget`): numbers and the largest
            contributors, for each. Or the firmware can use more stack than is reserved
            for it (`stack-too-small`).
    """
    problems = []
    stack = report.stack
    # The linker places the reserved stack and reports no overflow of it: whether it is
    # enough is known from the graph of calls alone.
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
    costs = {
        "flash": {_name(c): c.flash_bytes for c in report.contributors},
        "ram": {_name(c): c.ram_bytes for c in report.contributors},
    }
    problems += _exceeded(costs, budget, span_of)
    if problems:
        raise OverBudgetError(problems)


def check_estimate(
    memory: MemoryPlan,
    board: Board | None,
    budget: BudgetTable,
    span_of: Callable[..., SourceSpan | None],
) -> tuple[str, ...]:
    """Compare what is known of a firmware before it is built with its budget.

    Returns:
        Warnings about bounds between the least and the most that it may need.

    Raises:
        MemoryPlanError: The least that it needs exceeds a bound (`over-budget`).
    """
    # Two bounds, so that check never refuses what the build accepts: below the least it
    # is an error, between both a warning. tests/integration/test_estimates.py holds
    # that products lie between them.
    sure = estimated_costs(memory, board, least=True)
    if problems := [*_exceeded(sure, budget, span_of, "needs at least")]:
        raise MemoryPlanError(problems)
    most = estimated_costs(memory, board)
    return tuple(
        f"warning[may-not-fit]: {found.message}: code is estimated from above, and the"
        " build decides"
        for found in _exceeded(most, budget, span_of, "may need up to")
    )


_HINTS: Final = {
    "flash": "choose smaller models, fewer operators or dtypes, or raise budget.flash",
    "ram": "choose models with smaller activations, or raise budget.ram",
    # How much of it is used is in what `size` prints, also of a build over its budget.
    "stack": "reserve less stack in a board file of your own, choose models with smaller"
    " activations, or raise budget.ram",
}


def _exceeded(
    costs: Mapping[str, Mapping[str, int]],
    budget: BudgetTable,
    span_of: Callable[..., SourceSpan | None],
    needs: str = "needs",
) -> Iterator[Diagnostic]:
    """Bounds that are exceeded, by bytes of `flash` and `ram` by what takes them."""
    for memory, allowed in (("flash", budget.flash_bytes), ("ram", budget.ram_bytes)):
        parts = sorted(costs[memory].items(), key=lambda part: (-part[1], part[0]))
        needed = sum(count for _, count in parts)
        if allowed is None or needed <= allowed:
            continue
        # Padding is a sum over the whole firmware; a hint that names it helps nobody.
        largest = [p for p in parts if p[1] and not p[0].startswith("padding")]
        yield Diagnostic(
            code="over-budget",
            message=f"the firmware {needs} {_bytes(needed - allowed)} more"
            f" {memory if memory == 'flash' else memory.upper()} than its budget",
            where=span_of("budget", memory),
            notes=(
                ("needed", _with_kib(needed)),
                ("allowed", _with_kib(allowed)),
                ("over", _with_kib(needed - allowed)),
                *(
                    ("largest", f"{name}: {_bytes(n)} ({100 * n / needed:.1f} %)")
                    for name, n in largest[:_CULPRITS]
                ),
            ),
            hint=_HINTS["stack" if "stack" in dict(largest[:1]) else memory],
        )


def _name(contributor: Contributor) -> str:
    kind = contributor.kind.replace("_", " ")
    return kind if contributor.name == kind else f"{kind} {contributor.name}"


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count:,} bytes"


def _with_kib(count: int) -> str:
    """Profiles give budgets in KiB."""
    return f"{_bytes(count)} ({count / _KIB:.1f} KiB)" if count >= _KIB else _bytes(count)
