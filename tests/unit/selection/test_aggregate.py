from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey, TensorMeta
from orchestrator.core.operator import OperatorName
from orchestrator.selection.extract import aggregate, union
from orchestrator.selection.op_info import (
    CallPattern,
    DelegateUse,
    OpCall,
    OpInfo,
    Origin,
    SelectedOperator,
    Selection,
)
from tests.unit.selection.strategies import EXTRAS, INFOS

_SELECTIONS = st.builds(
    lambda infos, extra, every: replace(aggregate(infos, extra), every_operator=every),
    st.lists(INFOS, max_size=2),
    st.lists(EXTRAS, max_size=2),
    st.booleans(),
)


@given(_SELECTIONS, _SELECTIONS)
def test_union_is_commutative(a: Selection, b: Selection) -> None:
    assert union(a, b) == union(b, a)


@given(_SELECTIONS, _SELECTIONS, _SELECTIONS)
def test_union_is_associative(a: Selection, b: Selection, c: Selection) -> None:
    assert union(union(a, b), c) == union(a, union(b, c))


@given(_SELECTIONS, _SELECTIONS)
def test_union_is_idempotent_and_absorbs(a: Selection, b: Selection) -> None:
    assert union(a, a) == a
    assert union(union(a, b), b) == union(a, b)
    assert union(a, Selection()) == a


@given(st.lists(INFOS, max_size=3), st.lists(EXTRAS, max_size=3))
def test_the_order_of_what_is_asked_for_does_not_matter(
    infos: list[OpInfo], extra: list[SelectedOperator]
) -> None:
    selection = aggregate(infos, extra)
    shuffled = [
        replace(
            info,
            operators=info.operators[::-1],
            calls=info.calls[::-1],
            delegates=info.delegates[::-1],
        )
        for info in infos[::-1]
    ]
    assert aggregate(shuffled, extra[::-1]) == selection
    assert aggregate(infos * 2, extra * 2) == selection


@given(st.lists(INFOS, max_size=3), st.lists(EXTRAS, max_size=3))
def test_aggregate_is_the_union_of_its_parts(
    infos: list[OpInfo], extra: list[SelectedOperator]
) -> None:
    selection = Selection()
    for info in infos:
        selection = union(selection, aggregate([info]))
    for operator in extra:
        selection = union(selection, aggregate([], [operator]))
    assert aggregate(infos, extra) == selection


@given(st.lists(INFOS, max_size=3), st.lists(EXTRAS, max_size=3))
def test_nothing_asked_for_is_lost_and_nothing_added(
    infos: list[OpInfo], extra: list[SelectedOperator]
) -> None:
    selection = aggregate(infos, extra)
    by_name = {operator.name: operator for operator in selection.operators}
    assert list(by_name) == sorted(
        {name for info in infos for _, name in info.operators}
        | {call.operator for info in infos for call in info.calls}
        | {operator.name for operator in extra}
    )
    for name, operator in by_name.items():
        assert {
            (pattern, origin) for pattern, origins in operator.patterns for origin in origins
        } == {
            (call.pattern, Origin(info.model, call.method, call.instruction))
            for info in infos
            for call in info.calls
            if call.operator == name
        }
        asked = [o for o in extra if o.name == name]
        assert operator.every_dtype == any(o.every_dtype for o in asked)
        assert set(operator.keys) == {key for o in asked for key in o.keys}


def test_a_small_union() -> None:
    add, relu = OperatorName("aten", "add", "out"), OperatorName("aten", "relu", "out")
    meta = TensorMeta(ScalarType.Float, (0, 1))
    pattern = CallPattern("TT", ((0, meta), (1, meta)))

    def info(model: str, instruction: int) -> OpInfo:
        call = OpCall(operator=relu, pattern=pattern, method="forward", instruction=instruction)
        use = DelegateUse(backend="B", method="forward", instruction=9)
        return OpInfo(model=model, operators=(("forward", relu),), calls=(call,), delegates=(use,))

    key = KernelKey((meta,))
    asked = SelectedOperator(name=add, keys=(key,), origins=(Origin("operators"),))
    assert aggregate([info("b", 4), info("a", 2)], [asked]) == Selection(
        operators=(
            asked,
            SelectedOperator(
                name=relu,
                patterns=((pattern, (Origin("a", "forward", 2), Origin("b", "forward", 4))),),
                origins=(Origin("a", "forward"), Origin("b", "forward")),
            ),
        ),
        delegates=(("B", (Origin("a", "forward", 9), Origin("b", "forward", 9))),),
    )
