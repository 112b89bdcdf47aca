"""What an export asks for, and when its answers change."""

from __future__ import annotations

import pytest

from orchestrator.export.request import Offered, changed_answer

NAMES = ("aten::add.out", "aten::mul.out")


def test_every_question_is_noted_once() -> None:
    offered = Offered(NAMES)
    assert "aten::add.out" in offered
    assert "aten::linear.out" not in offered
    assert "aten::linear.out" not in offered
    assert offered.asked == {"aten::add.out": True, "aten::linear.out": False}


@pytest.mark.parametrize(
    ("now", "change"),
    [
        (NAMES, ""),
        (("aten::add.out",), ""),
        ((*NAMES, "aten::tanh.out"), ""),
        (("aten::mul.out",), "aten::add.out lost its kernel"),
        ((*NAMES, "aten::linear.out"), "aten::linear.out now has a kernel"),
    ],
)
def test_only_changes_of_what_was_asked_for_count(now: tuple[str, ...], change: str) -> None:
    asked = {"aten::add.out": True, "aten::linear.out": False}
    assert changed_answer(asked, now) == change
