"""Pooling of int8 images, as kernels/cortex_m/pool.h has it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import Numbers
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.images import axes_of, axis_members, image_of, one_or_two
from orchestrator.method.passes.preparing.form import Form
from orchestrator.method.passes.preparing.numbers import float32

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.images import Axis, Image
    from orchestrator.method.passes.preparing.form import Preparer

_LOWEST_EXPONENT, _HIGHEST_EXPONENT = 1, 254
"""Of the scales that are normal floats."""


def _taps(axis: Axis) -> list[int]:
    """Of each window: how many taps lie in the input."""
    starts = (out * axis.stride - axis.padding for out in range(axis.out))
    return [
        sum(0 <= start + tap * axis.dilation < axis.size for tap in range(axis.kernel))
        for start in starts
    ]


def _windows(
    arguments: Arguments, out: int, *, nhwc: bool, dilated: bool
) -> tuple[Image, Axis, Axis]:
    x = image_of(arguments.tensor(0), nhwc=nhwc)
    y = image_of(arguments.tensor(out), nhwc=nhwc)
    lists = (2, 3, 4) if dilated else (2, 3)
    rows, columns = axes_of(arguments, x, y, one_or_two(arguments.numbers(1)), lists)
    return x, rows, columns


def _pool(x: Image, rows: Axis, columns: Axis) -> Numbers:
    batch, _, width, channels = x
    return (
        ("batch", batch),
        ("rows", axis_members(rows)),
        ("columns", axis_members(columns)),
        ("taps", _steps(channels, rows.dilation * width, columns.dilation)),
    )


def _steps(channels: int, row: int, column: int) -> Numbers:
    return (
        ("channels", channels),
        ("row_step", row * channels),
        ("column_step", column * channels),
    )


def _average(*, nhwc: bool) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        x, rows, columns = _windows(arguments, 9, nhwc=nhwc, dilated=False)
        taps = [_taps(axis) for axis in (rows, columns)]
        # Of an odd number of items no average lies in the middle of two steps.
        has_ties = any(not count % 2 for counts in taps for count in counts)
        is_float = arguments.tensor(8).dtype is ScalarType.Char and has_ties
        items: Numbers = (("zero_point", 0), ("scale", 0.0))
        if is_float:
            exponent = arguments.number(7) + 127 - 31
            need(_LOWEST_EXPONENT <= exponent <= _HIGHEST_EXPONENT)
            multiplier = float32(arguments.number(6))
            scale = float32(multiplier * 2.0 ** (exponent - 127))
            items = (("zero_point", arguments.number(5)), ("scale", scale))
        suffix = "_floats" if is_float else ""
        memory = (("input", 0), ("out", 9))
        if taps == [[rows.size], [columns.size]]:
            batch, height, width, channels = x
            return Form(
                function=f"orch::cortex_m::quantized_avg_image{suffix}",
                struct="orch::cortex_m::AverageImageCall",
                memory=memory,
                numbers=(
                    ("batch", batch),
                    ("pixels", height * width),
                    ("taps", _steps(channels, height * width, 1)),
                    ("items", items),
                ),
            )
        return Form(
            function=f"orch::cortex_m::quantized_avg_pool2d{suffix}",
            struct="orch::cortex_m::AveragePoolCall",
            memory=memory,
            numbers=(("pool", _pool(x, rows, columns)), ("items", items)),
        )

    return prepare


def _largest(*, nhwc: bool) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        x, rows, columns = _windows(arguments, 10, nhwc=nhwc, dilated=True)
        low, high = arguments.number(8), arguments.number(9)
        return Form(
            function="orch::cortex_m::quantized_max_pool2d",
            struct="orch::cortex_m::MaxPoolCall",
            memory=(("input", 0), ("out", 10)),
            numbers=(("pool", _pool(x, rows, columns)), ("range", (("low", low), ("high", high)))),
        )

    return prepare


POOLS: Final[Mapping[str, Preparer]] = MappingProxyType(
    {
        "orch::cortex_m::quantized_avg_pool2d_out": _average(nhwc=False),
        "orch::cortex_m::quantized_avg_pool2d_nhwc_out": _average(nhwc=True),
        "orch::cortex_m::quantized_max_pool2d_out": _largest(nhwc=False),
        "orch::cortex_m::quantized_max_pool2d_nhwc_out": _largest(nhwc=True),
    }
)
