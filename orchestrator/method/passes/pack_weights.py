"""Weights of int8 convolutions and matrix products, packed for the loop over them.

For cores with DSP or vector instructions. The kernels are op_packed_conv2d.cpp,
op_packed_depthwise.cpp, op_packed_depthwise_strips.cpp and op_packed_pixels.cpp of
kernels/cortex_m; packed.h beside them has the format.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import settled
from orchestrator.method.access import Access
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.arguments import Arguments, UnknownCallError, need
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import Allocation, Dynamism, TensorValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.method.linked import LinkedMethod

    Ints = NDArray[np.int64]

CONVOLUTION: Final = "orch::cortex_m::packed_conv2d_out"
EVEN: Final = "orch::cortex_m::packed_even_conv2d_out"
DEPTHWISE: Final = "orch::cortex_m::packed_depthwise_out"
STRIPS: Final = "orch::cortex_m::packed_depthwise_strips_out"
TWO_PIXELS: Final = "orch::cortex_m::packed_two_pixels_out"
PIXEL: Final = "orch::cortex_m::packed_pixel_out"
PACKED: Final = frozenset({CONVOLUTION, EVEN, DEPTHWISE, STRIPS, TWO_PIXELS, PIXEL})
ARGUMENTS: Final = ("input", "packed", "scratch", "out")
"""Of these functions, which no schema has."""

_CONVOLUTIONS: Final = {
    "orch::cortex_m::quantized_conv2d_out": False,
    "orch::cortex_m::quantized_conv2d_nhwc_out": True,
}
"""Whether images have sizes N, H, W, C; else N, C, H, W."""
_DEPTHWISE: Final = {
    "orch::cortex_m::quantized_depthwise_conv2d_out": False,
    "orch::cortex_m::quantized_depthwise_conv2d_nhwc_out": True,
}
_LINEAR: Final = "orch::cortex_m::quantized_linear_out"
FUNCTIONS: Final = frozenset({*_CONVOLUTIONS, *_DEPTHWISE, _LINEAR})

_WORD: Final = 4
"""Bytes of a pointer, and of what the kernels load."""
_TILE: Final = 4
"""Channels of a tile."""
_TAPS: Final = 8
"""Taps of a step of the loop, with DSP instructions."""
_LANES: Final = 16
"""The same with vector instructions."""
_EIGHT: Final = (0, 2, 4, 6, 1, 3, 5, 7)
"""Channels of a tile for a single pixel, in the order of its sums."""
_ACROSS, _ALONG = 4, 3
"""Weights of a channel for a strip."""
_STRIP: Final = 16
"""Columns that a strip may have."""
_COLUMN: Final = 64
"""Bytes of such a column."""
_MOST_PHASES: Final = 4
"""Strips have no more."""
_FEW: Final = 8
"""The kernel for single pixels has to save one part in so many of all products."""
_MOST_B: Final = 1 << 23
"""The kernel has 256 times the sums of every other channel, in 32 bits."""
_MOST_A: Final = 1 << 30
"""And twice the sums of the others."""
_MOST: Final = 1 << 31
"""Sums of other kernels have 32 bits."""
_LOWEST, _HIGHEST = -128, 127
_LEAST_SHIFT: Final = -31


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """As `Axis` of kernels/cortex_m/image.h; of windows along one dimension."""

    size: int
    out: int
    kernel: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    def words(self) -> tuple[int, ...]:
        return (
            *(self.size, self.out, self.kernel),
            *(self.stride, self.padding, self.dilation),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Convolution:
    """A call, whatever operator it is of.

    Args:
        weights: [outputs, taps]; taps of a depthwise one have no channels.
        depthwise: Whether each output has an input channel of its own.
        has_words: Whether pixels of such inputs are whole words at such addresses.
        sums: What each sum starts with.
        x_offset: Added to each input.
        multipliers: Of each output.
        shifts: Of each output, to the left.
        offset: Added to outputs.
    """

    batch: int
    channels: int
    rows: _Axis
    columns: _Axis
    weights: Ints
    depthwise: bool = False
    has_words: bool = False
    sums: Ints
    x_offset: int
    multipliers: Ints
    shifts: Ints
    offset: int
    low: int
    high: int

    @property
    def depth(self) -> int:
        """Taps, up to a whole step of the loop with DSP instructions."""
        return _up(self.weights.shape[1], _TAPS)

    @property
    def pixels(self) -> int:
        """Of the output."""
        return self.batch * self.rows.out * self.columns.out

    @property
    def is_matrix(self) -> bool:
        """Whether each output pixel has one input pixel, in the same order."""
        axes = (self.rows, self.columns)
        return all(
            (a.kernel, a.stride, a.padding) == (1, 1, 0) and a.size == a.out
            for a in axes
        )

    @property
    def products(self) -> int:
        return self.pixels * int(self.weights.size)

    @property
    def has_one_scale(self) -> bool:
        """Whether all outputs have the same."""
        scales = zip(self.multipliers.tolist(), self.shifts.tolist(), strict=True)
        return len({*scales}) == 1

    @property
    def is_even(self) -> bool:
        """Whether all outputs have one scale, and whole tiles."""
        return self.has_one_scale and len(self.multipliers) % _TILE == 0

    @property
    def is_single(self) -> bool:
        """Whether there is one pixel, and one scale, as in a matrix product."""
        return self.is_matrix and self.pixels == 1 and self.has_one_scale

    @property
    def pairs(self) -> int:
        """Pairs of taps of a depthwise one."""
        taps: int = self.weights.shape[1]
        return -(-taps // 2)

    @property
    def scratch_bytes(self) -> int:
        """Memory for what kernels make of a pixel.

        Pairs of taps, and taps side by side; or pointers to taps, and a pixel of
        padding.
        """
        if self.depthwise:
            return _WORD * 2 * self.pairs + self.channels
        is_pixel = self.depth == self.channels
        return 4 + 2 * self.depth + (0 if is_pixel else self.depth)


def pack_for_dsp(method: LinkedMethod) -> LinkedMethod:
    """Pack the weights of all calls that the kernels for DSP instructions can take."""
    found = _convolutions(method, _MOST_A)
    # One of the two kernels is enough: the other has room for all calls.
    even = all(c.is_even for _, _, c in found if not c.depthwise)
    for number, call, conv in found:
        try:
            if conv.depthwise:
                need(conv.has_words)
                function, words = DEPTHWISE, _groups(conv)
            elif even:
                function, words = EVEN, _tiles(conv, even=True)
            else:
                function, words = CONVOLUTION, _tiles(conv)
        except UnknownCallError:
            continue
        new = replace(call, function=function)
        method = _with_call(method, number, new, words, conv.scratch_bytes)
    return method


def pack_for_mve(method: LinkedMethod) -> LinkedMethod:
    """Pack the weights of all calls that the kernels for vectors can take."""
    found = _convolutions(method, _MOST)
    # Two pixels at once also compute one. The other kernel has to pay.
    most = [c for _, _, c in found if not c.depthwise]
    single = sum(c.products for c in most if c.is_single)
    pays = _FEW * single > sum(c.products for c in most)
    for number, call, conv in found:
        taps = conv.weights.shape[1]
        depth = _up(taps, _LANES)
        is_joined = depth == conv.channels and conv.is_matrix
        strips = _best_strips(conv) if conv.depthwise else None
        if strips is not None:
            function, words = STRIPS, _strip_groups(conv, strips)
            scratch = strips.scratch_bytes
        elif conv.depthwise:
            if depth > _LANES:
                continue
            function, words = DEPTHWISE, _vector_groups(conv)
            # Pointers and distances, taps of 16 channels, and a pixel of padding.
            scratch = 2 * _WORD * _up(taps, _TILE) + _LANES * _LANES + conv.channels
        elif conv.is_single and pays:
            function, words = PIXEL, _pixel(conv, depth)
            scratch = 0 if is_joined else depth
        else:
            function, words = TWO_PIXELS, _two_pixels(conv, depth)
            scratch = 0 if is_joined else 2 * depth
        new = replace(call, function=function)
        method = _with_call(method, number, new, words, scratch)
    return method


def _convolutions(
    method: LinkedMethod, most: int
) -> list[tuple[int, LinkedCall, _Convolution]]:
    """Calls whose sums are less than `most`, and what they compute."""
    written = method.written
    found = []
    for number, call in enumerate(method.instructions):
        if isinstance(call, LinkedCall) and call.function in FUNCTIONS:
            with suppress(UnknownCallError):
                conv = _convolution(method, call, written)
                _check(conv, most)
                found.append((number, call, conv))
    return found


def _with_call(
    method: LinkedMethod,
    number: int,
    call: LinkedCall,
    packed: Sequence[int],
    scratch_bytes: int,
) -> LinkedMethod:
    """The method whose call has the packed kernel, with slots for its arguments."""
    (out,) = [i for i, a in zip(call.args, call.accesses, strict=True) if a in _WRITES]
    value = method.values[out]
    if not isinstance(value, TensorValue) or value.allocation is None:
        return method
    space = value.allocation.memory_id
    if space == SHARED_ID:
        return method
    end = max(
        v.allocation.offset_bytes + v.size_bytes
        for v in method.values
        if isinstance(v, TensorValue)
        and v.allocation is not None
        and v.allocation.memory_id == space
    )
    data = struct.pack(f"<{len(packed)}i", *packed)
    first = len(method.values)
    values = (
        replace(_constant(len(packed)), data_buffer_index=1),
        replace(
            _constant(scratch_bytes),
            dtype=ScalarType.Byte,
            allocation=Allocation(memory_id=space, offset_bytes=-(-end // 16) * 16),
        ),
    )
    instructions = list(method.instructions)
    instructions[number] = replace(
        call,
        args=(call.args[0], first, first + 1, out),
        accesses=(Access.READS, Access.READS, Access.SCRATCH, Access.FILLS),
        outs=(out, first + 1),
        in_place=(),
    )
    return replace(
        method,
        values=(*method.values, *values),
        instructions=tuple(instructions),
        data=(*method.data, (first, settled(data))),
    )


_WRITES: Final = (Access.FILLS, Access.WRITES)


def _constant(size: int) -> TensorValue:
    return TensorValue(
        dtype=ScalarType.Int,
        sizes=(size,),
        dim_order=(0,),
        dynamism=Dynamism.STATIC,
        data_buffer_index=0,
        allocation=None,
        extra=None,
        requires_grad=False,
    )


def _convolution(
    method: LinkedMethod, call: LinkedCall, written: frozenset[int]
) -> _Convolution:
    """What a call computes.

    Raises:
        UnknownCallError: That depends on the run.
    """
    import numpy as np  # noqa: PLC0415  # only where something is packed

    arguments = Arguments(method, call, written)
    data = dict(method.data)

    def ints(position: int, dtype: str) -> Ints:
        value = arguments.tensor(position)
        index = arguments.index(position)
        need(index in data and value.allocation is None)
        found = data[index]
        items = np.frombuffer(bytes(found), dtype=dtype).astype(np.int64)
        return items.reshape([value.sizes[d] for d in value.dim_order])

    if call.function == _LINEAR:
        return _linear(arguments, ints)
    depthwise = call.function in _DEPTHWISE
    nhwc = (_DEPTHWISE if depthwise else _CONVOLUTIONS)[call.function]
    weights = ints(1, "i1")
    if depthwise:
        need(weights.shape[0] == 1)
        weights = weights.transpose(3, 1, 2, 0)
    next_one = 7 if depthwise else 6
    places = (0, 1, 2, 3) if nhwc else (0, 2, 3, 1)
    x, y = arguments.tensor(0), arguments.tensor(next_one + 7)
    batch, height, width, channels = (x.sizes[i] for i in places)
    _, out_height, out_width, outputs = (y.sizes[i] for i in places)
    need(weights.shape[0] == outputs)
    # A depthwise one of one input channel is a convolution; others have one group.
    depthwise = depthwise and channels > 1
    if depthwise:
        need(outputs == channels)
    else:
        need(weights.shape[3] == channels)
    stride, padding, dilation = (arguments.numbers(n) for n in (3, 4, 5))
    axes = [
        _Axis(
            size=size,
            out=out,
            kernel=weights.shape[1 + i],
            stride=stride[i],
            padding=padding[i],
            dilation=dilation[i],
        )
        for i, (size, out) in enumerate(((height, out_height), (width, out_width)))
    ]
    return _Convolution(
        batch=batch,
        channels=channels,
        rows=axes[0],
        columns=axes[1],
        weights=weights.reshape(outputs, -1),
        depthwise=depthwise,
        has_words=x.allocation is not None
        and x.allocation.offset_bytes % _WORD == 0
        and channels % _WORD == 0,
        sums=np.zeros(outputs, np.int64) if arguments.is_none(2) else ints(2, "<i4"),
        x_offset=arguments.number(next_one),
        multipliers=ints(next_one + 2, "<i4"),
        shifts=ints(next_one + 3, "<i4"),
        offset=arguments.number(next_one + 1),
        low=arguments.number(next_one + 4),
        high=arguments.number(next_one + 5),
    )


def _linear(arguments: Arguments, ints: Callable[[int, str], Ints]) -> _Convolution:
    """A matrix product: rows are the pixels of an image of one line."""
    import numpy as np  # noqa: PLC0415

    x, weights = arguments.tensor(0), ints(1, "i1")
    outputs, depth = weights.shape
    has_sums = not arguments.is_none(3)
    sums = np.zeros(outputs, np.int64)
    if has_sums or not arguments.is_none(2):
        sums = ints(3 if has_sums else 2, "<i4").reshape(-1)
    need(arguments.number(5) == 0)
    multiplier, shift = arguments.numbers(7)[0], arguments.numbers(8)[0]
    rows = x.numel // depth
    return _Convolution(
        batch=1,
        channels=depth,
        rows=_Axis(size=1, out=1),
        columns=_Axis(size=rows, out=rows),
        weights=weights,
        sums=sums,
        # Sums of programs for MVE hold the part of the offset.
        x_offset=0 if has_sums else arguments.number(4),
        multipliers=np.full(outputs, multiplier),
        shifts=np.full(outputs, shift),
        offset=arguments.number(6),
        low=arguments.number(10),
        high=arguments.number(9),
    )


def _check(conv: _Convolution, most: int) -> None:
    """Check what all kernels need.

    Raises:
        UnknownCallError: The packed kernels cannot take this.
    """
    # Items are within int8 because the kernels saturate; nothing else limits them.
    need(conv.low == _LOWEST and conv.high == _HIGHEST)
    need(conv.batch > 0 and conv.rows.out > 0 and conv.columns.out > 0)
    need(_LOWEST <= -conv.x_offset <= _HIGHEST)  # an item of padding
    need(bool((conv.shifts <= 0).all() and (conv.shifts >= _LEAST_SHIFT).all()))
    need(bool((_largest(conv) < most).all()))


def _starts(conv: _Convolution) -> Ints:
    """What each sum of inputs and weights starts with."""
    found: Ints = conv.sums + conv.x_offset * conv.weights.sum(axis=1)
    return found


def _largest(conv: _Convolution) -> Ints:
    """How large each sum can be, whatever the inputs are."""
    import numpy as np  # noqa: PLC0415  # only where something is packed

    weights = np.abs(conv.weights).sum(axis=1)
    found: Ints = np.abs(_starts(conv)) - _LOWEST * weights
    return found


def _groups(conv: _Convolution) -> list[int]:
    """The words of `PackedDepthwise` and of the groups that follow."""
    import numpy as np  # noqa: PLC0415

    channels, taps = conv.weights.shape
    weights = np.pad(conv.weights, ((0, 0), (0, 2 * conv.pairs - taps)))
    starts = _starts(conv)
    words: list[int] = []
    for first in range(0, channels, _TILE):
        those = range(first, first + _TILE)
        words += [first, *(int(starts[c]) for c in those)]
        for tap in range(0, 2 * conv.pairs, 2):
            for c in (first, first + 2):
                items = weights[c : c + 2, tap : tap + 2].T.astype(np.int8)
                words.append(int.from_bytes(items.tobytes(), "little"))
        for c in those:
            words += [int(conv.multipliers[c]), 256 * c - int(conv.shifts[c])]
    header = _depthwise_header(conv, conv.pairs, len(words))
    return [_int32(word) for word in (*header, *words)]


def _tiles(conv: _Convolution, *, even: bool = False) -> list[int]:
    """The words of `PackedConvolution` and of the tiles that follow.

    Raises:
        UnknownCallError: The packed kernel cannot take this.
    """
    import numpy as np  # noqa: PLC0415

    sums = _starts(conv)
    outputs, taps = conv.weights.shape
    weights = np.pad(conv.weights, ((0, 1), (0, conv.depth - taps)))
    may_be_b = _largest(conv) < _MOST_B
    if even:
        pairs = [
            (first + a, first + b)
            for first in range(0, outputs, _TILE)
            for a, b in _pairs(
                conv.weights[first : first + _TILE], may_be_b[first : first + _TILE]
            )
        ]
    else:
        pairs = _pairs(conv.weights, may_be_b)
    # An empty pair goes where the next one does.
    if len(pairs) % 2:
        pairs.insert(0, (_NOBODY, _NOBODY))
    sums = np.append(sums, 0)
    multipliers, shifts = np.append(conv.multipliers, 0), np.append(conv.shifts, 0)
    words: list[int] = []
    for first, second in zip(pairs[::2], pairs[1::2], strict=True):
        for a, b in (first, second):
            products = int((weights[a][::2] * weights[a][1::2]).sum())
            words += [int(sums[a] + 256 * sums[b]), int(sums[a]) - products]
        joined = [256 * weights[b] + weights[a] for a, b in (first, second)]
        for tap in range(0, conv.depth, _TILE):
            for h in joined:
                words += [_two(h[tap], h[tap + 2]), _two(h[tap + 1], h[tap + 3])]
        if even:
            places = bytes(c % _TILE for c in (*first, *second))
            words.append(int.from_bytes(places, "little"))
            continue
        for a, b in (first, second):
            # What is nobody's goes where something is written later.
            place = b if b != _NOBODY else second[1]
            for channel in (a, b):
                to = channel if channel != _NOBODY else place
                words += [int(multipliers[channel]), 256 * to - int(shifts[channel])]
    tile_bytes = _TILE * conv.depth
    header = (
        *_header(conv, conv.depth),
        *(tile_bytes, _WORD * len(words), conv.offset),
        *((int(conv.multipliers[0]), -int(conv.shifts[0])) if even else (0, 0)),
    )
    return [_int32(word) for word in (*header, *words)]


def _vector_groups(conv: _Convolution) -> list[int]:
    """The words of `PackedDepthwise` and of groups of eight channels, for vectors."""
    import numpy as np  # noqa: PLC0415

    channels, taps = conv.weights.shape
    more = -channels % len(_EIGHT)
    padding = ((0, more), (0, -taps % _TILE))
    weights = np.pad(conv.weights, padding).astype(np.int8)
    starts, multipliers, shifts = (
        np.pad(a, (0, more)) for a in (_starts(conv), conv.multipliers, conv.shifts)
    )
    words: list[int] = []
    for first in range(0, channels, len(_EIGHT)):
        those = [first + c for c in _EIGHT]
        tile = weights[first : first + len(_EIGHT)].reshape(len(_EIGHT), -1, _TILE)
        items = tile.swapaxes(0, 1).tobytes()
        words += [*starts[those].tolist(), *np.frombuffer(items, "<i4").tolist()]
        words += [*multipliers[those].tolist(), *shifts[those].tolist()]
    if taps <= _TILE:
        # The kernel reads four times four taps, whatever they are.
        words += [0] * len(_EIGHT)
    header = _depthwise_header(conv, _up(taps, _TILE) // 2, len(words))
    return [_int32(word) for word in (*header, *words)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Strips:
    """How a depthwise call goes over an image, in lines along one of its dimensions.

    Args:
        is_turned: Whether lines are columns of the image.
        lines: Of the output that one strip serves.
        phases: With a stride of two, even columns are one phase, odd ones another.
        pixels: The most of a line at once.
        reach: How many columns of a phase a window has after the first one.
    """

    across: _Axis
    along: _Axis
    is_turned: bool
    lines: int
    phases: int
    pixels: int
    reach: int

    @property
    def columns(self) -> int:
        """Of a phase."""
        return self.pixels + self.reach

    @property
    def scratch_bytes(self) -> int:
        """Zeros for two pixels, padding, and the strip."""
        return 2 * _COLUMN + _LANES + _COLUMN * self.phases * self.columns

    @property
    def cost(self) -> int:
        """About how many instructions 16 channels take."""
        parts = -(-self.along.out // self.pixels)
        columns = self.phases * (self.along.out + parts * self.reach)
        strips = -(-self.across.out // self.lines)
        pixels = self.across.out * (self.along.out + self.along.out % 2)
        return strips * (13 * columns + 120 * parts) + 80 * pixels


def _best_strips(conv: _Convolution) -> _Strips | None:
    """The way that costs least, or None if there is none."""
    # The kernel has no rounding for outputs below the offset: they end at the limit.
    if conv.offset != _LOWEST:
        return None
    ways = (
        _strips(conv.rows, conv.columns, is_turned=False),
        _strips(conv.columns, conv.rows, is_turned=True),
    )
    return min((w for w in ways if w is not None), key=lambda w: w.cost, default=None)


def _strips(across: _Axis, along: _Axis, *, is_turned: bool) -> _Strips | None:
    """Strips along one dimension, if the kernel can have them."""
    window = (along.kernel - 1) * along.dilation
    phases = min(along.stride, window + 1)
    reach = window // along.stride
    if across.kernel > _ACROSS or along.kernel > _ALONG or along.out == 1:
        return None
    most = (_STRIP // phases - reach) // 2 * 2
    if phases > _MOST_PHASES or most <= 0:
        return None
    parts = -(-along.out // most)
    is_next = across.stride == across.dilation == 1
    return _Strips(
        across=across,
        along=along,
        is_turned=is_turned,
        lines=1 + _ACROSS - across.kernel if is_next else 1,
        phases=phases,
        pixels=along.out if parts == 1 else _up(-(-along.out // parts), 2),
        reach=reach,
    )


def _strip_groups(conv: _Convolution, strips: _Strips) -> list[int]:
    """The words of `PackedDepthwiseStrips` and of the groups that follow."""
    import numpy as np  # noqa: PLC0415

    across, along = strips.across, strips.along
    channels = len(conv.weights)
    more = -channels % len(_EIGHT)
    order = np.arange(channels + more).reshape(-1, len(_EIGHT))[:, _EIGHT].reshape(-1)
    windows = conv.weights.reshape(channels, conv.rows.kernel, conv.columns.kernel)
    if not strips.is_turned:
        windows = windows.swapaxes(1, 2)
    spaces = ((0, more), (0, _ALONG - along.kernel), (0, _ACROSS - across.kernel))
    weights = np.pad(windows, spaces)[order].astype(np.int8).tobytes()
    scales = np.array(
        [
            np.pad(a, (0, more))[order].reshape(-1, _TILE)
            for a in (_starts(conv), conv.multipliers, conv.shifts)
        ]
    ).swapaxes(0, 1)
    # Columns of weights that do not exist are like the first one, with zeros.
    taps = [k * along.dilation if k < along.kernel else 0 for k in range(_ALONG)]
    line_in, line_out = (
        (channels, conv.columns.size * channels),
        (channels, conv.columns.out * channels),
    )
    steps = (line_in[::-1], line_out[::-1])
    if strips.is_turned:
        steps = (line_in, line_out)
    header = (
        *(*across.words(), *along.words()),
        *(conv.batch, channels, -conv.x_offset, *steps[0], *steps[1]),
        *(strips.lines, strips.pixels, strips.phases, strips.columns),
        *(
            _COLUMN * (tap % along.stride * strips.columns + tap // along.stride)
            for tap in taps
        ),
        *(len(weights), 0),
    )
    words = np.frombuffer(weights, "<i4").tolist() + scales.reshape(-1).tolist()
    return [_int32(word) for word in (*header, *words)]


def _depthwise_header(conv: _Convolution, pairs: int, words: int) -> tuple[int, ...]:
    """The words of `PackedDepthwise`."""
    return (
        *(*conv.rows.words(), *conv.columns.words()),
        *(conv.batch, conv.channels, -conv.x_offset, pairs),
        *(_WORD * words, conv.offset),
    )


def _two_pixels(conv: _Convolution, depth: int) -> list[int]:
    """The words of `PackedConvolution` and of tiles of four channels, for vectors."""
    words = [*_header(conv, depth)]
    scales = [(m, s) for m, s in zip(conv.multipliers, conv.shifts, strict=True)]
    scales += [(0, 0)] * (_TILE - 1)
    for first, tile in enumerate(_vectors(conv, depth, range(_TILE))):
        those = scales[_TILE * first : _TILE * (first + 1)]
        words += [*tile, *(int(m) for m, _ in those), *(int(s) for _, s in those)]
    return [_int32(word) for word in words]


def _pixel(conv: _Convolution, depth: int) -> list[int]:
    """The words of `PackedPixel` and of tiles of eight channels."""
    scale = int(conv.multipliers[0]), int(conv.shifts[0])
    words = [*_header(conv, depth), *scale]
    for tile in _vectors(conv, depth, _EIGHT):
        words += tile.tolist()
    return [_int32(word) for word in words]


def _vectors(conv: _Convolution, depth: int, order: Sequence[int]) -> Iterator[Ints]:
    """What each tile has for vectors: starts of sums, and weights."""
    import numpy as np  # noqa: PLC0415

    outputs, taps = conv.weights.shape
    more = -outputs % len(order)
    starts = np.pad(_starts(conv), (0, more))
    weights = np.pad(conv.weights, ((0, more), (0, depth - taps))).astype(np.int8)
    for first in range(0, outputs, len(order)):
        those = [first + c for c in order]
        steps = weights[those].reshape(len(order), -1, _LANES).swapaxes(0, 1)
        yield np.append(starts[those], np.frombuffer(steps.tobytes(), "<i4"))


def _header(conv: _Convolution, depth: int) -> tuple[int, ...]:
    """The words of `PackedConvolution`."""
    outputs = len(conv.weights)
    rows, columns, batch = conv.rows, conv.columns, conv.batch
    if conv.is_matrix:
        batch, rows = 1, _Axis(size=1, out=1)
        columns = _Axis(size=conv.pixels, out=conv.pixels)
    return (
        *(*rows.words(), *columns.words()),
        *(batch, conv.channels, outputs, depth),
        # A tap outside the image counts as one of the zero point.
        *(-conv.x_offset, conv.offset),
    )


_NOBODY: Final = -1
"""Stands for a channel without weights."""


def _pairs(weights: Ints, may_be_b: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Channels two by two, A and B, so that 256 * B + A has 16 bits.

    It has not where B is -128 and A is negative.

    Raises:
        UnknownCallError: There are no such pairs.
    """
    lowest = weights == _LOWEST
    left = list(range(len(weights)))
    pairs = []
    if len(left) % 2:
        # A without weights goes with any B.
        alone = next((c for c in reversed(left) if may_be_b[c]), None)
        if alone is None:
            raise UnknownCallError
        left.remove(alone)
        pairs.append((_NOBODY, alone))
    # Those with many -128 first: they have the fewest partners.
    left.sort(key=lambda c: (may_be_b[c], -int(lowest[c].sum()), c))
    while left:
        one = left.pop(0)
        for other in left:
            for a, b in ((one, other), (other, one)):
                if may_be_b[b] and not (lowest[b] & (weights[a] < 0)).any():
                    pairs.append((a, b))
                    left.remove(other)
                    break
            else:
                continue
            break
        else:
            raise UnknownCallError
    return pairs


def _up(count: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-count // step) * step


def _two(low: int, high: int) -> int:
    """Two numbers of 16 bits in a word."""
    return (int(low) & 0xFFFF) | (int(high) & 0xFFFF) << 16


def _int32(word: int) -> int:
    """The low 32 bits, signed."""
    return (word + (1 << 31)) % (1 << 32) - (1 << 31)
