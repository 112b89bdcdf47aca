"""Tells at the end how many cases of the corpus ran on each target.

A test that has run a case and compared its outputs calls `count_case`. What is counted
is what tests have recorded by then, not what was collected: a case that failed, or was
skipped, is none. The numbers stand on a line of their own and in the closing line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from _pytest.terminal import TerminalReporter

_PROPERTY: Final = "case"


def count_case(record: Callable[[str, object], None], case: str, target: str) -> None:
    """Note that a case ran on a target and its outputs were compared.

    Args:
        record: The fixture `record_property` of the test.
        case: Name of the case.
        target: Core it ran on.
    """
    record(_PROPERTY, f"{target} {case}")


def case_counts(reports: Iterable[pytest.TestReport]) -> dict[str, int]:
    """Cases by target, in order of their names; a case of several tests is one."""
    found: dict[str, set[str]] = {}
    for report in reports:
        for name, value in report.user_properties:
            if name == _PROPERTY and report.when == "call":
                target, _, case = str(value).partition(" ")
                found.setdefault(target, set()).add(case)
    return {target: len(found[target]) for target in sorted(found)}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> Generator[None, None, None]:
    """The line before the closing one, and the closing line's own numbers."""
    yield
    passed = [r for r in terminalreporter.stats.get("passed", []) if hasattr(r, "when")]
    counts = case_counts(passed)
    if counts:
        text = ", ".join(f"{target} {count}" for target, count in counts.items())
        terminalreporter.write_line(f"cases run: {text}")
    for target, count in counts.items():
        # What the closing line counts besides outcomes of tests.
        terminalreporter.stats[f"cases on {target}"] = [None] * count
