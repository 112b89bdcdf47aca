"""Results of kernels for constants, one function for each kernel: the same bits as in C++."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from orchestrator.core.dtype import FLOATING, INTEGRAL, REAL, ScalarType
from orchestrator.method.passes.arguments import UnknownCallError, dim_of, need
from orchestrator.method.passes.evaluate.numbers import (
    Array,
    Items,
    Scalar,
    computed,
    computed_number,
    converted,
    item_of,
)
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.numbers import ConstantCall

    Binary: TypeAlias = Callable[[Array, Array, ScalarType], Array]


# Sums, products and quotients of items, with promotion and broadcasting.
#
# Source: kernels/util/promote.h, binary.h and unary.h; kernels/portable/op_add.cpp, op_sub.cpp,
# op_mul.cpp, op_div.cpp and op_neg.cpp.

_REAL_OR_BOOL: Final = REAL | {ScalarType.Bool}


def add(call: ConstantCall) -> Items:
    """`self + alpha * other`."""
    return _scaled(call, _REAL_OR_BOOL, np.add)


def sub(call: ConstantCall) -> Items:
    """`self - alpha * other`."""
    return _scaled(call, REAL, np.subtract)


def mul(call: ConstantCall) -> Items:
    """`self * other`."""

    def product(x: Array, y: Array, dtype: ScalarType) -> Array:
        return converted(computed(x, dtype) * computed(y, dtype), dtype)

    return _binary(
        call.items("self"), call.items("other"), call.tensor("out"), _REAL_OR_BOOL, product
    )


def div(call: ConstantCall) -> Items:
    """`self / other`; integers are divided as floats."""
    a, b, out = call.items("self"), call.items("other"), call.tensor("out")
    need(out.dtype in FLOATING)
    common = _result_type(a, b)
    common = common if common in FLOATING else ScalarType.Float
    return _pairwise(a, b, out, common, lambda x, y, dtype: converted(x / y, dtype))


def neg(call: ConstantCall) -> Items:
    """`-self`."""
    items, out = call.items("self"), call.tensor("out")
    need(items.dtype is out.dtype)
    negative = np.negative(computed(items.numbers, out.dtype))
    return Items(out.dtype, converted(negative, out.dtype))


def _scaled(
    call: ConstantCall, accepted: frozenset[ScalarType], fn: Callable[[Array, Array], Array]
) -> Items:
    """fn(self, alpha * other); alpha is rounded to the dtype of the tensors."""
    a, b, out = call.items("self"), call.items("other"), call.tensor("out")
    alpha = call.literal("alpha")
    need(_alpha_fits(alpha, _result_type(a, b)))
    need({a.dtype, b.dtype, out.dtype} <= accepted)

    def scaled(x: Array, y: Array, dtype: ScalarType) -> Array:
        factor = computed(item_of(alpha, dtype), dtype)
        return converted(fn(computed(x, dtype), factor * computed(y, dtype)), dtype)

    return _binary(a, b, out, accepted, scaled)


def _binary(
    a: Items, b: Items, out: TensorValue, accepted: frozenset[ScalarType], fn: Binary
) -> Items:
    """fn(a, b) in the dtype to which both promote, which must be in `accepted`."""
    common = _result_type(a, b)
    if a.dtype is b.dtype is out.dtype:
        common = out.dtype
    # A result may not be stored in a lower category, such as a float in an integer.
    need(common in accepted and _category(common) <= _category(out.dtype))
    return _pairwise(a, b, out, common, fn)


def _pairwise(a: Items, b: Items, out: TensorValue, common: ScalarType, fn: Binary) -> Items:
    """fn(a, b, common) of items converted to `common`, as items of the output."""
    try:
        sizes = np.broadcast_shapes(a.numbers.shape, b.numbers.shape)
    except ValueError:
        raise UnknownCallError from None
    need(sizes == out.sizes)
    x, y = np.broadcast_arrays(*(converted(t.numbers, common) for t in (a, b)))
    return Items(out.dtype, converted(fn(x, y, common), out.dtype))


def _category(dtype: ScalarType) -> int:
    """0 for Bool, 1 for integers, 2 for floats."""
    if dtype is ScalarType.Bool:
        return 0
    return 2 if dtype in FLOATING else 1


def _result_type(a: Items, b: Items) -> ScalarType:
    """The dtype of an operator on two tensors.

    A tensor without dimensions counts only if its category is higher.
    """
    if (a.rank == 0) != (b.rank == 0):
        strong, weak = (b.dtype, a.dtype) if a.rank == 0 else (a.dtype, b.dtype)
        if _category(weak) <= _category(strong):
            return strong
    return _promoted(a.dtype, b.dtype)


def _promoted(a: ScalarType, b: ScalarType) -> ScalarType:
    """The dtype that holds both. Source: PyTorch, torch.promote_types."""
    need({a, b} <= _REAL_OR_BOOL)
    if _category(a) != _category(b):
        return a if _category(a) > _category(b) else b
    if a is b:
        return a
    if a in FLOATING:
        wide = ScalarType.Double in (a, b)
        return ScalarType.Double if wide else ScalarType.Float
    if {a, b} == {ScalarType.Byte, ScalarType.Char}:
        return ScalarType.Short
    return max(a, b)


def _alpha_fits(alpha: Scalar, dtype: ScalarType) -> bool:
    """Whether a factor can multiply tensors of a dtype."""
    if isinstance(alpha, float):
        return dtype in FLOATING
    return not isinstance(alpha, bool) or dtype is ScalarType.Bool


# Affine quantization: q = round(x / scale) + zero_point, and back.
#
# Kernels use scales as float32 and zero points as 32-bit integers, whatever dtype they have.
# Source: kernels/util/affine.h.

_S = ScalarType
_QUANTIZED: Final = frozenset({_S.Byte, _S.Char, _S.Short, _S.UInt16, _S.Int})
_UNSIGNED: Final = frozenset({_S.Byte, _S.UInt16})
_INT32: Final = 1 << 31


def quantize_per_tensor(call: ConstantCall) -> Items:
    """Floats to integers, with one scale."""
    items, out = call.items("input"), call.tensor("out")
    need(items.dtype in FLOATING and out.dtype in _QUANTIZED)
    need(call.number("dtype") == out.dtype)
    low, high = call.number("quant_min"), call.number("quant_max")
    _check_limits(low, high, out.dtype)
    scale, zero_point = _numbers(call)
    numbers = computed(items.numbers, items.dtype)
    inverse = np.float32(1) / scale
    scaled = (inverse.astype(numbers.dtype) * numbers).astype(np.float32)
    # `to_quantized` of kernels/util/affine.h in the same steps, each rounded to a float.
    value = np.rint(scaled) + zero_point.astype(np.float32)
    # The sum of two float32 is rounded to float32; as a double it compares exactly.
    exact = value.astype(np.float64)
    if out.dtype is _S.Int:
        inside = np.clip(exact, -float(_INT32), float(_INT32 - 1))
        number = np.where(np.isnan(exact), -float(_INT32), inside)
        clipped = np.clip(number, low, high)
    else:
        # In the kernel, NaN counts as below every limit.
        clipped = np.where(exact > low, np.minimum(exact, high), low)
    kind = "u" if out.dtype in _UNSIGNED else "i"
    integers = clipped.astype(np.int64).astype(f"<{kind}{out.dtype.item_bytes}")
    return Items(out.dtype, integers)


def dequantize_per_tensor(call: ConstantCall) -> Items:
    """Integers to floats, with one scale."""
    _check_dtypes(call)
    return _dequantized(call.items("input"), *_numbers(call), call.tensor("out"))


def dequantize_int8(call: ConstantCall) -> Items:
    """`cortex_m::dequantize_per_tensor`: checks limits, has no output dtype."""
    items = call.items("input")
    need(items.dtype in _QUANTIZED and call.number("dtype") == items.dtype)
    _check_limits(call.number("quant_min"), call.number("quant_max"), items.dtype)
    return _dequantized(items, *_numbers(call), call.tensor("out"))


def dequantize_per_channel(call: ConstantCall) -> Items:
    """Integers to floats, with a scale and a zero point per index of a dimension."""
    _check_dtypes(call)
    items, scales = call.items("input"), call.items("scales")
    zero_points = call.optional_items("zero_points")
    need(items.rank > 0 and scales.dtype in (_S.Float, _S.Double))
    axis = dim_of(call.number("axis"), items.rank)
    count = items.numbers.shape[axis]
    scale = scales.numbers.astype(np.float32)
    zero_point = np.zeros(count, np.int32)
    if zero_points is not None:
        need(zero_points.dtype in (_S.Int, _S.Long))
        zero_point = zero_points.numbers.astype(np.int32)
    need(scale.shape == zero_point.shape == (count,))
    sizes = [count if d == axis else 1 for d in range(items.rank)]
    return _dequantized(items, scale.reshape(sizes), zero_point.reshape(sizes), call.tensor("out"))


def _numbers(call: ConstantCall) -> tuple[Array, Array]:
    """Scale and zero point."""
    zero_point = call.number("zero_point")
    need(-_INT32 <= zero_point < _INT32)
    scale = np.asarray(float(call.literal("scale")), np.float64).astype(np.float32)
    return scale, np.asarray(zero_point, np.int32)


def _check_limits(low: int, high: int, dtype: ScalarType) -> None:
    count = 1 << (8 * dtype.item_bytes)
    lowest = 0 if dtype in _UNSIGNED else -(count >> 1)
    need(lowest <= low <= high < lowest + count)


def _check_dtypes(call: ConstantCall) -> None:
    """Check dtype arguments: of the input and, unless None, of the output."""
    need(call.number("dtype") == call.items("input").dtype)
    need(call.is_none("out_dtype") or call.number("out_dtype") == call.tensor("out").dtype)


def _dequantized(items: Items, scale: Array, zero_point: Array, out: TensorValue) -> Items:
    """As in the kernel, the difference wraps at 32 bits and the product is rounded."""
    need(items.dtype in _QUANTIZED and out.dtype in FLOATING)
    difference = items.numbers.astype(np.uint32) - zero_point.astype(np.uint32)
    value = difference.astype(np.int32).astype(np.float32) * scale
    return Items(out.dtype, converted(value, out.dtype))


# Tensors created from numbers.
#
# Source: kernels/portable/op_full.cpp, op_scalar_tensor.cpp and op_arange.cpp.


def full(call: ConstantCall) -> Items:
    """One number in every item."""
    need(call.numbers("size") == call.tensor("out").sizes)
    return _filled(call.literal("fill_value"), call.tensor("out"))


def scalar_tensor(call: ConstantCall) -> Items:
    """One number, without dimensions."""
    need(call.tensor("out").sizes == ())
    return _filled(call.literal("s"), call.tensor("out"))


def arange(call: ConstantCall) -> Items:
    """Numbers from start to end, exclusive."""
    start, end, step = map(call.literal, ("start", "end", "step"))
    out = call.tensor("out")
    need(len(out.sizes) == 1)
    if out.dtype in FLOATING:
        return _float_range(float(start), float(end), float(step), out)
    need(out.dtype in INTEGRAL)
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        raise UnknownCallError
    need(step != 0)
    count = len(range(int(start), int(end), int(step)))
    need((count,) == out.sizes and (end - start) * step >= 0)
    # Modulo 2^64, as in the kernel.
    steps = np.arange(count, dtype=np.uint64) * np.uint64(int(step) % (1 << 64))
    numbers = steps + np.uint64(int(start) % (1 << 64))
    return Items(out.dtype, converted(numbers, out.dtype))


def _filled(number: Scalar, out: TensorValue) -> Items:
    item = item_of(number, out.dtype)
    return Items(out.dtype, np.broadcast_to(item, out.sizes))


def _float_range(start: float, end: float, step: float, out: TensorValue) -> Items:
    """`start + i * step` in double, rounded once."""
    need(isfinite(start) and isfinite(end) and isfinite(step) and step != 0)
    size = (end - start) / step
    need(size >= 0 and size <= out.sizes[0])
    need(int(size) + (int(size) < size) == out.sizes[0])
    numbers = start + np.arange(out.sizes[0], dtype=np.float64) * step
    return Items(out.dtype, converted(numbers, out.dtype))


# Items selected by tensors of indices.
#
# Source: kernels/util/indexing.h and kernels/portable/op_embedding.cpp.

_INDICES: Final = (ScalarType.Int, ScalarType.Long)
_MATRIX: Final = 2


def embedding(call: ConstantCall) -> Items:
    """Rows of a matrix; unlike in `index`, indices must not be negative."""
    weight, indices, out = call.items("weight"), call.items("indices"), call.tensor("out")
    need(weight.dtype is out.dtype and indices.dtype in _INDICES)
    need(weight.rank == _MATRIX)
    rows = indices.numbers
    need(((rows >= 0) & (rows < len(weight.numbers))).all())
    return Items(out.dtype, weight.numbers[rows])


def index(call: ConstantCall) -> Items:
    """self[indices]; None selects a whole dimension."""
    items, out = call.items("self"), call.tensor("out")
    indices = call.optional_tensors("indices")
    need(items.dtype is out.dtype and len(indices) <= items.rank)
    selected: list[Any] = []  # slices and arrays
    for tensor in indices:
        need(tensor is None or tensor.dtype in _INDICES)
        selected.append(slice(None) if tensor is None else tensor.numbers)
    try:
        return Items(out.dtype, np.asarray(items.numbers[tuple(selected)]))
    except IndexError:
        raise UnknownCallError from None


# Floats kept within limits, for tables of islands.
#
# Only tables have these evaluators: programs do not limit constants, and the kernels take more
# dtypes than this.
#
# Source: kernels/util/clamp.h; kernels/portable/op_clamp.cpp, op_hardtanh.cpp and op_relu.cpp.


def relu(call: ConstantCall) -> Items:
    """`max(self, 0)`, where -0 stays -0."""
    items = _floats(call)
    return Items(items.dtype, np.where(items.numbers < 0, 0, items.numbers))


def hardtanh(call: ConstantCall) -> Items:
    """`min(max(self, min_val), max_val)`."""
    items = _at_least(call, "min_val", _floats(call))
    return Items(items.dtype, _at_most(call, "max_val", items).numbers)


def clamp(call: ConstantCall) -> Items:
    """`min(max(self, min), max)`, where a limit may be None."""
    items = _floats(call)
    if not call.is_none("min"):
        items = _at_least(call, "min", items)
    if not call.is_none("max"):
        items = _at_most(call, "max", items)
    return items


def _floats(call: ConstantCall) -> Items:
    """The items to limit; the output has their dtype."""
    items, out = call.items("self"), call.tensor("out")
    need(items.dtype in FLOATING and out.dtype is items.dtype)
    need(out.sizes == items.numbers.shape)
    need(not np.isnan(items.numbers).any())
    return items


def _limit(call: ConstantCall, name: str, items: Items) -> Array:
    limit = item_of(call.literal(name), items.dtype)
    need(not np.isnan(limit).any())
    return limit


def _at_least(call: ConstantCall, name: str, items: Items) -> Items:
    low = _limit(call, name, items)
    return Items(items.dtype, np.where(items.numbers >= low, items.numbers, low))


def _at_most(call: ConstantCall, name: str, items: Items) -> Items:
    high = _limit(call, name, items)
    return Items(items.dtype, np.where(items.numbers <= high, items.numbers, high))


# Matrix products, summed in the order of kernels/util/matmul.h.

_BATCH: Final = 3


def mm(call: ConstantCall) -> Items:
    """`self @ mat2`."""
    return _multiplied(call, _MATRIX)


def bmm(call: ConstantCall) -> Items:
    """`self @ mat2`, matrix by matrix."""
    return _multiplied(call, _BATCH)


def addmm(call: ConstantCall) -> Items:
    """`beta * self + alpha * (mat1 @ mat2)`."""
    added, a, b = map(call.items, ("self", "mat1", "mat2"))
    out = call.tensor("out")
    dtype = out.dtype
    need(a.rank == b.rank == _MATRIX and added.dtype is dtype)
    beta, alpha = (computed_number(call.literal(name), dtype) for name in ("beta", "alpha"))
    total = alpha * _product(a, b, out)
    try:
        start = np.broadcast_to(computed(added.numbers, dtype), total.shape)
    except ValueError:
        raise UnknownCallError from None
    # With beta 0 the kernel ignores NaN and infinity in `self`.
    if beta != 0:
        total = beta * start + total
    return Items(dtype, converted(total, dtype))


def _multiplied(call: ConstantCall, rank: int) -> Items:
    a, b, out = call.items("self"), call.items("mat2"), call.tensor("out")
    need(a.rank == b.rank == rank and a.numbers.shape[:-2] == b.numbers.shape[:-2])
    return Items(out.dtype, converted(_product(a, b, out), out.dtype))


def _product(a: Items, b: Items, out: TensorValue) -> Array:
    """[..., M, K] @ [..., K, N], in the type in which the kernel computes.

    K additions in order, starting from 0. `numpy.matmul` would sum in another order.
    """
    need(out.dtype in REAL and a.dtype is b.dtype is out.dtype)
    need(a.numbers.shape[-1] == b.numbers.shape[-2])
    x, y = (computed(t.numbers, out.dtype) for t in (a, b))
    total = np.zeros((*x.shape[:-1], y.shape[-1]), x.dtype)
    for k in range(x.shape[-1]):
        total += x[..., :, k, None] * y[..., None, k, :]
    return total
