"""Expressions for scratch sizes: what they compute, and what is wrong with them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.catalog.expressions.condition import scratch_bytes
from orchestrator.catalog.expressions.reader import compiled
from orchestrator.catalog.expressions.values import ExpressionError, Kind, TensorFacts
from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import parse_schema

SCHEMA = parse_schema(
    "my::conv.out(Tensor input, Tensor? bias, Tensor[] others, int[] stride,"
    " int groups, int? axis, bool wide, float scale, Tensor scratch, *,"
    " Tensor(a!) out) -> Tensor(a!)"
)
ARGUMENTS = {
    "input": TensorFacts(sizes=(1, 8, 5, 6), dtype=ScalarType.Short),
    "bias": None,
    "stride": (2, 3),
    "groups": 7,
    "axis": None,
    "wide": True,
    "scratch": TensorFacts(sizes=(99,), dtype=ScalarType.Char),
    "out": TensorFacts(sizes=(4, 3, 2), dtype=ScalarType.Char),
}


def size(text: str, isa: str = "dsp") -> int:
    return scratch_bytes(text, SCHEMA, ARGUMENTS, isa)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("groups", 7),
        ("input.sizes[1] * input.dtype_bytes", 16),
        ("input.sizes[-1]", 6),
        ("input.nhwc[3] + input.nhwc[1] * 10 + input.nhwc[2] * 100", 658),
        ("input.numel", 240),
        ("input.size_bytes", 480),
        ("len(input.sizes)", 4),
        ("prod(out.sizes) - prod([])", 23),
        ("prod([groups, stride[0], 2])", 28),
        ("groups // 2 + groups % 4", 6),
        ("-groups + 10", 3),
        ("min(groups, 3, 5) + max(stride[0], stride[1])", 6),
        ("ceil_div(groups, 2) + ceil_div(8, 2)", 8),
        ("round_up(groups, 4) + round_up(8, 4)", 16),
        ("1 if isa == 'dsp' else 2", 1),
        ("1 if isa != 'dsp' else 2", 2),
        ("1 if stride == [2, 3] else 2", 1),
        ("1 if groups == 8 else 2", 2),
        ("1 if groups < 7 else 2", 2),
        ("1 if groups <= 7 else 2", 1),
        ("1 if groups > 7 else 2", 2),
        ("1 if groups >= 7 else 2", 1),
        ("1 if 6 < groups < 8 else 2", 1),
        ("1 if groups in [3, 7] else 2", 1),
        ("1 if input.dtype in integral else 2", 1),
        ("input.rank", 4),
        ("1 if wide else 2", 1),
        ("1 if not wide or groups == 7 else 2", 1),
        ("1 if wide and groups == 8 else 2", 2),
        ("1 if True else 2", 1),
        ("1 if bias is None else bias.numel", 1),
        ("1 if axis is not None else 2", 2),
        # What is not chosen is not computed.
        ("0 if bias is None or bias.numel > 4 else 1 // 0", 0),
        ("  groups\n    + 1  ", 8),
    ],
)
def test_expressions(text: str, expected: int) -> None:
    compiled(text, SCHEMA, Kind.NUMBER)
    assert size(text) == expected


def test_an_argument_named_isa_gives_way() -> None:
    schema = parse_schema("my::f.out(int isa, *, Tensor(a!) out) -> Tensor(a!)")
    assert scratch_bytes("4 if isa == 'mve' else 8", schema, {"isa": 3}, "mve") == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not an expression"),
        ("groups +", "it is not an expression"),
        ("groups = 1", "it is not an expression"),
        ("1\x00", "it is not an expression"),
        ("1if wide else 2", "it is not an expression"),
        ("'\\d'", "it is not an expression"),
        ("(" * 300 + "1" + ")" * 300, "it is not an expression"),
        ("1" + " + 1" * 120, "it is nested more than 100 levels deep"),
        ("-" * 120 + "1", "it is nested more than 100 levels deep"),
        ("1" * 4001, "it has more than 4000 characters"),
        ("wide", "it gives a truth value, not a number"),
        ("stride", "it gives a list of numbers, not a number"),
        ("input", "it gives a tensor, not a number"),
        ("isa", "it gives an ISA, not a number"),
        ("1.5", "1.5 is not allowed here"),
        ("None", "None is not allowed here"),
        (str(2**63), "9223372036854775808 is not allowed here"),
        ("'neon'", '"neon" is not an ISA, use one of scalar, dsp, mve'),
        ("(lambda: 1)()", "there is no function lambda: 1, docs/kernels.md lists them"),
        (
            "cmsis_nn.avgpol_s8()",
            'there is no function cmsis_nn.avgpol_s8, did you mean "cmsis_nn.avgpool_s8"?',
        ),
        ("groups / 2", "groups / 2 is not allowed here"),
        ("groups ** 2", "groups ** 2 is not allowed here"),
        ("1 << groups", "1 << groups is not allowed here"),
        ("+groups", "+groups is not allowed here"),
        ("[g for g in stride][0]", "[g for g in stride] is not allowed here"),
        ("stride[0:1][0]", "0:1 is not allowed here"),
        (
            "1 if input.sizes[0] < input.sizes[1] is not groups else 2",
            "input.sizes[0] < input.sizes[1] is not groups is not allowed here",
        ),
        ("1 if isa in 'dsp' else 2", "isa in 'dsp' is not allowed here"),
        ("goups", 'the operator has no argument goups, did you mean "groups"?'),
        ("zzz", "the operator has no argument zzz"),
        ("scale", "it gives a scalar, not a number"),
        ("others", "it gives a list of tensors, not a number"),
        ("scratch.numel", "the argument scratch is scratch itself"),
        (
            "input.shape[0]",
            "a tensor has no shape, it has sizes, nhwc, rank, numel, dtype,"
            " dtype_bytes, size_bytes, is_contiguous",
        ),
        ("stride.numel", "stride is a list of numbers, not a tensor"),
        ("groups[0]", "groups is a number, not a list of numbers"),
        ("stride[wide]", "wide is a truth value, not a number"),
        ("[stride][0]", "stride is a list of numbers, not a number"),
        ("-stride", "stride is a list of numbers, not a number"),
        ("1 if not groups else 2", "groups is a number, not a truth value"),
        ("groups + wide", "wide is a truth value, not a number"),
        ("1 if wide and groups else 2", "groups is a number, not a truth value"),
        ("1 if groups else 2", "groups is a number, not a truth value"),
        ("1 if wide else stride", "stride is a list of numbers, not a number"),
        ("1 if isa < 'mve' else 2", "isa is an ISA, not a scalar"),
        ("1 if isa == 2 else 2", "2 is a number, not an ISA"),
        ("1 if input == out else 2", "input is a tensor, it cannot be compared"),
        ("1 if groups is None else 2", "the argument groups is never None"),
        ("1 if zzz is None else 2", "the operator has no argument zzz"),
        ("1 if groups is 3 else 2", "groups is 3 is not allowed here"),
        ("1 if input.numel is None else 2", "input.numel is None is not allowed here"),
        ("min(1)", "min(1) is not min(a, b, ...)"),
        ("min(1, k=2)", "min(1, k=2) is not min(a, b, ...)"),
        ("len(1, 2)", "len(1, 2) is not len(list)"),
        ("ceil_div(1, 2, 3)", "ceil_div(1, 2, 3) is not ceil_div(number, divisor)"),
        ("round_up(1)", "round_up(1) is not round_up(number, multiple)"),
        ("prod(groups)", "groups is a number, not a list of numbers"),
        ("min(1, wide)", "wide is a truth value, not a number"),
        ("cmsis_nn.svdf_s8(input.nhwc)", "cmsis_nn.svdf_s8 takes named arguments only, each once"),
        (
            "cmsis_nn.svdf_s8(filter_nhwc=input.nhwc, filter_nhwc=input.nhwc)",
            "cmsis_nn.svdf_s8 takes named arguments only, each once",
        ),
        ("cmsis_nn.svdf_s8(**input)", "cmsis_nn.svdf_s8 takes named arguments only, each once"),
        ("cmsis_nn.avgpool_s8(isa='dsp')", "cmsis_nn.avgpool_s8 needs dim_dst_width, ch_src"),
        (
            "cmsis_nn.avgpool_s8(dim_dst_width=1, ch_src=2, backend=3)",
            "cmsis_nn.avgpool_s8 has no backend",
        ),
        (
            "cmsis_nn.avgpool_s8(dim_dst_width=1, ch_src=stride)",
            "stride is a list of numbers, not a number",
        ),
        ("cmsis_nn.avgpool_s8(dim_dst_width=1, ch_src=2, isa=2)", "2 is a number, not an ISA"),
    ],
)
def test_errors_are_found_before_any_call(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compiled(text, SCHEMA, Kind.NUMBER)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("groups - 8", "it gives -1 bytes"),
        ("prod([2147483647, 1]) + 1", "it gives 2147483648 bytes"),
        ("9223372036854775807 + 1", "9223372036854775807 + 1 does not fit 64 bits"),
        ("1 // (groups - 7)", "groups - 7 is 0"),
        ("1 % (groups - 7)", "groups - 7 is 0"),
        ("ceil_div(groups, 0)", "a divisor is 0"),
        ("round_up(groups, -4)", "a divisor is -4"),
        ("stride[2]", "stride has 2 items, no item 2"),
        ("stride[-3]", "stride has 2 items, no item -3"),
        ("bias.numel", "bias is None"),
        ("axis", "axis is None"),
        ("out.nhwc[0]", "nhwc of a tensor with 3 dimensions"),
        ("cmsis_nn.svdf_s8(filter_nhwc=stride)", "filter_nhwc has 2 items, not 4"),
        (
            "cmsis_nn.transpose_conv_reverse_conv_s8(input_nhwc=input.nhwc,"
            " filter_nhwc=input.nhwc, stride_hw=[0, 1])",
            "stride_hw is [0, 1], not 1 or more",
        ),
    ],
)
def test_what_has_no_result_for_a_call(text: str, message: str) -> None:
    compiled(text, SCHEMA, Kind.NUMBER)
    with pytest.raises(ExpressionError) as caught:
        size(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["groups", "1 if axis is None else 2"])
def test_what_the_program_computes_is_not_known(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        scratch_bytes(text, SCHEMA, {}, "mve")
    name = "groups" if text == "groups" else "axis"
    assert str(caught.value) == f"{name} is known only when the program runs"


def test_a_long_part_is_cut_in_messages() -> None:
    with pytest.raises(ExpressionError) as caught:
        compiled("1 + [" + "groups, " * 12 + "1]", SCHEMA, Kind.NUMBER)
    assert str(caught.value) == (
        "[groups, groups, groups, groups, groups, groups, groups, gro... is a list of"
        " numbers, not a number"
    )


CONVOLUTION = (
    "input_nhwc=input.nhwc, filter_nhwc=[9, 3, 3, 8], output_nhwc=[1, 5, 6, 9],"
    " padding_hw=[1, 1], stride_hw=[1, 1], dilation_hw=[1, 1]"
)
TRANSPOSED = "input_nhwc=[1, 2, 3, 20], filter_nhwc=[9, 3, 3, 20], stride_hw=[1, {stride}]"


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (f"cmsis_nn.convolve_wrapper_s8({CONVOLUTION})", (288, 288, 320)),
        (f"cmsis_nn.convolve_wrapper_s4({CONVOLUTION})", (288, 288, 320)),
        (f"cmsis_nn.convolve_wrapper_s16({CONVOLUTION})", (288, 288, 576)),
        (f"cmsis_nn.convolve_wrapper_s8(isa='mve', {CONVOLUTION})", (320, 320, 320)),
        (
            "cmsis_nn.depthwise_conv_wrapper_s8(input_nhwc=[1, 5, 6, 9],"
            " filter_nhwc=[1, 5, 3, 9], output_nhwc=[1, 5, 6, 9], padding_hw=[2, 1],"
            " stride_hw=[1, 1], dilation_hw=[1, 1], ch_mult=1)",
            (0, 270, 7440),
        ),
        (
            "cmsis_nn.depthwise_conv_wrapper_s4(input_nhwc=[1, 5, 6, 9],"
            " filter_nhwc=[1, 5, 3, 9], output_nhwc=[1, 5, 6, 9], padding_hw=[2, 1],"
            " stride_hw=[1, 1], dilation_hw=[1, 1], ch_mult=1)",
            (270, 270, 7440),
        ),
        (
            "cmsis_nn.depthwise_conv_wrapper_s16(input_nhwc=[1, 5, 6, 9],"
            " filter_nhwc=[1, 5, 3, 9], output_nhwc=[1, 5, 6, 9], padding_hw=[2, 1],"
            " stride_hw=[1, 1], dilation_hw=[1, 1], ch_mult=1)",
            (0, 270, 1088),
        ),
        ("cmsis_nn.fully_connected_s8(filter_nhwc=[5, 1, 1, 7])", (0, 0, 28)),
        ("cmsis_nn.fully_connected_s16(filter_nhwc=[5, 1, 1, 7])", (0, 0, 0)),
        ("cmsis_nn.avgpool_s8(dim_dst_width=3, ch_src=groups)", (0, 28, 0)),
        ("cmsis_nn.avgpool_s16(dim_dst_width=3, ch_src=groups)", (0, 28, 0)),
        ("cmsis_nn.svdf_s8(filter_nhwc=[5, 1, 1, 7])", (0, 0, 20)),
        (
            f"cmsis_nn.transpose_conv_s8({TRANSPOSED.format(stride=2)}, output_nhwc=[1, 4, 6, 9])",
            (720, 720, 768),
        ),
        (
            f"cmsis_nn.transpose_conv_s8({TRANSPOSED.format(stride=3)}, output_nhwc=[1, 4, 9, 9])",
            (972, 972, 972),
        ),
        (
            f"cmsis_nn.transpose_conv_reverse_conv_s8({TRANSPOSED.format(stride=2)})",
            (1620, 1620, 1620),
        ),
        (f"cmsis_nn.transpose_conv_reverse_conv_s8({TRANSPOSED.format(stride=3)})", (0, 0, 0)),
    ],
)
def test_functions_of_cmsis_nn(text: str, sizes: tuple[int, ...]) -> None:
    assert tuple(size(text, isa) for isa in ("scalar", "dsp", "mve")) == sizes


def test_scratch_arguments_are_recognised_by_name() -> None:
    schema = parse_schema(
        "my::f.out(Tensor scratch, Tensor? row_scratch, Tensor scratchy, int n_scratch,"
        " Tensor(a!) out_scratch) -> Tensor(a!)"
    )
    names = [(n, a.name) for n, a in scratch_arguments(schema)]
    assert names == [(0, "scratch"), (1, "row_scratch")]


TOKENS = (
    *("groups", "stride", "input", "bias", "isa", "scratch", "scale", "zzz", "None"),
    *(".sizes", ".nhwc", ".numel", "[", "]", "(", ")", ",", "+", "-", "//", "%", "**"),
    *("==", "<", " is ", " not ", " and ", " if ", " else ", "0", "1", "7", "'dsp'", "="),
    *("min", "len", "ceil_div", "cmsis_nn.svdf_s8", "filter_nhwc=", "*", "lambda:"),
)


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(st.sampled_from(TOKENS), max_size=30).map("".join),
        st.tuples(st.sampled_from(["-", "(", "[", "not ", "1+", "1,"]), st.integers(1, 3999)).map(
            lambda item: item[0] * item[1] + "1 / 2"
        ),
    )
)
@example("-" * 3000 + "1 / 2")
@example("[" * 90 + "1" + "]" * 90)
def test_any_text_has_a_size_or_is_refused(text: str) -> None:
    try:
        compiled(text, SCHEMA, Kind.NUMBER)
    except ExpressionError:
        return
    with suppress(ExpressionError):
        assert 0 <= size(text) < 2**31
