"""Operator lists that are not models: what they give, and what is refused."""

from __future__ import annotations

import pytest
import yaml

from orchestrator.cli.render import render_diagnostics
from orchestrator.core.dtype import ScalarType
from orchestrator.errors import UsageError
from orchestrator.selection.extract import union
from orchestrator.selection.op_info import Selection
from orchestrator.selection.oplist import read_dictionary, read_names, selected_operators_yaml


def keys_of(selection: Selection) -> dict[str, list[str]]:
    """Kernel keys by operator, as the written list has them."""
    text = selected_operators_yaml(union(selection, Selection()), generator="test")
    data = yaml.safe_load(text)
    return {n: data["et_kernel_metadata"].get(n, []) for n in data["operators"]}


def message(error: pytest.ExceptionInfo[UsageError]) -> str:
    return render_diagnostics(error.value.diagnostics, color=False)


def codes(error: pytest.ExceptionInfo[UsageError]) -> list[tuple[str, int]]:
    return [(d.code, d.where.line if d.where else 0) for d in error.value.diagnostics]


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
        "error[bad-ops-dict]: --ops-dict: p::f has no list of strings\n"
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
        "error[bad-ops-dict]: --ops-dict: p::h has no list of strings\n"
        "   = found: [1]\n"
        '   hint: write a list such as ["Float", "Int"]; [] is every dtype\n'
    )


@pytest.mark.parametrize("text", ["", "[", '["aten::add.out"]', "3", "[" * 100_000])
def test_no_dictionary(text: str) -> None:
    with pytest.raises(UsageError) as error:
        read_dictionary(text, source="--ops-dict")
    assert codes(error) == [("bad-ops-dict", 0)]
