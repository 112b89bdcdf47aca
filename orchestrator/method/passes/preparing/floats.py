"""Operators on floats: convolutions, matrix products, averages, items.

The structs are in kernels/portable/prepared.h and kernels/util/prepared.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import copysign, inf, prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import Shape
from orchestrator.method.passes.arguments import UnknownCallError, float32, need, strides_of
from orchestrator.method.passes.images import axes_along, axis_members, one_or_two
from orchestrator.method.passes.preparing.form import (
    Form,
    float_bits,
    lie_alike,
    members,
    pair_rows,
)
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.preparing.form import Preparer

_SPACE: Final = "orch::portable"
_BLOCK: Final = 4
"""Sums that are computed side by side."""
# Counted in kernels/util/dot.h: `ORCH_DOT_LEFT`, and a turn of `ORCH_DOT_THREES` and of
# `ORCH_DOT_FOURS`.
_ONES, _THREES, _FOURS = 16, 36, 46
"""Instructions for one, three or four factors of each of them."""
# Chosen by hand: a further loop is code that the product would not have otherwise.
_LEAST_SAVED: Final = 50_000
"""Instructions that a loop saves which other calls may not need."""
_PLANES: Final = 4
_INNERMOST: Final = 2
"""Innermost loops of a sum."""
_INT32_BOUND: Final = 1 << 31
# Python makes a double of an integer first: up to here that is exact, and the float is rounded
# once.
_EXACT: Final = 1 << 53
"""Integers up to here are Python's floats."""


def _floats(arguments: Arguments, *names: str) -> tuple[TensorValue, ...]:
    """Arguments that are tensors of floats."""
    found = tuple(map(arguments.tensor, names))
    need(all(tensor.dtype is ScalarType.Float for tensor in found))
    return found


