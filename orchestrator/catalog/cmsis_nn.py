"""Scratch memory that CMSIS-NN's functions need, in bytes.

CMSIS-NN chooses its inner function by shapes and by the core's features; each needs
a different buffer. These are the sizes that ExecuTorch's exporter reserves.

Source: the `*_get_buffer_size` functions of CMSIS-NN, as its Python binding and
ExecuTorch 1.5.1 compute them for a core other than the one they are compiled for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Backend(StrEnum):
    """The implementations of CMSIS-NN; values are names of ISAs."""

    SCALAR = "scalar"
    DSP = "dsp"
    MVE = "mve"


class DataType(StrEnum):
    """Width of activations and of weights in bits."""

    A8W4 = "A8W4"
    A8W8 = "A8W8"
    A16W8 = "A16W8"


class Shape(NamedTuple):
    """Sizes of a tensor of images: count, height, width, channels.

    For filters, the count is that of output channels.
    """

    n: int
    h: int
    w: int
    c: int


class Pair(NamedTuple):
    """A setting for rows and for columns."""

    h: int
    w: int


_ONE = Pair(1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """The parameters that the sizes of all kinds of convolutions depend on.

    Args:
        input: Sizes of the input.
        filter: Sizes of the filter; outputs first, for depthwise ones channels last.
        output: Sizes of the output.
        padding: At the top and at the left.
        stride: At least 1.
        dilation: 1 is none.
        ch_mult: Outputs per channel of a depthwise convolution.
    """

    input: Shape
    filter: Shape
    output: Shape
    padding: Pair
    stride: Pair
    dilation: Pair = _ONE
    ch_mult: int = 1

    @property
    def taps(self) -> int:
        """Items of one channel of the filter."""
        return self.filter.w * self.filter.h

    @property
    def columns(self) -> int:
        """Items of the input that contribute to one output."""
        return self.input.c * self.taps

    @property
    def is_dilated(self) -> bool:
        """Whether the filter skips items."""
        return self.dilation != _ONE

    @property
    def is_1x1(self) -> bool:
        """Whether it is a matrix product per pixel."""
        return (
            self.padding == (0, 0)
            and (self.filter.h, self.filter.w) == (1, 1)
            and not self.is_dilated
            and self.input.c == self.filter.c
        )

    @property
    def is_1xn(self) -> bool:
        """Whether it runs along one row, in steps of whole words."""
        return (
            self.input.h == 1
            and self.dilation.w == 1
            and self.filter.h == 1
            and (self.stride.w * self.input.c) % _WORD == 0
            and self.input.c == self.filter.c
        )


# CMSIS-NN's names: CH_IN_BLOCK_MVE of arm_nnsupportfunctions.h is 124, the bound of 512 taps is in
# USE_FAST_DW_CONV_S16_FUNCTION, and REVERSE_TCOL_EFFICIENT_THRESHOLD is 16.
# tests/data/corpus/cmsis_nn_scratch.csv has sizes that its Python binding gives; `scratch --check`
# compares with the user's.
_WORD = 4  # bytes; a sum of products
_HALF = 2  # bytes; 16 bits
_VECTOR_BYTES = 16  # of an MVE register
_ROWS_MVE = 4  # rows of the input that MVE code unfolds at once
_ROWS = 2  # and code without MVE
_BLOCK_MVE = 124  # channels of a depthwise block
_FAST_TAPS = 512  # first size of a filter with sums too large for 32 bits
_REVERSED_ABOVE = 16  # channels that pay for reversing a transposed filter
_REVERSED_STRIDE = 2  # up to which that is possible
_INT16_READ_AHEAD = 8  # bytes


def _rounded_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def convolve_wrapper(backend: Backend, types: DataType, of: Convolution) -> int:
    """Scratch of `arm_convolve_wrapper_s8`, `_s4` and `_s16`."""
    if types is DataType.A16W8:
        if backend is Backend.MVE:
            lanes = _VECTOR_BYTES // _HALF
            return _ROWS_MVE * _rounded_up(of.columns, lanes) * _HALF
        return _ROWS * of.columns * _HALF
    if of.is_1x1:
        return 0
    if backend is not Backend.MVE:
        # The kernel for weights of 4 bits unfolds rows as they are, the one for int8 whole words.
        columns = of.columns if types is DataType.A8W4 else _unfolded(of)
        return _ROWS * columns * _HALF
    if of.is_1xn:
        row = _padded_row(of)
        if row is not None:
            return row if types is DataType.A8W8 else 0
    return _ROWS_MVE * _rounded_up(of.columns, _VECTOR_BYTES)


def _unfolded(of: Convolution) -> int:
    return _rounded_up(of.columns, _WORD)


def _padded_row(of: Convolution) -> int | None:
    """Bytes of a row with its padding; None if the row is all padding."""
    pad, stride = of.padding.w, of.stride.w
    total = (of.output.w - 1) * stride + of.filter.w - of.input.w
    surplus = total % 2 if total > 0 else -(total % 2)  # C's remainder
    right = max(1, -(-(pad + surplus) // stride)) if pad + surplus else 0
    left = max(1, -(-pad // stride)) if pad else 0
    inner = max(of.output.w - (right + left), 0)
    if right + inner + left != of.output.w:
        return None
    # The row with its left padding; the right end never needs more.
    return (of.filter.w + pad) * of.input.c


def depthwise_conv_wrapper(backend: Backend, types: DataType, of: Convolution) -> int:
    """Scratch of `arm_depthwise_conv_wrapper_s8`, `_s4` and `_s16`."""
    if types is DataType.A16W8:
        return _depthwise_s16(backend, of)
    one_by_one = (
        of.input.c == of.output.c and of.input.n == 1 and not of.is_dilated
    )  # each channel of one image has one output
    if backend is Backend.MVE:
        size = _ROWS_MVE * _BLOCK_MVE * of.taps if one_by_one else 0
        if types is DataType.A8W8 and of.input.c == 1 and of.output.c > 1:
            size = max(size, _as_convolution(of))
        return size
    if not one_by_one:
        return 0
    if types is DataType.A8W8:
        # `arm_depthwise_conv_3x3_s8` needs no buffer, and a core without DSP takes the plain loop.
        is_3x3 = (of.filter.h, of.filter.w) == (3, 3)
        if backend is Backend.SCALAR or (is_3x3 and max(of.padding) <= 1):
            return 0
    return of.columns * _HALF


def _depthwise_s16(backend: Backend, of: Convolution) -> int:
    if of.ch_mult != 1 or of.is_dilated or of.taps >= _FAST_TAPS:
        return 0
    if backend is Backend.MVE:
        return _ROWS_MVE * of.columns * _HALF + _INT16_READ_AHEAD
    return of.columns * _HALF if backend is Backend.DSP else 0


def _as_convolution(of: Convolution) -> int:
    """A depthwise convolution of one channel as an ordinary one, filter transposed."""
    n, h, w, c = of.filter
    turned = Convolution(
        input=of.input,
        filter=Shape(c, h, w, n),
        output=of.output,
        padding=of.padding,
        stride=of.stride,
        dilation=of.dilation,
    )
    return convolve_wrapper(Backend.MVE, DataType.A8W8, turned) + n * h * w * c


def fully_connected(backend: Backend, types: DataType, *, rows: int) -> int:
    """Scratch of `arm_fully_connected_s8` and `_s16`; also of `arm_batch_matmul_s8`.

    Args:
        backend: See `Backend`.
        types: A8W8 or A16W8.
        rows: Rows of the weights, one per output.
    """
    needed = backend is Backend.MVE and types is DataType.A8W8
    # A sum of the weights for each output.
    return rows * _WORD if needed else 0


def avgpool(backend: Backend, types: DataType, *, channels: int) -> int:
    """Scratch of `arm_avgpool_s8` and `_s16`, by number of channels."""
    del types  # both sum in 32 bits
    return channels * _WORD if backend is Backend.DSP else 0


def svdf(backend: Backend, *, filters: int) -> int:
    """Scratch of `arm_svdf_s8`, by number of feature filters."""
    return filters * _WORD if backend is Backend.MVE else 0


def transpose_conv(backend: Backend, of: Convolution) -> int:
    """Scratch of `arm_transpose_conv_s8`: its context."""
    if _is_reversed(of):
        if backend is Backend.MVE:
            return _ROWS_MVE * _rounded_up(of.columns, _VECTOR_BYTES)
        return _ROWS * _unfolded(of) * _HALF
    # As in CMSIS-NN, both width and height are compared with the stride of rows.
    width = (of.input.w - 1) * of.stride.w + max(of.filter.w, of.stride.h)
    return width * of.output.c * max(of.filter.h, of.stride.h) * _WORD


def transpose_conv_reverse_conv(of: Convolution) -> int:
    """Scratch of `arm_transpose_conv_s8`: its output context, for a reversed filter."""
    return of.columns * of.filter.n if _is_reversed(of) else 0


def _is_reversed(of: Convolution) -> bool:
    return max(of.stride) <= _REVERSED_STRIDE and of.input.c > _REVERSED_ABOVE
