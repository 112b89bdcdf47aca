"""Two profiles of runs, compared: rows, ratios, and files that are something else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.main import run
from orchestrator.errors import UsageError
from orchestrator.running.cost_diff import cost_diff, read_costs

if TYPE_CHECKING:
    from pathlib import Path


def _text(operators: dict[str, int], *, unit: str = "cycles", runs: int = 1) -> str:
    """What is read of the document of a run; the executor has 10, and loading 7."""
    total = sum(operators.values()) + 10
    rows = [{"operator": name, "total": cost, "calls": 1} for name, cost in operators.items()]
    parts = {"executor": {"total": 10, "percent": 1.0}, "total": total, "load": {"total": 7}}
    return json.dumps(
        {"ok": True, "profile": {"unit": unit, "runs": runs, **parts, "operators": rows}}
    )


BEFORE = {"aten::conv.out": 1000, "aten::relu.out": 40, "aten::zero.out": 0}
AFTER = {"aten::conv.out": 250, "aten::zero.out": 3, "cortex_m::pad.out": 60}


def _diff(folder: Path, before: str, after: str, *more: str) -> int:
    (folder / "a.json").write_text(before)
    (folder / "b.json").write_text(after)
    return run(["profile", "diff", str(folder / "a.json"), str(folder / "b.json"), *more])


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _diff(tmp_path, _text(BEFORE), _text(AFTER, runs=2)) == 0
    assert capsys.readouterr().out == (
        "operator           cycles before  after  ratio\n"
        "aten::conv.out             1,000    250  0.250\n"
        "cortex_m::pad.out              -     60      -\n"
        "aten::relu.out                40      -      -\n"
        "aten::zero.out                 0      3      -\n"
        "executor                      10     10  1.000\n"
        "total                      1,050    323  0.308\n"
        "load                           7      7  1.000\n"
        "calls of methods: 1 before, 2 after\n"
    )


def test_times_are_in_microseconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit = "ns"
    assert _diff(tmp_path, _text(BEFORE, unit=unit), _text(AFTER, unit=unit)) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["operator", "us", "before", "after", "ratio"]
    assert first.split() == ["aten::conv.out", "1.0", "0.2", "0.250"]


def test_the_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _diff(tmp_path, _text(BEFORE), _text(AFTER), "--json") == 0

    def row(before: int | None, after: int | None, ratio: float | None) -> dict[str, Any]:
        return {"before": before, "after": after, "ratio": ratio}

    assert json.loads(capsys.readouterr().out) == {
        "unit": "cycles",
        "runs": {"before": 1, "after": 1},
        "operators": [
            {"operator": "aten::conv.out", **row(1000, 250, 0.25)},
            {"operator": "cortex_m::pad.out", **row(None, 60, None)},
            {"operator": "aten::relu.out", **row(40, None, None)},
            {"operator": "aten::zero.out", **row(0, 3, None)},
        ],
        "executor": row(10, 10, 1.0),
        "total": row(1050, 323, 323 / 1050),
        "load": row(7, 7, 1.0),
    }


def test_other_units_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _diff(tmp_path, _text(BEFORE), _text(AFTER, unit="instructions")) == 2
    assert capsys.readouterr().err == (
        "error[other-unit]: the profiles cannot be compared: their units differ\n"
        f"   = found: cycles in {tmp_path / 'a.json'}, instructions in {tmp_path / 'b.json'}\n"
        "   hint: compare runs of one kind: on a device (cycles), in an emulator (instructions),"
        " or on a host (ns)\n"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "Invalid JSON"),
        ("{}", "profile: expected this key, found nothing"),
        ('{"profile": 3}', "profile: expected an object, found 3"),
        (_text({"x": -1}), "profile.operators[0].total: expected 0 or more, found -1"),
        (_text({"x": 1 << 70}), "profile.total: expected less than"),
        (_text({}, unit="miles"), "the unit miles"),
    ],
)
def test_other_files_are_refused(text: str, found: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_costs(text, file="a.json")
    (problem,) = caught.value.diagnostics
    assert problem.code == "bad-costs"
    assert found in dict(problem.notes)["found"]


_COSTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 1 << 40))


@given(before=_COSTS, after=_COSTS)
def test_the_other_way_round_is_the_inverse(before: dict[str, int], after: dict[str, int]) -> None:
    one, other = (read_costs(_text(costs), file="") for costs in (before, after))
    there = cost_diff(one, other, files=("", ""))
    back = cost_diff(other, one, files=("", ""))
    assert {c.name for c in there.operators} == {*before, *after}
    assert [(c.name, c.before, c.after) for c in there.operators] == [
        (c.name, c.after, c.before) for c in back.operators
    ]
    for change, inverse in zip(there.operators, back.operators, strict=True):
        if change.ratio and inverse.ratio:
            assert change.ratio * inverse.ratio == pytest.approx(1)
