"""Reads packed weights, and computes what kernels compute from them: the packers' judge.

Formats are those that packed.h, packed_dsp.h and int4.h of kernels/cortex_m describe. Nothing here
comes from the packers or the kernels: what a call sees is brought together pixel by pixel, and
weights become numbers of [outputs, rows, columns, channels].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.data.cortex_m import semantics

Ints = NDArray[np.int64]
KERNEL_SOURCES: Final = Path(__file__).parents[3] / "kernels" / "cortex_m"
_STRUCT: Final = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
_MEMBER: Final = re.compile(r"^  (\w+) (\w+)(?:\[(\d)\])?;", re.MULTILINE)
_INLINE: Final = ("PackedConvolution", "PackedSteps")
"""Structs whose members are fields of a header."""
_AXIS: Final = ("in", "out", "kernel", "stride", "padding", "dilation")
_EIGHT: Final = [0, 2, 4, 6, 1, 3, 5, 7]
"""Order of channels in a group for vectors."""


@cache
def structs() -> Mapping[str, str]:
    """Members of the structs of packed calls, as they are written."""
    found: dict[str, str] = {}
    for name in ("packed.h", "packed_dsp.h", "int4.h"):
        found |= dict(_STRUCT.findall((KERNEL_SOURCES / name).read_text()))
    return found


def members(struct: str) -> Iterator[tuple[str, str]]:
    """Types and names of a struct's members, those of its parts among them."""
    for kind, member, count in _MEMBER.findall(structs()[struct]):
        if kind in _INLINE:
            yield from members(kind)
        elif count:
            yield from ((kind, f"{member}_{at}") for at in range(int(count)))
        else:
            yield kind, member


