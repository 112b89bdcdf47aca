"""The build plan: what runs because of which change, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.build import Build, inputs, table
from orchestrator.build.engine import (
    BuildPlan,
    EachStage,
    Input,
    Item,
    Stage,
    Unread,
    Value,
    all_of,
    key_of,
)
from tests.unit.golden import check_golden

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

INPUTS = [
    value
    for value in all_of((inputs.ORCHESTRATOR, *table.STAGES))
    if isinstance(value, Input) and value.digests is not None
]
MODELS = ("kws", "vww")
ITEMS: dict[Value[Any], tuple[str, ...]] = {
    inputs.MODEL_NAMES: MODELS,
    inputs.MODEL_BYTES: MODELS,
    inputs.DATA_FILES: MODELS,
    inputs.OPERATOR_FILES: ("ops.yaml",),
    inputs.LIBRARY_TEXTS: ("portable",),
    inputs.LIBRARY_OPTIONS: (),
    inputs.DELEGATES: (),
    inputs.DELEGATE_OPTIONS: (),
    inputs.NATIVE: ("kernels/portable/op_add.cpp", "runtime/src/error.cpp"),
}
"""Of inputs that have several, or may have none."""
DIGESTS: dict[Value[Any], dict[str, str]] = {
    value: {item: f"{value.gives} {item}" for item in ITEMS.get(value, ("",))} for value in INPUTS
}
EVERYTHING = (
    "extract kws",
    "extract vww",
    "aggregate",
    "resolve",
    "prelink",
    "replan",
    "memory",
    "generate",
    "compile",
    "measure",
    "lock",
)
FROM_COMPILE = {"compile", "measure", "lock"}
FROM_GENERATE = {"generate", *FROM_COMPILE}
FROM_MEMORY = {"memory", *FROM_GENERATE}
FROM_REPLAN = {"replan", *FROM_MEMORY}
FROM_PRELINK = {"prelink", *FROM_REPLAN}
FROM_RESOLVE = {"resolve", *FROM_PRELINK}
FROM_AGGREGATE = {"aggregate", *FROM_RESOLVE}


class Previous:
    """Notes of a build with these inputs of stages; nothing of their results."""

    def __init__(self, inputs: Mapping[str, Mapping[str, str]]) -> None:
        self._inputs = inputs

    def inputs(self, label: str) -> Mapping[str, str] | None:
        return self._inputs.get(label)

    def result(self, label: str, key: str) -> None:
        raise AssertionError(f"{label} is read, key {key}")


def _plan(
    previous: Mapping[str, Mapping[str, str]],
    changes: Mapping[Value[Any], dict[str, str]] | None = None,
    given: Mapping[Value[Any], object] | None = None,
    passes: tuple[str, ...] = MODELS,
) -> BuildPlan:
    """A plan for which no input is read."""
    digests = {**DIGESTS, **(changes or {})}
    build = Build(
        table.STAGES,
        {
            inputs.MODEL_NAMES: digests[inputs.MODEL_NAMES],
            table.PASS_MODELS: passes,
            **(given or {}),
        },
        notes=Previous(previous),
        always=inputs.ORCHESTRATOR,
        digests={v: d for v, d in digests.items() if v not in (given or {})},
    )
    return build.plan()


def _state(plan: BuildPlan) -> dict[str, dict[str, str]]:
    return {stage.label: dict(stage.inputs) for stage in plan.stages}


BEFORE = _state(_plan({}))


def _why(changes: Mapping[Value[Any], dict[str, str]]) -> dict[str, str]:
    """Why stages run after a build and then these changes."""
    plan = _plan(BEFORE, changes)
    return {stage.label: stage.reason for stage in plan.stages if stage.reason}


def _new(value: Value[Any], **items: str) -> dict[Value[Any], dict[str, str]]:
    """A change of an input: of all its items, or of these."""
    if items:
        return {value: {**DIGESTS[value], **items}}
    return {value: dict.fromkeys(DIGESTS[value] or ("mine",), "new")}


def test_a_first_build_runs_every_stage() -> None:
    plan = _plan({})
    assert [stage.label for stage in plan.stages] == list(EVERYTHING)
    assert {stage.reason for stage in plan.stages} == {"first build"}
    assert not plan.is_current


def test_the_same_inputs_run_nothing() -> None:
    assert _why({}) == {}
    assert _plan(BEFORE).is_current


def test_without_passes_there_is_no_stage_prelink() -> None:
    plan = _plan({}, passes=())
    assert "prelink" not in [stage.name for stage in plan.stages]
    again = _plan(BEFORE, passes=())
    assert again.stage("replan").reason == "stage prelink is gone"


@pytest.mark.parametrize(
    ("changes", "stages"),
    [
        (_new(inputs.ORCHESTRATOR), set(EVERYTHING)),
        (_new(inputs.MODEL_BYTES, kws="new"), {"extract kws", *FROM_AGGREGATE}),
        (_new(inputs.DATA_FILES, kws="new"), {"extract kws", *FROM_AGGREGATE}),
        (_new(inputs.OPERATOR_FILES), FROM_AGGREGATE),
        (_new(inputs.LIBRARY_TEXTS), FROM_RESOLVE),
        (_new(inputs.LIBRARY_OPTIONS), FROM_COMPILE),
        (_new(inputs.DELEGATES), FROM_RESOLVE),
        (_new(inputs.DELEGATE_OPTIONS), FROM_COMPILE),
        (_new(inputs.NATIVE), FROM_COMPILE),
        (_new(inputs.TOOLCHAIN), FROM_COMPILE),
        (_new(inputs.NAME), FROM_GENERATE),
        (_new(inputs.TARGET_CHOICE), FROM_PRELINK),
        (_new(inputs.IMAGES), {"lock"}),
        (_new(inputs.HOST_TOOLCHAIN), FROM_REPLAN),
        (_new(inputs.LOADS), FROM_PRELINK),
        (_new(inputs.PINS), FROM_PRELINK),
        (_new(inputs.LIMITS), FROM_GENERATE),
        (_new(inputs.OPERATORS), FROM_AGGREGATE),
        (_new(inputs.DTYPES), FROM_AGGREGATE),
        (_new(inputs.KERNELS), FROM_RESOLVE),
        (_new(inputs.PASSES), FROM_PRELINK),
        (_new(inputs.SCRATCH), FROM_PRELINK),
        (_new(inputs.PLANNER), FROM_PRELINK),
        (_new(inputs.CONCURRENCY), FROM_REPLAN),
        (_new(inputs.REGIONS), FROM_REPLAN),
        (_new(inputs.REGISTRY), FROM_GENERATE),
        (_new(inputs.TRACE), FROM_GENERATE),
        (_new(inputs.INTEGRITY), FROM_REPLAN),
        (_new(inputs.BUDGET), {"lock"}),
        (_new(inputs.SPEED_BUDGET), FROM_REPLAN),
    ],
    ids=lambda value: next(iter(value)).gives if isinstance(value, dict) else "",
)
def test_a_change_runs_what_depends_on_it(
    changes: dict[Value[Any], dict[str, str]], stages: set[str]
) -> None:
    assert set(_why(changes)) == stages


def _readers(value: Value[Any]) -> Iterator[Stage[Any] | EachStage[Any]]:
    """Stages that read a value, directly or through derived values and stages."""
    found = {value}
    for other in all_of(table.STAGES):
        if isinstance(other, Input):  # which has its own digests
            continue
        of = (other.of,) if isinstance(other, Item) else ()
        if found.intersection((*other.reads, *of)):
            found.add(other)
            if isinstance(other, Stage | EachStage):
                yield other


@pytest.mark.parametrize("value", INPUTS, ids=lambda value: value.gives)
def test_a_changed_input_runs_exactly_the_stages_that_declare_it(value: Input[Any]) -> None:
    names = {label.partition(" ")[0] for label in _why(_new(value))}
    if value is inputs.ORCHESTRATOR:
        assert names == {label.partition(" ")[0] for label in EVERYTHING}
    else:
        assert names == {stage.name for stage in _readers(value)}


DECLARED = [(label, name) for label, names in BEFORE.items() for name in names]


@pytest.mark.parametrize(("label", "name"), DECLARED)
@pytest.mark.parametrize("change", ["another", "new"])
def test_no_declared_input_is_ignored(label: str, name: str, change: str) -> None:
    """A stage runs if one of its inputs was another one, or none; what follows, too."""
    before = dict(BEFORE[label])
    if change == "another":
        before[name] = "another"
    else:
        del before[name]
    plan = _plan({**BEFORE, label: before})
    reasons = {stage.label: stage.reason for stage in plan.stages if stage.reason}
    is_new = "is new" if change == "new" else "changed"
    assert reasons == {label: f"{name} {is_new}"}
    # With another key, its result is another one to all that build upon it.
    keys = {f"stage {stage.label}": stage.key for stage in plan.stages}
    for stage in plan.stages:
        assert all(keys[n] == d for n, d in stage.inputs if n.startswith("stage "))


def test_reasons_name_what_changed() -> None:
    new_model = _why(_new(inputs.MODEL_BYTES, kws="new"))
    assert new_model["extract kws"] == "model kws changed"
    assert new_model["aggregate"] == "stage extract kws changed"
    assert _why(_new(inputs.ORCHESTRATOR))["extract kws"] == "orchestrator changed"
    assert _why(_new(inputs.BUDGET)) == {"lock": "profile [budget] changed"}
    names = {inputs.MODEL_NAMES, inputs.MODEL_BYTES, inputs.DATA_FILES}
    fewer = _why({v: {"kws": DIGESTS[v]["kws"]} for v in names})
    assert fewer["aggregate"] == "stage extract vww is gone"
    assert fewer["memory"] == ("stage replan changed, stage resolve changed, model vww is gone")
    more = _why(_new(inputs.LIBRARY_TEXTS, quantized="l2"))
    assert more["resolve"] == "library quantized is new"


def test_a_toolchain_that_was_not_looked_at_says_so() -> None:
    plan = _plan(BEFORE, given={inputs.TOOLCHAIN: Unread()})
    assert plan.stage("compile").reason == "toolchain was not looked at"
    same = Unread(digest=DIGESTS[inputs.TOOLCHAIN][""])
    assert _plan(BEFORE, given={inputs.TOOLCHAIN: same}).is_current


def test_long_reasons_are_counted() -> None:
    changed = {f"runtime/src/{i}.cpp": "new" for i in range(5)}
    assert _why({inputs.NATIVE: changed})["compile"] == (
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


def test_the_order_of_items_does_not_count() -> None:
    assert _why({v: dict(reversed(DIGESTS[v].items())) for v in DIGESTS}) == {}


def test_an_unknown_stage_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="flash"):
        _plan({}).stage("flash")


def test_the_whole_plan_is_as_held(request: pytest.FixtureRequest) -> None:
    plan = _plan(BEFORE, {**_new(inputs.BUDGET), **_new(inputs.TOOLCHAIN)})
    lines = []
    for stage in plan.stages:
        lines.append(f"{stage.label}: {stage.reason or 'known'}")
        lines += [f"  {name}" for name, _ in stage.inputs]
    check_golden(request, "plan.txt", "\n".join(lines) + "\n")