def _planes(tensor: TensorValue, missing: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides as [N, C, H, W]; of rank 3, with one of size 1 in addition."""
    sizes, steps = [*tensor.sizes], [*strides_of(tensor)]
    need(len(sizes) in (_PLANES - 1, _PLANES))
    if len(sizes) < _PLANES:
        sizes.insert(missing, 1)
        steps.insert(missing, 0)
    return tuple(sizes), tuple(steps)


def _sums(outputs: int, weights: tuple[int, int], products: int) -> str:
    """Path of sums that share inputs: four side by side, one by one, or both.

    Args:
        outputs: How many sums share them.
        weights: How many the innermost loop has, and from one to the next.
        products: Of the whole call.
    """
    if outputs < _BLOCK:
        return "_one"
    return f"{_factors(*weights, products)}{_rest(outputs)}"


def _rest(outputs: int) -> str:
    return "_rest" if outputs % _BLOCK else ""


def _factors(count: int, step: int, products: int) -> str:
    """Which of the loops of kernels/util/dot.h."""
    if step != 1:
        return "_apart"
    threes, fours = (
        count // turn * instructions + count % turn * _ONES
        for turn, instructions in ((3, _THREES), (4, _FOURS))
    )
    saved = (threes - fours) * (products // (count * _BLOCK))
    return "_fours" if saved >= _LEAST_SAVED else "_threes"


def _convolution(arguments: Arguments, isa: str) -> Form:
    image, weight, out = _floats(arguments, "input", "weight", "out")
    (x, x_step), (w, w_step), (y, y_step) = (_planes(t, 2) for t in (image, weight, out))
    transposed, groups = arguments.truth("transposed"), arguments.number("groups")
    pairs = [one_or_two(arguments.numbers(name)) for name in ("stride", "padding", "dilation")]
    if len(image.sizes) < _PLANES:  # lines
        plain = ((1, 1), (0, 0), (1, 1))
        pairs = [(a[0], b[0]) for a, b in zip(plain, pairs, strict=True)]
    rows, columns = axes_along(x[2:], y[2:], w[2:], *pairs)
    channels, outputs = x[1] // groups, y[1] // groups
    x_group, x_next = channels * x_step[1], 0
    w_group = w_step[0] * (channels if transposed else outputs)
    w_next = w_step[1 if transposed else 0]
    depthwise = channels == outputs == 1
    # A group of one channel would be a sum alone. As outputs of one group, four of them are
    # computed side by side, each with an input of its own.
    if depthwise:
        x_next, w_next, outputs, groups = x_step[1], w_group, groups, 1
    # Loops that a kernel of size 1 makes trivial go outside.
    narrow = w[3] == 1
    column_loop = 0 if narrow else 2
    row_loop = 2 if narrow and w[2] != 1 else 1

    function = "convolution"
    if transposed:
        function += "_transposed"
    elif isa != "mve":
        place = {column_loop: 3, row_loop: 2}.get(_INNERMOST, 1)
        weights = w[place], w_step[place]
        if depthwise and outputs >= _BLOCK:
            function += f"_depthwise{_rest(outputs)}"
        else:
            products = prod(y) * prod(w[1:])
            function += _sums(outputs, weights, products)
    return Form(
        function=f"{_SPACE}::{function}",
        struct=f"{_SPACE}::ConvolutionCall",
        memory=arguments.places(input="input", weight="weight", bias="bias", out="out"),
        shape=Shape(
            struct=f"{_SPACE}::Filters",
            numbers=(
                *members(batch=y[0], rows=axis_members(rows), columns=axis_members(columns)),
                *members(groups=groups, channels=channels, outputs=outputs),
                *members(x_group=x_group, w_group=w_group, x_next=x_next, w_next=w_next),
                *_named("x", x_step, "image", "channel", "row", "column"),
                ("w_channel", w_step[0 if transposed else 1]),
                *_named("w", w_step, "", "", "row", "column"),
                *_named("y", y_step, "image", "channel", "row", "column"),
                *members(row_loop=row_loop, column_loop=column_loop),
            ),
        ),
    )


def _named(tensor: str, steps: Sequence[int], *names: str) -> tuple[tuple[str, int], ...]:
    """Steps with names, without those that have none."""
    pairs = zip(names, steps, strict=True)
    return tuple((f"{tensor}_{name}", step) for name, step in pairs if name)


def _product(
    arguments: Arguments,
    isa: str,
    *,
    memory: tuple[str, str, str | None],
    size: tuple[int, int, int],
    steps: tuple[Sequence[int], Sequence[int], Sequence[int]],
    added: Sequence[int] = (0, 0),
    batch: int = 1,
    factors: tuple[float, float] = (1.0, 1.0),
) -> Form:
    """Products of matrices.

    Args:
        arguments: Of the call.
        isa: Instruction set of the core.
        memory: Names of a, b, and what is added.
        size: Rows, columns of a, columns.
        steps: Of a, b and the output: from one matrix to the next, rows, columns.
        added: Rows and columns of what is added.
        batch: How many there are.
        factors: Of products, and of what is added.
    """
    rows, inner, columns = size
    function = "matrix_product"
    if factors != (1.0, 1.0):
        function += "_scaled"
    elif isa != "mve":
        _, row, column = steps[1]
        path = _sums(columns, (inner, row), batch * rows * inner * columns)
        # One load for the factors of four columns.
        function += path.replace("_apart", "_beside") if column == 1 else path
    elif memory[2] is not None and (added[0] or (added[1] != 1 and columns > 1)):
        function += "_rows"
    tensors = zip(("a", "b", "out"), steps, strict=True)
    parts = ("matrix", "row", "column")
    return Form(
        function=f"{_SPACE}::{function}",
        struct=f"{_SPACE}::MatmulCall",
        memory=arguments.places(a=memory[0], b=memory[1], added=memory[2], out="out"),
        shape=Shape(
            struct=f"{_SPACE}::Matrices",
            numbers=(
                *members(batch=batch, rows=rows, inner=inner, columns=columns),
                *(m for name, of in tensors for m in _named(name, of, *parts)),
                *_named("added", added, "row", "column"),
                *zip(("alpha", "beta"), factors, strict=True),
            ),
        ),
    )


def _matrix(tensor: TensorValue) -> tuple[int, ...]:
    """Steps of a tensor that is one matrix."""
    return 0, *strides_of(tensor)


def _mm(arguments: Arguments, isa: str) -> Form:
    a, b, out = _floats(arguments, "self", "mat2", "out")
    return _product(
        arguments,
        isa,
        memory=("self", "mat2", None),
        size=(a.sizes[0], a.sizes[1], b.sizes[1]),
        steps=(_matrix(a), _matrix(b), _matrix(out)),
    )


def _bmm(arguments: Arguments, isa: str) -> Form:
    a, b, out = _floats(arguments, "self", "mat2", "out")
    return _product(
        arguments,
        isa,
        memory=("self", "mat2", None),
        size=(a.sizes[1], a.sizes[2], b.sizes[2]),
        steps=(strides_of(a), strides_of(b), strides_of(out)),
        batch=a.sizes[0],
    )


def _addmm(arguments: Arguments, isa: str) -> Form:
    added, a, b, out = _floats(arguments, "self", "mat1", "mat2", "out")
    steps = zip(added.sizes, strides_of(added), strict=True)
    own = [0 if size == 1 else step for size, step in steps]
    return _product(
        arguments,
        isa,
        memory=("mat1", "mat2", "self"),
        size=(a.sizes[0], a.sizes[1], b.sizes[1]),
        steps=(_matrix(a), _matrix(b), _matrix(out)),
        added=[*[0] * (2 - len(own)), *own],
        factors=(_number(arguments, "alpha"), _number(arguments, "beta")),
    )


def _linear(arguments: Arguments, isa: str) -> Form:
    x, weight, out = _floats(arguments, "input", "weight", "out")
    outputs, inner = weight.sizes
    in_order = tuple(range(len(x.sizes)))
    need(x.dim_order == out.dim_order == in_order)
    bias = None if arguments.is_none("bias") else arguments.tensor("bias")
    outer, across = strides_of(weight)
    return _product(
        arguments,
        isa,
        memory=("input", "weight", "bias"),
        size=(x.numel // inner, inner, outputs),
        steps=((0, inner, 1), (0, across, outer), (0, outputs, 1)),
        added=(0, 0 if bias is not None and bias.numel == 1 else 1),
    )


def _average(arguments: Arguments, _isa: str) -> Form:
    (x, x_step), (y, y_step) = (_planes(t, 0) for t in _floats(arguments, "self", "out"))
    kernel = one_or_two(arguments.numbers("kernel_size"))
    stride = one_or_two(arguments.numbers("stride") or kernel)
    padding = one_or_two(arguments.numbers("padding"))
    with_padding = arguments.truth("count_include_pad")
    divisor = arguments.number_or("divisor_override", 0)
    # The kernel counts items of a window in 32 bits.
    need(prod(k + p for k, p in zip(kernel, padding, strict=True)) < _INT32_BOUND)
    rows, columns = axes_along(x[2:], y[2:], kernel, stride, padding)
    memory = arguments.places(input="self", out="out")
    ends = [min(a.kernel - a.padding, a.size + a.padding) for a in (rows, columns)]
    is_whole = y[2:] == (1, 1) and ends[0] >= rows.size and ends[1] >= columns.size
    is_line = rows.size == 1 or x_step[2] == columns.size * x_step[3]
    in_order = y[1] == 1 or y_step[1] == 1
    if is_whole and is_line and in_order and (y[0] == 1 or y_step[0] == y[1]):
        pixels = rows.size * columns.size
        padded = (ends[0] + rows.padding) * (ends[1] + columns.padding)
        count = divisor or (padded if with_padding else pixels)
        return Form(
            function=f"{_SPACE}::avg_images",
            struct=f"{_SPACE}::AverageImagesCall",
            memory=memory,
            shape=Shape(
                struct=f"{_SPACE}::AverageImages",
                numbers=members(
                    batch=y[0],
                    channels=y[1],
                    pixels=pixels,
                    x_image=x_step[0],
                    x_channel=x_step[1],
                    x_pixel=x_step[3] if columns.size > 1 else x_step[2],
                    divisor=float32(count),
                ),
            ),
        )
    names = ("image", "channel", "row", "column")
    return Form(
        function=f"{_SPACE}::avg_pool2d",
        struct=f"{_SPACE}::AverageWindowsCall",
        memory=memory,
        shape=Shape(
            struct=f"{_SPACE}::AverageWindows",
            numbers=(
                *members(batch=y[0], channels=y[1]),
                *members(rows=axis_members(rows), columns=axis_members(columns)),
                *_named("x", x_step, *names),
                *_named("y", y_step, *names),
                *members(with_padding=int(with_padding), divisor=divisor),
            ),
        ),
    )


def _number(arguments: Arguments, name: str) -> float:
    """An argument that is a number, as a float of the core."""
    number = arguments.scalar(name)
    need(isinstance(number, float) or abs(number) <= _EXACT)
    return float32(number)


def _items(arguments: Arguments, function: str, struct: str, **numbers: float) -> Form:
    x, y = _floats(arguments, "self", "out")
    need(lie_alike(x, y))
    return Form(
        function=f"{_SPACE}::{function}",
        struct=f"orch::{struct}",
        memory=arguments.places(input="self", out="out"),
        numbers=(("count", x.numel), *numbers.items()),
    )


def _plain(name: str) -> Preparer:
    """A function of items."""

    def prepare(arguments: Arguments, _isa: str) -> Form:
        return _items(arguments, name, "ItemsCall")

    return prepare


def _with_number(name: str, argument: str = "other") -> Preparer:
    """A function of items and a number."""

    def prepare(arguments: Arguments, _isa: str) -> Form:
        return _items(arguments, name, "NumberCall", number=_number(arguments, argument))

    return prepare


def _add_number(arguments: Arguments, _isa: str) -> Form:
    number = float32(_number(arguments, "other") * _number(arguments, "alpha"))
    return _items(arguments, "add_number", "NumberCall", number=number)


def _hardtanh(arguments: Arguments, _isa: str) -> Form:
    low, high = _number(arguments, "min_val"), _number(arguments, "max_val")
    return _items(arguments, "hardtanh", "LimitsCall", low=low, high=high)


def _clamp(arguments: Arguments, _isa: str) -> Form:
    low, high = (
        limit if arguments.is_none(name) else _number(arguments, name)
        for name, limit in (("min", -inf), ("max", inf))
    )
    return _items(arguments, "clamp", "LimitsCall", low=low, high=high)


def _pairs(name: str, *, rows: bool = True) -> Preparer:
    """A function of items of two tensors; `rows`: whether it has a path for those."""

    def prepare(arguments: Arguments, _isa: str) -> Form:
        _floats(arguments, "self", "other", "out")
        need("alpha" not in arguments.names or arguments.scalar("alpha") == 1)
        members, side_by_side = pair_rows(arguments)
        return Form(
            function=f"{_SPACE}::{name}{'_rows' * (rows and side_by_side)}",
            struct="orch::PairsCall",
            memory=arguments.places(a="self", b="other", out="out"),
            numbers=(("rows", members),),
        )

    return prepare


_SUMS: Final[Mapping[str, Preparer]] = MappingProxyType(
    {"convolution": _convolution, "mm": _mm, "bmm": _bmm, "addmm": _addmm, "linear": _linear}
)
"""What computes sums."""
RELU: Final = 0.0, inf
"""Limits that are relu."""
NO_LIMITS: Final = -inf, inf


def form_of_sums(function: str, arguments: Arguments, isa: str) -> Form:
    """The form of a call that may have limits, without them.

    Args:
        function: Of the call.
        arguments: Of the call; limits may follow.
        isa: Instruction set of the core.

    Raises:
        UnknownCallError: Kernels have no limits for it.
    """
    prepare = _SUMS.get(function.removeprefix(f"{_SPACE}::").removesuffix("_out"))
    if prepare is None:
        raise UnknownCallError
    form = prepare(arguments, isa)
    need(not form.function.endswith(("_transposed", "_scaled", "_rows")))
    return form


def limits_of(low: float, high: float) -> tuple[int, int]:
    """Limits as kernels have them: bits, whose order is that of the numbers.

    Raises:
        UnknownCallError: 0 is not within them.
    """
    low, high = float32(low), float32(high)
    # `Limits` of kernels/util/prepared.h has bits, whose order is right for a low limit that is not
    # above 0 and a high one that is not below; -0 has the bits of a negative number.
    need(low <= 0 <= high and copysign(1, high) > 0)
    if (low, high) == NO_LIMITS:
        # In `Limits` -1 says that nothing is above.
        return 0, -1
    return float_bits(low), float_bits(high)


def _limited(name: str, *, relu: bool = False) -> Preparer:
    """Sums within limits, which are the last arguments.

    Args:
        name: What computes them.
        relu: Whether all calls of a method have those of relu.
    """

    def prepare(arguments: Arguments, isa: str) -> Form:
        form = form_of_sums(name, arguments, isa)
        found = limits_of(_number(arguments, "low"), _number(arguments, "high"))
        if isa == "mve" and found == limits_of(*NO_LIMITS):
            return form
        if relu or (isa == "mve" and found == limits_of(*RELU)):
            return replace(form, function=f"{form.function}_relu")
        limits = tuple(zip(("low", "high"), found, strict=True))
        return replace(
            form,
            function=f"{form.function}_limited",
            struct=form.struct.replace("::portable::", "::portable::Limited"),
            numbers=(("limits", limits),),
        )

    return prepare


FLOATS: Final[Mapping[str, Preparer]] = MappingProxyType(
    {
        f"{_SPACE}::{name}_out": prepare
        for name, prepare in {
            **_SUMS,
            **{f"{sums}_limited": _limited(sums) for sums in _SUMS},
            "convolution_relu": _limited("convolution", relu=True),
            "avg_pool2d": _average,
            "relu": _plain("relu"),
            "sigmoid": _plain("sigmoid"),
            "tanh": _plain("tanh"),
            "hardtanh": _hardtanh,
            "clamp": _clamp,
            "leaky_relu": _with_number("leaky_relu", "negative_slope"),
            "mul_Scalar": _with_number("multiply_number"),
            "div_Scalar": _with_number("divide_number"),
            "add_Scalar": _add_number,
            "add": _pairs("add"),
            "sub": _pairs("subtract"),
            "mul": _pairs("multiply"),
            "div": _pairs("divide", rows=False),
        }.items()
    }
)
