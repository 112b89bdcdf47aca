"""Find the int8 convolutions and matrix products of a method, and what each computes.

In: a method. Out: its calls that packed kernels may take, each with weights, windows
and scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from orchestrator.core.layout import FORMATS, logical_items, stored_items
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, UnknownCallError, need
from orchestrator.method.passes.images import Image, axes_of, image_of
from orchestrator.method.windows import Axis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


# Numbers that all packed weights are made with.

WORD: Final = 4
"""Bytes of a pointer, and of what the kernels load."""
TILE: Final = 4
"""Channels of a tile."""


def up(count: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-count // step) * step


_CONVOLUTIONS: Final = {
    "orch::cortex_m::quantized_conv2d_out": False,
    "orch::cortex_m::quantized_conv2d_nhwc_out": True,
}
"""Whether images have sizes N, H, W, C; else N, C, H, W."""
_DEPTHWISE: Final = {
    "orch::cortex_m::quantized_depthwise_conv2d_out": False,
    "orch::cortex_m::quantized_depthwise_conv2d_nhwc_out": True,
}
_LINEAR: Final = "orch::cortex_m::quantized_linear_out"
FUNCTIONS: Final = frozenset({*_CONVOLUTIONS, *_DEPTHWISE, _LINEAR})

LOWEST, HIGHEST = -128, 127
# As `is_shift` of kernels/cortex_m/requantize.h.
_LEAST_SHIFT: Final = -31


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A call, whatever operator it is of.

    Args:
        weights: [outputs, taps]; taps of a depthwise one have no channels.
        depthwise: Whether each output has an input channel of its own.
        groups: Of channels, each with outputs of its own.
        has_words: Whether pixels of such inputs are whole words at such addresses.
        sums: What each sum starts with.
        x_offset: Added to each input.
        multipliers: Of each output.
        shifts: Of each output, to the left.
        offset: Added to outputs.
        low: The lowest output.
        high: The highest one.
    """

    batch: int
    channels: int
    rows: Axis
    columns: Axis
    weights: Ints
    depthwise: bool = False
    groups: int = 1
    has_words: bool = False
    sums: Ints
    x_offset: int
    multipliers: Ints
    shifts: Ints
    offset: int
    low: int
    high: int

    @property
    def pixels(self) -> int:
        """Pixels of the output."""
        return self.batch * self.rows.out * self.columns.out

    @property
    def is_matrix(self) -> bool:
        """Whether each output pixel has one input pixel, in the same order."""
        axes = (self.rows, self.columns)
        return all((a.kernel, a.stride, a.padding) == (1, 1, 0) and a.size == a.out for a in axes)

    @property
    def products(self) -> int:
        """Multiplications of the call."""
        return self.pixels * int(self.weights.size)

    @property
    def is_unlimited(self) -> bool:
        """Whether outputs are all of int8, within which kernels store them anyway."""
        return (self.low, self.high) == (LOWEST, HIGHEST)

    @property
    def has_one_scale(self) -> bool:
        """Whether all outputs have the same."""
        scales = zip(self.multipliers.tolist(), self.shifts.tolist(), strict=True)
        return len({*scales}) == 1

    @property
    def is_single(self) -> bool:
        """Whether there is one pixel, and one scale, as in a matrix product."""
        return self.is_matrix and self.groups == self.pixels == 1 and self.has_one_scale

    @property
    def has_few_groups(self) -> bool:
        """Whether as many weights for all channels take less than a kernel for groups."""
        return 1 < self.groups < TILE

    @property
    def pairs(self) -> int:
        """Pairs of taps of a depthwise one."""
        taps: int = self.weights.shape[1]
        return -(-taps // 2)


def convolutions(method: LinkedMethod, most: int) -> list[tuple[int, LinkedCall, Convolution]]:
    """Calls whose sums are less than `most`, and what they compute."""
    found = all_convolutions(method, most)
    return [c for c in found if c[2].depthwise or c[2].groups == 1]


def all_convolutions(method: LinkedMethod, most: int) -> list[tuple[int, LinkedCall, Convolution]]:
    """All convolutions of a call, with those of several groups of channels."""
    found = []
    for number, call in enumerate(method.instructions):
        if isinstance(call, LinkedCall) and call.function in FUNCTIONS:
            with suppress(UnknownCallError):
                conv = _convolution(Arguments(method, call), call.function)
                check(conv, most)
                found.append((number, call, conv))
    return found


def array_of(arguments: Arguments, name: str) -> Ints:
    """Items of a constant tensor of integers, by index."""
    value = arguments.tensor(name)
    return _items(arguments, name, value.sizes, value.dim_order)


def _row_of(arguments: Arguments, name: str) -> Ints:
    """Items as they lie in memory, which is how kernels read those of channels."""
    return _items(arguments, name, [arguments.tensor(name).numel], [0])


def _sums_of(arguments: Arguments, name: str, outputs: int) -> Ints:
    """What each sum starts with: a row, or zeros where the argument is None."""
    import numpy as np  # noqa: PLC0415  # only where something is packed

    return np.zeros(outputs, np.int64) if arguments.is_none(name) else _row_of(arguments, name)


def _items(arguments: Arguments, name: str, sizes: Sequence[int], order: Sequence[int]) -> Ints:
    import numpy as np  # noqa: PLC0415  # only where something is packed

    dtype = arguments.tensor(name).dtype
    data = arguments.constant(name)
    items = logical_items(data, FORMATS[dtype], sizes, order)
    return items.astype(np.int64, order="C")


def _convolution(arguments: Arguments, function: str) -> Convolution:
    """What a call computes.

    Raises:
        UnknownCallError: That depends on the run.
    """
    if function == _LINEAR:
        return _linear(arguments)
    depthwise = function in _DEPTHWISE
    nhwc = (_DEPTHWISE if depthwise else _CONVOLUTIONS)[function]
    weights = array_of(arguments, "weight")
    if depthwise:
        need(weights.shape[0] == 1)
        weights = weights.transpose(3, 1, 2, 0)
    x = arguments.tensor("input")
    image, out = image_of(x, nhwc=nhwc), image_of(arguments.tensor("out"), nhwc=nhwc)
    channels, outputs = image[-1], out[-1]
    need(weights.shape[0] == outputs)
    groups, rest = divmod(channels, weights.shape[3])
    need(groups > 0 and not rest)
    # One of one input channel is a convolution.
    depthwise = depthwise and channels > 1 and outputs == channels
    axes = axes_of(arguments, image, out, weights.shape[1:3], ("stride", "padding", "dilation"))
    return replace(
        convolution_of(arguments, image, axes, weights.reshape(outputs, -1)),
        depthwise=depthwise,
        groups=groups,
        # Memory of the caller may begin at any address.
        has_words=x.allocation is not None
        and x.allocation.offset_bytes % WORD == 0
        and channels % WORD == 0,
    )


def convolution_of(
    arguments: Arguments, image: Image, axes: tuple[Axis, Axis], weights: Ints
) -> Convolution:
    """A convolution over an image, with windows along rows and columns; outputs come first."""
    low, high = map(arguments.number, ("activation_min", "activation_max"))
    return Convolution(
        batch=image[0],
        channels=image[-1],
        rows=axes[0],
        columns=axes[1],
        weights=weights,
        sums=_sums_of(arguments, "bias", len(weights)),
        x_offset=arguments.number("input_offset"),
        multipliers=_row_of(arguments, "requantize_multipliers"),
        shifts=_row_of(arguments, "requantize_shifts"),
        offset=arguments.number("output_offset"),
        low=low,
        high=high,
    )


def _linear(arguments: Arguments) -> Convolution:
    """A matrix product: rows are the pixels of an image of one line."""
    import numpy as np  # noqa: PLC0415

    x, weights = arguments.tensor("input"), array_of(arguments, "weights")
    outputs, depth = weights.shape
    has_sums = not arguments.is_none("kernel_sum")
    need(arguments.number("filter_offset") == 0)
    scale = ("requantize_multipliers", "requantize_shifts")
    multiplier, shift = (arguments.numbers(name)[0] for name in scale)
    rows = x.numel // depth
    return Convolution(
        batch=1,
        channels=depth,
        rows=Axis(size=1, out=1),
        columns=Axis(size=rows, out=rows),
        weights=weights,
        sums=_sums_of(arguments, "kernel_sum" if has_sums else "bias", outputs),
        # Sums of programs for MVE hold the part of the offset.
        x_offset=0 if has_sums else arguments.number("input_offset"),
        multipliers=np.full(outputs, multiplier),
        shifts=np.full(outputs, shift),
        offset=arguments.number("output_offset"),
        low=arguments.number("activation_min"),
        high=arguments.number("activation_max"),
    )


def with_weights(
    arguments: Arguments, function: str, weights: Ints, added: Ints
) -> dict[str, bytes]:
    """By name: the memory of a call's arguments that depend on weights.

    Sums of matrix products for MVE hold the part of the input offset.

    Args:
        arguments: Of the call.
        function: Of the call.
        weights: The weights, [outputs, taps].
        added: What they are more than before.
    """
    name = "weights" if function == _LINEAR else "weight"
    value = arguments.tensor(name)
    stored = (weights.T if function in _DEPTHWISE else weights).astype("i1")
    found = {name: stored_items(stored.reshape(value.sizes), value.dim_order)}
    if function == _LINEAR and not arguments.is_none("kernel_sum"):
        sums = _row_of(arguments, "kernel_sum")
        sums += arguments.number("input_offset") * added.sum(axis=1)
        found["kernel_sum"] = stored_items(sums.astype("<i4"), [0])
    return found


def check(conv: Convolution, most: int) -> None:
    """Check what all kernels need.

    Raises:
        UnknownCallError: The packed kernels cannot take this.
    """
    need(LOWEST <= conv.low <= conv.high <= HIGHEST)
    need(conv.batch > 0 and conv.rows.out > 0 and conv.columns.out > 0)
    need(LOWEST <= -conv.x_offset <= HIGHEST)  # an item of padding
    need(bool((conv.shifts <= 0).all() and (conv.shifts >= _LEAST_SHIFT).all()))
    need(bool((largest_sums(conv) < most).all()))


def without_groups(conv: Convolution) -> Convolution:
    """The convolution, with weights of zero for channels of other groups."""
    import numpy as np  # noqa: PLC0415

    outputs, each = len(conv.weights), conv.channels // conv.groups
    taps = conv.weights.reshape(conv.groups, outputs // conv.groups, -1, each)
    weights = np.zeros((*taps.shape[:3], conv.groups, each), np.int64)
    for group, those in enumerate(taps):
        weights[group, :, :, group] = those
    whole = weights.reshape(outputs, -1)
    return replace(conv, groups=1, depthwise=False, weights=whole)


def in_one_column(conv: Convolution) -> Convolution:
    """The convolution as a column of pixels, if it can be one."""
    rows, columns = conv.rows, conv.columns
    if conv.is_matrix:
        axis = Axis(size=conv.pixels, out=conv.pixels)
        return replace(conv, batch=1, rows=axis, columns=Axis(size=1, out=1))
    if (rows.size, rows.out, rows.kernel, rows.padding) == (1, 1, 1, 0):
        return replace(conv, rows=columns, columns=replace(rows, stride=1))
    return conv


def in_one_line(conv: Convolution) -> Convolution:
    """The convolution; a matrix product as an image of one line."""
    if not conv.is_matrix:
        return conv
    axis = Axis(size=conv.pixels, out=conv.pixels)
    return replace(conv, batch=1, rows=Axis(size=1, out=1), columns=axis)


def starts_of(conv: Convolution) -> Ints:
    """What each sum of inputs and weights starts with."""
    found: Ints = conv.sums + conv.x_offset * conv.weights.sum(axis=1)
    return found


def largest_sums(conv: Convolution) -> Ints:
    """How large each sum can be, whatever the inputs are."""
    import numpy as np  # noqa: PLC0415  # only where something is packed

    weights = np.abs(conv.weights).sum(axis=1)
    # No input is larger than 128, as -128 is.
    found: Ints = np.abs(starts_of(conv)) - LOWEST * weights
    return found
