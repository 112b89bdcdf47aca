"""Scratch sizes of random layers, as CMSIS-NN's Python binding gives them.

Run with a Python that has ExecuTorch or the package `cmsis_nn`:

    python tests/data/scratch/make_rows.py --rows 2100 tests/data/scratch/rows.csv

The columns are those of tests/data/corpus/cmsis_nn_scratch.csv. Layers are drawn so
that each of CMSIS-NN's special cases is met often: filters of 1x1 and of one row,
images of one row, one channel, strides that make whole words, paddings wider than the
output, large filters, several images. A row is kept three times, once per backend.
"""
# mypy: CMSIS-NN is not there when the project is checked.
# mypy: ignore-errors

from __future__ import annotations

import argparse
import csv
import random
from pathlib import Path
from typing import Any

COLUMNS = (
    *("function", "backend", "data_type", "input_nhwc", "filter_nhwc", "output_nhwc"),
    *("padding_hw", "stride_hw", "dilation_hw", "ch_mult", "padding_offsets_hw"),
    *("input_offset", "output_offset", "activation_min", "activation_max"),
    *("dim_dst_width", "ch_src", "bytes"),
)
BACKENDS = ("SCALAR", "DSP", "MVE")
TYPES = {
    "convolve_wrapper_buffer_size": ("A8W8", "A8W8", "A8W4", "A16W8"),
    "depthwise_conv_wrapper_buffer_size": ("A8W8", "A8W8", "A8W4", "A16W8"),
    "transpose_conv_buffer_size": ("A8W8",),
    "transpose_conv_reverse_conv_buffer_size": ("A8W8",),
    "fully_connected_buffer_size": ("A8W8", "A16W8"),
    "avgpool_buffer_size": ("A8W8", "A16W8"),
    "svdf_buffer_size": ("A8W8",),
}
WEIGHTS = (10, 10, 4, 2, 1, 1, 1)
CHANNELS = (1, 1, 2, 3, 4, 5, 8, 12, 15, 16, 17, 24, 32, 33, 64)
FILTERS = (1, 1, 1, 2, 3, 3, 4, 5, 7)


def binding() -> Any:
    """CMSIS-NN's functions."""
    try:
        from executorch.backends.cortex_m.library import cmsis_nn  # noqa: PLC0415
    except ImportError:
        import cmsis_nn  # noqa: PLC0415
    return cmsis_nn


def layer(draw: random.Random, function: str) -> dict[str, Any]:
    """Arguments of a call: lists of numbers, and numbers."""
    if function == "avgpool_buffer_size":
        return {
            "dim_dst_width": draw.randint(1, 64),
            "ch_src": draw.choice((*CHANNELS, draw.randint(1, 400))),
        }
    if function in ("fully_connected_buffer_size", "svdf_buffer_size"):
        return {"filter_nhwc": [draw.randint(1, 999), 1, 1, draw.randint(1, 999)]}
    channels = draw.choice(CHANNELS)
    of = geometry(draw, function, channels)
    if function.startswith("depthwise"):
        of["ch_mult"] = draw.choice((1, 1, 1, 2, 8))
        outputs = channels * of["ch_mult"]
        # As CMSIS-NN itself has depthwise filters, and as ExecuTorch gives them.
        first, last = draw.choice(((1, outputs), (outputs, 1)))
    else:
        outputs = draw.choice(CHANNELS)
        # A filter may cover a group of the channels only.
        grouped = channels % 2 == 0 and draw.random() < 0.25
        first, last = outputs, channels // (1 + grouped)
    of["filter_nhwc"] = [first, *of["filter_nhwc"], last]
    of["output_nhwc"] = [of["input_nhwc"][0], *of["output_nhwc"], outputs]
    of["input_offset"] = draw.randint(-128, 127)
    of["output_offset"] = draw.randint(-128, 127)
    of["activation_min"] = draw.choice((-128, 0))
    of["activation_max"] = 127
    if function.startswith("transpose"):
        of["padding_offsets_hw"] = [draw.randint(0, 1), draw.randint(0, 1)]
    if function == "transpose_conv_reverse_conv_buffer_size":
        del of["output_nhwc"]
    return of


def geometry(draw: random.Random, function: str, channels: int) -> dict[str, Any]:
    """Input, filter and output without outputs, and how the filter moves."""
    size = [draw.choice((1, 1, draw.randint(2, 40))), draw.randint(1, 40)]
    taps = [draw.choice(FILTERS), draw.choice(FILTERS)]
    stride = [draw.choice((1, 1, 2, 3, 4)), draw.choice((1, 1, 2, 3, 4))]
    dilation, padding = [1, 1], [0, 0]
    if not function.startswith("transpose") and draw.random() < 0.15:
        dilation = [draw.choice((1, 2)), draw.choice((1, 2))]
    if draw.random() < 0.6:
        padding = [draw.randint(0, taps[0]), draw.randint(0, taps[1])]
    if size[0] == 1 and draw.random() < 0.8:  # along a row
        taps[0] = 1
        padding = [0, draw.choice((0, 1, 1, 2, 3))]
    special = draw.random()
    if function.startswith("depthwise") and special < 0.2:
        taps = list(draw.choice(((16, 32), (8, 64), (7, 73), (511, 1), (23, 23))))
    elif function.startswith("depthwise") and special < 0.5:
        taps, dilation = [3, 3], [1, 1]
        padding = [draw.randint(0, 2), draw.randint(0, 2)]
    elif special < 0.15:  # item by item, or nearly
        taps, padding = [1, 1], [0, draw.choice((0, 0, 0, 1))]
    if function.startswith("transpose"):
        output = [(size[n] - 1) * stride[n] + taps[n] for n in (0, 1)]
    else:
        output = [
            (size[n] + 2 * padding[n] - dilation[n] * (taps[n] - 1) - 1) // stride[n] + 1
            for n in (0, 1)
        ]
    if draw.random() < 0.1:  # more padding at the right than at the left
        output[1] += draw.choice((1, 2, 3))
    images = draw.choice((1, 1, 1, 1, 2))
    return {
        "input_nhwc": [images, *size, channels],
        "filter_nhwc": taps,
        "output_nhwc": [max(1, n) for n in output],
        "padding_hw": padding,
        "stride_hw": stride,
        "dilation_hw": dilation,
    }


def text(value: object) -> object:
    """A value as the table has it."""
    return "x".join(map(str, value)) if isinstance(value, list) else value


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--rows", type=int, default=2100)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()
    cmsis_nn = binding()
    draw = random.Random(args.seed)  # noqa: S311  # the same rows each time
    with args.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for _ in range(args.rows // len(BACKENDS)):
            function = draw.choices(list(TYPES), WEIGHTS)[0]
            types = draw.choice(TYPES[function])
            of = layer(draw, function)
            for backend in BACKENDS:
                size = getattr(cmsis_nn, function)(
                    getattr(cmsis_nn.Backend, backend), getattr(cmsis_nn.DataType, types), **of
                )
                row = {name: text(value) for name, value in of.items()}
                row |= {"function": function, "backend": backend, "data_type": types}
                writer.writerow(row | {"bytes": int(size)})


if __name__ == "__main__":
    main()
