"""Methods that no exporter writes take no more steps than there are instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.method.effects import Effect
from orchestrator.method.passes import dataflow, joining
from orchestrator.method.separate import Memory
from orchestrator.method.sets import Sets
from orchestrator.program.program import JumpFalseCall
from orchestrator.program.values import BoolValue
from tests.unit.method.made_effects import effects_of
from tests.unit.method.methods import Builder

if TYPE_CHECKING:
    import pytest


_COUNT = 40


def _counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """A list that gets an item whenever a function is called."""
    calls: list[int] = []
    function = getattr(owner, name)

    def noted(*arguments: Any) -> Any:
        calls.append(1)
        return function(*arguments)

    monkeypatch.setattr(owner, name, noted)
    return calls


def _relus(b: Builder) -> tuple[int, int]:
    x, y = b.tensor((4,), 0), b.tensor((4,), 16)
    for _ in range(_COUNT):
        b.call("aten::relu.out", x, y)
    return x, y


def test_changes_of_a_pass_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def dropped(site: joining.Site) -> joining.Site:
        site.flow.drop(site.number)
        return site

    b = Builder()
    x, y = _relus(b)
    method = b.method((x,), (y,))
    assert not joining.at_each_call(method, dropped, grows=False).instructions
    monkeypatch.setattr(joining, "_MOST_CHANGED", 2 * _COUNT)
    left = joining.at_each_call(method, dropped, grows=False).instructions
    assert len(left) == _COUNT - 2


def test_readers_behind_a_jump_are_found_by_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    x, y = _relus(b)
    kept, flag = b.tensor((4,), 32), b.value(BoolValue(value=False))
    b.call("aten::relu.out", x, kept)
    b.code.append(JumpFalseCall(condition=flag, destination=0))
    method = b.method((x, flag), (y, kept))
    flow, looks = dataflow.Dataflow(method), _counted(monkeypatch, dataflow, "_near")
    assert flow.is_read(_COUNT, method.places[kept], method.places)
    assert flow.followers(_COUNT, method.places[kept], method.places) == {kept}
    assert not flow.is_read(0, method.places[y], method.places)
    assert len(looks) < _COUNT / 2


def test_values_over_many_others_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [Effect(reads=(i,), fills=(i + 1,), next=(i + 1,)) for i in range(_COUNT)]
    places = [(4 * i, 4 * _COUNT) for i in range(_COUNT + 1)]
    effects = effects_of(places, calls, inputs=(0,), outputs=tuple(range(1, _COUNT)))
    looks = _counted(monkeypatch, Sets, "of")
    found = {(fault.value, fault.writer) for fault in Memory(effects).faults}
    # A call writes over what it reads, and all but the last value are read at the end.
    assert found >= {(i, i + 1) for i in range(_COUNT)}
    assert len(looks) < 16 * _COUNT
