"""The order of calls that needs least memory."""

from __future__ import annotations

from itertools import permutations
from random import Random
from time import process_time
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import run_passes
from orchestrator.method.passes.order import order_calls
from orchestrator.program.program import MoveCall
from orchestrator.program.values import IntValue
from tests.unit.method.methods import Builder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.method.linked import LinkedMethod

PURE: Final = "orch::portable::add_out"


class Net(Builder):
    """Tensors behind one another, and calls that add them."""

    def __init__(self) -> None:
        super().__init__()
        self._end = 0

    def behind(self, size_bytes: int) -> int:
        """The slot of a tensor that shares no byte with others."""
        begin, self._end = self._end, self._end + -(-size_bytes // 16) * 16
        return self.tensor((size_bytes,), begin)

    def add(self, sources: Sequence[int], size_bytes: int, function: str = PURE) -> int:
        """The slot of a new tensor, and a call that makes it of others."""
        out = self.behind(size_bytes)
        self.call("aten::add.out", *sources, out, function=function)
        return out


def _two_branches(function: str = PURE) -> LinkedMethod:
    """Two large tensors, each followed by a small one: large ones come first."""
    net = Net()
    x = net.behind(16)
    one, other = net.add([x], 512), net.add([x], 512)
    small = [net.add([one], 16, function), net.add([other], 16)]
    return net.method((x,), (net.add(small, 16),))


def _edges(method: LinkedMethod) -> list[tuple[tuple[int, ...], int]]:
    found = []
    for call in method.instructions:
        assert isinstance(call, LinkedCall)
        found.append((call.args[:-1], call.args[-1]))
    return found


def _peak(edges: Sequence[tuple[tuple[int, ...], int]], method: LinkedMethod) -> int:
    """Most bytes live at one time: from each write to the last read, whole blocks."""
    life = {index: [-1, -1] for index in method.inputs}
    for time, (sources, out) in enumerate(edges):
        for source in sources:
            life[source][1] = time
        life[out] = [time, time]
    for index in method.outputs:
        life[index][1] = len(edges)
    sizes = {i: -(-method.values[i].size_bytes // 16) * 16 for i in life}  # type: ignore[union-attr]  # tensors
    return max(
        sum(sizes[i] for i, (first, last) in life.items() if first <= time <= last)
        for time in range(-1, len(edges) + 1)
    )


def _least(method: LinkedMethod) -> int:
    """The same of the best of all orders."""
    edges = _edges(method)

    def is_order(order: Sequence[int]) -> bool:
        made = {*method.inputs}
        for number in order:
            sources, out = edges[number]
            if not made.issuperset(sources):
                return False
            made.add(out)
        return True

    orders = (o for o in permutations(range(len(edges))) if is_order(o))
    return min(_peak([edges[n] for n in order], method) for order in orders)


def test_a_branch_ends_before_the_next_begins() -> None:
    method = _two_branches()
    found = order_calls(method)
    assert found.origins == (0, 2, 1, 3, 4)
    assert [i.outs for i in found.instructions] == [  # type: ignore[union-attr]  # calls
        method.instructions[n].outs  # type: ignore[union-attr]
        for n in found.origins
    ]
    assert _peak(_edges(found), found) < _peak(_edges(method), method)


def test_it_runs_where_memory_is_planned_only() -> None:
    method = _two_branches()
    assert run_passes(method, ["order_calls"]).origins == (0, 1, 2, 3, 4)
    found = run_passes(method, ["order_calls"], replans=True)
    assert found.origins == (0, 2, 1, 3, 4)
    (record,) = [r for r in found.passes if r.name == "order_calls"]
    assert record.changed


@pytest.mark.parametrize("function", ["theirs::add_out", "orch::portable::rand_out"])
def test_what_may_do_more_keeps_its_place(function: str) -> None:
    method = _two_branches(function)
    assert order_calls(method) is method


def test_jumps_moves_numbers_and_sizes_change_nothing() -> None:
    net = Net()
    x = net.behind(16)
    one, other = net.add([x], 512), net.add([x], 512)
    small = [net.add([one], 16), net.add([other], 16)]
    y = net.add(small, 16)
    move = MoveCall(source=net.value(IntValue(1)), target=net.value(IntValue(2)))
    net.code.append(move)
    method = net.method((x,), (y,))
    assert order_calls(method) is method


def test_bytes_that_nobody_writes_keep_their_place() -> None:
    """A run finds there what the one before has left."""
    net = Net()
    x, old = net.behind(16), net.behind(16)
    one, other = net.add([x], 512), net.add([old], 512)
    small = [net.add([one], 16), net.add([other], 16)]
    y = net.add(small, 16)
    net.call("aten::add.out", y, old, function=PURE)
    assert order_calls(net.method((x, old), (y,))).origins == (0, 2, 1, 3, 4, 5)
    method = net.method((x,), (y,))
    assert order_calls(method) is method


def test_state_keeps_its_place() -> None:
    net = Net()
    x = net.behind(16)
    state = net.tensor((16,), 8192, state=True)
    one = net.add([x], 512)
    other = net.add([state], 512)
    net.call("aten::copy_", state, other, outs=(state,), function=PURE)
    small = [net.add([one], 16), net.add([other], 16)]
    method = net.method((x,), (net.add(small, 16),))
    found = order_calls(method)
    reads = found.origins.index(1)
    assert reads < found.origins.index(2)


@st.composite
def _nets(draw: st.DrawFn) -> LinkedMethod:
    net = Net()
    known = [net.behind(draw(st.sampled_from([16, 48])))]
    x = known[0]
    for _ in range(draw(st.integers(2, 5))):
        sources = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True))
        known.append(net.add(sources, draw(st.sampled_from([16, 32, 64, 160, 320]))))
    outputs = draw(st.lists(st.sampled_from(known[1:]), min_size=1, unique=True))
    return net.method((x,), tuple(outputs))


@given(method=_nets())
def test_no_order_of_a_small_method_needs_less(method: LinkedMethod) -> None:
    found = order_calls(method)
    peak = _peak(_edges(found), found)
    # Nothing changes if the plan of the better order is no smaller than the old peak.
    assert peak == _least(method) or found is method
    assert peak <= _peak(_edges(method), method)
    made = {*found.inputs}
    for sources, out in _edges(found):
        assert made.issuperset(sources)
        made.add(out)
    assert sorted(found.origins) == list(range(len(method.instructions)))


def test_shared_bytes_order_nothing() -> None:
    """A plan of the file in which tensors share memory does not keep calls in order."""
    net = Net()
    x = net.behind(16)
    one, other = net.add([x], 512), net.add([x], 512)
    small = [net.add([one], 16)]
    shared = net.tensor((16,), 16)  # over the first large one
    net.call("aten::add.out", other, shared, function=PURE)
    y = net.add([*small, shared], 16)
    found = order_calls(net.method((x,), (y,)))
    assert found.origins == (0, 2, 1, 3, 4)


def test_a_thousand_calls_take_seconds() -> None:
    net, random = Net(), Random(5)  # noqa: S311  # the same in every run
    known = [net.behind(64)]
    for _ in range(1600):
        sources = random.sample(known[-30:], min(len(known), 2))
        known.append(net.add(sources, random.choice([16, 64, 256])))
    method = net.method((known[0],), (known[-1],))
    begin = process_time()
    found = order_calls(method)
    assert process_time() - begin < 20
    assert _peak(_edges(found), found) <= _peak(_edges(method), method)
    assert order_calls(method) == found
