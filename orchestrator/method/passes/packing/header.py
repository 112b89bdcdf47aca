"""What a call with packed weights is: the struct that its kernel reads, and its family.

A family of kernels is a class. Its fields are those of the struct in kernels/cortex_m, in
order; its methods say how a call is packed, which rows its bands need, and what they cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple, Self, SupportsInt

from orchestrator.core.lazy_bytes import Bytes, settled
from orchestrator.method.passes.inventory import PACKED, Row
from orchestrator.method.passes.packing.convolution import TILE, WORD, Convolution
from orchestrator.method.windows import (
    Axis,
    Core,
    Cost,
    Image,
    OverlapRule,
    Rows,
    ScratchSavingVariant,
    Window,
)

LANES: Final = 16
"""Items of a vector."""
ONE: Final = Axis(size=1, out=1)
"""An image of one row: all pixels lie in a line."""
# C++ around the loops. Fitted to runs by rows in the emulator: DS-CNN on an M4, a U-Net and
# MobileNetV2 on an M55.
SETUP: Final = {"scalar": 900, "dsp": 170, "mve": 160}
"""Instructions of a call beside its loops. On scalar cores: of any call."""
# Chosen by hand. With 1.0 for bands, arenas of the smallest plans on an M55 are larger: ResNet-8
# takes 1,152 bytes more, MobileNetV1 0.25 takes 576. With 1.2 MobileNetV1 takes 64 less.
NEARLY_AS_FAST: Final = 1.08
"""How many times the cost of the fastest call one with less scratch memory may have."""
_AXIS_WORDS: Final = 6


def bytes_in(dtype: str, *numbers: SupportsInt) -> bytes:
    """Numbers in memory; those that are too large wrap around, as sums do."""
    import numpy as np  # noqa: PLC0415  # only where something is packed

    return np.array(numbers, np.int64).astype(dtype).tobytes()


def bytes_of(words: Iterable[int]) -> Bytes:
    """Words as a constant has them."""
    return settled(bytes_in("<i4", *words))


class Room(NamedTuple):
    """Memory that scratch tensors of a call may have.

    Args:
        spare_bytes: How much less is live at the call than where most is.
        live_bytes: How much is live there.
    """

    spare_bytes: int
    live_bytes: int = 0


@dataclass(frozen=True, kw_only=True)  # without slots, so that methods can call `super`
class Header(ABC):
    """The struct of a call, and what its family can do: by default nothing by rows."""

    @classmethod
    def kernels(cls) -> tuple[Row, ...]:
        """Kernels of the family, the one that takes any of its calls first."""
        return tuple(row for row in PACKED if row.of == cls.__name__)

    @classmethod
    def of(cls, words: Sequence[int]) -> Self:
        """The struct that some words begin with."""
        items = iter(words)
        return cls(
            **{
                field.name: Axis.of([*islice(items, _AXIS_WORDS)])
                if field.type == Axis.__name__
                else next(items)
                for field in fields(cls)
            }
        )

    def words(self) -> tuple[int, ...]:
        """The struct as words."""
        values = (getattr(self, field.name) for field in fields(self))
        return tuple(
            word
            for value in values
            for word in (value.words() if isinstance(value, Axis) else (value,))
        )

    @property
    def is_several(self) -> bool:
        """Whether others follow it, each with its weights: several convolutions."""
        return False

    @property
    def may_write_over_input(self) -> bool:
        """Whether the output may be the memory of an input of its size."""
        return False

    @abstractmethod
    def window(self, out: Image) -> Window | None:
        """The rows of the input that rows of the output need; None: all of them."""

    @abstractmethod
    def band(self, rows: Rows, row_bytes: int) -> Self | None:
        """The struct for some rows; None if the call fills none of them.

        Args:
            rows: The band.
            row_bytes: Bytes of a row of the output.
        """

    @abstractmethod
    def costs(self, core: Core, rows: int, weights: Bytes) -> tuple[Cost, ...]:
        """Costs of a call for a band, which are added up.

        Args:
            core: What it runs on.
            rows: Rows of the output of the whole call.
            weights: The constants of the call.
        """

    def overlap(self, source: Image, out: Image) -> OverlapRule | None:
        """How bands may lie over their input; None if they may not."""
        return None

    def scratch_saving(self, core: Core, rows: int, weights: Bytes) -> ScratchSavingVariant | None:
        """What a call is with less scratch memory, if there is a kernel for that.

        Args:
            core: What it runs on.
            rows: Rows of the output of the whole call.
            weights: The constants of the call.
        """
        return None

    def with_scratch_saving(self) -> tuple[str, Self]:
        """The kernel for that, and the header that it takes."""
        return next(row.name for row in self.kernels() if row.when == "scratch"), self

    def saved(self, kernel: str, narrow: str) -> int | None:
        """Instructions that `narrow` saves in place of a kernel; None if it takes no such call."""
        return None

    def for_bands(self, packed: Packed, room_bytes: int) -> Packed | None:
        """A call of which bands are made, if that is another one.

        Args:
            packed: The call.
            room_bytes: Scratch memory that others need anyway; 0: as little as may be.
        """
        return None


class Packed(NamedTuple):
    """What a call becomes.

    Args:
        header: Its struct.
        weights: What follows that.
        scratch_bytes: Its scratch memory.
        kernel: Its kernel, if it is not the first one of the family.
    """

    header: Header
    weights: bytes
    scratch_bytes: int
    kernel: Row | None = None


def of_least_cost(calls: Iterable[tuple[int, Packed]], room_bytes: int) -> Packed:
    """The fastest of some calls that fits.

    Args:
        calls: Estimated instructions of a row, and the call; those with less scratch
            memory first.
        room_bytes: Scratch memory that others need anyway; 0: the first call that is
            nearly as fast as any.
    """
    found = [*calls]
    least = min(cost for cost, _ in found)
    # Calls come with growing scratch memory, so this is the one with the least of it.
    near = next(one for one in found if one[0] <= NEARLY_AS_FAST * least)
    fitting = [one for one in found if one[1].scratch_bytes <= room_bytes]
    return min((near, *fitting), key=itemgetter(0))[1]


@dataclass(frozen=True, kw_only=True)
class Windows(Header):
    """Any struct that begins with the windows of an image."""

    rows: Axis
    columns: Axis

    @property
    def is_turned(self) -> bool:
        """Whether the call goes along rows of the image, which are then its `columns`."""
        return False

    @property
    def image_rows(self) -> Axis:
        """Windows along the rows of the image."""
        return self.columns if self.is_turned else self.rows

    @property
    def is_line(self) -> bool:
        """Whether pixels do not depend on each other, and lie in a line."""
        axes = (self.rows, self.columns)
        return ONE in axes and all(axis.is_pixelwise for axis in axes)

    @property
    def pixels_out(self) -> int:
        """Pixels of the output."""
        return self.rows.out * self.columns.out

    def window(self, out: Image) -> Window | None:
        return Axis(size=out.rows, out=out.rows) if self.is_line else self.image_rows

    def band(self, rows: Rows, row_bytes: int) -> Self | None:
        if self.is_line:
            is_second, change = self.rows == ONE, rows.line
        else:
            is_second, change = self.is_turned, rows.axis
        if is_second:
            return replace(self, columns=change(self.columns))
        return replace(self, rows=change(self.rows))


@dataclass(frozen=True, kw_only=True)
class ConvolutionHeader(Windows):
    """`PackedConvolution` of packed.h, which the structs of convolutions begin with."""

    batch: int
    in_channels: int
    out_channels: int
    depth: int
    padding: int
    offset: int


def convolution_fields(conv: Convolution, depth: int) -> dict[str, Any]:
    """The fields of a `ConvolutionHeader`."""
    return {
        "rows": conv.rows,
        "columns": conv.columns,
        "batch": conv.batch,
        "in_channels": conv.channels,
        "out_channels": len(conv.weights),
        "depth": depth,
        # A tap outside the image counts as one of the zero point.
        "padding": -conv.x_offset,
        "offset": conv.offset,
    }


def overlap_of(
    columns: Axis, source: Image, out: Image, *, is_at_once: bool, rows: float = float("inf")
) -> OverlapRule:
    """The rule of a depthwise kernel, which computes some channels after the other.

    Args:
        columns: Windows along a row.
        source: The image that is read.
        out: The image that is filled.
        is_at_once: Whether it computes whole rows, unless they are few pixels at once.
        rows: Rows that a call may compute.
    """
    # The last part of a row of strips begins a pixel earlier if it has only one; all
    # before have an even number.
    lead = lead_bytes(columns, source, out, early=columns.out % 2)
    return OverlapRule(
        # A kernel that pairs whole rows has read all of a channel before it writes.
        lead_bytes=0 if is_at_once else lead,
        few_bytes=lead,
        pixel_bytes=source.row_bytes // columns.size,
        rows=rows,
    )


def lead_bytes(columns: Axis, source: Image, out: Image, *, early: int = 0) -> int:
    """Bytes that are written, at most, before the first input that is still to come.

    A part of a row that begins with pixel n needs inputs from n * stride - padding on.

    Args:
        columns: Windows along a row.
        source: The image that is read.
        out: The image that is filled.
        early: Pixels of the part before that the last part computes again.
    """
    inputs, outputs = source.row_bytes // columns.size, out.row_bytes // columns.out
    return max(
        0,
        *(
            n * outputs - ((n - early) * columns.stride - columns.padding) * inputs
            # What is written less what is read grows or shrinks evenly with `n`: the ends suffice.
            for n in (1 + early, max(columns.out - 1, 1 + early))
        ),
    )


def tiles_of(count: int, tile: int = TILE) -> int:
    """How many tiles so many channels are; the last one may not be full."""
    return -(-count // tile)


def word_of(data: Bytes) -> int:
    """The first word of some constants."""
    return int.from_bytes(data[:WORD], "little", signed=True)
