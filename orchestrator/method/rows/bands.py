"""Prepared calls that can compute some rows of their output.

The struct of such a call says how many rows there are, and where windows begin: with
other numbers and addresses it computes a band of the image.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.method.access import Access
from orchestrator.method.rows.network import Image, Window
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.method.linked import LinkedCall, LinkedMethod, Numbers
    from orchestrator.program.values import Value

_IMAGE_DIMS: Final = 4
_COUNT: Final = "count"
_ITEM: Final = 10
"""Instructions per item, about; of products by instruction set."""
_PRODUCT: Final = MappingProxyType({"scalar": 5.0, "dsp": 1.2, "mve": 0.3})
_ROWS: Final = "rows"
_HEADER: Final = "header"
_AXIS: Final = ("in", "out", "kernel", "stride", "padding", "dilation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A band: rows of the input, rows of the output, inclusive.

    Args:
        low: First row of the input.
        high: Last row of it; before `low` if it needs none.
        first: First row of the output.
        last: Last row of it.
    """

    low: int
    high: int
    first: int
    last: int


def image_of(value: Value) -> Image:
    """A tensor as rows: those of an image, if it is one in memory; else one row."""
    assert isinstance(value, TensorValue)  # noqa: S101  # an argument with memory
    sizes = [value.sizes[d] for d in value.dim_order]
    if len(sizes) != _IMAGE_DIMS or sizes[0] != 1 or not value.numel:
        return Image(rows=1, row_bytes=value.size_bytes)
    return Image(rows=sizes[1], row_bytes=value.size_bytes // sizes[1])


def windows_of(method: LinkedMethod, call: LinkedCall) -> tuple[Window, ...] | None:
    """What rows of each input rows of the output need; None if a call needs all."""
    if call.prepared is None:
        return None
    (out,) = (method.values[i] for i, a in _arguments(call) if a is Access.FILLS)
    inputs = [
        method.values[i]
        for i, a in _arguments(call)
        if a is Access.READS and _is_planned(method.values[i])
    ]
    there = image_of(out)
    members = dict(call.prepared.numbers)
    header = header_of(method, call)
    window = _packed_window(header, there) if header else _window(members)
    if window is not None:
        found = tuple(window for _ in inputs)
    elif _COUNT in members and _is_by_items(out, inputs):
        found = tuple(Window(size=there.rows, out=there.rows) for _ in inputs)
    else:
        return None
    fits = all(
        image_of(value).rows == w.size and w.out == there.rows
        for value, w in zip(inputs, found, strict=True)
    )
    return found if fits and len(inputs) == len(found) else None


def band_numbers(
    numbers: tuple[tuple[str, Numbers], ...], rows: Rows, count: int
) -> tuple[tuple[str, Numbers], ...]:
    """The numbers of a struct for a band.

    Args:
        numbers: Of the whole image.
        rows: Of the band.
        count: Rows of the whole output.
    """
    found: list[tuple[str, Numbers]] = []
    for name, value in numbers:
        new = value
        if name == _ROWS and isinstance(value, tuple):
            new = _band_axis(value, rows)
        elif name == _COUNT and isinstance(value, int):
            new = value // count * (rows.last - rows.first + 1)
        elif isinstance(value, tuple):
            new = band_numbers(value, rows, count)
        found.append((name, new))
    return tuple(found)


def _arguments(call: LinkedCall) -> list[tuple[int, Access]]:
    return list(zip(call.args, call.accesses, strict=True))


def _is_planned(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.allocation is not None


def _is_by_items(out: Value, inputs: list[Value]) -> bool:
    """Whether each item of the output depends on the items at the same place."""
    assert isinstance(out, TensorValue)  # noqa: S101  # an argument with memory
    return all(
        isinstance(x, TensorValue)
        and (x.sizes, x.dim_order) == (out.sizes, out.dim_order)
        for x in inputs
    )


def _window(members: Mapping[str, Numbers]) -> Window | None:
    """The rows of an `Axis`, of the struct or of one in it."""
    for name, value in members.items():
        if name == _ROWS and isinstance(value, tuple):
            axis = {n: v for n, v in value if isinstance(v, int)}
            return Window(
                size=axis["in"],
                out=axis["out"],
                kernel=axis["kernel"],
                stride=axis["stride"],
                padding=axis["padding"],
                dilation=axis["dilation"],
            )
        if isinstance(value, tuple):
            found = _window(dict(value))
            if found is not None:
                return found
    return None


def _packed_window(header: tuple[int, ...], there: Image) -> Window:
    """The rows of a header of packed weights; of any pixels for a matrix product."""
    if _is_matrix(header):
        return Window(size=there.rows, out=there.rows)
    size, out, kernel, stride, padding, dilation = header[: len(_AXIS)]
    return Window(
        size=size,
        out=out,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )


def pixels_of(call: LinkedCall) -> int | None:
    """Pixels of the image that a call averages as a whole; None for other calls."""
    if call.function != "orch::cortex_m::quantized_avg_image" or call.prepared is None:
        return None
    numbers = dict(call.prepared.numbers)
    pixels = numbers["pixels"]
    return pixels if numbers["batch"] == 1 and isinstance(pixels, int) else None


def work_of(method: LinkedMethod, call: LinkedCall, isa: str) -> int:
    """About how many instructions the loops of a call take."""
    header = header_of(method, call)
    if header is None:
        return sum(
            _ITEM * (v.numel if isinstance(v := method.values[i], TensorValue) else 0)
            for i, access in _arguments(call)
            if access is Access.FILLS
        )
    assert call.prepared is not None  # noqa: S101  # it has a header
    weights = call.args[call.prepared.memory.index("weights")]
    _, rows, *_ = header
    columns = header[len(_AXIS) + 1]
    products = len(dict(method.data)[weights]) * rows * columns
    return round(products * _PRODUCT[isa])


def header_of(method: LinkedMethod, call: LinkedCall) -> tuple[int, ...] | None:
    """The words of the header of a call with packed weights; None for others."""
    if call.prepared is None or _HEADER not in call.prepared.memory:
        return None
    index = call.args[call.prepared.memory.index(_HEADER)]
    data = bytes(dict(method.data)[index])
    return struct.unpack(f"<{len(data) // 4}i", data)


def _is_matrix(header: tuple[int, ...]) -> bool:
    """Whether each output pixel has one input pixel, all in one row."""
    count = len(_AXIS)
    rows, columns = header[:count], header[count : 2 * count]
    return rows == (1, 1, 1, 1, 0, 1) and columns == (*columns[:1] * 2, 1, 1, 0, 1)


def band_header(header: tuple[int, ...], rows: Rows, count: int) -> bytes:
    """A header of packed weights for a band.

    Args:
        header: Of the whole image.
        rows: Of the band.
        count: Rows of the whole output.
    """
    if _is_matrix(header):
        at = len(_AXIS)
        pixels = header[at] // count * (rows.last - rows.first + 1)
        words = (*header[:at], pixels, pixels, *header[at + 2 :])
        return struct.pack(f"<{len(words)}i", *words)
    axis = tuple(zip(_AXIS, header, strict=False))
    band = _band_axis(axis, rows)
    assert isinstance(band, tuple)  # noqa: S101  # as it was
    words = (*(n for _, n in band if isinstance(n, int)), *header[len(_AXIS) :])
    return struct.pack(f"<{len(words)}i", *words)


def _band_axis(axis: tuple[tuple[str, Numbers], ...], rows: Rows) -> Numbers:
    numbers = {n: v for n, v in axis if isinstance(v, int)}
    start = rows.first * numbers["stride"] - numbers["padding"]
    changed = {
        "in": max(rows.high - rows.low + 1, 0),
        "out": rows.last - rows.first + 1,
        # Taps above the first row of the band.
        "padding": rows.low - start,
    }
    return tuple((name, changed.get(name, value)) for name, value in axis)
