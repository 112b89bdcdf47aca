"""Weights in the order of the kernels for DSP instructions.

kernels/cortex_m/packed_dsp.h has the formats.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from orchestrator.core.layout import logical_items
from orchestrator.core.lazy_bytes import settled
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.joining import with_call, with_slots
from orchestrator.method.passes.packing.convolution import (
    LOWEST,
    TILE,
    WORD,
    depthwise_header,
    int32,
    largest_sums,
    line_header,
    starts_of,
    up,
)
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.method.passes.packing.convolution import Convolution

    Ints = NDArray[np.int64]
    Scales: TypeAlias = "Sequence[Scale | None]"


# From sums to outputs in one step, as the kernels for DSP instructions compute it.
#
# kernels/cortex_m/packed_dsp.h has the formula.

_BITS: Final = 31
"""Of a number, and of a multiplier."""
_HIGH_HALF: Final = 32
"""Bits that the product drops."""


class Scale(NamedTuple):
    """How a sum becomes an output.

    Args:
        multiplier: As large as it can be.
        added: To the high half of the product.
        left: Bits to shift the sum before.
        right: Bits to shift what comes out.
        ties: Taken off where the sum is negative.
    """

    multiplier: int
    added: int
    left: int
    right: int
    ties: int


def scales(conv: Convolution, *, left: int = 0, right: int = 0) -> tuple[Scale | None, ...]:
    """The scale of each output that has one, with a shift to the left or the right."""
    limits = (int(largest) for largest in largest_sums(conv))
    return tuple(
        _scale_of_group(conv, output, left=left, right=right, largest=largest)
        for output, largest in enumerate(limits)
    )


def _scale_of_group(
    conv: Convolution, output: int, *, left: int, right: int, largest: int
) -> Scale | None:
    multiplier, shift = int(conv.multipliers[output]), -int(conv.shifts[output])
    if multiplier < 0:
        return None
    more = _BITS - multiplier.bit_length() if multiplier else 0
    if right:
        left = right + 1 - shift - more
    right = shift + more + left - 1
    # What is below the high half of the product is a rounding of whole numbers.
    if left < 0 or more + left < 2 or right >= _BITS:  # noqa: PLR2004
        return None
    added = 1 << (more + _BITS - 1 + left - _HIGH_HALF)
    if shift:
        added += 1 << (right - 1)
    added += conv.offset << right
    ties = 1 << (more + _BITS + left - _HIGH_HALF)
    # Sums that are negative give outputs below the offset.
    if not shift or conv.offset <= conv.low:
        ties = 0
    # Products are less than 2^30, and ties than what is added to positive ones.
    if largest << left >= 1 << _BITS or abs(added) + ties >= 1 << (_BITS - 1):
        return None
    return Scale(multiplier << more, added, left, right, ties)


MOST: Final = 1 << 30
"""Bound on sums."""
STEP: Final = 2 * TILE
"""Taps of a step of the loop over matrix products."""
PIXELS: Final = 3
"""Pixels at once of other products."""
CHANNEL_WORDS: Final = 9
"""Of a channel of 3 x 3 in scratch memory."""
_A_RIGHT: Final = 13
"""Bits that the assembly shifts the first channel of a pair to the right."""
_B_LEFT: Final = 8
"""Bits that the second one is shifted to the left, by its weights."""
PAIR_WORDS: Final = 8
"""Of a pair of channels besides its weights."""
_3X3_RIGHT: Final = 11
"""Bits that the assembly for windows of 3 x 3 shifts to the right."""
_3X3_MOST_LEFT: Final = 8
"""Bits that weights can be shifted to the left, to have 16 at most."""
_3X3_ORDER: Final = (8, 0, 1, 3, 4, 2, 6, 5, 7)
"""Order of the nine weights in memory: the last first, the others as kernels pair."""
_COPY, _COPY_ITEM = 128, 4
"""Instructions that the copy of a window takes, and for each item: measured. One more
tap takes about one for each output."""
EMPTY: Final = -1
"""Stands for a channel without weights."""


def groups(conv: Convolution) -> list[int]:
    """The words of `PackedDepthwise` and of the groups that follow."""
    import numpy as np  # noqa: PLC0415

    channels, taps = conv.weights.shape
    weights = np.pad(conv.weights, ((0, 0), (0, 2 * conv.pairs - taps)))
    starts = starts_of(conv)
    words: list[int] = []
    for first in range(0, channels, TILE):
        those = range(first, first + TILE)
        words += [first, *(int(starts[c]) for c in those)]
        for tap in range(0, 2 * conv.pairs, 2):
            for c in (first, first + 2):
                items = weights[c : c + 2, tap : tap + 2].T.astype(np.int8)
                words.append(int.from_bytes(items.tobytes(), "little"))
        for c in those:
            words += [int(conv.multipliers[c]), 256 * c - int(conv.shifts[c])]
    header = depthwise_header(conv, conv.pairs, len(words))
    return [int32(word) for word in (*header, *words)]


def channels_3x3(conv: Convolution) -> list[int]:
    """The words of `PackedDepthwise` and of the channels that follow.

    Raises:
        UnknownCallError: The packed kernel cannot take this.
    """
    import numpy as np  # noqa: PLC0415

    windows = {(a.kernel, a.stride, a.dilation) for a in (conv.rows, conv.columns)}
    need(windows in ({(3, 1, 1)}, {(3, 2, 1)}) and conv.offset == LOWEST)
    starts = starts_of(conv)
    data = bytearray()
    for channel, scale in enumerate(scales(conv, right=_3X3_RIGHT)):
        if scale is None or scale.left > _3X3_MOST_LEFT:
            raise UnknownCallError
        weights = conv.weights[channel][[*_3X3_ORDER]].astype(np.int8)
        data += struct.pack(
            "<iihb9s",
            int(starts[channel]) << scale.left,
            scale.multiplier,
            scale.added - (LOWEST << _3X3_RIGHT),
            scale.left,
            weights.tobytes(),
        )
    words = struct.unpack(f"<{len(data) // WORD}i", data)
    return [*map(int32, depthwise_header(conv, conv.columns.out, len(words))), *words]


class Pieces(NamedTuple):
    """How a kernel that takes whole words reads the inputs of a window.

    Args:
        rows: Pieces that lie side by side.
        items: Of each; where they are no whole words, the last word begins earlier.
        inner_columns: In how many columns windows in the image may begin; 0 if all of
            them are copied first.
    """

    rows: int
    items: int
    inner_columns: int

    @property
    def depth(self) -> int:
        """Taps that weights are for."""
        return self.rows * up(self.items, TILE)


def pieces(conv: Convolution) -> Pieces:
    """Rows of the window in the image, or all of its inputs in a copy."""
    rows, columns = conv.rows, conv.columns
    outputs, taps = conv.weights.shape
    copied = Pieces(1, up(taps, TILE), 0)
    items = columns.kernel * conv.channels
    inner = columns.size - (columns.kernel - 1) * columns.dilation
    found = Pieces(rows.kernel, items, conv.pixels if conv.is_matrix else max(inner, 0))
    together = columns.dilation == 1 or columns.kernel == 1
    more = found.depth - copied.depth
    if together and items >= TILE and more * outputs <= _COPY + _COPY_ITEM * taps:
        return found
    return copied


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """A convolution as pairs of channels, A and B.

    Args:
        header: The words of `PackedPairs`.
        channels: Of each pair; A is `EMPTY` where B has no partner.
        weights: [outputs + 1, taps] as the loop reads them; the last ones are zeros,
            those of an empty channel.
        sums: What the sum of each starts with.
        first: Scales of A by channel.
        second: Scales of B.
    """

    header: tuple[int, ...]
    channels: list[tuple[int, int]]
    weights: Ints
    sums: Ints
    first: Scales
    second: Scales


def paired(conv: Convolution) -> Paired:
    """The pairs of channels of a convolution.

    Raises:
        UnknownCallError: The packed kernel cannot take this.
    """
    import numpy as np  # noqa: PLC0415

    first, second = scales(conv, right=_A_RIGHT), scales(conv, left=_B_LEFT)
    all_ties = {2 * s.ties >> s.left for s in (*first, *second) if s is not None}
    need(all_ties <= {0} or all_ties <= {1})
    of = pieces(conv)
    outputs, taps = conv.weights.shape
    weights = np.zeros((outputs + 1, of.rows, of.depth // of.rows), np.int64)
    given = conv.weights.reshape(outputs, of.rows, taps // of.rows)
    whole = min(of.items // TILE * TILE, taps)
    weights[:-1, :, :whole] = given[:, :, :whole]
    if whole < given.shape[2]:
        weights[:-1, :, whole - given.shape[2] :] = given[:, :, whole:]
    channels = _pairs(conv.weights, first, second)
    all_words = len(channels) * (PAIR_WORDS + of.depth // 2)
    return Paired(
        header=(*line_header(conv, of.depth), *(2 * of.depth, WORD * all_words, *of, *all_ties)),
        channels=channels,
        weights=weights.reshape(outputs + 1, of.depth),
        sums=np.append(starts_of(conv), 0),
        first=first,
        second=second,
    )


def pixels(conv: Convolution) -> list[int]:
    """The words of `PackedPairs` and of the pairs that follow.

    Raises:
        UnknownCallError: The packed kernel cannot take this.
    """
    of = paired(conv)
    words: list[int] = []
    for a, b in of.channels:
        words += [int(of.sums[a] + (of.sums[b] << _B_LEFT)), int(of.sums[a])]
        joined = (of.weights[b] << _B_LEFT) + of.weights[a]
        for tap in range(0, len(joined), TILE):
            words += _words_of(joined[tap : tap + TILE])
        # The output of an empty channel goes where the real one is stored later.
        has_a = a != EMPTY
        words += _scale(of.first[a] if has_a else None, a if has_a else b, right=False)
        words += _scale(of.second[b], b, right=True)
    return [int32(word) for word in (*of.header, *words)]


def matrix(conv: Convolution) -> list[int]:
    """The words of `PackedMatrix` and of the tiles that follow.

    Raises:
        UnknownCallError: The packed kernel cannot take this.
    """
    import numpy as np  # noqa: PLC0415

    need(conv.is_matrix and conv.has_one_scale)
    first, second = scales(conv, right=_A_RIGHT), scales(conv, left=_B_LEFT)
    a_scale, b_scale = first[0], second[0]
    if a_scale is None or b_scale is None or None in {*first, *second}:
        raise UnknownCallError
    outputs, taps = conv.weights.shape
    depth = up(taps, STEP)
    weights = np.pad(conv.weights, ((0, 1), (0, depth - taps)))
    sums = np.append(starts_of(conv), 0)
    words: list[int] = []
    for tile in range(0, outputs, TILE):
        those = slice(tile, tile + TILE)
        pairs = _pairs(conv.weights[those], first[those], second[those])
        need(len(pairs) <= TILE // 2)
        # An empty pair goes where the next one does.
        if len(pairs) == 1:
            pairs.insert(0, (EMPTY, EMPTY))
        of = [[c if c == EMPTY else tile + c for c in pair] for pair in pairs]
        for a, b in of:
            products = int((weights[a][::2] * weights[a][1::2]).sum())
            words.append(int(sums[a] + (sums[b] << _B_LEFT)))
            words.append(int(sums[a]) - products)
        joined = [(weights[b] << _B_LEFT) + weights[a] for a, b in of]
        for tap in range(0, depth, TILE):
            for h in joined:
                words += _words_of(h[tap : tap + TILE])
        # Outputs of empty channels go where real ones are stored later.
        last = pairs[1][1]
        places = [c if c != EMPTY else b if b != EMPTY else last for a, b in pairs for c in (a, b)]
        words.append(int.from_bytes(bytes(places), "little"))
    header = (
        *(conv.pixels, taps, depth, outputs),
        *(TILE * depth, WORD * len(words), a_scale.multiplier),
        *(a_scale.added, a_scale.left, b_scale.added, b_scale.right),
        *(a_scale.ties, b_scale.ties),
    )
    return [int32(word) for word in (*header, *words)]


def _scale(scale: Scale | None, channel: int, *, right: bool) -> tuple[int, ...]:
    """The words of `PackedScale`, with the shift to the right or the left."""
    if scale is None:
        return 0, 0, channel << 8
    bits = scale.right if right else scale.left
    return scale.multiplier, scale.added, channel << 8 | bits


def _pairs(weights: Ints, first: Scales, second: Scales) -> list[tuple[int, int]]:
    """Channels two by two, A and B, so that 256 * B + A has 16 bits.

    It has not where B is -128 and A is negative. A channel without a partner is B.

    Raises:
        UnknownCallError: A channel cannot be that.
    """
    lowest, negative = weights == LOWEST, weights < 0
    left = list(range(len(weights)))
    # Those with few partners first.
    left.sort(key=lambda c: (second[c] is not None, -int(lowest[c].sum()), c))
    alone: list[tuple[int, int]] = []
    pairs: list[tuple[int, int]] = []
    while left:
        one = left.pop(0)
        for other in left:
            for a, b in ((one, other), (other, one)):
                may_be = first[a] is not None and second[b] is not None
                if may_be and not (lowest[b] & negative[a]).any():
                    pairs.append((a, b))
                    left.remove(other)
                    break
            else:
                continue
            break
        else:
            need(second[one] is not None)
            alone.append((EMPTY, one))
    return [*alone, *pairs]


def _words_of(four: Ints) -> tuple[int, int]:
    """Taps 0 and 2, and 1 and 3."""
    return _two(four[0], four[2]), _two(four[1], four[3])


def _two(low: int, high: int) -> int:
    """Two numbers of 16 bits in a word."""
    return (int(low) & 0xFFFF) | (int(high) & 0xFFFF) << 16


# Weights of float products in 4 bits, two in a byte.

MIXED: Final = "orch::quantized::mixed_linear_out"
INT4_MIXED: Final = "orch::quantized::int4_mixed_linear_out"
_WEIGHT: Final = 1
"""The argument of both."""
_LOWEST, _HIGHEST = -8, 7


def pack_pairs(method: LinkedMethod) -> LinkedMethod:
    """Store int8 weights of float products in 4 bits, where they are numbers of 4 bits.

    Source of the format: kernels/quantized/op_mixed_linear.cpp.
    """
    calls = [
        (number, call)
        for number, call in enumerate(method.instructions)
        if isinstance(call, LinkedCall) and call.function == MIXED
    ]
    if not calls:
        return method
    import numpy as np  # noqa: PLC0415

    data = method.contents
    for number, call in calls:
        index = call.args[_WEIGHT]
        value, items = method.values[index], data.get(index)
        if (
            items is None
            or not isinstance(value, TensorValue)
            or value.dim_order != (0, 1)
            or index in method.written
        ):
            continue
        weights = logical_items(items, "i1", value.sizes, value.dim_order)
        if not weights.size or weights.min() < _LOWEST or weights.max() > _HIGHEST:
            continue
        rows, columns = value.sizes
        even = np.zeros((rows, columns + columns % 2), np.uint8)
        even[:, :columns] = weights.view(np.uint8) & 15
        pairs = even[:, ::2] | even[:, 1::2] << 4
        packed = replace(value, sizes=pairs.shape, data_buffer_index=1, allocation=None, extra=None)
        method, (slot,) = with_slots(method, (packed, settled(pairs.tobytes())))
        args = (*call.args[:_WEIGHT], slot, *call.args[_WEIGHT + 1 :])
        changed = replace(call, function=INT4_MIXED, args=args)
        method = with_call(method, number, changed)
    return method
