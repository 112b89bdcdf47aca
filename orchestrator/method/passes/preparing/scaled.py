"""Images that are scaled, as kernels/portable/prepared.h has them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes.arguments import NHWC, need
from orchestrator.method.passes.preparing.form import MOST_COPIES, Form
from orchestrator.method.passes.preparing.numbers import float32
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.preparing.form import Preparer

_LARGE: Final = float(1 << 30)
"""From here on the kernels take the last item."""


def _images(arguments: Arguments, out: int) -> tuple[TensorValue, TensorValue]:
    """The input and the output, an image each whose channels lie side by side."""
    x, y = arguments.tensor(0), arguments.tensor(out)
    need(x.dtype is y.dtype and x.dim_order == y.dim_order == NHWC)
    need(x.sizes[:2] == y.sizes[:2] and x.sizes[0] == 1 and x.numel and y.numel)
    return x, y


def scale_of(
    arguments: Arguments, side: int, places: tuple[int, int], *, corners: bool
) -> tuple[int, int, float]:
    """Sizes of a side of an image, and from an output item to the next one.

    Args:
        arguments: Of the call; the output is the last one.
        side: 0 for rows, 1 for columns.
        places: Of the sizes and the factors, of which one is given.
        corners: Whether first and last items stay where they are.
    """
    size = arguments.tensor(0).sizes[2 + side]
    scaled = arguments.tensor(arguments.count - 1).sizes[2 + side]
    need(arguments.is_none(places[0]) != arguments.is_none(places[1]))
    step = size / scaled
    if arguments.is_none(places[0]):
        factor = arguments.reals(places[1])[side]
        need(factor > 0 and int(size * factor) == scaled)
        step = 1 / factor
    else:
        need(arguments.numbers(places[0])[side] == scaled)
    if corners:
        step = (size - 1) / (scaled - 1) if scaled > 1 else 0.0
    return size, scaled, float32(step)


def nearest_item(size: int, scale: float, at: int) -> int:
    """The input item nearest to an output item, rounded down, as the kernel has it."""
    return min(int(min(float32(at * scale), _LARGE)), size - 1)


def neighbours(size: int, scaled: int, scale: float, at: int, *, corners: bool) -> tuple[int, int]:
    """The two input items between which an output item lies, as the kernel has them."""
    if size == scaled:
        return at, at
    place = float32(at * scale)
    if not corners:
        place = float32(float32(scale * (at + 0.5)) - 0.5)
    first = min(int(min(max(place, 0.0), _LARGE)), size - 1)
    return first, min(first + 1, size - 1)


def _form(
    arguments: Arguments, function: str, places: tuple[int, int], pixel_size: int, *, corners: bool
) -> Form:
    out = arguments.count - 1
    sides = [scale_of(arguments, side, places, corners=corners) for side in (0, 1)]
    names = ("in", "out", "scale")
    rows, columns = (tuple(zip(names, side, strict=True)) for side in sides)
    return Form(
        function=f"orch::portable::{function}",
        struct="orch::portable::ScaleCall",
        memory=(("input", 0), ("out", out)),
        numbers=(
            *(("in_first", 0), ("first", 0), ("count", sides[0][1])),
            *(("rows", rows), ("columns", columns)),
            *(("corners", int(corners)), ("pixel_size", pixel_size)),
        ),
    )


def _bilinear(arguments: Arguments, _isa: str) -> Form:
    x, _ = _images(arguments, 4)
    need(x.dtype in (ScalarType.Float, ScalarType.Char))
    suffix = "" if x.dtype is ScalarType.Float else "_int8"
    return _form(
        arguments, f"upsample_bilinear2d{suffix}", (1, 3), x.sizes[1], corners=arguments.truth(2)
    )


def _nearest(arguments: Arguments, _isa: str) -> Form:
    x, y = _images(arguments, 3)
    times = [divmod(y.sizes[d], x.sizes[d]) for d in (2, 3)]
    # Whole factors are copies.
    need(times[0][0] > MOST_COPIES or any(rest for _, rest in times))
    pixel = x.sizes[1] * x.dtype.item_bytes
    return _form(arguments, "upsample_nearest2d", (1, 2), pixel, corners=False)


SCALED: Final[Mapping[str, Preparer]] = MappingProxyType(
    {
        "orch::portable::upsample_bilinear2d_vec_out": _bilinear,
        "orch::portable::upsample_nearest2d_vec_out": _nearest,
    }
)
