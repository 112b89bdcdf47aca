"""The engine: values made once, when needed, of what they declare."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.build.engine import (
    Build,
    Derived,
    EachStage,
    Effect,
    Given,
    Input,
    Item,
    Stage,
    Unread,
    Value,
    digest,
    repr_digest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG: Effect[list[str]] = Effect(gives="log")
WORDS: Given[dict[str, str]] = Given(gives="words")
FACTOR: Given[int] = Given(gives="factor")
SELF = Input(gives="itself", run=lambda: "1.0", label="program", digests=repr_digest)
TEXTS = Input(
    gives="texts",
    reads=(WORDS,),
    run=lambda *, words: dict(words),
    label="word",
    digests=lambda found: {name: digest(t.encode()) for name, t in found.items()},
)
TIMES = Input(
    gives="times",
    reads=(FACTOR,),
    run=lambda *, factor: factor,
    label="setting [times]",
    digests=repr_digest,
)
SIDE = Input(gives="side", reads=(FACTOR,), run=lambda *, factor: "left" * factor)
TEXT: Item[str] = Item(gives="text", of=TEXTS)


def _measure(*, text: str, log: list[str]) -> int:
    log.append(f"length of {text}")
    return len(text)


def _add(*, lengths: Mapping[str, int], times: int, log: list[str]) -> int:
    log.append("sum")
    return times * sum(lengths.values())


def _show(*, total: int, side: str, log: list[str]) -> str:
    log.append("show")
    return f"{total} {len(side)}"


LENGTHS = EachStage(name="length", each=TEXTS, reads=(TEXT, LOG), run=_measure, gives="lengths")
SUM = Stage(name="sum", reads=(LENGTHS, TIMES, LOG), run=_add, gives="total")
DOUBLE = Derived(reads=(SUM, TEXTS), run=lambda *, total, texts: (total, texts), gives="double")
SHOW = Stage(name="show", reads=(SUM, SIDE, LOG), run=_show, gives="shown", is_remembered=False)
AFTER = Stage(name="after", reads=(DOUBLE,), run=lambda *, double: double, gives="a")
SOME = Stage(
    name="some",
    only_for=TEXTS,
    otherwise="nothing",
    reads=(TEXTS,),
    run=lambda *, texts: "".join(texts),
    gives="some",
)
STAGES: tuple[Value[Any], ...] = (LENGTHS, SUM, SHOW, AFTER, SOME)


@dataclass
class Kept:
    """Notes in memory."""

    stages: dict[str, dict[str, str]] = field(default_factory=dict)
    results: dict[str, tuple[str, object]] = field(default_factory=dict)

    def inputs(self, label: str) -> Mapping[str, str] | None:
        return self.stages.get(label)

    def result(self, label: str, key: str) -> object | None:
        known, result = self.results.get(label, ("", None))
        return result if known == key else None

    def keep(self, build: Build) -> None:
        self.stages = {s.label: dict(s.inputs) for s in build.plan().stages}
        self.results = {s.label: (s.key, r) for s, r in build.results().items()}


def _opened(notes: Kept, log: list[str], *, factor: int = 2, **words: str) -> Build:
    given: dict[Value[Any], object] = {
        WORDS: words or {"one": "a", "two": "bcd"},
        FACTOR: factor,
        LOG: log,
    }
    return Build(STAGES, given, notes=notes, always=SELF)


def test_values_are_made_once_and_when_needed() -> None:
    log: list[str] = []
    build = _opened(Kept(), log)
    assert log == []
    assert build[SUM] == 8
    assert log == ["length of a", "length of bcd", "sum"]
    assert build[SHOW] == "8 8"
    assert build[LENGTHS] == {"one": 1, "two": 3}
    assert log == ["length of a", "length of bcd", "sum", "show"]


def test_the_next_build_gets_results_back() -> None:
    notes, log = Kept(), list[str]()
    first = _opened(notes, [])
    assert first[SHOW] == "8 8"
    notes.keep(first)
    again = _opened(notes, log)
    assert again[SUM] == 8
    assert log == []
    # What is not remembered is made again.
    assert again[SHOW] == "8 8"
    assert log == ["show"]
    assert set(first.results().values()) == {1, 3, 8}


def test_a_change_runs_what_depends_on_it() -> None:
    notes, log = Kept(), list[str]()
    first = _opened(notes, [])
    assert first[SHOW] == "8 8"
    notes.keep(first)
    changed = _opened(notes, log, one="a", two="bc")
    assert {s.label: s.reason for s in changed.plan().stages if s.reason} == {
        "length two": "word two changed",
        "sum": "stage length two changed",
        "show": "stage sum changed",
        "after": "stage sum changed, word two changed",
        "some": "word two changed",
    }
    assert changed[SUM] == 6
    assert log == ["length of bc", "sum"]


def test_an_input_without_a_digest_makes_nothing_stale() -> None:
    notes = Kept()
    first = _opened(notes, [])
    notes.keep(first)
    other = first.replace({SIDE: "right"})
    assert other.plan().is_current
    assert other[SHOW] == "8 5"


def test_only_a_stage_that_has_something_to_do_is_planned() -> None:
    build = _opened(Kept(), []).replace({TEXTS: {}})
    assert "some" not in [stage.name for stage in build.plan().stages]
    assert build[SOME] == "nothing"
    assert _opened(Kept(), [])[SOME] == "onetwo"


def test_replacing_a_value_keeps_those_that_do_not_depend_on_it() -> None:
    log: list[str] = []
    build = _opened(Kept(), log)
    assert build[SUM] == 8
    other = build.replace({FACTOR: 3})
    assert other[SUM] == 12
    assert log == ["length of a", "length of bcd", "sum", "sum"]
    # The first one is as it was.
    assert (build[SUM], build[TIMES]) == (8, 2)


def test_an_input_that_cannot_be_read_still_has_a_plan() -> None:
    notes = Kept()
    first = _opened(notes, [])
    notes.keep(first)
    unread = first.replace({TIMES: Unread()})
    assert unread.plan().stage("sum").reason == ("setting [times] was not looked at")
    same = repr_digest(2)[""]
    assert first.replace({TIMES: Unread(digest=same)}).plan().is_current
    with pytest.raises(AssertionError, match="times"):
        _ = unread[TIMES]


def test_inputs_with_one_label_count_together() -> None:
    other = Input(gives="other", run=lambda: 7, label="setting [times]", digests=repr_digest)
    both = Stage(
        name="both", reads=(TIMES, other), run=lambda *, times, other: times + other, gives="both"
    )

    def inputs_of(first: int, second: int) -> dict[str, str]:
        given: dict[Value[Any], object] = {TIMES: first, other: second}
        build = Build((both,), given, notes=Kept(), always=SELF)
        return dict(build.plan().stage("both").inputs)

    found = [inputs_of(1, 2), inputs_of(1, 3), inputs_of(4, 2)]
    assert [set(one) for one in found] == [{"program", "setting [times]"}] * 3
    assert len({one["setting [times]"] for one in found}) == 3


def test_a_value_that_was_not_given_is_named() -> None:
    with pytest.raises(KeyError, match="words"):
        _ = Build(STAGES, {}, notes=Kept(), always=SELF)[TEXTS]
