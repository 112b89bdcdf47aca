"""Depthwise convolutions: groups of channels, for DSP instructions and for vectors.

The kernels are op_packed_depthwise.cpp and op_packed_depthwise_3x3.cpp of kernels/cortex_m.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, Final, Self

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.packing.convolution import (
    LOWEST,
    TILE,
    WORD,
    Convolution,
    starts_of,
    up,
)
from orchestrator.method.passes.packing.header import (
    LANES,
    SETUP,
    Packed,
    Windows,
    bytes_in,
    overlap_of,
    tiles_of,
)
from orchestrator.method.passes.packing.pixel import EIGHT
from orchestrator.method.passes.packing.scaling import scales
from orchestrator.method.windows import Core, Cost, Image, OverlapRule, ScratchSavingVariant

# Where more is needed, the kernel for any window takes the call: it needs two distances of each tap
# and a pixel of padding.
_LITTLE: Final = 4
"""Scratch memory for rows of an image is one part in so many of it at most."""
_WINDOW: Final = 3
# `kChannelWords` of op_packed_depthwise_3x3.cpp: multiplier, what is added, six pairs of weights
# for three columns, and the start.
_CHANNEL_WORDS: Final = 9
"""Words of a channel of 3 x 3 in scratch memory."""
# `ssat #8, asr #11` in packed_windows_dsp.cpp; its `kOffset` has the same shift.
_RIGHT: Final = 11
"""Bits that the assembly for windows of 3 x 3 shifts to the right."""
# -128 shifted by 8 is the lowest number of 16 bits.
_MOST_LEFT: Final = 8
"""Bits that weights can be shifted to the left, to have 16 at most."""
# `PackedChannel` of packed_dsp.h. Even bytes of a word are one pair and odd bytes another, as
# SXTB16 takes them.
_ORDER: Final = (8, 0, 1, 3, 4, 2, 6, 5, 7)
"""Order of the nine weights in memory: the last first, the others as kernels pair."""
# 640 bytes at most. Two parts of a row share up to two columns of inputs, which are paired twice:
# shorter parts take more time.
_MOST_COLUMNS: Final = 20
"""Columns of inputs where a row is computed in parts."""
# `kColumnWords` of op_packed_depthwise_3x3.cpp: two pairs for each of four channels.
_COLUMN_BYTES: Final = 32
"""Scratch memory for each of these columns."""


@dataclass(frozen=True, kw_only=True)
class Depthwise(Windows):
    """`PackedDepthwise` of packed.h."""

    IS_AT_ONCE: ClassVar = False
    """Whether the kernel computes whole rows of some channels."""

    batch: int
    channels: int
    outputs: int
    padding: int
    pairs: int
    group_bytes: int
    offset: int

    @classmethod
    def of_groups(cls, conv: Convolution, pairs: int, groups: bytes, scratch_bytes: int) -> Packed:
        """A call whose groups of channels are known."""
        header = cls(
            rows=conv.rows,
            columns=conv.columns,
            batch=conv.batch,
            channels=conv.channels,
            outputs=len(conv.weights),
            padding=-conv.x_offset,
            pairs=pairs,
            group_bytes=len(groups),
            offset=conv.offset,
        )
        return Packed(header, groups, scratch_bytes)

    @classmethod
    def packed_dsp(cls, conv: Convolution) -> Packed:
        """A call for DSP instructions, in groups of four channels: with one output of each."""
        import numpy as np  # noqa: PLC0415  # only where something is packed

        (outputs, taps), count = conv.weights.shape, 2 * conv.pairs
        weights = np.pad(conv.weights, ((0, 0), (0, count - taps))).astype(np.int8)
        starts, each = starts_of(conv), outputs // conv.channels
        data = bytearray()
        for first, number in product(range(0, conv.channels, TILE), range(each)):
            begin = min(first, conv.channels - TILE)
            those = range(begin * each + number, (begin + TILE) * each, each)
            data += bytes_in("<i4", begin, *starts[those].tolist())
            # For each pair of taps: channels 0 and 1, then 2 and 3.
            tile = weights[those].reshape(2, 2, conv.pairs, 2)
            data += tile.transpose(2, 0, 3, 1).tobytes()
            for c in those:
                # Inputs of channels that the group before had may be overwritten.
                to = c if c >= first * each else those[-1]
                data += bytes_in("<i4", conv.multipliers[c], 256 * to - conv.shifts[c])
        # Two tables: one for pixels whose taps are all in the image, one for the others.
        # Pointers to taps, distances of others, and a pixel of padding.
        scratch_bytes = 2 * WORD * count + conv.channels
        return cls.of_groups(conv, conv.pairs, bytes(data), scratch_bytes)

    @classmethod
    def packed_mve(cls, conv: Convolution) -> Packed | None:
        """A call for vectors, in groups of eight channels; None for a few channels."""
        import numpy as np  # noqa: PLC0415

        channels, taps = conv.weights.shape
        # Eight channels are computed whatever there are: for 5 x 5 windows of three, on 9 x 9
        # pixels, that takes 37,000 instructions, a convolution with weights of zero 9,000.
        if channels < TILE:
            return None
        more = -channels % len(EIGHT)
        weights = np.pad(conv.weights, ((0, more), (0, -taps % TILE))).astype(np.int8)
        starts, multipliers, shifts = (
            np.pad(a, (0, more)).astype("<i4")
            for a in (starts_of(conv), conv.multipliers, conv.shifts)
        )
        data = bytearray()
        for first in range(0, channels, len(EIGHT)):
            those = [first + c for c in EIGHT]
            tile = weights[first : first + len(EIGHT)].reshape(len(EIGHT), -1, TILE)
            data += starts[those].tobytes() + tile.swapaxes(0, 1).tobytes()
            data += multipliers[those].tobytes() + shifts[those].tobytes()
        if up(taps, TILE) % LANES == TILE:
            # The kernel reads four times four taps, whatever they are.
            data += bytes(WORD * len(EIGHT))
        # Pointers and distances, taps of 16 channels, and a pixel of padding.
        scratch_bytes = 2 * WORD * up(taps, TILE) + LANES * up(taps, LANES) + channels
        return cls.of_groups(conv, up(taps, TILE) // 2, bytes(data), scratch_bytes)

    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        fours = up(self.outputs, TILE) // TILE
        pixel = 2 * self.pairs * TILE * fours
        if core.isa == "dsp":
            # `orch_packed_depthwise` takes 20 for two taps of four channels, and 44 for what ends
            # them. The rest is `find_taps`: windows of 1 x 3, 3 x 3 and 5 x 5 in the emulator.
            pixel = 30 + 14 * self.rows.kernel + fours * (44 + 20 * self.pairs)
        tile = self.columns.out * pixel
        return (Cost(setup=SETUP[core.isa] + 2 * self.channels, tile=tile),)

    def overlap(self, source: Image, out: Image) -> OverlapRule | None:
        if self.outputs != self.channels:
            return None
        return overlap_of(self.columns, source, out, is_at_once=self.IS_AT_ONCE)


@dataclass(frozen=True, kw_only=True)
class Depthwise3x3(Depthwise):
    """`PackedDepthwise` of windows of 3 x 3, for DSP instructions.

    `pairs` are the outputs of a row that the kernel for parts of a row computes at once.
    """

    IS_AT_ONCE: ClassVar = True

    @classmethod
    def packed(cls, conv: Convolution) -> Packed:
        """A call.

        Raises:
            UnknownCallError: The kernel cannot take this.
        """
        import numpy as np  # noqa: PLC0415

        # Two pairs of rows for each column, and weights of the channels in them.
        scratch_bytes = (2 * conv.columns.reach + _CHANNEL_WORDS) * WORD * TILE
        need(_LITTLE * scratch_bytes <= conv.rows.size * conv.columns.size * conv.channels)
        need(conv.depthwise)
        windows = {(a.kernel, a.stride, a.dilation) for a in (conv.rows, conv.columns)}
        # Outputs have no rounding of ties below the offset: they have to end at the limit there.
        need(windows in ({(_WINDOW, 1, 1)}, {(_WINDOW, 2, 1)}) and conv.offset == LOWEST)
        starts = starts_of(conv)
        data = bytearray()
        for channel, scale in enumerate(scales(conv, right=_RIGHT)):
            if scale is None or scale.left > _MOST_LEFT:
                raise UnknownCallError
            weights = conv.weights[channel][[*_ORDER]].astype(np.int8)
            data += struct.pack(
                "<iihb9s",
                int(starts[channel]) << scale.left,
                scale.multiplier,
                scale.added - (LOWEST << _RIGHT),
                scale.left,
                weights.tobytes(),
            )
        return cls.of_groups(conv, conv.columns.out, bytes(data), scratch_bytes)

    # Instructions, from loops of the assembly.

    @property
    def _fours(self) -> int:
        return tiles_of(self.channels)

    @property
    def is_two(self) -> bool:
        """Whether the kernel computes two rows at once."""
        return self.columns.stride == 1

    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        # `orch_pair_two` of packed_windows_dsp.cpp takes 16 for a column of four channels; 70 are
        # the C++ of a pair of rows.
        pairs = 16 * self.columns.size + 70
        # `orch_rows`, a column of outputs of a channel: 16 for one row, 26 for two rows, or 24
        # where two columns are computed together (`ORCH_PAIRS`). 15 are around a channel, 50 expand
        # the weights of one.
        each = 16 if not self.is_two else 24 if core.fast else 26
        few = (self.row_cost(self.columns.out), *((self.two_rows_cost,) if self.is_two else ()))
        return (
            Cost(
                # Weights of four channels, and the pair of rows that windows begin with.
                setup=SETUP["dsp"] + self._fours * (200 + pairs),
                tile=self._fours * (pairs + TILE * (each * self.columns.out + 15)),
                together=2 if self.is_two else 1,
                first_rows=few,
            ),
        )

    def row_cost(self, at_once: int) -> int:
        """Instructions of the kernel for one row, some outputs at a time."""
        columns = self.columns.out
        # What outputs take; what columns of inputs do, some of which two parts have; what each part
        # does.
        shared = _WINDOW - self.columns.stride
        parts = -(-columns // at_once)
        # `orch_pair_three`: 17 for a column of four channels. `orch_one_row`: 28 for two outputs of
        # a channel, 20 around a channel, 40 around four of them. Bands of DS-CNN take 1.00 to 1.03
        # of this in the emulator.
        inputs = 17 * (self.columns.size + shared * (parts - 1))
        row = inputs + TILE * 14 * columns + (TILE * 20 + 40) * parts
        return SETUP["dsp"] * parts + self._fours * row

    @property
    def two_rows_cost(self) -> int:
        """Instructions of the kernel for two rows, or one, of whole rows."""
        # `orch_pair_four`: 20 for a column; `orch_both_rows`: 28 for an output of both rows.
        row = 20 * self.columns.size + TILE * (28 * self.columns.out + 22) + 40
        return SETUP["dsp"] + self._fours * row

    # Kernels for one row, or parts of it, and for two rows.

    @property
    def _has_inputs(self) -> bool:
        """Whether some windows side by side always have inputs, as the kernels want."""
        # `run_band` fills what lies beside the image from where it begins and ends: at least one
        # column has to be in it.
        padding = self.columns.padding
        last = (self.columns.out - 1) * self.columns.stride - padding
        return padding < _WINDOW and last < self.columns.size and self.batch == 1

    @property
    def _at_once(self) -> int:
        """Outputs of a row that are computed at once: parts are as equal as they can be."""
        columns = self.columns.out
        most = (_MOST_COLUMNS - _WINDOW) // self.columns.stride + 1
        return -(-columns // -(-columns // most))

    def scratch_saving(self, core: Core, rows: int, weights: Bytes) -> ScratchSavingVariant | None:
        if not self._has_inputs:
            return None
        columns = (self._at_once - 1) * self.columns.stride + _WINDOW
        cost = Cost(first_rows=(self.row_cost(self._at_once),))
        return ScratchSavingVariant(
            scratch_bytes=_COLUMN_BYTES * columns, costs=(cost,), one_row=True
        )

    def with_scratch_saving(self) -> tuple[str, Self]:
        kernel = "packed_depthwise_row" if self.is_two else "packed_depthwise_row_by_two"
        return kernel, replace(self, pairs=self._at_once)

    def saved(self, kernel: str, narrow: str) -> int | None:
        rows, (cost,) = self.rows.out, self.costs(Core("dsp"), 1, b"")
        if kernel == "packed_depthwise_two_rows":
            one = self.row_cost(self.columns.out)
            return self.two_rows_cost - one if rows == 1 else None
        is_both = narrow == "packed_depthwise_two_rows" and self.is_two
        is_one = narrow == self.with_scratch_saving()[0] and rows == 1
        if not (is_both or is_one) or not self._has_inputs or rows > len(cost.first_rows):
            return None
        # With the kernel that takes the most rows.
        return replace(cost, first_rows=()).of(rows) - cost.first_rows[-1]
