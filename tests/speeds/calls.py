"""One call of every kernel: contiguous, of its main dtype, with many items.

The main dtype is Float, Char for kernels of int8; Int or Bool for kernels that take
no floats. A call has about 2000 items, of which the first dimension may be made
longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.opinfo.programs import tensors
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

_DTYPES: Final = {
    "f": (ScalarType.Float, np.float32),
    "d": (ScalarType.Double, np.float64),
    "c": (ScalarType.Char, np.int8),
    "b": (ScalarType.Bool, np.uint8),
    "B": (ScalarType.Byte, np.uint8),
    "i": (ScalarType.Int, np.int32),
    "z": (ScalarType.ComplexFloat, np.complex64),
    "l": (ScalarType.Long, np.int64),
}


@dataclass(frozen=True, slots=True)
class Timed:
    """A call, and by what its cost is divided.

    Args:
        call: Its outputs hold zeros.
        units: How many items, or products, it takes.
        unit: What they are.
    """

    call: Call
    units: int
    unit: str


def given(
    kind: str,
    *sizes: int,
    low: float = -2.0,
    high: float = 2.0,
    order: tuple[int, ...] | None = None,
) -> Tensor:
    """An input whose items are spread from `low` up to `high`, in no order."""
    dtype, numpy = _DTYPES[kind]
    count = prod(sizes)
    # Bits of a multiplicative hash: the same with any version of NumPy.
    hashed = (np.arange(1, count + 1, dtype=np.uint64) * 2654435761) % 2**32
    spread: np.ndarray[Any, Any] = low + (high - low) * (hashed.astype(np.float64) / 2**32)
    if kind not in "fdz":
        spread = np.floor(spread)
    return Tensor(dtype, sizes, order or tuple(range(len(sizes))), spread.astype(numpy).tobytes())


def full(kind: str, value: float, *sizes: int) -> Tensor:
    """An input whose items are all equal."""
    dtype, numpy = _DTYPES[kind]
    return Tensor(dtype, sizes, tuple(range(len(sizes))), np.full(sizes, value, numpy).tobytes())


def ascending(count: int) -> Tensor:
    """An input of items in order, spread from -2 up to 2."""
    data = np.linspace(-2, 2, count, dtype=np.float32).tobytes()
    return Tensor(ScalarType.Float, (count,), (0,), data)


def result(kind: str, *sizes: int, order: tuple[int, ...] | None = None) -> Tensor:
    """An output."""
    dtype, numpy = _DTYPES[kind]
    data = bytes(prod(sizes) * np.dtype(numpy).itemsize)
    return Tensor(dtype, sizes, order or tuple(range(len(sizes))), data, is_out=True)


ITEMS: Final = 512
"""Of a tensor, for each of the `rows`."""

_REAL: Final = (
    *("abs", "ceil", "erf", "exp", "expm1", "floor", "isinf", "isnan"),
    *("logical_not", "neg", "reciprocal", "relu", "round", "sigmoid", "sign", "sin"),
    *("sinh", "tan", "tanh", "trunc", "cos", "cosh", "atan", "asinh", "signbit"),
    "angle",
)
_POSITIVE: Final = ("log", "log10", "log1p", "log2", "sqrt", "rsqrt")
_WITHIN_ONE: Final = ("acos", "asin", "atanh")
_PREDICATES: Final = ("isinf", "isnan", "logical_not", "signbit")
_COPIES: Final = (
    *("aten::_conj_physical", "aten::alias_copy", "aten::detach_copy"),
    *("aten::lift_fresh_copy", "et_copy::_d2h_copy", "et_copy::_h2d_copy"),
)
_COMPARISONS: Final = ("eq", "ge", "gt", "le", "lt", "ne")
_BITWISE: Final = ("bitwise_and", "bitwise_or", "bitwise_xor")
_SHIFTS: Final = ("bitwise_left_shift", "bitwise_right_shift")


def timed_calls(rows: int = 4) -> tuple[Timed, ...]:
    """A call of every kernel; `rows` multiplies the items, and is at least 4."""
    found: list[Timed] = []
    for name, args, products in _all(rows):
        call = Call(name, args)
        unit = "product" if products else "item"
        found.append(Timed(call, products or _items(call), unit))
    return tuple(found)


def _items(call: Call) -> int:
    """Of its largest tensor, or of what it copies."""
    if call.operator in _PARTS:
        return sum(prod(out.sizes) for out in call.outs)
    return max(prod(t.sizes) for t in tensors(call))


_PARTS: Final = (
    *("aten::diagonal_copy.out", "aten::narrow_copy.out", "aten::select_copy.int_out"),
    *("aten::slice_copy.Tensor_out", "aten::scalar_tensor.out"),
)
"""Operators whose output is a part of their input."""


_Row = tuple[str, tuple[Any, ...], int]
"""Operator, arguments, and how many products it takes: 0 counts items."""


def _all(rows: int) -> Iterator[_Row]:
    for part in (
        *(_unary, _binary, _numbers, _creation, _reductions, _lines, _moves, _padding, _complex),
        *(_indices, _images, _products, _matrices, _quantized, _int8, _int8_images),
    ):
        yield from part(rows)


def _unary(rows: int) -> Iterator[_Row]:
    x, y = given("f", rows, ITEMS), result("f", rows, ITEMS)
    inner = given("f", rows, ITEMS, low=-0.9, high=0.9)
    positive = given("f", rows, ITEMS, low=0.1, high=9.0)
    for name in _REAL:
        out = result("b", rows, ITEMS) if name in _PREDICATES else y
        yield f"aten::{name}.out", (x, out), 0
    for name in _POSITIVE:
        yield f"aten::{name}.out", (positive, y), 0
    for name in _WITHIN_ONE:
        yield f"aten::{name}.out", (inner, y), 0
    above = given("f", rows, ITEMS, low=1.1, high=9.0)
    yield "aten::acosh.out", (above, y), 0
    integers = given("i", rows, ITEMS, low=-100, high=100)
    yield "aten::bitwise_not.out", (integers, result("i", rows, ITEMS)), 0
    yield "aten::gelu.out", (x, "none", y), 0
    yield "aten::logit.out", (given("f", rows, ITEMS, low=0.1, high=0.9), None, y), 0
    yield "aten::leaky_relu.out", (x, 0.01, y), 0
    yield "aten::hardtanh.out", (x, -1, 1, y), 0
    yield "aten::elu.out", (x, 1, 1, 1, y), 0
    yield "aten::clamp.out", (x, -1.0, 1.0, y), 0
    low, high = full("f", -1, rows, ITEMS), full("f", 1, rows, ITEMS)
    yield "aten::clamp.Tensor_out", (x, low, high, y), 0
    mask = result("b", rows, ITEMS)
    yield "aten::native_dropout.out", (x, 0.5, True, y, mask), 0
    yield "aten::frexp.Tensor_out", (x, y, result("i", rows, ITEMS)), 0
    fake = "aten::fake_quantize_per_tensor_affine_cachemask.out"
    yield fake, (x, 0.01, 3, -128, 127, y, mask), 0


def _binary(rows: int) -> Iterator[_Row]:
    a = given("f", rows, ITEMS)
    b = given("f", rows, ITEMS, low=0.5, high=1.5)
    out, mask = result("f", rows, ITEMS), result("b", rows, ITEMS)
    for name in (
        *("atan2", "copysign", "div", "floor_divide", "maximum", "minimum", "mul"),
        *("hypot", "nextafter"),
    ):
        yield f"aten::{name}.out", (a, b, out), 0
    yield "aten::polar.out", (a, b, result("z", rows, ITEMS)), 0
    for name in ("add", "sub"):
        yield f"aten::{name}.out", (a, b, 1, out), 0
    for name in ("fmod", "remainder"):
        yield f"aten::{name}.Tensor_out", (a, b, out), 0
    yield "aten::div.out_mode", (a, b, "floor", out), 0
    yield "aten::pow.Tensor_Tensor_out", (b, a, out), 0
    for name in _COMPARISONS:
        yield f"aten::{name}.Tensor_out", (a, b, mask), 0
    c, d = given("b", rows, ITEMS, low=0), given("b", ITEMS * rows, low=0)
    d = Tensor(d.dtype, c.sizes, c.order, d.data[::-1])
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield f"aten::{name}.out", (c, d, mask), 0
    m = given("i", rows, ITEMS, low=0, high=1000)
    n = given("i", rows, ITEMS, low=0, high=8)
    for name in _BITWISE + _SHIFTS:
        yield f"aten::{name}.Tensor_out", (m, n, result("i", rows, ITEMS)), 0
    for name in ("__lshift__", "__rshift__"):
        yield f"aten::{name}.Tensor_out", (m, n, result("i", rows, ITEMS)), 0
    yield "aten::where.self_out", (c, a, b, out), 0
    yield "aten::copy.out", (a, b, False, out), 0
    yield "aten::copy_", (_changed(a), b, False), 0
    yield "aten::allclose.out", (a, a, 1e-5, 1e-8, False, False, result("b")), 0


def _changed(tensor: Tensor) -> Tensor:
    """A tensor that the call changes in place."""
    return Tensor(tensor.dtype, tensor.sizes, tensor.order, tensor.data, is_out=True)


def _numbers(rows: int) -> Iterator[_Row]:
    x, out = given("f", rows, ITEMS), result("f", rows, ITEMS)
    for name in ("add", "sub", "rsub"):
        yield f"aten::{name}.Scalar_out", (x, 1.5, 1, out), 0
    for name in ("copysign", "div", "fmod", "mul", "remainder"):
        yield f"aten::{name}.Scalar_out", (x, 1.5, out), 0
    yield "aten::div.Scalar_mode_out", (x, 1.5, "floor", out), 0
    for name in _COMPARISONS:
        yield f"aten::{name}.Scalar_out", (x, 0.5, result("b", rows, ITEMS)), 0
    m, n = given("i", rows, ITEMS, low=0, high=1000), result("i", rows, ITEMS)
    for name in _BITWISE:
        yield f"aten::{name}.Scalar_out", (m, 7, n), 0
    for name in _SHIFTS:
        yield f"aten::{name}.Tensor_Scalar_out", (m, 3, n), 0
    for name in ("__lshift__", "__rshift__"):
        yield f"aten::{name}.Scalar_out", (m, 3, n), 0
    yield "aten::pow.Scalar_out", (1.5, x, out), 0
    yield "aten::pow.Tensor_Scalar_out", (x, 3.0, out), 0
    mask = given("b", rows, ITEMS, low=0)
    yield "aten::masked_fill.Scalar_out", (x, mask, 0.5, out), 0


def _creation(rows: int) -> Iterator[_Row]:
    sizes, out = (rows, ITEMS), result("f", rows, ITEMS)
    yield "aten::arange.out", (rows * ITEMS, result("f", rows * ITEMS)), 0
    yield ("aten::arange.start_out", (1, 1 + rows * ITEMS, 1, result("f", rows * ITEMS)), 0)
    for name in ("ones", "rand", "randn", "zeros"):
        yield f"aten::{name}.out", (sizes, out), 0
    yield "aten::empty.out", (sizes, None, out), 0
    yield "dim_order_ops::_empty_dim_order.out", (sizes, (0, 1), out), 0
    yield "aten::full.out", (sizes, 1.5, out), 0
    x = given("f", *sizes)
    yield "aten::full_like.out", (x, 1.5, None, out), 0
    yield "aten::fill.Scalar_out", (x, 1.5, out), 0
    yield "aten::fill.Tensor_out", (x, full("f", 1.5), out), 0
    yield "aten::scalar_tensor.out", (1.5, result("f")), 0


def _reductions(rows: int) -> Iterator[_Row]:
    """Each row becomes a number."""
    x, one = given("f", rows, ITEMS), result("f", rows)
    indices = result("l", rows)
    yield "aten::sum.IntList_out", (x, (1,), False, None, one), 0
    yield "aten::mean.out", (x, (1,), False, None, one), 0
    yield "aten::mean.dtype_out", (x, None, result("f")), 0
    yield "aten::prod.int_out", (x, 1, False, None, one), 0
    yield "aten::prod.out", (x, None, result("f")), 0
    for name in ("amax", "amin"):
        yield f"aten::{name}.out", (x, (1,), False, one), 0
    for name in ("argmax", "argmin"):
        yield f"aten::{name}.out", (x, 1, False, indices), 0
    for name in ("max", "min"):
        yield f"aten::{name}.unary_out", (x, result("f")), 0
        yield f"aten::{name}.dim_{name}", (x, 1, False, one, indices), 0
    zeros = full("b", 0, rows, ITEMS)
    yield "aten::any.all_out", (zeros, result("b")), 0
    yield "aten::any.out", (zeros, 1, False, result("b", rows)), 0
    yield "aten::any.dims_out", (zeros, (1,), False, result("b", rows)), 0
    yield "aten::var.out", (x, (1,), True, False, one), 0
    yield "aten::var.correction_out", (x, (1,), 1, False, one), 0
    yield "aten::var_mean.correction_out", (x, (1,), 1, False, one, one), 0
    for name in ("median", "nanmedian"):
        yield f"aten::{name}.dim_values", (x, 1, False, one, indices), 0
        yield f"aten::{name}.out", (x, result("f")), 0
    yield "aten::kthvalue.values", (x, 9, 1, False, one, indices), 0
    yield "aten::mode.values", (x, 1, False, one, indices), 0
    yield "aten::histc.out", (x, 32, -2, 2, result("f", 32)), 0
    found = result("l", rows, ITEMS)
    ends, many = ascending(32), ascending(rows * ITEMS)
    counts = (None, False, result("f", 32), result("f", 33))
    yield "aten::histogram.bin_ct_out", (x, 32, (-2.0, 2.0), *counts), 0
    counts = (None, False, result("f", 31), result("f", 32))
    yield "aten::histogram.bins_tensor_out", (x, ends, *counts), 0
    yield "aten::bucketize.Tensor_out", (x, ends, False, False, found), 0
    yield "aten::bucketize.Scalar_out", (0.3, many, False, False, result("l")), 0
    sides = (False, False, None, None)
    yield "aten::searchsorted.Tensor_out", (ends, x, *sides, found), 0
    yield "aten::searchsorted.Scalar_out", (many, 0.3, *sides, result("l")), 0


def _lines(rows: int) -> Iterator[_Row]:
    """Each row is computed as a whole."""
    x, out = given("f", rows, ITEMS), result("f", rows, ITEMS)
    indices = result("l", rows, ITEMS)
    for name in ("_softmax", "_log_softmax"):
        yield f"aten::{name}.out", (x, -1, False, out), 0
    for name in ("cumsum", "cumprod"):
        yield f"aten::{name}.out", (x, -1, None, out), 0
    yield "aten::logcumsumexp.out", (x, -1, out), 0
    for name in ("cummax", "cummin"):
        yield f"aten::{name}.out", (x, -1, out, indices), 0
    yield "aten::glu.out", (x, -1, result("f", rows, ITEMS // 2)), 0
    yield "aten::sort.values", (x, -1, False, out, indices), 0
    yield "aten::sort.values_stable", (x, True, -1, False, out, indices), 0
    few = (result("f", rows, 8), result("l", rows, 8))
    yield "aten::topk.values", (x, 8, -1, True, True, *few), 0
    w, b = given("f", ITEMS), given("f", ITEMS)
    stats = (result("f", rows, 1), result("f", rows, 1))
    yield "aten::native_layer_norm.out", (x, (ITEMS,), w, b, 1e-5, out, *stats), 0
    y, image = given("f", rows, 8, 8, 8), result("f", rows, 8, 8, 8)
    w, b = given("f", 8), given("f", 8)
    groups = (result("f", rows, 4), result("f", rows, 4))
    yield ("aten::native_group_norm.out", (y, w, b, rows, 8, 64, 4, 1e-5, image, *groups), 0)
    mean, variance = given("f", 8), given("f", 8, low=0.5)
    empty = (result("f", 0), result("f", 0))
    yield (
        "aten::_native_batch_norm_legit_no_training.out",
        (y, w, b, mean, variance, 0.1, 1e-5, image, *empty),
        0,
    )
    yield (
        "aten::_native_batch_norm_legit.out",
        (y, w, b, _changed(mean), _changed(variance), False, 0.1, 1e-5, image, *empty),
        0,
    )
    yield (
        "aten::_native_batch_norm_legit.no_stats_out",
        (y, w, b, True, 0.1, 1e-5, image, result("f", 8), result("f", 8)),
        0,
    )


def _moves(rows: int) -> Iterator[_Row]:
    x, out = given("f", rows, ITEMS), result("f", rows, ITEMS)
    for name in _COPIES:
        yield f"{name}.out", (x, out), 0
    yield "aten::_to_copy.out", (x, False, None, out), 0
    yield "aten::clone.out", (x, None, out), 0
    for name in ("_clone_dim_order", "_to_dim_order_copy"):
        yield f"dim_order_ops::{name}.out", (x, False, (0, 1), out), 0
    yield "aten::view_copy.out", (x, (rows * ITEMS,), result("f", rows * ITEMS)), 0
    bits = result("i", rows, ITEMS)
    yield "aten::view_copy.dtype_out", (x, ScalarType.Int, bits), 0
    one = result("f", rows, 1, ITEMS)
    yield "aten::unsqueeze_copy.out", (x, 1, one), 0
    wide = given("f", rows, 1, ITEMS)
    yield "aten::squeeze_copy.dim_out", (wide, 1, out), 0
    yield "aten::squeeze_copy.dims_out", (wide, (1,), out), 0
    y = given("f", rows, 8, ITEMS // 8)
    half = given("f", rows, 8, ITEMS // 16)
    yield "aten::cat.out", ((half, half), 2, result("f", rows, 8, ITEMS // 8)), 0
    pair = result("f", rows, 8, 2, ITEMS // 16)
    yield "aten::stack.out", ((half, half), 2, pair), 0
    short = result("f", rows, 8, ITEMS // 16)
    yield "aten::slice_copy.Tensor_out", (y, 2, 0, ITEMS // 16, 1, short), 0
    yield "aten::narrow_copy.out", (y, 2, 0, ITEMS // 16, short), 0
    row = result("f", rows, ITEMS // 8)
    yield "aten::select_copy.int_out", (y, 1, 3, row), 0
    yield "aten::split_copy.Tensor_out", (y, ITEMS // 16, 2, (short, short)), 0
    lengths = (ITEMS // 16, ITEMS // 16)
    yield "aten::split_with_sizes_copy.out", (y, lengths, 2, (short, short)), 0
    yield "aten::unbind_copy.int_out", (y, 1, (row,) * 8), 0
    swapped = result("f", rows, ITEMS // 8, 8)
    yield "aten::permute_copy.out", (y, (0, 2, 1), swapped), 0
    yield "aten::transpose_copy.int_out", (y, 1, 2, swapped), 0
    yield "aten::t_copy.out", (x, result("f", ITEMS, rows)), 0
    yield "aten::flip.out", (x, (1,), out), 0
    yield "aten::roll.out", (x, (5,), (1,), out), 0
    yield (
        "aten::expand_copy.out",
        (given("f", rows, 1, ITEMS // 8), (rows, 8, ITEMS // 8), False, _out(y)),
        0,
    )
    yield "aten::repeat.out", (given("f", rows, ITEMS // 8), (1, 8), out), 0
    counts = full("l", 4, rows * ITEMS // 4)
    yield ("aten::repeat_interleave.Tensor_out", (counts, None, result("l", rows * ITEMS)), 0)
    square = given("f", rows, 16, 32)
    yield "aten::tril.out", (square, 0, _out(square)), 0
    yield "aten::diagonal_copy.out", (square, 0, 1, 2, result("f", rows, 16)), 0
    yield (
        "aten::as_strided_copy.out",
        (x, (ITEMS, rows), (1, ITEMS), 0, result("f", ITEMS, rows)),
        0,
    )
    yield "aten::unfold_copy.out", (x, 1, 8, 8, result("f", rows, ITEMS // 8, 8)), 0
    yield "aten::slice_scatter.out", (y, half, 2, 0, ITEMS // 16, 1, _out(y)), 0
    line = given("f", rows, ITEMS // 8)
    yield "aten::select_scatter.out", (y, line, 1, 3, _out(y)), 0


def _complex(rows: int) -> Iterator[_Row]:
    x, z = given("f", rows, ITEMS), given("z", rows, ITEMS)
    pairs = given("f", rows, ITEMS, 2)
    yield "aten::complex.out", (x, x, _out(z)), 0
    yield "aten::_conj_copy.out", (z, _out(z)), 0
    yield "aten::view_as_real_copy.out", (z, _out(pairs)), 0
    yield "aten::view_as_complex_copy.out", (pairs, _out(z)), 0
    half = ITEMS // 2 + 1
    yield "aten::_fft_c2c.out", (z, (1,), 0, True, _out(z)), 0
    yield "aten::_fft_r2c.out", (x, (1,), 0, True, result("z", rows, half)), 0
    yield "aten::_fft_c2r.out", (given("z", rows, half), (1,), 0, ITEMS, _out(x)), 0


def _padding(rows: int) -> Iterator[_Row]:
    y, z = given("f", rows, 8, ITEMS // 8), given("f", rows, 4, 8, 16)
    padded = result("f", rows, 4, 10, 18)
    yield "aten::constant_pad_nd.out", (z, (1, 1, 1, 1), 0.0, padded), 0
    for name in ("reflection", "replication"):
        long = result("f", rows, 8, ITEMS // 8 + 4)
        yield f"aten::{name}_pad1d.out", (y, (2, 2), long), 0
        yield f"aten::{name}_pad2d.out", (z, (1, 1, 1, 1), padded), 0
        volume = given("f", rows, 2, 4, 8, 8)
        grown = result("f", rows, 2, 6, 10, 10)
        yield f"aten::{name}_pad3d.out", (volume, (1, 1, 1, 1, 1, 1), grown), 0
    yield "aten::pixel_shuffle.out", (z, 2, result("f", rows, 1, 16, 32)), 0
    yield "aten::pixel_unshuffle.out", (z, 2, result("f", rows, 16, 4, 8)), 0


def _out(tensor: Tensor) -> Tensor:
    """An output like an input."""
    return Tensor(tensor.dtype, tensor.sizes, tensor.order, bytes(len(tensor.data)), is_out=True)


def _indices(rows: int) -> Iterator[_Row]:
    x, out = given("f", rows, ITEMS), result("f", rows, ITEMS)
    at = given("l", rows, ITEMS, low=0, high=ITEMS)
    yield "aten::gather.out", (x, 1, at, False, out), 0
    yield "aten::scatter.src_out", (x, 1, at, x, out), 0
    yield "aten::scatter.value_out", (x, 1, at, 1.5, out), 0
    yield "aten::scatter_add.out", (x, 1, at, x, out), 0
    which = given("l", ITEMS, low=0, high=ITEMS)
    yield "aten::index_select.out", (x, 1, which, out), 0
    table = given("f", 4 * rows, ITEMS // 4)
    which = given("l", 4 * rows, low=0, high=4 * rows)
    yield "aten::embedding.out", (table, which, -1, False, False, _out(table)), 0
    yield "aten::index.Tensor_out", (table, (which,), _out(table)), 0
    yield "aten::index_put.out", (table, (which,), table, False, _out(table)), 0
    places = given("l", rows, ITEMS, low=0, high=rows * ITEMS)
    yield "aten::put.out", (x, places, x, False, out), 0
    kinds = full("f", 1, rows, ITEMS)
    none = (result("l", 0), result("l", 0))
    yield "aten::_unique2.out", (kinds, True, False, False, result("f", 1), *none), 0
    yield ("aten::unique_consecutive.out", (kinds, False, False, None, result("f", 1), *none), 0)
    yield "aten::index_put_", (_changed(table), (which,), table, False), 0
    reduced = (x, 1, at, x, "sum", True, out)
    yield "aten::scatter_reduce.two_out", reduced, 0
    offsets = np.arange(0, 4 * rows, 4, dtype="<i8").tobytes()
    bags = Tensor(ScalarType.Long, (rows,), (0,), offsets)
    sums = (result("f", rows, ITEMS // 4), result("l", 4 * rows))
    counts = (result("l", rows), result("l", rows))
    yield (
        "aten::_embedding_bag_forward_only.out",
        (table, which, bags, False, 0, False, None, False, -1, *sums, *counts),
        0,
    )
    mask = given("b", rows, ITEMS, low=0)
    count = sum(mask.data)
    yield "aten::masked_scatter.out", (x, mask, x, out), 0
    yield "aten::masked_select.out", (x, mask, result("f", count)), 0
    yield "aten::nonzero.out", (mask, result("l", count, 2)), 0
    few, many = given("f", 8, 16 * rows), given("f", 4 * rows, 32)
    distances = (many, given("f", 8, 32), 2.0, None, result("f", 4 * rows, 8))
    yield "aten::_cdist_forward.out", distances, 4 * rows * 8 * 32
    yield "aten::_pdist_forward.out", (few, 2.0, result("f", 28)), 28 * 16 * rows


def _images(rows: int) -> Iterator[_Row]:
    x = given("f", rows, 8, 8, 8)
    half = result("f", rows, 8, 4, 4)
    places = result("l", rows, 8, 4, 4)
    twice = result("f", rows, 8, 16, 16)
    two, none = (2, 2), (0, 0)
    part = given("f", rows, 8, 2, low=0, high=1)
    yield "aten::fractional_max_pool2d.output", (x, two, (4, 4), part, half, places), 0
    yield "aten::avg_pool2d.out", (x, two, two, none, False, True, None, half), 0
    pool = (two, two, none, (1, 1), False)
    yield "aten::max_pool2d_with_indices.out", (x, *pool, half, places), 0
    corners = np.arange(rows * 8 * 4 * 4) % 16
    corners = corners // 4 * 16 + corners % 4 * 2
    held = Tensor(places.dtype, places.sizes, places.order, corners.astype(np.int64).tobytes())
    yield (
        "aten::max_pool2d_with_indices_backward.grad_input",
        (given("f", rows, 8, 4, 4), x, *pool, held, _out(x)),
        0,
    )
    yield "aten::_adaptive_avg_pool2d.out", (x, (4, 4), half), 0
    yield "aten::adaptive_max_pool2d.out", (x, (4, 4), half, places), 0
    yield "aten::upsample_nearest2d.vec_out", (x, None, (2.0, 2.0), twice), 0
    yield "aten::upsample_bilinear2d.vec_out", (x, None, False, (2.0, 2.0), twice), 0
    yield ("aten::_upsample_bilinear2d_aa.out", (x, (4, 4), False, None, None, half), 0)
    volume = given("f", rows, 8, 4, 4, 4)
    eighth = result("f", rows, 8, 2, 2, 2)
    places = result("l", rows, 8, 2, 2, 2)
    cube, no = (2, 2, 2), (0, 0, 0)
    yield "aten::avg_pool3d.out", (volume, cube, cube, no, False, True, None, eighth), 0
    part = given("f", rows, 8, 3, low=0, high=1)
    yield ("aten::fractional_max_pool3d.output", (volume, cube, cube, part, eighth, places), 0)
    pool3d = (cube, cube, no, (1, 1, 1), False)
    yield "aten::max_pool3d_with_indices.out", (volume, *pool3d, eighth, places), 0
    yield "aten::_adaptive_avg_pool3d.out", (volume, (2, 2, 2), eighth), 0
    yield "aten::adaptive_max_pool3d.out", (volume, (2, 2, 2), eighth, places), 0
    grid = given("f", rows, 8, 8, 2, low=-1, high=1)
    yield "aten::grid_sampler_2d.out", (x, grid, 0, 0, False, _out(x)), 0


def _products(rows: int) -> Iterator[_Row]:
    m, k, n = 8 * rows, 32, 32
    a, b, out = given("f", m, k), given("f", k, n), result("f", m, n)
    yield "aten::mm.out", (a, b, out), m * k * n
    yield "aten::addmm.out", (given("f", n), a, b, 1, 1, out), m * k * n
    yield "aten::linear.out", (a, given("f", n, k), given("f", n), out), m * k * n
    batch = (given("f", rows, 8, k), given("f", rows, k, n), result("f", rows, 8, n))
    yield "aten::bmm.out", batch, m * k * n
    i1, i2 = given("f", rows, ITEMS), given("f", rows, ITEMS)
    three = (i1, i2, i1, (), (), (), (1,), 1, result("f", rows))
    yield "aten::_trilinear.out", three, rows * ITEMS
    x, y = given("f", rows, 8, 8, 8), result("f", rows, 8, 8, 8)
    w = given("f", 8, 8, 3, 3)
    one = (1, 1)
    kept = (one, one, one, False, (0, 0), 1)
    # Windows over the border are smaller: 22 of 24 taps of each dimension.
    products = rows * 8 * 8 * 22 * 22
    yield "aten::convolution.out", (x, w, given("f", 8), *kept, y), products
    grads = (_out(x), _out(w), result("f", 8))
    yield (
        "aten::convolution_backward.out",
        (x, x, w, (8,), *kept, (True, True, True), *grads),
        2 * products,
    )


def _matrices(rows: int) -> Iterator[_Row]:
    a = given("f", rows, 8, 8)
    lu, pivots = result("f", rows, 8, 8), result("i", rows, 8)
    one = result("f", rows)
    products = rows * 8 * 8 * 8 // 3
    yield "aten::_linalg_det.result", (a, one, lu, pivots), products
    yield "aten::_linalg_slogdet.sign", (a, one, one, lu, pivots), products
    factors = (a, True, False, lu, pivots, result("i", rows))
    yield "aten::linalg_lu_factor_ex.out", factors, products
    yield "aten::cholesky.out", (a, False, lu), products // 2


_INT8: Final = (-128, 127, ScalarType.Char)
"""Limits and dtype of quantized tensors."""


def _quantized(rows: int) -> Iterator[_Row]:
    x, q = given("f", rows, ITEMS), given("c", rows, ITEMS, low=-128, high=128)
    scales, zeros = full("f", 0.05, rows), full("l", 3, rows)
    scale, zero = full("d", 0.05, 1), full("l", 3, 1)
    tokens, starts = full("f", 0.05, rows, 1), full("l", 3, rows, 1)
    name = "quantized_decomposed::{}".format
    yield name("quantize_per_tensor.out"), (x, 0.05, 3, *_INT8, _out(q)), 0
    yield name("quantize_per_tensor.Tensor_out"), (x, scale, zero, *_INT8, _out(q)), 0
    yield (name("quantize_per_channel.out"), (x, scales, zeros, 0, *_INT8, _out(q)), 0)
    yield name("quantize_per_token.out"), (x, tokens, starts, *_INT8, _out(q)), 0
    yield name("dequantize_per_tensor.out"), (q, 0.05, 3, *_INT8, None, _out(x)), 0
    yield (name("dequantize_per_tensor.Tensor_out"), (q, scale, zero, *_INT8, None, _out(x)), 0)
    yield (name("dequantize_per_channel.out"), (q, scales, zeros, 0, *_INT8, None, _out(x)), 0)
    yield (
        name("dequantize_per_token.out"),
        (q, tokens, starts, *_INT8, ScalarType.Float, _out(x)),
        0,
    )
    yield (
        name("choose_qparams.Tensor_out"),
        (x, -128, 127, 1e-5, ScalarType.Char, result("d", 1), result("l", 1)),
        0,
    )
    yield (
        name("choose_qparams_per_token_asymmetric.out"),
        (x, ScalarType.Char, result("d", rows, 1), result("l", rows, 1)),
        0,
    )
    u, item = given("B", rows, ITEMS, low=0, high=256), (0.05, 3, 0, 255)
    yield name("add.out"), (u, *item, u, *item, *item, _out(u)), 0
    which = given("l", 4 * rows, low=0, high=4 * rows)
    out = result("f", 4 * rows, ITEMS // 4)
    for bits, packed, kind in ((2, 4, "B"), (4, 2, "B"), (8, 1, "c")):
        table = given(kind, 4 * rows, ITEMS // 4 // packed, low=0, high=100)
        limits = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        own = full("f", 0.05, 4 * rows, *([1] if packed > 1 else []))
        stem = {2: "embedding_2bit", 4: "embedding_4bit", 8: "embedding_byte"}[bits]
        head = (table, own, None, *limits, which)
        yield name(f"{stem}.out"), (*head, out), 0
        yield name(f"{stem}.dtype_out"), (*head, ScalarType.Float, out), 0
    m, k, n = 8 * rows, 32, 32
    a, y = given("f", m, k), result("f", m, n)
    w = given("c", n, k, low=-128, high=128)
    yield (name("mixed_linear.out"), (a, w, full("f", 0.05, n), None, None, y), m * k * n)
    w = given("c", k, n, low=-128, high=128)
    yield name("mixed_mm.out"), (a, w, full("f", 0.05, k), None, y), m * k * n


_HALF: Final = 1 << 30
"""A multiplier of 0.5, as int8 kernels take it."""
_LAST: Final = (0, 2, 3, 1)
"""The dim order of int8 images."""


def _int8(rows: int) -> Iterator[_Row]:
    x, y = given("f", rows, ITEMS), result("f", rows, ITEMS)
    q = given("c", rows, ITEMS, low=-128, high=128)
    out = _out(q)
    yield "cortex_m::quantize_per_tensor.out", (x, 0.05, 3, *_INT8, out), 0
    yield "cortex_m::dequantize_per_tensor.out", (q, 0.05, 3, *_INT8, y), 0
    other = given("c", rows, ITEMS, low=-100, high=100)
    for name in ("maximum", "minimum"):
        yield f"cortex_m::{name}.out", (q, other, out), 0
    table = given("c", 256, low=-128, high=128)
    yield "cortex_m::quantized_activation.out", (q, table, out), 0
    sum_of = (q, 3, _HALF, -1, other, 3, _HALF, 0, -4, _HALF, -18, -128, 127, out)
    yield "cortex_m::quantized_add.out", sum_of, 0
    yield "cortex_m::quantized_mul.out", (q, 3, other, 4, -4, _HALF, -6, out), 0
    divisor = given("c", rows, ITEMS, low=10, high=100)
    yield "cortex_m::quantized_div.out", (q, 3, divisor, 2, -4, 0.5, out), 0
    soft = (q, -1, 80, -128, 1099511628, 17, -15872, out)
    yield "cortex_m::softmax.out", soft, 0
    z = given("c", rows, 4, 8, 16, low=-128, high=128)
    padded = result("c", rows, 4, 10, 18)
    for name in ("pad", "pad_contiguous"):
        sides = (0, 0, 1, 1)
        yield f"cortex_m::{name}.out", (z, sides, sides, 3, padded), 0
    moved = result("c", rows, 8, 16, 4)
    yield "cortex_m::transpose.out", (z, (0, 2, 3, 1), moved), 0
    m, k, n = 8 * rows, 32, 32
    a = given("c", m, k, low=-128, high=128)
    w = given("c", n, k, low=-128, high=128)
    bias = given("i", n, low=-1000, high=1000)
    linear = (a, w, bias, None, 3, 0, -4, (_HALF,), (-6,), 127, -128)
    yield "cortex_m::quantized_linear.out", (*linear, result("c", m, n)), m * k * n
    left = given("c", rows, 8, k, low=-128, high=128)
    right = given("c", rows, n, k, low=-128, high=128)
    yield (
        "cortex_m::quantized_batch_matmul.out",
        (left, 3, right, 2, -4, _HALF, -6, _scratch(0), result("c", rows, 8, n)),
        m * k * n,
    )


def _scratch(size: int) -> Tensor:
    return full("B", 0, size)


def _int8_images(rows: int) -> Iterator[_Row]:
    one, two, none = (1, 1), (2, 2), (0, 0)
    scaling = (full("i", _HALF, 16), full("i", -8, 16), -128, 127, _scratch(0))
    bias = given("i", 16, low=-1000, high=1000)
    weights = given("c", 16, 3, 3, 16, low=-128, high=128)
    depthwise = given("c", 1, 3, 3, 16, low=-128, high=128)
    for suffix in ("", "_nhwc"):

        def image(height: int, width: int, suffix: str = suffix) -> Tensor:
            if suffix:
                return given("c", rows, height, width, 16, low=-128, high=128)
            sizes = (rows, 16, height, width)
            return given("c", *sizes, low=-128, high=128, order=_LAST)

        x, half = image(8, 8), _out(image(4, 4))
        name = f"cortex_m::quantized_{{}}{suffix}.out".format
        taps = rows * 16 * 22 * 22
        window = (one, one, one, 3, -4)
        head = (x, weights, bias)
        yield name("conv2d"), (*head, *window, *scaling, _out(x)), taps * 16
        kept = (one, one, one, 1, 3, -4)
        by_channel = (x, depthwise, bias, *kept, *scaling, _out(x))
        yield name("depthwise_conv2d"), by_channel, taps
        spread = (*head, two, none, none, one, 3, -4, *scaling, _scratch(0))
        grown = (*spread, _out(image(17, 17)))
        yield name("transpose_conv2d"), grown, rows * 64 * 9 * 16 * 16
        yield (name("avg_pool2d"), (x, two, two, none, False, 0, _HALF, 1, _scratch(0), half), 0)
        pool = (x, two, two, none, one, False, 0, 0, -128, 127, half)
        yield name("max_pool2d"), pool, 0
