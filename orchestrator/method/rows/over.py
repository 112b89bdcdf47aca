"""Kernels whose output may lie over rows of their input that only they still need.

They read all windows of some pixels before they write these pixels, from left to right;
depthwise kernels for some channels after the other. With an output that begins so far
before the rows that a call reads that pixels are written behind the windows that are
still to come, nothing is lost.
"""

from __future__ import annotations

from math import inf
from typing import Final

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.packing import strips, turned
from orchestrator.method.passes.packing.convolution import kernel_of
from orchestrator.method.passes.tables import Axis
from orchestrator.method.rows.network import Image, Over
from orchestrator.method.rows.strips import is_strips
from orchestrator.method.steps import header_of

_CHANNELS: Final = "packed_depthwise"
_WINDOWS: Final = "packed_depthwise_3x3"
"""The kernel that computes whole rows, or with another one parts of one row."""
_PIXELS: Final = "packed_conv2d"
"""The kernel for three pixels at once, or with another one for two."""
_ROWS, _COLUMNS = slice(0, 6), slice(6, 12)
"""Words of a header: axes."""
_IN_BYTES, _PHASED = 19, 29
"""Words of a PackedPixels, and of several ones at least."""


def over_of(method: LinkedMethod, call: LinkedCall, source: Image, out: Image) -> Over | None:
    """How bands of a call may lie over their input; None if they may not.

    Args:
        method: Its method.
        call: A prepared call, as bands are made of it.
        source: The image that it reads.
        out: The image that it fills.
    """
    header = header_of(method, call)
    name = kernel_of(call.function)
    if header is None:
        return None
    if name in (_CHANNELS, _WINDOWS):
        columns = Axis.of(header[_COLUMNS])
        return _by_channels(columns, source, out, is_at_once=name == _WINDOWS)
    if is_strips(name):
        of = strips.strips_of(header)
        # Parts of all rows come one after the other.
        rows, is_at_once = (inf, True) if of.parts == 1 else (1, False)
        found = _by_channels(of.along, source, out, is_at_once=is_at_once, rows=rows)
        return None if of.is_turned else found
    copied = _columns_copied(name, header)
    if copied is None:
        return None
    lead = _lead(copied, source, out)
    return Over(lead_bytes=lead, few_bytes=lead, rows=1)


def _columns_copied(name: str, header: tuple[int, ...]) -> Axis | None:
    """The columns of windows that a kernel copies before it computes some pixels."""
    if name == _PIXELS:
        return Axis.of(header[_COLUMNS])
    is_along = name.startswith("packed_pixels") and len(header) < _PHASED
    if is_along and turned.is_turned(header) and not header[_IN_BYTES]:
        return Axis.of(header[_ROWS])
    return None


def _by_channels(
    columns: Axis, source: Image, out: Image, *, is_at_once: bool, rows: float = inf
) -> Over:
    """Of a kernel that takes some channels after the other.

    Args:
        columns: Of windows.
        source: Their image.
        out: What they fill.
        is_at_once: Whether it computes whole rows, unless they are few pixels at once.
        rows: That it may compute.
    """
    # The last part of a row of strips begins a pixel earlier if it has only one; all
    # before have an even number.
    lead = _lead(columns, source, out, early=columns.out % 2)
    return Over(
        lead_bytes=0 if is_at_once else lead,
        few_bytes=lead,
        pixel_bytes=source.row_bytes // columns.size,
        rows=rows,
    )


def _lead(columns: Axis, source: Image, out: Image, *, early: int = 0) -> int:
    """Bytes that are written, at most, before the first input that is still to come.

    A part of a row that begins with pixel n needs inputs from n * stride - padding on.

    Args:
        columns: Of windows.
        source: Their image.
        out: What they fill.
        early: Pixels of the part before that the last part computes again.
    """
    inputs, outputs = source.row_bytes // columns.size, out.row_bytes // columns.out
    return max(
        0,
        *(
            n * outputs - ((n - early) * columns.stride - columns.padding) * inputs
            for n in (1 + early, max(columns.out - 1, 1 + early))
        ),
    )
