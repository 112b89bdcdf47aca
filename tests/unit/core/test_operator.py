"""Operator names and op schemas."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.operator import (
    ArgKind,
    Argument,
    OperatorName,
    nearest_operator,
    out_variant,
    parse_schema,
)

ADD = "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
WORDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)


@given(st.builds(OperatorName, WORDS, WORDS, st.one_of(st.just(""), WORDS)))
def test_name_round_trips(name: OperatorName) -> None:
    assert OperatorName.parse(str(name)) == name


def test_name_without_namespace_is_aten() -> None:
    assert str(OperatorName.parse("add.out")) == "aten::add.out"
    assert str(OperatorName.parse("my::op")) == "my::op"


def test_identifier() -> None:
    name = OperatorName.parse("aten::_softmax.out")
    assert name.identifier == "aten__softmax_out"
    assert OperatorName.parse("aten::copy_").identifier == "aten_copy_"


@pytest.mark.parametrize("text", ["", "a::b::c", "a::", "1a.b", "add.out.x", "a b"])
def test_other_names_are_refused(text: str) -> None:
    message = f'"{text}" is not an operator name like aten::add.out'
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        OperatorName.parse(text)


def test_schema_of_an_out_variant() -> None:
    schema = parse_schema(ADD)
    assert schema.name == OperatorName("aten", "add", "out")
    assert schema.arguments == (
        Argument(name="self", kind=ArgKind.TENSOR),
        Argument(name="other", kind=ArgKind.TENSOR),
        Argument(name="alpha", kind=ArgKind.SCALAR),
        Argument(name="out", kind=ArgKind.TENSOR, is_out=True),
    )
    assert schema.returns == (Argument(name="", kind=ArgKind.TENSOR, is_out=True),)
    assert schema.positional_count == 2
    assert schema.result == schema.returns[0]
    assert [a.name for a in schema.tensor_arguments] == ["self", "other", "out", ""]
    assert schema.text == ADD
    assert schema.signature == "TTSt"


def test_space_in_a_schema_does_not_matter() -> None:
    spread = ADD.replace(", ", " ,\n   ").replace(" ->", "\n->  ")
    assert parse_schema(spread).arguments == parse_schema(ADD).arguments


# Signatures below were compared with the calls in real programs: the letters of an
# instruction's values, with its results.
@pytest.mark.parametrize(
    ("text", "signature", "result"),
    [
        (
            (
                "aten::native_layer_norm.out(Tensor input, SymInt[] normalized_shape,"
                " Tensor? weight, Tensor? bias, float eps, *, Tensor(a!) out0,"
                " Tensor(b!) out1, Tensor(c!) out2)"
                " -> (Tensor(a!), Tensor(b!), Tensor(c!))"
            ),
            "TJT?T?Dttt",
            ArgKind.TENSOR_LIST,
        ),
        (
            (
                "aten::split_with_sizes_copy.out(Tensor self, SymInt[] split_sizes,"
                " int dim=0, *, Tensor(a!)[] out) -> ()"
            ),
            "TJIl",
            ArgKind.TENSOR_LIST,
        ),
        (
            (
                "aten::index.Tensor_out(Tensor self, Tensor?[] indices, *,"
                " Tensor(a!) out) -> Tensor(a!)"
            ),
            "TOt",
            ArgKind.TENSOR,
        ),
        (
            (
                "aten::upsample_nearest2d.vec_out(Tensor input, SymInt[]? output_size,"
                " float[]? scale_factors, *, Tensor(a!) out) -> Tensor(a!)"
            ),
            "TJ?E?t",
            ArgKind.TENSOR,
        ),
        (
            (
                "aten::to.out(Tensor self, *, ScalarType? dtype=None,"
                " Layout? layout=None, MemoryFormat? memory_format=None,"
                " str mode='a,b', bool[3] mask,"
                " Tensor(a!) out) -> Tensor(a!)"
            ),
            "TI?I?I?CAt",
            ArgKind.TENSOR,
        ),
        ("aten::_local_scalar_dense(Tensor self) -> Scalar", "T>S", ArgKind.SCALAR),
        ("executorch_prim::eq.Scalar(Scalar a, Scalar b) -> bool", "SS>B", ArgKind.BOOL),
        ("p::copy_index(Tensor(a!) a, Tensor b, int i) -> ()", "tTI", None),
        ("p::nothing() -> ()", ">", None),
    ],
)
def test_signatures(text: str, signature: str, result: ArgKind | None) -> None:
    schema = parse_schema(text)
    assert schema.signature == signature
    assert (schema.result and schema.result.kind) == result


def test_list_with_items_that_may_be_none() -> None:
    schema = parse_schema("p::f(Tensor?[] a, Tensor[]? b, int[2] c) -> ()")
    assert schema.arguments == (
        Argument(name="a", kind=ArgKind.TENSOR_LIST, items_optional=True),
        Argument(name="b", kind=ArgKind.TENSOR_LIST, optional=True),
        Argument(name="c", kind=ArgKind.INT_LIST),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add.out", '"add.out" is not an op schema "name(arguments) -> returns"'),
        ("a::b::c(Tensor x) -> ()", '"a::b::c" is not an operator name like aten::add.out'),
        ("f(Device d) -> ()", 'cannot read the schema argument "Device d"'),
        ("f(Tensor x y) -> ()", 'cannot read the schema argument "Tensor x y"'),
        ("f(str[] s) -> ()", 'no kernel can take the list "str[] s"'),
        (
            "f(Tensor x, int x) -> ()",
            '"f(Tensor x, int x) -> ()" has an argument without a name of its own',
        ),
        ("f(Tensor) -> ()", '"f(Tensor) -> ()" has an argument without a name of its own'),
        ("f(int x) -> (Tensor, Tensor", 'cannot read the schema argument "(Tensor, Tensor"'),
    ],
)
def test_other_schemas_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_schema(text)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("aten::add.Tensor_out", "aten::add.out"),
        ("aten::add.Scalar", "aten::add.Scalar_out"),
        ("aten::ad.out", "aten::add.out"),
        ("q::add.out", "aten::add.out"),
        ("aten::relu.out", None),
        ("aten::zzz.out", None),
        ("aten::conv", "aten::convolution.out"),
        ("aten::conv2d", "aten::convolution.out"),
        ("aten::pad", "aten::constant_pad_nd.out"),
        ("aten::RELU", "aten::relu.out"),
        ("aten::co", None),
    ],
)
def test_nearest_operator(name: str, near: str | None) -> None:
    known = (
        *("aten::relu.out", "aten::add.out", "aten::add.Scalar_out"),
        *("aten::convolution.out", "aten::constant_pad_nd.out"),
    )
    found = nearest_operator(OperatorName.parse(name), [OperatorName.parse(text) for text in known])
    assert found == (OperatorName.parse(near) if near else None)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("aten::add.Tensor", "aten::add.out"),
        ("aten::sum.dim_IntList", "aten::sum.IntList_out"),
        ("aten::max.dim", "aten::max.dim_max"),
        ("aten::max.dim_max", None),
        ("aten::topk.values", None),
        ("aten::add.Scalar_out", None),
        ("q::add.Tensor", None),
        ("aten::ad", None),
        ("aten::add_", None),
    ],
)
def test_out_variants(name: str, form: str | None) -> None:
    known = ("add.out", "sum.IntList_out", "max.dim_max", "max.unary_out", "add.x")
    parsed = [OperatorName.parse(text) for text in known]
    found = out_variant(OperatorName.parse(name), parsed)
    assert (found and str(found)) == form


def test_arguments_before_the_star_are_counted() -> None:
    text = "a::b(Tensor(a!) self, Scalar value=1) -> Tensor(a!)"
    assert parse_schema(text).positional_count == 2
    assert parse_schema("a::c() -> ()").positional_count == 0
    text = "a::d.out(*, str mode='a, *', Tensor(a!) out) -> Tensor(a!)"
    assert parse_schema(text).positional_count == 0
