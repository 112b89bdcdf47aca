"""Calls, and who makes them."""

from __future__ import annotations

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey, TensorMeta
from orchestrator.core.operator import OperatorName
from orchestrator.selection.op_info import CallPattern, Origin, SelectedOperator

META = TensorMeta(ScalarType.Float, (0,))
HALF = TensorMeta(ScalarType.Half, (0,))


def test_origin_in_words() -> None:
    assert str(Origin("operators.include")) == "operators.include"
    assert str(Origin("kws", "forward")) == "kws, method forward"
    assert str(Origin("kws", "forward", 0)) == "kws, method forward, instruction 0"


def test_key_of_a_call_leaves_out_further_list_items() -> None:
    call = CallPattern(kinds="LT", tensors=((0, META), (1, META)))
    mixed = CallPattern(kinds="LT", tensors=call.tensors, list_items=((0, HALF),))
    assert str(call.key) == str(mixed.key) == "v1/6;0|6;0"
    assert call != mixed


def test_all_keys_are_distinct_and_sorted() -> None:
    call = CallPattern(kinds="T", tensors=((0, META),))
    other = CallPattern(kinds="TN", tensors=((0, META),))
    asked = KernelKey.parse("v1/3;0")
    selected = SelectedOperator(
        name=OperatorName.parse("a::b"), patterns=((call, ()), (other, ())), keys=(call.key, asked)
    )
    assert selected.all_keys == (asked, call.key)
