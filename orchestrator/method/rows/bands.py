"""Prepared calls that can compute some rows of their output.

The struct of such a call says how many rows there are, and where windows begin: with
other numbers and addresses it computes a band of the image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from orchestrator.core.layout import memory_sizes
from orchestrator.method.linked import LinkedCall, LinkedMethod, Prepared
from orchestrator.method.passes.packing import strips, turned
from orchestrator.method.passes.packing.convolution import kernel_of
from orchestrator.method.passes.tables import Axis
from orchestrator.method.passes.views import nearest_item, neighbours
from orchestrator.method.places import Access, tensor_of
from orchestrator.method.rows.copies import COPY, Members, copied_rows, edited, number_at, real_at
from orchestrator.method.rows.network import Image, RowTable, Window
from orchestrator.method.rows.strips import has_phases, is_phased, moved_phase, phase_of
from orchestrator.method.steps import header_of
from orchestrator.program.values import Value

_IMAGE_DIMS: Final = 4
_AXIS: Final = ("in", "out", "kernel", "stride", "padding", "dilation")
_PAIR: Final = ("a", "b")
_MATRIX_ROWS: Final = (1, 1, 1, 1, 0, 1)
"""An `Axis` of one row: all pixels of an image are those of a line."""
_ITEMS: Final = frozenset(
    {
        *("orch::QuantizeNearCall", "orch::QuantizeVectorsCall"),
        *("orch::DequantizeCall", "orch::cortex_m::ActivationCall"),
    }
)
"""Structs with a count of items; outputs depend on the item at the same place."""
_PAIRS: Final = frozenset(
    f"orch::cortex_m::{name}Call" for name in ("Add", "Multiply", "Extreme", "Divide")
)
"""The same of two tensors, with rows of items."""
_OVER_INPUT: Final = frozenset(
    f"orch::cortex_m::{name}Call" for name in ("Activation", "Add", "Multiply", "Extreme")
)
"""Structs of kernels that may write over an input, as their catalog says."""
_WIDENED: Final = "packed_conv2d"
"""The kernel that may where pixels are their own windows."""
_POOLS: Final = frozenset(f"orch::cortex_m::{name}PoolCall" for name in ("Average", "Max"))
CONVOLUTION: Final = "orch::cortex_m::ConvolutionCall"
_SCALED: Final = "orch::portable::ScaleCall"
TRANSPOSED: Final = "orch::cortex_m::TransposedCall"
_OUT_ALONG: Final = 18
"""Word of a PackedDepthwiseStrips."""
_IN_BYTES: Final = 19
"""Word of a PackedPixels."""
_MOST_HEADER: Final = 29
"""Words of a header; more are several, with their weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A band: rows of the input, rows of the output, inclusive.

    Args:
        low: First row of the input.
        high: Last row of it; before `low` if it needs none.
        first: First row of the output.
        last: Last row of it.
        count: Rows of the whole output.
    """

    low: int
    high: int
    first: int
    last: int
    count: int

    def part(self, whole: int) -> int:
        """What a band has of items that rows share alike."""
        return whole // self.count * (self.last - self.first + 1)


def image_of(value: Value) -> Image:
    """A tensor as rows: those of an image, if it is one in memory; else one row."""
    tensor = tensor_of(value)
    sizes = memory_sizes(tensor.sizes, tensor.dim_order)
    if len(sizes) != _IMAGE_DIMS or sizes[0] != 1 or not tensor.numel:
        return Image(rows=1, row_bytes=tensor.size_bytes)
    return Image(rows=sizes[1], row_bytes=tensor.size_bytes // sizes[1])


def windows_of(method: LinkedMethod, call: LinkedCall) -> tuple[Window, ...] | None:
    """What rows of each input rows of the output need; None if a call needs all."""
    written = (Access.FILLS, Access.UPDATES)
    (out,) = (method.values[i] for i, a in call.arguments if a in written)
    inputs = [method.values[i] for i, _ in planned_reads(method, call)]
    kind, image = call.form.struct, image_of(out)
    if kind == COPY:
        return _copy_window(call.form, [image_of(value) for value in inputs], image)
    if has_phases(call) or (kind in _PAIRS and len(inputs) < len(_PAIR)):
        return None  # bands would begin at the first row of a constant
    if kind == _SCALED:
        return (_scaled_window(call),)
    header = header_of(method, call)
    if header is not None and is_phased(call.function, header):
        phase = phase_of(header, image.row_bytes)
        if phase is not None and (phase.first, phase.step) != (0, 1):
            fits = [image_of(value).rows for value in inputs] == [phase.axis.size]
            return (phase.window(image.rows),) if fits else None
    axis = _rows_of(method, call)
    if axis is None:
        return None
    window: Window = Axis(size=image.rows, out=image.rows)
    if kind == TRANSPOSED:
        window = _transposed_window(axis)
    elif axis != _MATRIX_ROWS:
        window = Axis.of(axis)
    fits = window.out == image.rows and all(image_of(value).rows == window.size for value in inputs)
    return (window,) * len(inputs) if fits else None


def planned_reads(method: LinkedMethod, call: LinkedCall) -> list[tuple[int, int]]:
    """What a call reads from arenas: values, and positions of these arguments."""
    return [
        (index, position)
        for position, (index, access) in enumerate(call.arguments)
        if access is Access.READS and method.tensor(index).is_planned
    ]


def _copy_window(prepared: Prepared, inputs: list[Image], out: Image) -> tuple[Window, ...] | None:
    """The same of a call that moves items."""
    if len(inputs) != 1:
        return None
    (source,) = inputs
    if out.rows == 1:
        return (RowTable(size=source.rows, rows=((0, source.rows - 1),)),)
    copied = copied_rows(prepared, (source, out))
    return None if copied is None else (copied.window(source.rows, out.rows),)


def _scaled_window(call: LinkedCall) -> RowTable:
    """Rows between which those of a scaled image lie."""
    numbers = call.form.numbers
    corners = bool(number_at(numbers, "corners"))
    size, out = (number_at(numbers, f"rows.{name}") for name in ("in", "out"))
    scale = real_at(numbers, "rows.scale")
    if call.function.endswith("upsample_nearest2d"):
        nearest = [nearest_item(size, scale, row) for row in range(out)]
        return RowTable(size=size, rows=tuple((row, row) for row in nearest))
    return RowTable(
        size=size,
        rows=tuple(neighbours(size, out, scale, row, corners=corners) for row in range(out)),
    )


def _transposed_window(axis: tuple[int, ...]) -> RowTable:
    """Rows of the input that add to each row of a transposed convolution."""
    size, out, kernel, stride, padding, dilation = axis
    # Input i adds to output i * stride - padding + tap * dilation.
    ends = [(o + padding - (kernel - 1) * dilation, o + padding) for o in range(out)]
    return RowTable(
        size=size,
        rows=tuple(
            (max(-(-low // stride), 0), min(high // stride, size - 1)) for low, high in ends
        ),
    )


def may_write_over_input(method: LinkedMethod, call: LinkedCall) -> bool:
    """Whether the output of a call may be the memory of an input of its size.

    With DSP instructions convolutions widen all inputs of some pixels before they write
    these: where pixels are their own windows, nothing reads them any more.
    """
    header = header_of(method, call)
    if header is None or kernel_of(call.function) != _WIDENED:
        return call.form.struct in _OVER_INPUT
    axes = (Axis.of(header[at : at + len(_AXIS)]) for at in (0, len(_AXIS)))
    return all(axis == Axis(size=axis.size, out=axis.size) for axis in axes)


def _rows_of(method: LinkedMethod, call: LinkedCall) -> tuple[int, ...] | None:
    """The `Axis` of the rows of a call; `_MATRIX_ROWS` if pixels are independent."""
    header = header_of(method, call)
    if header is not None:
        return _header_rows(call.function, header)
    numbers, kind = call.form.numbers, call.form.struct
    if kind in _ITEMS:
        return _MATRIX_ROWS
    if kind in _PAIRS:
        names = ("rows.rows", "rows.a_step", "rows.b_step")
        plain = [number_at(numbers, name) for name in names] == [1, 1, 1]
        return _MATRIX_ROWS if plain else None
    if kind in _POOLS:
        return _axis_at(numbers, "pool.rows")
    if kind == TRANSPOSED:
        return _axis_at(numbers, "sizes.rows.axis")
    return _axis_at(numbers, "sizes.rows") if kind == CONVOLUTION else None


def band_of(prepared: Prepared, rows: Rows) -> Members:
    """The numbers of a struct for a band."""
    numbers, kind = prepared.numbers, prepared.struct
    changed: dict[str, int] = {}  # a header has those of others
    if kind in _ITEMS:
        changed = {"count": rows.part(number_at(numbers, "count"))}
    elif kind in _PAIRS:
        changed = {"rows.count": rows.part(number_at(numbers, "rows.count"))}
    elif kind in _POOLS:
        changed = _band_axis(numbers, "pool.rows", rows)
    elif kind == TRANSPOSED:
        changed = _transposed_band(numbers, rows)
    elif kind == _SCALED:
        count = rows.last - rows.first + 1
        changed = {"in_first": rows.low, "first": rows.first, "count": count}
    elif kind == CONVOLUTION:
        changed = _convolution_band(numbers, rows)
    return edited(numbers, changed)


def _convolution_band(numbers: Members, rows: Rows) -> dict[str, int]:
    """What changes in a convolution or matrix product."""
    if _axis_at(numbers, "sizes.rows") == _MATRIX_ROWS:
        pixels = rows.part(number_at(numbers, "sizes.columns.out"))
        places = ("in.width", "out.width", "columns.in", "columns.out")
        return {f"sizes.{place}": pixels for place in places}
    axis = _band_axis(numbers, "sizes.rows", rows)
    heights = {f"sizes.{name}.height": axis[f"sizes.rows.{name}"] for name in ("in", "out")}
    return axis | heights


def _transposed_band(numbers: Members, rows: Rows) -> dict[str, int]:
    """What changes in a transposed convolution."""
    path = "sizes.rows.axis"
    _, _, _, stride, padding, _ = _axis_at(numbers, path)
    count, out = max(rows.high - rows.low + 1, 0), rows.last - rows.first + 1
    return {
        "sizes.in.height": count,
        "sizes.out.height": out,
        f"{path}.in": count,
        f"{path}.out": out,
        # Output 0 of the band is that of the first row, input 0 that of the lowest.
        f"{path}.padding": padding + rows.first - rows.low * stride,
    }


def _header_rows(function: str, header: tuple[int, ...]) -> tuple[int, ...] | None:
    """The same of a header of packed weights."""
    end = len(_AXIS)
    rows, columns = header[:end], header[end : 2 * end]
    if function.endswith("packed_matrix"):
        return _MATRIX_ROWS
    if function.endswith("packed_depthwise_strips"):
        return columns if strips.is_turned(header) else rows
    if _MATRIX_ROWS in (rows, columns) and _is_line(rows) and _is_line(columns):
        return _MATRIX_ROWS
    if len(header) >= _MOST_HEADER:
        return None
    at = _rows_at(function, header)
    return header[at : at + end]


def _rows_at(function: str, header: tuple[int, ...]) -> int:
    """The first word of the `Axis` of rows."""
    if function.endswith("packed_depthwise_strips"):
        return len(_AXIS) if strips.is_turned(header) else 0
    return turned.rows_at(header) if turned.has_steps(function) else 0


def _is_line(axis: tuple[int, ...]) -> bool:
    """Whether each output has the input at the same place."""
    return axis == (axis[0], axis[0], 1, 1, 0, 1)


def _axis_at(members: Members, path: str) -> tuple[int, ...]:
    return tuple(number_at(members, f"{path}.{name}") for name in _AXIS)


def _band_axis(members: Members, path: str, rows: Rows) -> dict[str, int]:
    """What changes in an `Axis`."""
    changed = _band_words(_axis_at(members, path), rows)
    return {f"{path}.{name}": n for name, n in zip(_AXIS, changed, strict=True)}


def _band_words(axis: tuple[int, ...], rows: Rows) -> tuple[int, ...]:
    """The numbers of an `Axis` for a band."""
    _, _, kernel, stride, padding, dilation = axis
    return (
        max(rows.high - rows.low + 1, 0),
        rows.last - rows.first + 1,
        *(kernel, stride),
        rows.low - (rows.first * stride - padding),  # taps above its first row
        dilation,
    )


def band_header(
    function: str, header: tuple[int, ...], rows: Rows, row_bytes: int
) -> tuple[int, ...] | None:
    """A header of packed weights for a band; most begin with rows and columns.

    Args:
        function: The kernel.
        header: Of the whole call.
        rows: The band.
        row_bytes: Of the output.

    Returns:
        None if the call fills no row of the band.
    """
    phase = phase_of(header, row_bytes) if is_phased(function, header) else None
    if phase is not None and (phase.first, phase.step) != (0, 1):
        begin, last = phase.among(rows.first, rows.last)
        if begin > last:
            return None
        header = moved_phase(header, begin * phase.step - rows.first, row_bytes)
        rows = replace(rows, first=begin, last=last)
    end, at = len(_AXIS), _rows_at(function, header)
    words = [*header]
    if function.endswith("packed_matrix"):
        words[0] = rows.part(header[0])
    elif _header_rows(function, header) == _MATRIX_ROWS:
        at = end if header[:end] == _MATRIX_ROWS else 0
        words[at] = words[at + 1] = rows.part(header[at])
    else:
        words[at : at + end] = _band_words(header[at : at + end], rows)
        is_strips = function.endswith("packed_depthwise_strips")
        if is_strips and at and rows.first == rows.last:
            # The kernel computes two pixels of a strip at least: the first one lies
            # below the second one.
            words[_OUT_ALONG] = 0
    if "packed_pixels" in function:
        words[_IN_BYTES] = header[_IN_BYTES] // header[at] * words[at]
    return tuple(words)


def pixels_of(call: LinkedCall) -> int | None:
    """Pixels of the image that a call averages as a whole; None for other calls."""
    if call.function != "orch::cortex_m::quantized_avg_image" or call.prepared is None:
        return None
    numbers = dict(call.prepared.numbers)
    pixels = numbers["pixels"]
    return pixels if numbers["batch"] == 1 and isinstance(pixels, int) else None


def channels_of(call: LinkedCall) -> int:
    """Channels of the image that a call averages as a whole."""
    return number_at(call.form.numbers, "taps.channels")
