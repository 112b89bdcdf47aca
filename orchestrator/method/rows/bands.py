"""Prepared calls that can compute some rows of their output.

The struct of such a call says how many rows there are, and where windows begin: with
other numbers and addresses it computes a band of the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrator.core.layout import memory_sizes
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.linked import LinkedCall, LinkedMethod, Prepared
from orchestrator.method.passes.packing.header import ONE, Header
from orchestrator.method.passes.packing.kernels import packed_header
from orchestrator.method.passes.views import nearest_item, neighbours
from orchestrator.method.places import Access, tensor_of
from orchestrator.method.rows.copies import COPY, Members, copied_rows, edited, number_at, real_at
from orchestrator.method.windows import Axis, Image, Rows, RowTable, Window
from orchestrator.program.values import Value

_IMAGE_DIMS: Final = 4
_AXIS: Final = ("in", "out", "kernel", "stride", "padding", "dilation")
_PAIR: Final = ("a", "b")
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
"""Calls of two tensors, with rows of items."""
_OVER_INPUT: Final = frozenset(
    f"orch::cortex_m::{name}Call" for name in ("Activation", "Add", "Multiply", "Extreme")
)
"""Structs of kernels that may write over an input, as their catalog says."""
_POOLS: Final = frozenset(f"orch::cortex_m::{name}PoolCall" for name in ("Average", "Max"))
CONVOLUTION: Final = "orch::cortex_m::ConvolutionCall"
_SCALED: Final = "orch::portable::ScaleCall"
TRANSPOSED: Final = "orch::cortex_m::TransposedCall"


def image_of(value: Value) -> Image:
    """A tensor as rows: those of an image, if it is one in memory; else one row."""
    tensor = tensor_of(value)
    sizes = memory_sizes(tensor.sizes, tensor.dim_order)
    # Windows do not go from one image of a batch to the next one.
    if len(sizes) != _IMAGE_DIMS or sizes[0] != 1 or not tensor.numel:
        return Image(rows=1, row_bytes=tensor.size_bytes)
    return Image(rows=sizes[1], row_bytes=tensor.size_bytes // sizes[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCall:
    """A prepared call, decoded once: what its rows need and cost follows from this alone.

    Args:
        call: The call.
        header: Its struct, if its weights are packed.
        weights: The constants that it multiplies with; empty if it has none.
        reads: What it reads from arenas: values, and positions of these arguments.
        inputs: Images of these.
        outs: Images of what it writes: one, but for calls that no row plan takes.
        items: Items that it writes.
        scratch_bytes: Scratch memory that it needs.
    """

    call: LinkedCall
    header: Header | None
    weights: Bytes
    reads: tuple[tuple[int, int], ...]
    inputs: tuple[Image, ...]
    outs: tuple[Image, ...]
    items: int
    scratch_bytes: int

    @classmethod
    def of(cls, method: LinkedMethod, call: LinkedCall) -> RowCall:
        """A prepared call of a method."""
        tensors = [(method.tensor(index), access) for index, access in call.arguments]
        reads = tuple(
            (index, position)
            for position, (index, access) in enumerate(call.arguments)
            if access is Access.READS and tensors[position][0].is_planned
        )
        written = [tensor for tensor, a in tensors if a in (Access.FILLS, Access.UPDATES)]
        weights = dict(call.form.memory).get("weights")
        return cls(
            call=call,
            header=packed_header(method, call),
            weights=b"" if weights is None else method.contents.get(call.args[weights], b""),
            reads=reads,
            inputs=tuple(image_of(tensors[position][0]) for _, position in reads),
            outs=tuple(map(image_of, written)),
            items=sum(tensor.numel for tensor in written),
            scratch_bytes=sum(t.size_bytes for t, access in tensors if access is Access.SCRATCH),
        )

    @property
    def may_write_over_input(self) -> bool:
        """Whether the output may be the memory of an input of its size."""
        header = self.header
        return header.may_write_over_input if header else self.call.form.struct in _OVER_INPUT


def windows_of(row_call: RowCall) -> tuple[Window, ...] | None:
    """What rows of each input rows of the output need; None if a call needs all."""
    call, inputs, (out,) = row_call.call, row_call.inputs, row_call.outs
    kind = call.form.struct
    if kind == COPY:
        return _copy_window(call.form, inputs, out)
    if kind in _PAIRS and len(inputs) < len(_PAIR):
        return None  # bands would begin at the first row of a constant
    if kind == _SCALED:
        return (_scaled_window(call),)
    header = row_call.header
    window = header.window(out) if header else _window(call.form, out)
    if window is None:
        return None
    fits = window.out == out.rows and all(image.rows == window.size for image in inputs)
    return (window,) * len(inputs) if fits else None


def _copy_window(
    prepared: Prepared, inputs: tuple[Image, ...], out: Image
) -> tuple[Window, ...] | None:
    """What rows of each input a call that moves items needs."""
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


def _transposed_window(axis: Axis) -> RowTable:
    """Rows of the input that add to each row of a transposed convolution."""
    # Input i adds to output i * stride - padding + tap * dilation.
    ends = [(o + axis.padding - axis.window + 1, o + axis.padding) for o in range(axis.out)]
    return RowTable(
        size=axis.size,
        rows=tuple(
            (max(-(-low // axis.stride), 0), min(high // axis.stride, axis.size - 1))
            for low, high in ends
        ),
    )


def _window(prepared: Prepared, out: Image) -> Window | None:
    """The rows of the input that rows of the output need; None: all of them."""
    numbers, kind = prepared.numbers, prepared.struct
    axis = ONE if kind in _ITEMS else None
    if kind in _PAIRS:
        names = ("rows.rows", "rows.a_step", "rows.b_step")
        axis = ONE if [number_at(numbers, name) for name in names] == [1, 1, 1] else None
    elif kind == TRANSPOSED:
        return _transposed_window(_axis_at(numbers, "sizes.rows.axis"))
    elif kind in _POOLS:
        axis = _axis_at(numbers, "pool.rows")
    elif kind == CONVOLUTION:
        axis = _axis_at(numbers, "sizes.rows")
    return Axis(size=out.rows, out=out.rows) if axis == ONE else axis


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
    if _axis_at(numbers, "sizes.rows") == ONE:
        pixels = rows.part(number_at(numbers, "sizes.columns.out"))
        places = ("in.width", "out.width", "columns.in", "columns.out")
        return {f"sizes.{place}": pixels for place in places}
    axis = _band_axis(numbers, "sizes.rows", rows)
    heights = {f"sizes.{name}.height": axis[f"sizes.rows.{name}"] for name in ("in", "out")}
    return axis | heights


def _transposed_band(numbers: Members, rows: Rows) -> dict[str, int]:
    """What changes in a transposed convolution."""
    path = "sizes.rows.axis"
    axis = _axis_at(numbers, path)
    count, out = max(rows.high - rows.low + 1, 0), rows.last - rows.first + 1
    return {
        "sizes.in.height": count,
        "sizes.out.height": out,
        f"{path}.in": count,
        f"{path}.out": out,
        # Output 0 of the band is that of the first row, input 0 that of the lowest.
        f"{path}.padding": axis.padding + rows.first - rows.low * axis.stride,
    }


def _axis_at(members: Members, path: str) -> Axis:
    return Axis.of([number_at(members, f"{path}.{name}") for name in _AXIS])


def _band_axis(members: Members, path: str, rows: Rows) -> dict[str, int]:
    """What changes in an `Axis`."""
    words = rows.axis(_axis_at(members, path)).words()
    return {f"{path}.{name}": word for name, word in zip(_AXIS, words, strict=True)}


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
