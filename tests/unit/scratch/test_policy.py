"""Scratch tensors that the policy of a profile does not allow."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.errors import Diagnostic, SourceSpan
from orchestrator.planner.policy import RuntimeCheck, ScratchPolicy
from orchestrator.scratch import ScratchNeed, policy_problems

WHERE = SourceSpan(file="a.toml", line=7)


def _problems(policy: ScratchPolicy, **facts: object) -> list[Diagnostic]:
    need = ScratchNeed(
        method="forward",
        instruction=3,
        operator="cortex_m::pool.out",
        library="cortex_m",
        argument="scratch",
        value=9,
        reserved_bytes=100,
        needed_bytes=120,
        is_private=False,
    )
    needs = [replace(need, **facts)]  # type: ignore[arg-type]  # as named
    return [*policy_problems(needs, policy, model="kws", isa="dsp", where=WHERE)]


def test_verify_names_every_difference() -> None:
    assert _problems(ScratchPolicy.VERIFY, needed_bytes=80) == [
        Diagnostic(
            code="scratch-mismatch",
            message='model "kws" has 100 bytes of scratch memory where cortex_m::pool.out needs 80',
            where=WHERE,
            notes=(
                ("method", "forward"),
                ("instruction", "3, argument scratch"),
                ("found", "100 bytes (value 9)"),
                ("expected", "80 bytes with dsp"),
            ),
            hint='write policy = "plan" in [scratch], or export the model for this core',
        )
    ]
    assert _problems(ScratchPolicy.VERIFY, needed_bytes=100) == []


def test_plan_refuses_only_what_it_cannot_change() -> None:
    (problem,) = _problems(ScratchPolicy.PLAN)
    assert problem.code == "scratch-too-small"
    assert problem.hint == ("export the model again: something else uses this scratch tensor")
    assert _problems(ScratchPolicy.PLAN, is_private=True) == []
    assert _problems(ScratchPolicy.PLAN, needed_bytes=80) == []
    assert _problems(ScratchPolicy.KEEP) == []


def test_runtime_checks_are_in_debug_builds_or_in_all() -> None:
    assert [RuntimeCheck.DEBUG.applies(o) for o in ("size", "debug")] == [False, True]
    assert [RuntimeCheck.NEVER.applies(o) for o in ("size", "debug")] == [False] * 2
    assert [RuntimeCheck.ALWAYS.applies(o) for o in ("size", "debug")] == [True] * 2
