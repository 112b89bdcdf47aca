"""The words that packed weights begin with: geometry, padding and offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.method.passes.images import Axis
from orchestrator.method.passes.packing.words import WORD

if TYPE_CHECKING:
    from orchestrator.method.passes.packing.convolution import Convolution


def kernel_of(function: str) -> str:
    """Name of a packed kernel, the same for calls with limits as for others."""
    return function.rpartition("::")[2].replace("limited_", "")


def convolution_header(conv: Convolution, depth: int) -> tuple[int, ...]:
    """The words of `PackedConvolution`."""
    return (
        *(*conv.rows.words(), *conv.columns.words()),
        *(conv.batch, conv.channels, len(conv.weights), depth),
        # A tap outside the image counts as one of the zero point.
        *(-conv.x_offset, conv.offset),
    )


def line_header(conv: Convolution, depth: int) -> tuple[int, ...]:
    """The same, of a matrix product as an image of one line."""
    if conv.is_matrix:
        axis = Axis(size=conv.pixels, out=conv.pixels)
        conv = replace(conv, batch=1, rows=Axis(size=1, out=1), columns=axis)
    return convolution_header(conv, depth)


def depthwise_header(conv: Convolution, pairs: int, words: int) -> tuple[int, ...]:
    """The words of `PackedDepthwise`."""
    return (
        *(*conv.rows.words(), *conv.columns.words()),
        *(conv.batch, conv.channels, -conv.x_offset, pairs),
        *(WORD * words, conv.offset),
    )