def read_header(struct: str, data: bytes) -> dict[str, Any]:
    """A struct by its members; each axis is a dict. `size` is how many bytes it has."""
    words = np.frombuffer(data[: len(data) // 4 * 4], "<i4").tolist()
    header: dict[str, Any] = {}
    at = 0
    for kind, member in members(struct):
        if kind == "Axis":
            header[member] = dict(zip(_AXIS, words[at : at + 6], strict=True))
            at += 6
        else:
            header[member] = words[at]
            at += 1
    return header | {"size": 4 * at}


class _Bytes:
    """Takes numbers one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, form: str, *shape: int) -> Ints:
        size = np.dtype(form).itemsize * prod(shape)
        found = np.frombuffer(self._data[self.at : self.at + size], form)
        self.at += size
        return found.astype(np.int64).reshape(shape)

    def end(self, rest: int = 0) -> None:
        """Nothing but so many bytes is left."""
        assert self.at + rest == len(self._data)


@dataclass(frozen=True, kw_only=True)
class _Layer:
    """What packed weights say.

    Args:
        weights: [outputs, rows, columns, channels]; of a depthwise one each has one channel.
        starts: What the sum of each output starts with.
        scaled: From [pixels, outputs] sums to numbers before they are stored.
        padding: What inputs beside the image are.
        sources: The channel of each output of a depthwise one.
    """

    rows: Mapping[str, int]
    columns: Mapping[str, int]
    batch: int
    weights: Ints
    starts: Ints
    scaled: Callable[[Ints], Ints]
    padding: int
    sources: Ints | None = None

    def store(self, x: Ints, places: Ints, to: Ints, y: Ints) -> None:
        """Compute all outputs.

        Args:
            x: Memory of the input.
            places: [batch, rows, columns]: where the first channel of a pixel is in it.
            to: [batch, rows, columns]: where outputs of a pixel go.
            y: Memory of the output.
        """
        (rows, seen_rows), (columns, seen_columns) = map(_taps, (self.rows, self.columns))
        seen = seen_rows[:, None, :, None] & seen_columns[None, :, None, :]
        at = places[:, rows[:, None, :, None], columns[None, :, None, :]]
        outputs = len(self.weights)
        is_depthwise = self.sources is not None
        channels = np.arange(self.weights.shape[3]) if self.sources is None else self.sources
        items = np.where(seen[..., None], x[at[..., None] + channels], self.padding)
        form = "nhvrck,krc->nhvk" if is_depthwise else "nhvrck,orck->nhvo"
        weights = self.weights[..., 0] if is_depthwise else self.weights
        sums = np.einsum(form, items, weights, optimize=True) + self.starts
        stored = np.clip(self.scaled(sums.reshape(-1, outputs)), -128, 127)
        y[to.reshape(-1, 1) + np.arange(outputs)] = stored


def _taps(axis: Mapping[str, int]) -> tuple[Ints, NDArray[np.bool_]]:
    """Inputs of [outputs, taps], and which exist; others are any."""
    starts = np.arange(axis["out"]) * axis["stride"] - axis["padding"]
    at = starts[:, None] + np.arange(axis["kernel"]) * axis["dilation"]
    seen = (at >= 0) & (at < axis["in"])
    return np.where(seen, at, 0), seen


def _grid(steps: tuple[int, int, int], counts: tuple[int, int, int], first: int = 0) -> Ints:
    """Places of things that are equally far apart in three dimensions."""
    a, b, c = (np.arange(n) * step for n, step in zip(counts, steps, strict=True))
    return first + a[:, None, None] + b[None, :, None] + c[None, None, :]


# From sums to numbers: rounded twice, or once as packed_dsp.h has it.


def _twice(multipliers: Any, shifts: Any, offset: int) -> Callable[[Ints], Ints]:
    """Shifts are to the left."""
    return lambda sums: semantics.requantize(sums, multipliers, shifts) + offset


def _once(sums: Ints, scale: tuple[int, int, int, int], ties: int) -> Ints:
    """An output of a channel.

    Args:
        sums: Of all pixels.
        scale: Multiplier, what is added to the upper half of the product, and bits: to the
            left before, to the right after it.
        ties: Taken off where the sum is negative.
    """
    multiplier, added, left, right = scale
    high = ((sums << left) * multiplier >> 32) + added
    return (high - np.where(sums < 0, ties, 0)) >> right


# What the formats have in common.


def _convolution(h: Mapping[str, Any], **others: Any) -> _Layer:
    return _Layer(
        rows=h["rows"], columns=h["columns"], batch=h["batch"], padding=h["padding"], **others
    )


def _windows(h: Mapping[str, Any], taps: Ints) -> Ints:
    """Weights of [outputs, taps], of which those that no window has are zeros."""
    shape = (h["rows"]["kernel"], h["columns"]["kernel"], h["in_channels"])
    assert not taps[:, prod(shape) :].any()
    assert not taps[h["out_channels"] :].any()
    return taps[: h["out_channels"], : prod(shape)].reshape(-1, *shape)


def _filled(layer: _Layer, channels: int, x: Ints, y: Ints) -> None:
    """Compute a call whose images have no gaps."""
    rows, columns = layer.rows, layer.columns
    counts = (layer.batch, rows["in"], columns["in"])
    places = _grid((prod(counts[1:]) * channels, columns["in"] * channels, channels), counts)
    outputs = len(layer.weights)
    counts = (layer.batch, rows["out"], columns["out"])
    to = _grid((prod(counts[1:]) * outputs, columns["out"] * outputs, outputs), counts)
    layer.store(x, places, to, y)


def _apart(layer: _Layer, h: Mapping[str, Any], x: Ints, y: Ints) -> None:
    """Compute a call whose header says how far pixels are from each other."""
    rows, columns = layer.rows, layer.columns
    image = rows["in"] * h["x_line"]
    steps = (image, h["x_line"], h["x_pixel"])
    places = _grid(steps, (layer.batch, rows["in"], columns["in"]), h.get("x_first", 0))
    whole = rows["out"] * columns["out"] * len(layer.weights)
    steps = (h.get("y_image", whole), h["y_line"], h["y_pixel"])
    to = _grid(steps, (layer.batch, rows["out"], columns["out"]), h.get("y_first", 0))
    layer.store(x, places, to, y)


def _nibbles(data: Ints) -> tuple[Ints, Ints]:
    """Lower and upper numbers of 4 bits with a sign."""
    low, high = data & 15, data >> 4
    return np.where(low > 7, low - 16, low), np.where(high > 7, high - 16, high)


def _groups(depth: int, group: int) -> Iterator[int]:
    """Taps of each group."""
    return (min(group, depth - first) for first in range(0, depth, group))


# For DSP instructions.


def _words(data: _Bytes, *shape: int) -> tuple[Ints, Ints]:
    """Weights A and B for each four taps: 0 and 2, then 1 and 3, of 16 bits, 256 * b + a."""
    halves = data.take("<i2", *shape, 4)[..., [0, 2, 1, 3]]
    a = halves & 255
    a = np.where(a > 127, a - 256, a)
    return a, (halves - a) >> 8


def _pieces(h: Mapping[str, Any], taps: Ints) -> Ints:
    """Weights in the order of a window: pieces whose last word may begin earlier."""
    items, rows = h["patch_items"], h["patch_rows"]
    found = np.zeros((len(taps), rows, items), np.int64)
    pieces = taps.reshape(len(taps), rows, -1)
    whole = items // 4 * 4
    found[:, :, :whole] = pieces[:, :, :whole]
    if whole < items:
        found[:, :, -4:] += pieces[:, :, whole:]
        assert not pieces[:, :, whole : whole + 4 - (items - whole)].any()
    return _windows(h, found.reshape(len(taps), -1))


def _pairs(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    outputs, depth = h["out_channels"], h["depth"]
    assert len(weights) == h["all_bytes"]
    taps, starts = np.zeros((outputs, depth), np.int64), np.zeros(outputs, np.int64)
    scales: dict[int, tuple[int, int, int, int]] = {}
    data = _Bytes(weights)
    while data.at < len(weights):
        both, of_a = data.take("<i4", 2)
        begin = data.at
        a, b = _words(data, depth // 4)
        assert data.at - begin == h["weight_bytes"]
        of_b = (both - of_a) >> 8
        for second, (numbers, start) in enumerate(((a, of_a), (b, of_b))):
            multiplier, added, to = data.take("<i4", 3).tolist()
            channel, bits = to >> 8, to & 255
            # An empty channel stores where the real one does, which comes later.
            taps[channel], starts[channel] = numbers.reshape(-1), start
            left, right = (8, bits) if second else (bits, 13)
            scales[channel] = multiplier, added, left, right
    data.end()

    def scaled(sums: Ints) -> Ints:
        # Of negative sums 2^31 is taken off before 32 bits are dropped.
        ties = [h["ties"] << scales[c][2] >> 1 for c in range(outputs)]
        found = [_once(sums[:, c], scales[c], ties[c]) for c in range(outputs)]
        return np.stack(found, axis=1)

    layer = _convolution(h, weights=_pieces(h, taps), starts=starts, scaled=scaled)
    _filled(layer, h["in_channels"], x, y)


def _matrix(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    depth, outputs = h["depth"], h["out_channels"]
    assert len(weights) == h["all_bytes"]
    inputs = np.zeros((h["pixels"], depth), np.int64)
    inputs[:, : h["items"]] = x.reshape(len(inputs), -1)
    even, odd = inputs[:, ::2], inputs[:, 1::2]
    a_scale = h["multiplier"], h["a_add"], h["a_shift"], 13
    b_scale = h["multiplier"], h["b_add"], 8, h["b_shift"]
    found = np.zeros((len(inputs), outputs), np.int64)
    data = _Bytes(weights)
    for first in range(0, outputs, 4):
        starts = data.take("<i4", 2, 2)
        begin = data.at
        a, b = _words(data, depth // 4, 2)
        assert data.at - begin == h["tile_bytes"]
        places = first + data.take("u1", 2, 2)
        for pair, (both, start) in enumerate(starts.tolist()):
            of_a, of_b = a[:, pair].reshape(-1), b[:, pair].reshape(-1)
            # Half as many products: those of two weights are in the start.
            crossed = (even + of_a[1::2]) * (odd + of_a[::2]) - even * odd
            sums = start + crossed.sum(axis=1)
            others = both + inputs @ (256 * of_b + of_a) - sums
            # An empty channel stores where the real one does, which comes later.
            found[:, places[pair, 0]] = _once(sums, a_scale, h["a_ties"])
            found[:, places[pair, 1]] = _once(others >> 8, b_scale, h["b_ties"])
    data.end()
    y[:] = np.clip(found, -128, 127).reshape(-1)


def _depthwise_layer(h: Mapping[str, Any], taps: Ints, **others: Any) -> _Layer:
    """A call whose outputs have these taps, and no others but zeros."""
    shape = (h["outputs"], h["rows"]["kernel"], h["columns"]["kernel"], 1)
    assert not taps[shape[0] :].any()
    assert not taps[:, prod(shape[1:]) :].any()
    weights = taps[: shape[0], : prod(shape[1:])].reshape(shape)
    return _convolution(h, weights=weights, **{"sources": np.arange(shape[0]), **others})


def _depthwise_dsp(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    outputs, pairs = h["outputs"], h["pairs"]
    assert len(weights) == h["group_bytes"]
    sources, starts, multipliers, shifts = np.zeros((4, outputs), np.int64)
    taps = np.zeros((outputs, 2 * pairs), np.int64)
    data = _Bytes(weights)
    while data.at < len(weights):
        (first,) = data.take("<i4", 1).tolist()
        start = data.take("<i4", 4)
        halves = data.take("i1", pairs, 2, 2, 2)  # channels two by two, taps, channels
        four = halves.transpose(1, 3, 0, 2).reshape(4, -1)
        for channel in range(4):
            (multiplier,), (to,) = data.take("<i4", 1).tolist(), data.take("<u4", 1).tolist()
            # What a group before has computed goes where the last channel does, which comes later.
            output = to >> 8
            sources[output], starts[output] = first + channel, start[channel]
            taps[output], multipliers[output], shifts[output] = (
                four[channel],
                multiplier,
                -(to & 255),
            )
    data.end()
    scaled = _twice(multipliers, shifts, h["offset"])
    layer = _depthwise_layer(h, taps, sources=sources, starts=starts, scaled=scaled)
    _filled(layer, h["channels"], x, y)


def _depthwise_3x3(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    channels = h["channels"]
    starts = np.zeros(channels, np.int64)
    taps = np.zeros((channels, 9), np.int64)
    scales = []
    data = _Bytes(weights)
    for channel in range(channels):
        start, multiplier = data.take("<i4", 2).tolist()
        (added,), (left,) = data.take("<i2", 1).tolist(), data.take("i1", 1).tolist()
        taps[channel, [8, 0, 1, 3, 4, 2, 6, 5, 7]] = data.take("i1", 9)
        assert start % (1 << left) == 0
        starts[channel] = start >> left
        # The offset is the lowest item.
        scales.append((multiplier, added + (-128 << 11), left, 11))
    data.end()

    def scaled(sums: Ints) -> Ints:
        found = [_once(sums[:, c], scale, 0) for c, scale in enumerate(scales)]
        return np.stack(found, axis=1)

    layer = _depthwise_layer(h, taps, starts=starts, scaled=scaled)
    _filled(layer, channels, x, y)


# For vectors.


def _vectors(data: _Bytes, channels: int, depth: int) -> Ints:
    """Weights of [channels, taps]: for each 16 taps those of one channel after another."""
    return data.take("i1", depth // 16, channels, 16).swapaxes(0, 1).reshape(channels, -1)


def _joined(parts: Any, order: Any = slice(None)) -> Ints:
    """What tiles have for each channel, the order of a tile undone."""
    found = np.stack([*parts])
    back = np.empty_like(found)
    back[:, order] = found
    return back.reshape(-1, *found.shape[2:])


def _of_tiles(
    h: Mapping[str, Any], tiles: Sequence[tuple[Ints, ...]], order: Any = slice(None)
) -> tuple[Ints, tuple[Ints, ...]]:
    """Weights of windows, and starts and scales of channels."""
    taps, *others = (_joined(part, order) for part in zip(*tiles, strict=True))
    outputs = h["out_channels"]
    return _windows(h, taps), tuple(other[:outputs] for other in others)


_Tiles = Callable[[_Bytes, int], Iterator[tuple[Ints, ...]]]
"""From what is left of a call, and its depth."""


def _each(h: Mapping[str, Any], rest: bytes, x: Ints, y: Ints, tile: _Tiles) -> None:
    """Compute one convolution after the other; `tile` takes the tiles of one."""
    while True:
        end = h["next"] - h["size"] if h["next"] else len(rest)
        data = _Bytes(rest[:end])
        taken = tile(data, h["depth"])
        tiles = [next(taken) for _ in range(-(-h["out_channels"] // 4))]
        data.end()
        numbers, (starts, multipliers, shifts) = _of_tiles(h, tiles)
        scaled = _twice(multipliers, shifts, h["offset"])
        layer = _convolution(h, weights=numbers, starts=starts, scaled=scaled)
        _apart(layer, h, x, y)
        if not h["next"]:
            return
        h = read_header("PackedPixels", rest[end:])
        rest = rest[end + h["size"] :]


def _pixels(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    _each(h, weights, x, y, _tile)


def _tile(data: _Bytes, depth: int) -> Iterator[tuple[Ints, ...]]:
    while True:
        starts, taps = data.take("<i4", 4), _vectors(data, 4, depth)
        yield taps, starts, data.take("<i4", 4), data.take("<i4", 4)


def _lines(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    data, tiles = _Bytes(weights), []
    assert h["rows"]["kernel"] == 3
    for _ in range(0, h["out_channels"], 2):
        vectors = data.take("i1", h["blocks"], 2, 3, 16)
        ends = data.take("<i4", 2, 3)
        taps = vectors.transpose(1, 2, 0, 3).reshape(2, -1)
        tiles.append((taps, *ends.T))
    data.end()
    numbers, (starts, multipliers, shifts) = _of_tiles(h, tiles)
    scaled = _twice(multipliers, shifts, h["offset"])
    layer = _convolution(h, weights=numbers, starts=starts, scaled=scaled)
    _apart(layer, h, x, y)


def _pixel(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    data, tiles = _Bytes(weights), []
    for _ in range(0, h["out_channels"], 8):
        starts = data.take("<i4", 8)
        tiles.append((_vectors(data, 8, h["depth"]), starts))
    data.end()
    numbers, (starts,) = _of_tiles(h, tiles, _EIGHT)
    _single(h, numbers, starts, x, y)


def _single(h: Mapping[str, Any], numbers: Ints, starts: Ints, x: Ints, y: Ints) -> None:
    scaled = _twice(h["multiplier"], h["shift"], h["offset"])
    layer = _convolution(h, weights=numbers, starts=starts, scaled=scaled)
    _filled(layer, h["in_channels"], x, y)


def _depthwise_mve(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    assert len(weights) == h["group_bytes"]
    data, tiles = _Bytes(weights), []
    fours = h["pairs"] // 2
    for _ in range(0, h["channels"], 8):
        starts = data.take("<i4", 8)
        taps = data.take("i1", fours, 8, 4).swapaxes(0, 1).reshape(8, -1)
        tiles.append((taps[_EIGHT], starts, data.take("<i4", 8), data.take("<i4", 8)))
    # The kernel reads 16 taps where the last four are alone.
    data.end(32 if fours % 4 == 1 else 0)
    taps, *others = (_joined(part, _EIGHT) for part in zip(*tiles, strict=True))
    starts, multipliers, shifts = (other[: h["channels"]] for other in others)
    scaled = _twice(multipliers, shifts, h["offset"])
    layer = _depthwise_layer(h, taps, starts=starts, scaled=scaled)
    _filled(layer, h["channels"], x, y)


def _strips(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    across, along, channels = h["across"], h["along"], h["channels"]
    data = _Bytes(weights)
    assert not data.take("<i4", 1).any()
    groups = -(-channels // 8)
    windows = _joined(data.take("i1", groups, 8, 3, 4), _EIGHT)
    assert data.at == 4 + h["weight_bytes"]
    scales = data.take("<i4", groups, 2, 3, 4).swapaxes(2, 3).reshape(groups, 8, 3)
    data.end()
    starts, multipliers, shifts = _joined(scales, _EIGHT)[:channels].T
    assert not windows[channels:].any()
    assert not windows[:, along["kernel"] :].any()
    assert not windows[:, :, across["kernel"] :].any()
    for tap in range(along["kernel"]):
        phase, column = divmod(h[f"at_{tap}"] // 64, h["columns"])
        assert phase < h["phases"]
        assert column * along["stride"] + phase == tap * along["dilation"]
    layer = _Layer(
        rows=across,
        columns=along,
        batch=h["batch"],
        padding=h["padding"],
        weights=windows[:channels, : along["kernel"], : across["kernel"], None].swapaxes(1, 2),
        starts=starts,
        scaled=_twice(multipliers, shifts, -128),
        sources=np.arange(channels),
    )
    steps = {"x_line": h["in_across"], "x_pixel": h["in_along"]}
    steps |= {"y_line": h["out_across"], "y_pixel": h["out_along"]}
    x_image = across["in"] * along["in"] * channels
    y_image = across["out"] * along["out"] * channels
    counts = (h["batch"], across["in"], along["in"])
    places = _grid((x_image, h["in_across"], h["in_along"]), counts)
    counts = (h["batch"], across["out"], along["out"])
    layer.store(x, places, _grid((y_image, h["out_across"], h["out_along"]), counts), y)


# Weights of 4 bits: `group` taps have a step of their own, or all have one.


def _int4(weights: bytes) -> tuple[_Bytes, int]:
    data = _Bytes(weights)
    _, group = data.take("<i4", 2).tolist()
    return data, group


def _int4_convolution(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    data, group = _int4(weights)
    depth, tiles = h["depth"], []
    for _ in range(0, h["out_channels"], 2):
        starts, multipliers, shifts = (data.take(form, 2) for form in ("<i4", "<i4", "i1"))
        sizes = [*_groups(depth, group)]
        steps = data.take("u1", len(sizes), 2).repeat(sizes, axis=0).T
        numbers = np.stack(_nibbles(data.take("u1", depth)))
        data.take("u1", -data.at % 4)
        tiles.append((numbers * steps, starts, multipliers, shifts))
    data.end()
    numbers, (starts, multipliers, shifts) = _of_tiles(h, tiles)
    # Starts have no part of the input offset.
    starts = starts - h["padding"] * numbers.sum(axis=(1, 2, 3))
    scaled = _twice(multipliers, shifts, h["offset"])
    layer = _convolution(h, weights=numbers, starts=starts, scaled=scaled)
    _filled(layer, h["in_channels"], x, y)


def _int4_pairs(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    data, group = _int4(weights)
    outputs, depth = h["out_channels"], h["depth"]
    taps = np.zeros((outputs, depth), np.int64)
    starts, multipliers, shifts = np.zeros((3, outputs), np.int64)
    while data.at < len(weights):
        start, multiplier = data.take("<i4", 2), data.take("<i4", 2)
        to, shift, steps = (data.take(form, 2) for form in ("<u2", "u1", "u1"))
        parts = []
        for number, size in enumerate(_groups(depth, group)):
            if number:
                steps = data.take("u1", 2)
                assert not data.take("u1", 2).any()
            halves = data.take("<u2", size // 2)
            digits = np.stack([halves >> 4 * n & 15 for n in range(4)]) - 8
            parts.append(digits.reshape(2, 2, -1).swapaxes(1, 2).reshape(2, -1))
            parts[-1] = parts[-1] * steps[:, None]
        for channel, numbers in enumerate(np.concatenate(parts, axis=1)):
            # An empty channel stores where the real one does, which comes later.
            taps[to[channel]] = numbers
            starts[to[channel]], multipliers[to[channel]] = start[channel], multiplier[channel]
            shifts[to[channel]] = -shift[channel]
    data.end()
    scaled = _twice(multipliers, shifts, h["offset"])
    layer = _convolution(h, weights=_pieces(h, taps), starts=starts, scaled=scaled)
    _filled(layer, h["in_channels"], x, y)


def _int4_matrix(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    data, group = _int4(weights)
    outputs, depth = h["out_channels"], h["depth"]
    assert group <= 256
    tiles = []
    for _ in range(0, outputs, 4):
        starts, parts = data.take("<i4", 4), []
        for size in _groups(depth, group):
            steps = data.take("u1", 4, 1)
            lanes = data.take("<u2", size // 4, 4)[:, [0, 2, 1, 3]].reshape(-1)
            others = np.stack([lanes >> 4 * n & 15 for n in range(3)]) - 8
            last, _ = _nibbles(lanes >> 12)
            parts.append(np.vstack((others, last)) * steps)
        tiles.append((np.concatenate(parts, axis=1), starts))
    data.end()
    taps, starts = (_joined(part)[:outputs] for part in zip(*tiles, strict=True))
    assert not taps[:, h["items"] :].any()
    sums = x.reshape(h["pixels"], -1) @ taps[:, : h["items"]].T + starts
    found = _twice(h["multiplier"], -h["right"], h["offset"])(sums)
    y[:] = np.clip(found, -128, 127).reshape(-1)


def _int4_vectors(data: _Bytes, channels: int, depth: int, group: int) -> Ints:
    """Weights of [channels, taps] in the order of a tile."""
    parts = []
    for size in _groups(depth, group):
        steps = data.take("u1", channels, 1)
        numbers = np.stack(_nibbles(data.take("u1", size // 16, channels // 2, 16)))
        parts.append(numbers.transpose(2, 0, 1, 3).reshape(channels, size) * steps)
    return np.concatenate(parts, axis=1)


def _int4_tile(data: _Bytes, depth: int) -> Iterator[tuple[Ints, ...]]:
    _, group = data.take("<i4", 2).tolist()
    while True:
        scales = [data.take(form, 4) for form in ("<i4", "<i4", "i1")]
        yield _int4_vectors(data, 4, depth, group), *scales


def _int4_pixels(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    _each(h, weights, x, y, _int4_tile)


def _int4_pixel(h: Mapping[str, Any], weights: bytes, x: Ints, y: Ints) -> None:
    data, group = _int4(weights)
    tiles = []
    for _ in range(0, h["out_channels"], 8):
        starts = data.take("<i4", 8)
        tiles.append((_int4_vectors(data, 8, h["depth"], group), starts))
    data.end()
    numbers, (starts,) = _of_tiles(h, tiles, _EIGHT)
    _single(h, numbers, starts, x, y)


FORMATS: Final = {
    "Pairs": ("PackedPairs", _pairs),
    "Matrix": ("PackedMatrix", _matrix),
    "Depthwise": ("PackedDepthwise", _depthwise_dsp),
    "Depthwise3x3": ("PackedDepthwise", _depthwise_3x3),
    "Strips": ("PackedDepthwiseStrips", _strips),
    "Pixels": ("PackedPixels", _pixels),
    "Lines": ("PackedLines", _lines),
    "Pixel": ("PackedPixel", _pixel),
    "Int4Convolution": ("PackedConvolution", _int4_convolution),
    "Int4Pairs": ("PackedPairs", _int4_pairs),
    "Int4Matrix": ("Int4Matrix", _int4_matrix),
    "Int4Pixels": ("PackedPixels", _int4_pixels),
    "Int4Pixel": ("PackedPixel", _int4_pixel),
}
"""By family of kernels: the struct, and who reads what follows."""
_UNWRITTEN: Final = 999


def outputs_of(family: str, isa: str, data: bytes, x: Ints, count: int) -> NDArray[np.int8]:
    """What a packed call stores in an output of so many items, without limits of its own.

    Args:
        family: Of kernels.
        isa: Depthwise calls with vectors have a format of their own.
        data: The struct and what follows it.
        x: Memory of the input.
        count: Items of the output, all of which are written.
    """
    struct, read = FORMATS[family]
    if (family, isa) == ("Depthwise", "mve"):
        read = _depthwise_mve
    h = read_header(struct, data)
    y = np.full(count, _UNWRITTEN, np.int64)
    read(h, data[h["size"] :], x, y)
    assert (y != _UNWRITTEN).all()
    return y.astype(np.int8)
