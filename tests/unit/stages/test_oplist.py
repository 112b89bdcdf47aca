"""Operator lists that are not models: what they give, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.dtype import ScalarType
from orchestrator.core.op_info import Selection
from orchestrator.errors import UsageError
from orchestrator.render import render_diagnostics
from orchestrator.stages.aggregate import aggregate, union
from orchestrator.stages.oplist import read_dictionary, read_list, read_names
from orchestrator.stages.selected_yaml import selected_operators_yaml
from tests.conftest import CASES, CORPUS
from tests.unit.stages.strategies import EXTRAS, INFOS

if TYPE_CHECKING:
    from orchestrator.core.op_info import SelectedOperator


def keys_of(selection: Selection) -> dict[str, list[str]]:
    """Kernel keys by operator, as the written list has them."""
    text = selected_operators_yaml(union(selection, Selection()), generator="test")
    data = yaml.safe_load(text)
    return {n: data["et_kernel_metadata"].get(n, []) for n in data["operators"]}


def message(error: pytest.ExceptionInfo[UsageError]) -> str:
    return render_diagnostics(error.value.diagnostics, color=False)


def codes(error: pytest.ExceptionInfo[UsageError]) -> list[tuple[str, int]]:
    return [(d.code, d.where.line if d.where else 0) for d in error.value.diagnostics]


def listed(text: str) -> Selection:
    return read_list(text, file="some.yaml", source="some.yaml")


@pytest.mark.parametrize("text", ["add.out,p::f ,", "add.out p::f", "add.out\n,\tp::f"])
def test_names(text: str) -> None:
    selection = read_names(text, source="--ops")
    assert keys_of(selection) == {"aten::add.out": ["default"], "p::f": ["default"]}
    origins = {o.source for s in selection.operators for o in s.origins}
    assert origins == {"--ops"}


def test_no_names_select_nothing() -> None:
    assert read_names(" , ", source="--ops") == Selection()


def test_names_that_are_none() -> None:
    with pytest.raises(UsageError) as error:
        read_names("a..b add.out x::", source="--ops")
    assert message(error) == (
        'error[bad-operator]: --ops: "a..b" is not an operator name'
        " like aten::add.out\n"
        "   hint: write it with its overload, such as aten::add.out\n\n"
        'error[bad-operator]: --ops: "x::" is not an operator name'
        " like aten::add.out\n"
        "   hint: write it with its overload, such as aten::add.out\n"
    )


def test_dictionary() -> None:
    text = """{
        "aten::add.out": ["Float", " v1/3;0,1|3;0,1 ", "Float"],
        "mul.out": [],
        "aten::add.out": ["Byte"],
        "p::f": ["QUInt4X2", "QUInt2X4", "UInt64", "Half", "v1"]
    }"""
    assert keys_of(read_dictionary(text, source="--ops-dict")) == {
        "aten::add.out": ["v1/0;", "v1/3;0,1|3;0,1", "v1/6;"],
        "aten::mul.out": ["default"],
        "p::f": ["v1", "v1/16;", "v1/17;", "v1/29;", "v1/5;"],
    }


@pytest.mark.parametrize("dtype", ScalarType)
def test_every_dtype_is_known(dtype: ScalarType) -> None:
    selection = read_dictionary(f'{{"p::f": ["{dtype.name}"]}}', source="--ops-dict")
    assert keys_of(selection) == {"p::f": [f"v1/{int(dtype)};"]}


def test_everything_wrong_with_a_dictionary() -> None:
    text = '{"a b": [], "p::f": {"x": 1}, "p::g": ["Flaot", "v1/77;"], "p::h": [1]}'
    with pytest.raises(UsageError) as error:
        read_dictionary(text, source="--ops-dict")
    assert message(error) == (
        'error[bad-operator]: --ops-dict: "a b" is not an operator name'
        " like aten::add.out\n"
        "   hint: write it with its overload, such as aten::add.out\n\n"
        "error[bad-ops-dict]: --ops-dict: p::f has no list of texts\n"
        "   = found: an object\n"
        '   hint: write a list such as ["Float", "Int"]; [] is every dtype\n\n'
        'error[bad-dtype]: --ops-dict: p::g has "Flaot", neither a dtype'
        " nor a kernel key\n"
        "   = expected: a dtype such as Float, or a key such as v1/6;0,1|6;0,1\n"
        '   hint: did you mean "Float"?\n\n'
        'error[bad-dtype]: --ops-dict: p::g has "v1/77;", neither a dtype'
        " nor a kernel key\n"
        "   = expected: a dtype such as Float, or a key such as v1/6;0,1|6;0,1\n"
        "   hint: write Float, Half, Char, Int, Long, Bool or another name of"
        " ScalarType\n\n"
        "error[bad-ops-dict]: --ops-dict: p::h has no list of texts\n"
        "   = found: [1]\n"
        '   hint: write a list such as ["Float", "Int"]; [] is every dtype\n'
    )


@pytest.mark.parametrize("text", ["", "[", '["aten::add.out"]', "3", "[" * 100_000])
def test_no_dictionary(text: str) -> None:
    with pytest.raises(UsageError) as error:
        read_dictionary(text, source="--ops-dict")
    assert codes(error) == [("bad-ops-dict", 0)]


def test_functions_yaml() -> None:
    text = """
