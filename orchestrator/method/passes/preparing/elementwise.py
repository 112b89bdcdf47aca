"""Int8 operators item by item, on one tensor or two, and moves of items.

The structs are in kernels/cortex_m/prepared.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes.arguments import (
    NHWC,
    dim_of,
    float32,
    lies_as_nhwc,
    need,
    strides_of,
)
from orchestrator.method.passes.preparing.form import (
    MOST_COPIES,
    Form,
    array,
    int8_form,
    lie_alike,
    loop_over,
    members,
    pair_rows,
    scale_of_output,
)
from orchestrator.method.passes.views import scale_of
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.preparing.form import Preparer

_MOST_ZERO_POINT: Final = 383
"""Largest zero point of a plain addition, of either sign: with int8 items of up to 128 beside it,
differences have 9 bits and a sign (`is_near` of op_quantized_add.cpp)."""
_HALF_MULTIPLIER: Final = 1 << 30
"""Multiplier of the larger scale of a plain addition, as exporters write it: a half."""
_LEAST_SHIFT: Final = -21
"""Smallest shift of a plain addition with DSP instructions, whose sums have 30 bits and a sign
(`is_plain` of op_quantized_add.cpp)."""
# The largest int8 item, of either sign.
_ITEM: Final = 128
_DSP_SHIFT: Final = 13
"""Largest shift of products for DSP instructions (op_quantized_mul.cpp)."""
# Differences have 16 bits in `orch_multiply_vectors`; a shift to the left comes before the product.
_VECTOR_ITEM: Final = (1 << 15) - 1
"""Largest difference from a zero point in vectors of products."""
# `TransposeCall` has arrays of four.
_TRANSPOSED_DIMS: Final = 4


def _add(arguments: Arguments, isa: str) -> Form:
    # First the addend without a shift, for instructions that add products.
    swaps = isa != "scalar" and arguments.number("other_shift") == 0
    a, b = ("other", "self") if swaps else ("self", "other")
    rows, side_by_side = pair_rows(arguments, a, b)
    parts = [
        tuple(arguments.number(f"{of}_{part}") for part in ("zero_point", "multiplier", "shift"))
        for of in (a, b, "output")
    ]
    (a_zero, a_multiplier, a_shift), (b_zero, b_multiplier, b_shift), total = parts
    plain = (
        abs(a_zero) <= _MOST_ZERO_POINT
        and abs(b_zero) <= _MOST_ZERO_POINT
        and min(a_multiplier, b_multiplier, total[1]) >= 0
        # As exporters write additions: the larger scale has a factor of a half and no shift, and
        # the sum becomes smaller.
        and a_shift == 0
        and b_shift <= 0
        and total[2] < 0
    )
    if isa == "dsp":
        # Sums have 30 bits and a sign.
        is_small = b_shift < 0 or b_multiplier <= _HALF_MULTIPLIER
        plain = plain and a_multiplier == _HALF_MULTIPLIER and is_small
        plain = plain and total[2] >= _LEAST_SHIFT
    is_plain = isa != "scalar" and plain and side_by_side
    addends = {
        name: members(zero_point=zero, scale=members(multiplier=multiplier, shift=shift))
        for name, (zero, multiplier, shift) in zip(("a", "b", "sum"), parts, strict=True)
    }
    low, high = map(arguments.number, ("activation_min", "activation_max"))
    return int8_form(
        f"quantized_add{'_plain' * is_plain}",
        arguments.places(a=a, b=b, out="out"),
        rows=rows,
        add=members(**addends, range=members(low=low, high=high)),
    )


def _multiply(arguments: Arguments, isa: str) -> Form:
    rows, side_by_side = pair_rows(arguments)
    a, b = map(arguments.number, ("self_zero_point", "other_zero_point"))
    multiplier, shift = map(arguments.number, ("output_multiplier", "output_shift"))
    path = ""
    larger = max(shift, 0)
    if (
        isa == "mve"
        and side_by_side
        and multiplier >= 0
        and abs(a) + _ITEM <= _VECTOR_ITEM >> larger
        and abs(b) + _ITEM <= _VECTOR_ITEM
    ):
        path = "_vectors"
    elif isa == "dsp" and max(abs(a), abs(b)) <= _ITEM and shift <= _DSP_SHIFT:
        path = "_dsp"
    zero_point = arguments.number("output_zero_point")
    return int8_form(
        f"quantized_mul{path}",
        arguments.places(a="self", b="other", out="out"),
        rows=rows,
        product=members(a=a, b=b, zero_point=zero_point, scale=scale_of_output(arguments)),
    )


def _divide(arguments: Arguments, _isa: str) -> Form:
    need(arguments.tensor("out").dtype is ScalarType.Char)
    rows, _ = pair_rows(arguments)
    a, b, zero_point = (arguments.number(f"{of}_zero_point") for of in ("self", "other", "output"))
    scale = float32(arguments.real("output_scale"))
    need(isfinite(scale))
    limits = {"low": -float(_ITEM), "high": float(_ITEM - 1)}
    return int8_form(
        "quantized_div",
        arguments.places(a="self", b="other", out="out"),
        rows=rows,
        quotient=members(a=a, b=b, zero_point=float(zero_point), scale=scale, **limits),
    )


def _extreme(name: str) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        rows, _ = pair_rows(arguments)
        memory = arguments.places(a="self", b="other", out="out")
        return int8_form(name, memory, rows=rows)

    return prepare


def _activation(arguments: Arguments, _isa: str) -> Form:
    x, y = arguments.tensor("input"), arguments.tensor("out")
    need(lie_alike(x, y))
    memory = arguments.places(input="input", table="lut", out="out")
    return int8_form("quantized_activation", memory, count=x.numel)


def _softmax(arguments: Arguments, isa: str) -> Form:
    x, y = arguments.tensor("input"), arguments.tensor("out")
    need(lie_alike(x, y) and x.sizes)
    dim = dim_of(arguments.number("dim"), len(x.sizes))
    count = x.sizes[dim]
    # The kernel reads a row of items side by side.
    need(count == 1 or strides_of(x)[dim] == 1)
    multiplier, shift, diff_min = map(
        arguments.number, ("input_multiplier", "input_shift", "diff_min")
    )
    vectors = "_vectors" if isa == "mve" and multiplier >= 0 else ""
    return int8_form(
        f"softmax{vectors}",
        arguments.places(input="input", out="out"),
        rows=x.numel // count,
        count=count,
        softmax=members(multiplier=multiplier, shift=shift, diff_min=diff_min),
    )


def _transpose(arguments: Arguments, _isa: str) -> Form:
    x, y = arguments.tensor("input"), arguments.tensor("out")
    steps = strides_of(x)
    rank = len(x.sizes)
    order = [dim_of(dim, rank) for dim in arguments.numbers("perm")]
    loop = loop_over(y, [steps[dim] for dim in order])
    need(len(loop) <= _TRANSPOSED_DIMS)
    loop = [(1, (0, 0))] * (_TRANSPOSED_DIMS - len(loop)) + loop
    return int8_form(
        "transpose",
        arguments.places(input="input", out="out"),
        sizes=array([size for size, _ in loop]),
        steps=array([step for _, (_, step) in loop]),
    )


def _pad(*, contiguous: bool) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        x, y = arguments.tensor("input"), arguments.tensor("out")
        first, value = arguments.numbers("pre_pad"), arguments.number("pad_value")
        rank = len(x.sizes)
        nhwc = not contiguous and rank == len(NHWC) and lies_as_nhwc(x)
        dims = NHWC if nhwc else range(rank)
        sizes, padded = ([*[1] * (len(NHWC) - rank), *(t.sizes[d] for d in dims)] for t in (x, y))
        steps = [1]
        for size in padded[:0:-1]:
            steps.insert(0, steps[0] * size)
        before = sum(n * step for n, step in zip(first, steps, strict=True))
        return int8_form(
            "pad",
            arguments.places(input="input", out="out"),
            value=value,
            bytes=y.numel,
            before=before,
            sizes=array(sizes[:3]),
            steps=array(steps[:3]),
            row=sizes[3],
        )

    return prepare


# Images that are scaled, as kernels/portable/prepared.h has them.


def _images(arguments: Arguments) -> tuple[TensorValue, TensorValue]:
    """The input and the output, an image each whose channels lie side by side."""
    x, y = arguments.tensor("input"), arguments.tensor("out")
    need(x.dtype is y.dtype and x.dim_order == y.dim_order == NHWC)
    need(x.sizes[:2] == y.sizes[:2] and x.sizes[0] == 1 and x.numel and y.numel)
    return x, y


def _form(arguments: Arguments, function: str, pixel_size: int, *, corners: bool) -> Form:
    sides = [scale_of(arguments, side, corners=corners) for side in (0, 1)]
    names = ("in", "out", "scale")
    rows, columns = (tuple(zip(names, side, strict=True)) for side in sides)
    return Form(
        function=f"orch::portable::{function}",
        struct="orch::portable::ScaleCall",
        memory=arguments.places(input="input", out="out"),
        numbers=members(
            in_first=0,
            first=0,
            count=sides[0][1],
            rows=rows,
            columns=columns,
            corners=int(corners),
            pixel_size=pixel_size,
        ),
    )


def _bilinear(arguments: Arguments, _isa: str) -> Form:
    x, _ = _images(arguments)
    need(x.dtype in (ScalarType.Float, ScalarType.Char))
    suffix = "" if x.dtype is ScalarType.Float else "_int8"
    corners = arguments.truth("align_corners")
    return _form(arguments, f"upsample_bilinear2d{suffix}", x.sizes[1], corners=corners)


def _nearest(arguments: Arguments, _isa: str) -> Form:
    x, y = _images(arguments)
    times = [divmod(y.sizes[d], x.sizes[d]) for d in (2, 3)]
    # Whole factors are copies.
    need(times[0][0] > MOST_COPIES or any(rest for _, rest in times))
    pixel = x.sizes[1] * x.dtype.item_bytes
    return _form(arguments, "upsample_nearest2d", pixel, corners=False)


# Quantizing and dequantizing with one scale, items side by side.
#
# As quantize_row and dequantize_row of kernels/util/affine.h.

# `suits_near` of kernels/util/affine.h: limits less the zero point are exact floats, and adding 1.5
# * 2 ** 23 rounds them.
_MOST_FLOAT_ZERO_POINT: Final = 1 << 21
"""Largest zero point of floats that are limited before they are rounded."""
# `suits_vectors`: vectors take subnormals for 0, from which these are far.
_SMALLEST, _LARGEST = 2.0**-64, 2.0**64
"""Between these are scales with which vectors give the same bits."""
_NAMES: Final = {
    "cortex_m": {ScalarType.Char: "char", ScalarType.Short: "short"},
    "quantized": {ScalarType.Byte: "byte", ScalarType.Char: "char", ScalarType.Short: "short"},
}


def _has_vectors(isa: str, dtype: ScalarType, scale: float) -> bool:
    is_vector = isa == "mve" and dtype is ScalarType.Char
    return is_vector and _SMALLEST < scale < _LARGEST


def _named(library: str, what: str, dtype: ScalarType, vectors: str) -> str:
    need(dtype in _NAMES[library])
    return f"orch::{library}::{what}_{_NAMES[library][dtype]}{vectors}"


def _count(x: TensorValue, y: TensorValue) -> int:
    """Items of two tensors that lie alike."""
    need(lie_alike(x, y))
    return x.numel


def _quantize(library: str) -> Preparer:
    def prepare(arguments: Arguments, isa: str) -> Form:
        x, y = arguments.tensor("input"), arguments.tensor("out")
        scale = float32(arguments.real("scale"))
        zero, low, high = map(arguments.number, ("zero_point", "quant_min", "quant_max"))
        need(x.dtype is ScalarType.Float and scale != 0)
        inverse = float32(1 / scale)
        if _has_vectors(isa, y.dtype, scale):
            struct, vectors = "orch::QuantizeVectorsCall", "_vectors"
            z, least, most = map(float32, (zero, low, high))
            affine = members(inverse=inverse, zero_point=z, low=least, high=most)
        else:
            need(abs(zero) <= _MOST_FLOAT_ZERO_POINT)
            struct, vectors = "orch::QuantizeNearCall", ""
            least, most = float32(low - zero), float32(high - zero)
            affine = members(inverse=inverse, low=least, high=most, zero_point=zero)
        return Form(
            function=_named(library, "quantize", y.dtype, vectors),
            struct=struct,
            memory=arguments.places(input="input", out="out"),
            numbers=members(count=_count(x, y), affine=affine),
        )

    return prepare


def _dequantize(library: str) -> Preparer:
    def prepare(arguments: Arguments, isa: str) -> Form:
        x, y = arguments.tensor("input"), arguments.tensor("out")
        scale, zero = float32(arguments.real("scale")), arguments.number("zero_point")
        need(y.dtype is ScalarType.Float)
        vectors = "_vectors" if _has_vectors(isa, x.dtype, scale) else ""
        return Form(
            function=_named(library, "dequantize", x.dtype, vectors),
            struct="orch::DequantizeCall",
            memory=arguments.places(input="input", out="out"),
            numbers=members(count=_count(x, y), zero_point=zero, scale=scale),
        )

    return prepare


ELEMENTWISE: Final[Mapping[str, Preparer]] = MappingProxyType(
    {
        "orch::cortex_m::quantized_add_out": _add,
        "orch::cortex_m::quantized_mul_out": _multiply,
        "orch::cortex_m::quantized_div_out": _divide,
        "orch::cortex_m::maximum_out": _extreme("maximum"),
        "orch::cortex_m::minimum_out": _extreme("minimum"),
        "orch::cortex_m::quantized_activation_out": _activation,
        "orch::cortex_m::softmax_out": _softmax,
        "orch::cortex_m::transpose_out": _transpose,
        "orch::cortex_m::pad_out": _pad(contiguous=False),
        "orch::cortex_m::pad_contiguous_out": _pad(contiguous=True),
        "orch::portable::upsample_bilinear2d_vec_out": _bilinear,
        "orch::portable::upsample_nearest2d_vec_out": _nearest,
        "orch::cortex_m::quantize_per_tensor_out": _quantize("cortex_m"),
        "orch::quantized::quantize_per_tensor_out": _quantize("quantized"),
        "orch::cortex_m::dequantize_per_tensor_out": _dequantize("cortex_m"),
        "orch::quantized::dequantize_per_tensor_out": _dequantize("quantized"),
    }
)
