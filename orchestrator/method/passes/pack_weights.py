"""Weights of int8 convolutions and matrix products, packed for the loop over them.

For cores with DSP or vector instructions. kernels/cortex_m/packed.h has the format, and
`packing` writes it.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import gcd
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import settled
from orchestrator.method.access import Access
from orchestrator.method.effects import effects_of_linked
from orchestrator.method.lifetimes import lifetimes, live_bytes
from orchestrator.method.passes.arguments import UnknownCallError, need
from orchestrator.method.passes.joining import with_call, with_slots
from orchestrator.method.passes.packing import dsp, mve
from orchestrator.method.passes.packing.convolution import (
    all_convolutions,
    convolutions,
    in_one_column,
)
from orchestrator.method.passes.packing.phases import groups_of, transposed
from orchestrator.method.passes.packing.strips import best_strips, strip_groups
from orchestrator.method.passes.packing.words import TILE, WORD, up
from orchestrator.method.passes.pads import fold_uneven_pads, uneven_calls
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import Allocation, Dynamism, IntValue, TensorValue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.core.lazy_bytes import Bytes
    from orchestrator.method.linked import LinkedCall, LinkedMethod
    from orchestrator.method.passes.packing.convolution import Convolution
    from orchestrator.method.passes.packing.phases import Phase
    from orchestrator.program.values import Value

CONVOLUTION: Final = "orch::cortex_m::packed_conv2d_out"
MATRIX: Final = "orch::cortex_m::packed_matrix_out"
DEPTHWISE: Final = "orch::cortex_m::packed_depthwise_out"
DEPTHWISE_3X3: Final = "orch::cortex_m::packed_depthwise_3x3_out"
STRIPS: Final = "orch::cortex_m::packed_depthwise_strips_out"
PIXELS: Final = "orch::cortex_m::packed_pixels_out"
LINES: Final = "orch::cortex_m::packed_lines_out"
PIXEL: Final = "orch::cortex_m::packed_pixel_out"
UNROLLED: Final = {n: f"orch::cortex_m::packed_pixels_{n}_out" for n in (4, 3, 2)}
"""Kernels for so many vectors at once, of products that favour speed."""
_PACKED: Final = (
    *(CONVOLUTION, MATRIX, DEPTHWISE, DEPTHWISE_3X3, STRIPS),
    *(*UNROLLED.values(), PIXELS, LINES, PIXEL),
)
LIMITED: Final = {f: f.replace("packed_", "limited_packed_") for f in _PACKED}
"""The same kernels for calls that store less than int8."""
ARGUMENTS: Final = ("input", "header", "weights", "scratch", "out")
"""Of these functions, which no schema has. There are no weights where several headers
have theirs behind them."""
LIMITED_ARGUMENTS: Final = (*ARGUMENTS[:-1], "low", "high", ARGUMENTS[-1])
"""Of those with limits."""
PACKED: Final = MappingProxyType(
    {
        **dict.fromkeys(_PACKED, ARGUMENTS),
        **dict.fromkeys(LIMITED.values(), LIMITED_ARGUMENTS),
    }
)
"""By function: its arguments."""
_HEADER_WORDS: Final = {
    CONVOLUTION: 24,
    MATRIX: 13,
    DEPTHWISE: 18,
    DEPTHWISE_3X3: 18,
    STRIPS: 27,
    **dict.fromkeys((PIXELS, *UNROLLED.values()), 27),
    LINES: 20,
    PIXEL: 20,
}
"""Of the structs of kernels/cortex_m/packed.h and packed_dsp.h."""
_PHASED: Final = frozenset({PIXELS, *UNROLLED.values()})
_FEW: Final = 8
"""A kernel for single pixels has to save one part in so many of all products."""
_LITTLE: Final = 4
"""Scratch memory for rows of an image is one part in so many of it at most."""
_WRITES: Final = (Access.FILLS, Access.WRITES)


class _Packed(NamedTuple):
    """What a call becomes.

    Args:
        function: Its kernel.
        words: Of its constants.
        scratch_bytes: Its scratch memory.
    """

    function: str
    words: list[int]
    scratch_bytes: int


def pack_for_dsp(method: LinkedMethod) -> LinkedMethod:
    """Pack the weights of all calls that the kernels for DSP instructions can take."""
    return _with_pads(method, _packed_dsp)


def pack_for_mve(method: LinkedMethod, *, fast: bool = False) -> LinkedMethod:
    """Pack the weights of all calls that the kernels for vectors can take.

    Args:
        method: The method.
        fast: Whether speed is worth the flash of more kernels.
    """
    return _with_pads(method, partial(_packed_mve, fast=fast))


def _with_pads(
    method: LinkedMethod, pack: Callable[[LinkedMethod], LinkedMethod]
) -> LinkedMethod:
    """Pack weights, with pads that only packed kernels can take into their calls."""
    kept = uneven_calls(method)
    while True:
        packed = pack(fold_uneven_pads(method, but=kept))
        # Those that are not packed need their pads.
        left = uneven_calls(packed) - kept
        if not left:
            return packed
        kept |= left


def _packed_dsp(method: LinkedMethod) -> LinkedMethod:
    found = convolutions(method, dsp.MOST)
    # Three pixels at once also compute one. The other kernel has to pay.
    most = [c for _, _, c in found if not c.depthwise]
    pays = _pays([c for c in most if c.is_matrix and c.has_one_scale], most)
    for number, call, conv in found:
        with suppress(UnknownCallError):
            packed = _packed_for_dsp(conv, pays=pays)
            method = _with_call(method, number, call, packed, conv)
    return method


def _packed_for_dsp(conv: Convolution, *, pays: bool) -> _Packed:
    """What a call becomes.

    Args:
        conv: What the call computes.
        pays: Whether the kernel for matrix products does.

    Raises:
        UnknownCallError: There is none.
    """
    taps = conv.weights.shape[1]
    if conv.depthwise:
        need(conv.has_words)
        # Two pairs of rows for each column, and weights of the channels in them.
        scratch = (2 * conv.columns.reach + dsp.CHANNEL_WORDS) * WORD * TILE
        if _LITTLE * scratch <= conv.rows.size * conv.columns.size * conv.channels:
            with suppress(UnknownCallError):
                return _Packed(DEPTHWISE_3X3, dsp.channels_3x3(conv), scratch)
        # Pointers to taps, distances of others, and a pixel of padding.
        scratch = 2 * WORD * 2 * conv.pairs + conv.channels
        return _Packed(DEPTHWISE, dsp.groups(conv), scratch)
    if pays:
        with suppress(UnknownCallError):
            # A sum, and pairs.
            return _Packed(MATRIX, dsp.matrix(conv), WORD + 2 * up(taps, dsp.STEP))
    of = dsp.pieces(conv)
    # Pairs, and a copy of the inputs of a pixel.
    is_joined = conv.is_matrix and of.inner_columns != 0
    scratch = (2 * dsp.PIXELS + (0 if is_joined else 1)) * of.depth
    return _Packed(CONVOLUTION, dsp.pixels(conv), scratch)


def _pays(few: list[Convolution], most: list[Convolution]) -> bool:
    """Whether a kernel of its own saves enough for some of all calls."""
    part, whole = (sum(c.products for c in cs) for cs in (few, most))
    return _FEW * part > whole


def _packed_mve(method: LinkedMethod, *, fast: bool) -> LinkedMethod:
    found = all_convolutions(method, mve.MOST)
    spare = _spare_bytes(method)
    # Two pixels at once also compute one. The other kernel has to pay.
    most = [c for _, _, c in found if not c.depthwise]
    pays = _pays([c for c in most if c.is_single], most)
    several = []
    for number, call, conv in found:
        taps = conv.weights.shape[1]
        depth = up(taps, mve.LANES)
        strips = best_strips(conv, spare[number]) if conv.depthwise else None
        three = mve.lines_of(conv, spare[number]) if fast else None
        if strips is not None:
            words = strip_groups(conv, strips)
            packed = _Packed(STRIPS, words, strips.scratch_bytes)
        elif conv.depthwise and depth <= mve.LANES:
            # Pointers and distances, taps of 16 channels, and a pixel of padding.
            scratch = 2 * WORD * up(taps, TILE) + mve.LANES * mve.LANES + conv.channels
            packed = _Packed(DEPTHWISE, mve.groups(conv), scratch)
        elif conv.is_single and pays:
            scratch = 0 if depth == taps else depth
            packed = _Packed(PIXEL, mve.pixel(conv, depth), scratch)
        elif three is not None:
            packed = _Packed(LINES, mve.lines(conv, three), three.scratch_bytes)
        else:
            # Fewer outputs than a tile make weights several times as large.
            few = conv.groups > 1 and len(conv.weights) < TILE * conv.groups
            if not few or (fast and not mve.is_short(conv)):
                several.append((number, call, groups_of(in_one_column(conv))))
            continue
        method = _with_call(method, number, call, packed, conv)
    for number, call, phases in (*several, *transposed(method, mve.MOST)):
        if phases[0].line < mve.LINE_BOUND:
            ways = [(p, mve.strip_of(p, spare[number])) for p in phases]
            packed = _pixels(ways, fast=fast)
            method = _with_call(method, number, call, packed, phases[0].conv)
    return method


def _pixels(phases: Sequence[tuple[Phase, mve.Strip]], *, fast: bool) -> _Packed:
    """What a call of some phases becomes."""
    vectors = gcd(*(strip.depth // mve.LANES for _, strip in phases))
    unrolled = [f for n, f in UNROLLED.items() if fast and vectors % n == 0]
    scratch = max(strip.scratch_bytes for _, strip in phases)
    return _Packed((*unrolled, PIXELS)[0], mve.pixels(phases), scratch)


def _spare_bytes(method: LinkedMethod) -> list[int]:
    """By instruction: how much less is live than where most is."""
    live = [0] * len(method.instructions)
    spaces = {
        v.allocation.memory_id
        for v in method.values
        if isinstance(v, TensorValue) and v.allocation is not None
    }
    if len(spaces) == 1:
        for time, count in live_bytes(lifetimes(effects_of_linked(method), *spaces)):
            # From there on, until the next change.
            live[max(time, 0) :] = [count] * (len(live) - max(time, 0))
    return [max(live) - count for count in live]


def _with_call(
    method: LinkedMethod,
    number: int,
    call: LinkedCall,
    packed: _Packed,
    conv: Convolution,
) -> LinkedMethod:
    """The method whose call has the packed kernel, with slots for its arguments."""
    function, words, scratch_bytes = packed
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
    count = _HEADER_WORDS[function]
    is_several = function in _PHASED and words[count - 1] != 0
    parts = [words] if is_several else [words[:count], words[count:]]
    memory = replace(
        _constant(scratch_bytes),
        dtype=ScalarType.Byte,
        allocation=Allocation(memory_id=space, offset_bytes=-(-end // 16) * 16),
    )
    constants: list[tuple[Value, Bytes | None]] = [
        (
            replace(_constant(len(part)), data_buffer_index=1),
            settled(struct.pack(f"<{len(part)}i", *part)),
        )
        for part in parts
    ]
    limits = () if conv.is_unlimited else (IntValue(conv.low), IntValue(conv.high))
    method, slots = with_slots(
        method, *constants, (memory, None), *((limit, None) for limit in limits)
    )
    return with_call(
        method,
        number,
        replace(
            call,
            function=LIMITED[function] if limits else function,
            args=(call.args[0], *slots, out),
            accesses=(
                *(Access.READS, *[Access.READS] * len(parts)),
                *(Access.SCRATCH, *[Access.READS] * len(limits), Access.FILLS),
            ),
            outs=(out, slots[len(parts)]),
            in_place=(),
        ),
    )


def arguments_of(function: str, count: int) -> tuple[str, ...]:
    """Names of so many arguments of a packed kernel."""
    names = PACKED[function]
    if count == len(names):
        return names
    return tuple(name for name in names if name != "weights")


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