- op: add.out
  kernels:
    - arg_meta: null
      kernel_name: torch::executor::add_out
- func: p::f.out(Tensor x, Generator? g, *, Tensor(a!) out) -> Tensor(a!)
  variants: function
- op: p::g
"""
    assert keys_of(listed(text)) == {
        "aten::add.out": ["default"],
        "p::f.out": ["default"],
        "p::g": ["default"],
    }


def test_everything_wrong_with_functions_yaml() -> None:
    text = "- x: 1\n- op: a..b\n- func: p::f\n- op: a\n  func: b\n- 3\n- op: []\n"
    with pytest.raises(UsageError) as error:
        listed(text)
    assert codes(error) == [
        ("bad-entry", 1),
        ("bad-operator", 2),
        ("bad-schema", 3),
        ("bad-entry", 4),
        ("wrong-type", 6),
        ("wrong-type", 7),
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", "~", "{}", "[]", "operators:\n"])
def test_empty_lists_select_nothing(text: str) -> None:
    assert listed(text) == Selection()


@pytest.mark.parametrize("case", CASES)
def test_executorchs_lists_stay_as_they_are(case: str) -> None:
    text = (CORPUS / case / "oplist.yaml").read_text()
    selection = union(listed(text), Selection())
    written = selected_operators_yaml(selection, generator="test")
    assert written.partition("\n")[2] == text


@given(
    infos=st.lists(INFOS, max_size=3),
    extra=st.lists(EXTRAS, max_size=3),
    every=st.booleans(),
)
def test_our_lists_stay_as_they_are(
    infos: list[Any], extra: list[SelectedOperator], *, every: bool
) -> None:
    selection = replace(aggregate(infos, extra), every_operator=every)
    text = selected_operators_yaml(selection, generator="test")
    again = union(listed(text), Selection())
    assert selected_operators_yaml(again, generator="test") == text


def test_a_list_in_full() -> None:
    text = """
include_all_operators: Yes
include_all_non_op_selectives: False
debug_info: [everybody]
build_features: []
custom_classes:
kernel_metadata: {}
operators:
  aten::add.out:
    debug_info: [b, a, null]
    include_all_overloads: No
  p::called: {debug_info: [null]}
  p::listed:
et_kernel_metadata:
  p::called: []
  aten::add.out: [v1/6;0, default, v1/6;0]
  p::unlisted: [v1]
"""
    selection = listed(text)
    assert selection.every_operator
    assert keys_of(selection) == {
        "aten::add.out": ["default", "v1/6;0"],
        "p::called": ["default"],
        "p::listed": [],
        "p::unlisted": ["v1"],
    }
    origins = {str(s.name): [str(o) for o in s.origins] for s in selection.operators}
    assert origins == {
        "aten::add.out": ["a", "b"],
        "p::called": ["some.yaml"],
        "p::listed": ["some.yaml"],
        "p::unlisted": ["some.yaml"],
    }


def test_everything_wrong_with_a_list() -> None:
    text = """\
include_all_operators: perhaps
include_all_non_op_selectives: true
build_features: [x]
custom_classes: 3
kernel_metadata: {"aten::add": [Float]}
operatrs: {}
operators:
  a..b: {}
  p::f: {include_all_overloads: true, debug_infos: []}
  p::g: {debug_info: [[]]}
  p::h: {debug_info: x}
et_kernel_metadata:
  p::f: [v1/6, Float]
  p::g: default
  c..d: []
"""
    with pytest.raises(UsageError) as error:
        listed(text)
    assert sorted(codes(error), key=lambda c: c[1]) == [
        ("wrong-type", 1),
        ("bad-oplist", 2),
        ("bad-oplist", 3),
        ("bad-oplist", 4),
        ("bad-oplist", 5),
        ("unknown-key", 6),
        ("bad-operator", 8),
        ("unknown-key", 9),
        ("bad-oplist", 9),
        ("wrong-type", 10),
        ("wrong-type", 11),
        ("bad-kernel-key", 13),
        ("bad-kernel-key", 13),
        ("wrong-type", 14),
        ("bad-operator", 15),
    ]
    assert 'did you mean "operators"?' in message(error)


@pytest.mark.parametrize(
    ("text", "code"),
    [("a: [", "bad-yaml"), ("operators: []", "wrong-type"), ("abc", "wrong-type")],
)
def test_no_list(text: str, code: str) -> None:
    with pytest.raises(UsageError) as error:
        listed(text)
    assert [c for c, _ in codes(error)] == [code]


def test_merging_lists_is_the_union() -> None:
    texts = [(CORPUS / case / "oplist.yaml").read_text() for case in CASES]
    selections = [listed(text) for text in texts]
    expected: dict[str, set[str]] = {}
    for text in texts:
        data = yaml.safe_load(text)
        for name in data["operators"]:
            keys = data["et_kernel_metadata"].get(name, [])
            expected.setdefault(name, set()).update(keys)
    merged = reduce(union, selections)
    assert keys_of(merged) == {n: sorted(k) for n, k in expected.items()}
    assert reduce(union, reversed(selections)) == merged
