"""Weights of int8 convolutions and matrix products, packed for the loop over them.

For cores with DSP or vector instructions; weights of 4 bits on every core.
kernels/cortex_m/packed.h has the format, and `packing` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import gcd, log10
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes, settled
from orchestrator.method.effects import effects_of_linked
from orchestrator.method.lifetimes import lifetimes, live_bytes
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, UnknownCallError, need
from orchestrator.method.passes.joining import constant_of, with_call, with_slots
from orchestrator.method.passes.packing import dsp, int4, mve
from orchestrator.method.passes.packing.convolution import (
    FUNCTIONS,
    TILE,
    WORD,
    all_convolutions,
    bytes_of,
    convolutions,
    in_one_column,
    memory_of,
    sums_with,
    up,
)
from orchestrator.method.passes.packing.dsp import MOST, pack_pairs
from orchestrator.method.passes.packing.int4 import (
    HIGHEST,
    LOWEST,
    MOST_STEP,
    may_have_groups,
    why_int8,
)
from orchestrator.method.passes.packing.phases import groups_of, transposed
from orchestrator.method.passes.packing.strips import best_strips, strip_groups
from orchestrator.method.passes.pads import fold_uneven_pads, uneven_calls
from orchestrator.method.places import Access, placed
from orchestrator.program.caller import SHARED_ID
from orchestrator.program.values import IntValue, TensorValue, Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.method.passes.packing.convolution import Convolution
    from orchestrator.method.passes.packing.phases import Phase

    Ints = NDArray[np.int64]

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
INT4: Final = "orch::cortex_m::int4_packed_convolution_out"
"""Of weights of 4 bits, in plain C++."""
INT4_KERNELS: Final = {
    function: function.replace("packed_", "int4_packed_")
    for function in (CONVOLUTION, MATRIX, PIXELS, *UNROLLED.values(), PIXEL)
}
"""Kernels for weights of 4 bits, by that for int8."""
_PACKED: Final = (
    *(CONVOLUTION, MATRIX, DEPTHWISE, DEPTHWISE_3X3, STRIPS),
    *(*UNROLLED.values(), PIXELS, LINES, PIXEL),
    *(INT4, *INT4_KERNELS.values()),
)
LIMITED: Final = {f: f.replace("packed_", "limited_packed_") for f in _PACKED}
"""The same kernels for calls that store less than int8."""
ARGUMENTS: Final = ("input", "header", "weights", "scratch", "out")
"""Of these functions, which no schema has. There are no weights where several headers
have theirs behind them."""
LIMITED_ARGUMENTS: Final = (*ARGUMENTS[:-1], "low", "high", ARGUMENTS[-1])
"""Of those with limits."""
PACKED: Final = MappingProxyType(
    {**dict.fromkeys(_PACKED, ARGUMENTS), **dict.fromkeys(LIMITED.values(), LIMITED_ARGUMENTS)}
)
"""By function: its arguments."""
_HEADER_WORDS: Final = {
    CONVOLUTION: 24,
    MATRIX: 13,
    DEPTHWISE: 18,
    DEPTHWISE_3X3: 18,
    STRIPS: 27,
    **dict.fromkeys((PIXELS, *UNROLLED.values()), 28),
    LINES: 24,
    PIXEL: 20,
    INT4: 18,
    INT4_KERNELS[CONVOLUTION]: 24,
    INT4_KERNELS[MATRIX]: 7,
    **{INT4_KERNELS[function]: 28 for function in (PIXELS, *UNROLLED.values())},
    INT4_KERNELS[PIXEL]: 20,
}
"""Of the structs of kernels/cortex_m/packed.h, packed_dsp.h and int4.h."""
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


def pack_for_scalar(method: LinkedMethod) -> LinkedMethod:
    """Pack weights of 4 bits; others stay as they are."""
    method = pack_pairs(method)
    for number, call, conv in convolutions(method, dsp.MOST):
        weights = int4.int4_of(conv)
        if weights is not None:
            packed = _Packed(INT4, int4.convolution(conv, weights).words, 0)
            method = _with_call(method, number, call, packed, conv)
    return method


def pack_for_dsp(method: LinkedMethod) -> LinkedMethod:
    """Pack the weights of all calls that the kernels for DSP instructions can take."""
    return _with_pads(pack_pairs(method), _packed_dsp)


def pack_for_mve(method: LinkedMethod, *, fast: bool = False) -> LinkedMethod:
    """Pack the weights of all calls that the kernels for vectors can take.

    Args:
        method: The method.
        fast: Whether speed is worth the flash of more kernels.
    """
    return _with_pads(pack_pairs(method), partial(_packed_mve, fast=fast))


def _with_pads(method: LinkedMethod, pack: Callable[[LinkedMethod], LinkedMethod]) -> LinkedMethod:
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
    spare, live = _spare_bytes(method)
    # Three pixels at once also compute one. The other kernel has to pay.
    most = [c for _, _, c in found if not c.depthwise]
    pays = _pays([c for c in most if c.is_matrix and c.has_one_scale], most)
    for number, call, conv in found:
        with suppress(UnknownCallError):
            packed = _packed_for_dsp(conv, spare[number], live, pays=pays)
            method = _with_call(method, number, call, packed, conv)
    return method


def _packed_for_dsp(conv: Convolution, spare_bytes: int, live_bytes: int, *, pays: bool) -> _Packed:
    """What a call becomes.

    Args:
        conv: What the call computes.
        spare_bytes: How much less is live at the call than where most is.
        live_bytes: How much is live there.
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
    weights = int4.int4_of(conv)
    if pays:
        with suppress(UnknownCallError):
            pairs = 2 * up(taps, dsp.STEP)
            if weights is None:
                # A sum, and pairs.
                return _Packed(MATRIX, dsp.matrix(conv), WORD + pairs)
            words = int4.matrix(conv, weights).words
            # A sum for each group.
            sums = WORD * -(-taps // int4.GROUPS[-1])
            return _Packed(INT4_KERNELS[MATRIX], words, sums + pairs)
    of = dsp.pieces(conv)
    # Pairs, and a copy of the inputs of a pixel.
    is_joined = conv.is_matrix and of.inner_columns != 0
    scratch = (2 * dsp.PIXELS + (0 if is_joined else 1)) * of.depth
    if weights is None:
        return _Packed(CONVOLUTION, dsp.pixels(conv), scratch)
    most = int4.block_bytes(live_bytes, spare_bytes - scratch)
    words, block_bytes = int4.pairs(conv, weights, most)
    return _Packed(INT4_KERNELS[CONVOLUTION], words, block_bytes + scratch)


def _pays(few: list[Convolution], most: list[Convolution]) -> bool:
    """Whether a kernel of its own saves enough for some of all calls."""
    part, whole = (sum(c.products for c in cs) for cs in (few, most))
    return _FEW * part > whole


def _packed_mve(method: LinkedMethod, *, fast: bool) -> LinkedMethod:
    found = all_convolutions(method, mve.MOST)
    spare, live = _spare_bytes(method)
    # Two pixels at once also compute one. The other kernel has to pay.
    most = [c for _, _, c in found if not c.depthwise]
    pays = _pays([c for c in most if c.is_single], most)
    several = []
    for number, call, conv in found:
        packed = _packed_for_mve(conv, spare[number], live, pays=pays, fast=fast)
        if packed is not None:
            method = _with_call(method, number, call, packed, conv)
            continue
        # Fewer outputs than a tile make weights several times as large.
        few = conv.groups > 1 and len(conv.weights) < TILE * conv.groups
        if not few or (fast and not mve.is_short(conv)):
            several.append((number, call, groups_of(in_one_column(conv))))
    for number, call, phases in (*several, *transposed(method, mve.MOST)):
        if phases[0].line < mve.LINE_BOUND:
            ways = [(p, mve.strip_of(p, spare[number])) for p in phases]
            packed = _pixels(ways, fast=fast)
            method = _with_call(method, number, call, packed, phases[0].conv)
    return method


def _packed_for_mve(
    conv: Convolution, spare_bytes: int, live_bytes: int, *, pays: bool, fast: bool
) -> _Packed | None:
    """What a call becomes; None for that of several phases.

    Args:
        conv: What the call computes.
        spare_bytes: How much less is live at the call than where most is.
        live_bytes: How much is live there.
        pays: Whether the kernel for single pixels does.
        fast: Whether speed is worth the flash of more kernels.
    """
    if conv.depthwise:
        return _depthwise_for_mve(conv, spare_bytes)
    weights = int4.int4_of(conv)
    if conv.is_single and pays:
        taps = conv.weights.shape[1]
        depth = up(taps, mve.LANES)
        scratch = 0 if depth == taps else depth
        if weights is None:
            return _Packed(PIXEL, mve.pixel(conv, depth), scratch)
        words = int4.pixel(conv, depth, weights).words
        return _Packed(INT4_KERNELS[PIXEL], words, scratch)
    if weights is not None:
        return _int4_for_mve(conv, weights, spare_bytes, live_bytes, fast=fast)
    three = mve.lines_of(conv, spare_bytes) if fast else None
    if three is None:
        return None
    return _Packed(LINES, mve.lines(conv, three), three.scratch_bytes)


def _depthwise_for_mve(conv: Convolution, spare_bytes: int) -> _Packed | None:
    """The same of a depthwise call."""
    taps = conv.weights.shape[1]
    strips = best_strips(conv, spare_bytes)
    if strips is not None:
        return _Packed(STRIPS, strip_groups(conv, strips), strips.scratch_bytes)
    if taps > mve.LANES:
        return None
    # Pointers and distances, taps of 16 channels, and a pixel of padding.
    scratch = 2 * WORD * up(taps, TILE) + mve.LANES * mve.LANES + conv.channels
    return _Packed(DEPTHWISE, mve.groups(conv), scratch)


def _int4_for_mve(
    conv: Convolution, weights: int4.Int4, spare_bytes: int, live_bytes: int, *, fast: bool
) -> _Packed | None:
    """The same of columns of pixels with weights of 4 bits."""
    (phase,) = groups_of(in_one_column(conv))
    if phase.line >= mve.LINE_BOUND:
        return None
    strip = mve.strip_of(phase, spare_bytes)
    most = int4.block_bytes(live_bytes, spare_bytes - strip.scratch_bytes)
    words, block_bytes = int4.pixels(phase, strip, weights, most)
    function = INT4_KERNELS[_pixels_kernel([strip], fast=fast)]
    return _Packed(function, words, block_bytes + strip.scratch_bytes)


def _pixels(phases: Sequence[tuple[Phase, mve.Strip]], *, fast: bool) -> _Packed:
    """What a call of some phases becomes."""
    strips = [strip for _, strip in phases]
    scratch = max(strip.scratch_bytes for strip in strips)
    return _Packed(_pixels_kernel(strips, fast=fast), mve.pixels(phases), scratch)


def _pixels_kernel(strips: Sequence[mve.Strip], *, fast: bool) -> str:
    """The kernel for columns of pixels with such strips."""
    vectors = gcd(*(strip.depth // mve.LANES for strip in strips))
    unrolled = [f for n, f in UNROLLED.items() if fast and vectors % n == 0]
    return (*unrolled, PIXELS)[0]


def _spare_bytes(method: LinkedMethod) -> tuple[list[int], int]:
    """How much less is live at each instruction than at most, and how much that is."""
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
    most = max(live, default=0)
    return [most - count for count in live], most


def _with_call(
    method: LinkedMethod, number: int, call: LinkedCall, packed: _Packed, conv: Convolution
) -> LinkedMethod:
    """The method whose call has the packed kernel, with slots for its arguments."""
    function, words, scratch_bytes = packed
    (out,) = [i for i, a in call.arguments if a in _WRITES]
    value = method.values[out]
    if not isinstance(value, TensorValue) or value.allocation is None:
        return method
    space = value.allocation.memory_id
    if space == SHARED_ID:
        return method
    count = _HEADER_WORDS[function]
    is_several = function in _PHASED and words[count - 1] != 0
    parts = [words] if is_several else [words[:count], words[count:]]
    memory = placed(
        replace(constant_of(ScalarType.Byte, scratch_bytes), data_buffer_index=0),
        *(space, method.behind(("arena", space))),
    )
    constants: list[tuple[Value, Bytes | None]] = [
        (constant_of(ScalarType.Int, len(part)), bytes_of(part)) for part in parts
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


# int8 weights rounded to numbers of 4 bits times a step: outputs change.
#
# Each output of a convolution or matrix product has the step that suits its weights best, or each
# group of its inputs. Scales and biases stay as they are. `pack_weights` then stores the numbers.

_WEIGHTS: Final = 1
"""Position of the argument."""


def round_weights(method: LinkedMethod) -> LinkedMethod:
    """Round the weights of all calls that can have 4 bits."""
    rounding = method.rounding
    if rounding is None:
        return method
    for number, call, conv in all_convolutions(method, MOST):
        if why_int8(conv):
            continue
        taps = conv.weights.shape[1]
        group = rounding.group if may_have_groups(conv) else None
        rounded = rounded_weights(conv.weights, min(group or taps, taps))
        if (rounded == conv.weights).all():
            continue
        arguments = Arguments(method, call)
        new = {_WEIGHTS: memory_of(method, call, rounded)}
        new |= sums_with(method, call, rounded - conv.weights)
        method, slots = with_slots(
            method, *((arguments.tensor(at), settled(data)) for at, data in new.items())
        )
        args = [*call.args]
        for at, slot in zip(new, slots, strict=True):
            args[at] = slot
        method = with_call(method, number, replace(call, args=tuple(args)))
    return method


def rounded_weights(weights: Ints, group: int) -> Ints:
    """Numbers from -8 to 7 times a step, near some weights.

    Each group has the step that gives the least square error. Then numbers next to a
    tie are rounded the other way, until the sum of an output's weights is what it was,
    up to half a step: inputs after a ReLU have a mean, which would move all outputs.

    Args:
        weights: [outputs, taps].
        group: Taps that share a step.

    Source: SQuant, arXiv:2202.07471, whose sums of whole kernels are these.
    """
    import numpy as np  # noqa: PLC0415

    numbers, steps = np.zeros_like(weights), np.ones_like(weights)
    for first in range(0, weights.shape[1], group):
        part = weights[:, first : first + group]
        least = np.full(len(part), np.inf)
        for step in range(1, MOST_STEP + 1):
            of = np.clip(np.rint(part / step).astype(np.int64), LOWEST, HIGHEST)
            error = ((part - of * step) ** 2).sum(axis=1)
            better = np.flatnonzero(error < least)
            least[better] = error[better]
            numbers[better, first : first + group] = of[better]
            steps[better, first : first + group] = step
    for row in range(len(weights)):
        _balance(weights[row], numbers[row], steps[row])
    return numbers * steps


def _balance(weights: Ints, numbers: Ints, steps: Ints) -> None:
    """Round some numbers of an output the other way, so that its sum stays."""
    import numpy as np  # noqa: PLC0415

    lost = weights - numbers * steps
    missing = int(lost.sum())
    sign = 1 if missing > 0 else -1
    moved = numbers + sign
    may_move = (moved >= LOWEST) & (moved <= HIGHEST) & (sign * lost > 0)
    taps = np.flatnonzero(may_move)
    for tap in taps[np.argsort(-sign * lost[taps] / steps[taps], kind="stable")]:
        if 2 * sign * missing <= steps[tap]:
            break
        numbers[tap] += sign
        missing -= sign * int(steps[tap])


def rounding_notes(before: LinkedMethod, after: LinkedMethod) -> tuple[str, ...]:
    """What became of the weights of each call."""
    was = {number: conv for number, _, conv in all_convolutions(before, MOST)}
    now = {number: conv for number, _, conv in all_convolutions(after, MOST)}
    return tuple(
        f"instruction {before.origins[number]}, {call.operator}: {text}"
        for number, call in enumerate(before.instructions)
        if isinstance(call, LinkedCall) and call.function in FUNCTIONS
        for text in [_note(was.get(number), now.get(number))]
    )


def _note(was: Convolution | None, now: Convolution | None) -> str:
    if was is None or now is None:
        return "int8, as its sums, scales or limits are not those of packed kernels"
    if reason := why_int8(was):
        return f"int8, {reason}"
    lost = int(((was.weights - now.weights) ** 2).sum())
    if not lost:
        return "4 bits, the same weights"
    power = int((was.weights**2).sum())
    return f"4 bits, SQNR of the weights {10 * log10(power / lost):.1f} dB"
