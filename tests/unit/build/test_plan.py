"""The build plan: what runs because of which change, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.build.plan import BuildPlan, key_of, plan_build
from tests.unit.golden import check_golden

if TYPE_CHECKING:
    from collections.abc import Mapping

INPUTS: dict[str, Any] = {
    "orchestrator": "o1",
    "models": {"kws": "m1", "vww": "m2"},
    "operator_files": {"ops.yaml": "y1"},
    "libraries": {"portable": "l1"},
    "delegates": {},
    "sources": {"kernels/portable/op_add.cpp": "s1", "runtime/src/error.cpp": "s2"},
    "sections": {
        "name": "n1",
        "target": "t1",
        "models": "m1",
        "operators": "p1",
        "dtypes": "d1",
        "kernels": "k1",
        "scratch": "x1",
        "memory": "a1",
        "registry": "r1",
        "trace": "h1",
        "integrity": "i1",
        "limits": "l1",
        "budget": "b1",
    },
    "toolchain": "c1",
}
EVERYTHING = (
    "extract kws",
    "extract vww",
    "aggregate",
    "resolve",
    "replan",
    "memory",
    "generate",
    "compile",
    "measure",
    "lock",
)
FROM_COMPILE = {"compile", "measure", "lock"}
FROM_GENERATE = {"generate", *FROM_COMPILE}
FROM_REPLAN = {"replan", "memory", *FROM_GENERATE}
FROM_RESOLVE = {"resolve", *FROM_REPLAN}


def _plan(previous: Mapping[str, Mapping[str, str]], **changes: Any) -> BuildPlan:
    return plan_build(**{**INPUTS, **changes}, previous=previous)


def _state(plan: BuildPlan) -> dict[str, dict[str, str]]:
    return {stage.label: dict(stage.inputs) for stage in plan.stages}


def _reasons(**changes: Any) -> dict[str, str]:
    """Why stages run after a build with INPUTS and then these changes."""
    plan = _plan(_state(_plan({})), **changes)
    return {stage.label: stage.reason for stage in plan.stages if stage.reason}


def test_a_first_build_runs_every_stage() -> None:
    plan = _plan({})
    assert [stage.label for stage in plan.stages] == list(EVERYTHING)
    assert {stage.reason for stage in plan.stages} == {"first build"}
    assert not plan.is_current


def test_the_same_inputs_run_nothing() -> None:
    assert _reasons() == {}
    assert _plan(_state(_plan({}))).is_current


def _section(name: str) -> dict[str, Any]:
    return {"sections": {**INPUTS["sections"], name: "new"}}


@pytest.mark.parametrize(
    ("changes", "stages"),
    [
        ({"orchestrator": "o2"}, set(EVERYTHING)),
        (
            {"models": {"kws": "new", "vww": "m2"}},
            {"extract kws", "aggregate", *FROM_RESOLVE},
        ),
        (
            {"operator_files": {"ops.yaml": "new"}},
            {"aggregate", *FROM_RESOLVE},
        ),
        ({"libraries": {"portable": "new"}}, FROM_RESOLVE),
        ({"delegates": {"Mine": "new"}}, FROM_RESOLVE),
        ({"sources": {**INPUTS["sources"], "new.h": "s3"}}, FROM_COMPILE),
        ({"toolchain": "c2"}, FROM_COMPILE),
        (_section("name"), FROM_GENERATE),
        (_section("target"), FROM_REPLAN),
        (_section("models"), FROM_REPLAN),
        (_section("operators"), {"aggregate", *FROM_RESOLVE}),
        (_section("dtypes"), {"aggregate", *FROM_RESOLVE}),
        (_section("kernels"), FROM_RESOLVE),
        (_section("scratch"), FROM_REPLAN),
        (_section("memory"), FROM_REPLAN),
        (_section("registry"), FROM_GENERATE),
        (_section("trace"), FROM_GENERATE),
        (_section("integrity"), FROM_GENERATE),
        (_section("limits"), FROM_GENERATE),
        (_section("budget"), {"measure", "lock"}),
    ],
    ids=lambda value: str(next(iter(value))) if isinstance(value, dict) else "",
)
def test_a_change_runs_what_depends_on_it(
    changes: dict[str, Any], stages: set[str]
) -> None:
    assert set(_reasons(**changes)) == stages


WHOLE = {**INPUTS, "prelinked": True, "delegates": {"Mine": "e1"}}
WHOLE["sections"] = {**INPUTS["sections"], "prelink": "q1"}
DECLARED = [
    (stage.label, name)
    for stage in plan_build(**WHOLE, previous={}).stages
    for name, _ in stage.inputs
]


@pytest.mark.parametrize(("label", "name"), DECLARED)
@pytest.mark.parametrize("change", ["another", "new"])
def test_no_declared_input_is_ignored(label: str, name: str, change: str) -> None:
    """A stage runs if one of its inputs was another one, or none; what follows, too."""
    before = _state(plan_build(**WHOLE, previous={}))
    inputs = dict(before[label])
    if change == "another":
        inputs[name] = "another"
    else:
        del inputs[name]
    plan = plan_build(**WHOLE, previous={**before, label: inputs})
    reasons = {stage.label: stage.reason for stage in plan.stages if stage.reason}
    is_new = "is new" if change == "new" else "changed"
    assert reasons == {label: f"{name} {is_new}"}
    # With another key, its result is another one to all that build upon it.
    keys = {f"stage {stage.label}": stage.key for stage in plan.stages}
    for stage in plan.stages:
        assert all(keys[n] == d for n, d in stage.inputs if n.startswith("stage "))


def test_reasons_name_what_changed() -> None:
    new_model = _reasons(models={"kws": "new", "vww": "m2"})
    assert new_model["extract kws"] == "model kws changed"
    assert new_model["aggregate"] == "stage extract kws changed"
    assert _reasons(orchestrator="o2")["extract kws"] == "orchestrator changed"
    assert _reasons(**_section("budget"))["measure"] == "profile [budget] changed"
    fewer = _reasons(models={"kws": "m1"})
    assert fewer["aggregate"] == "stage extract vww is gone"
    assert fewer["memory"] == "stage replan changed, model vww is gone"
    more = _reasons(libraries={"portable": "l1", "quantized": "l2"})
    assert more["resolve"] == "library quantized is new"


def test_a_toolchain_that_was_not_looked_at_says_so() -> None:
    assert _reasons(toolchain="")["compile"] == "toolchain was not looked at"


def test_long_reasons_are_counted() -> None:
    changed = {f"runtime/src/{i}.cpp": "new" for i in range(5)}
    assert _reasons(sources=changed)["compile"] == (
        "source runtime/src/0.cpp is new, source runtime/src/1.cpp is new,"
        " source runtime/src/2.cpp is new and 4 more"
    )


def test_a_stage_is_known_by_label_and_inputs() -> None:
    plan = _plan({})
    keys = [stage.key for stage in plan.stages]
    assert len(set(keys)) == len(keys)
    same = key_of("extract kws", plan.stage("extract", "kws").inputs)
    assert plan.stage("extract", "kws").key == same
    assert key_of("extract vww", plan.stage("extract", "kws").inputs) != same
    assert key_of("a", (("b", "c"),)) != key_of("a", (("b", "d"),))


def test_the_order_of_mappings_does_not_count() -> None:
    names = ("models", "libraries", "sources", "sections")
    assert _reasons(**{n: dict(reversed(INPUTS[n].items())) for n in names}) == {}


def test_an_unknown_stage_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="flash"):
        _plan({}).stage("flash")


def test_the_whole_plan_is_as_held(request: pytest.FixtureRequest) -> None:
    changes = {**_section("budget"), "toolchain": "c2"}
    plan = _plan(_state(_plan({})), **changes)
    lines = []
    for stage in plan.stages:
        lines.append(f"{stage.label}: {stage.reason or 'known'}")
        lines += [f"  {name}" for name, _ in stage.inputs]
    check_golden(request, "plan.txt", "\n".join(lines) + "\n")
