"""The words that packed weights begin with: geometry, padding and offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.method.passes.packing.convolution import Axis
from orchestrator.method.passes.packing.words import WORD

if TYPE_CHECKING:
    from orchestrator.method.passes.packing.convolution import Convolution


def convolution_header(conv: Convolution, depth: int) -> tuple[int, ...]:
    """The words of `PackedConvolution`."""
    outputs = len(conv.weights)
    rows, columns, batch = conv.rows, conv.columns, conv.batch
    if conv.is_matrix:
        batch, rows = 1, Axis(size=1, out=1)
        columns = Axis(size=conv.pixels, out=conv.pixels)
    return (
        *(*rows.words(), *columns.words()),
        *(batch, conv.channels, outputs, depth),
        # A tap outside the image counts as one of the zero point.
        *(-conv.x_offset, conv.offset),
    )


def depthwise_header(conv: Convolution, pairs: int, words: int) -> tuple[int, ...]:
    """The words of `PackedDepthwise`."""
    return (
        *(*conv.rows.words(), *conv.columns.words()),
        *(conv.batch, conv.channels, -conv.x_offset, pairs),
        *(WORD * words, conv.offset),
    )
