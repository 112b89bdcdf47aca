"""Weights of int8 convolutions and matrix products, packed for the loop over them.

For cores with DSP or vector instructions; weights of 4 bits on every core. A family of
kernels in `packing` says what it takes, and what a call becomes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import log10
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes, settled
from orchestrator.method.effects import effects_of_linked
from orchestrator.method.lifetimes import lifetimes, live_bytes
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, UnknownCallError, need
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.joining import constant_of, with_call, with_slots
from orchestrator.method.passes.packing import depthwise, int4, scaling, steps
from orchestrator.method.passes.packing.convolution import (
    FUNCTIONS,
    TILE,
    Convolution,
    all_convolutions,
    convolutions,
    in_one_column,
    with_weights,
    without_groups,
)
from orchestrator.method.passes.packing.header import Packed, Room, bytes_of
from orchestrator.method.passes.packing.kernels import Kernel
from orchestrator.method.passes.packing.lines import Lines
from orchestrator.method.passes.packing.matrix import Matrix
from orchestrator.method.passes.packing.mixed import pack_pairs
from orchestrator.method.passes.packing.pairs import Pairs
from orchestrator.method.passes.packing.phases import groups_of, transposed
from orchestrator.method.passes.packing.pixel import Pixel
from orchestrator.method.passes.packing.pixels import Pixels, strip_of
from orchestrator.method.passes.packing.strips import Strips
from orchestrator.method.passes.pads import fold_uneven_pads, uneven_calls
from orchestrator.method.places import Access, placed
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import IntValue, TensorValue, Value

if TYPE_CHECKING:
    from orchestrator.method.passes.packing.convolution import Ints

# Chosen by hand: a further kernel takes flash, and decision 24 wants few of them.
_PART_OF_PRODUCTS: Final = 8
"""A kernel for single pixels has to save one part in so many of all products."""
_WRITES: Final = (Access.FILLS, Access.WRITES)


def pack_weights(method: LinkedMethod, context: Context) -> LinkedMethod:
    """Pack the weights of all calls that kernels for the core can take.

    Those for vectors have more kernels if speed is worth the flash; scalar ones take
    weights of 4 bits alone.
    """
    method = pack_pairs(method)
    if context.isa == "scalar":
        return _packed_scalar(method)
    pack = (
        partial(_packed_mve, fast=context.fast)
        if context.isa == "mve"
        else partial(_packed_dsp, unaligned=context.unaligned)
    )
    # Only packing shows which convolutions can take a pad of different sizes before and behind; the
    # rest keep theirs. Each round keeps more, so the loop ends.
    kept = uneven_calls(method)
    while True:
        packed = pack(fold_uneven_pads(method, but=kept))
        # Those that are not packed need the pads that only packed kernels can take.
        left = uneven_calls(packed) - kept
        if not left:
            return packed
        kept |= left


def _packed_scalar(method: LinkedMethod) -> LinkedMethod:
    for number, call, conv in convolutions(method, scaling.MOST_SUM):
        weights = int4.int4_of(conv)
        if weights is not None:
            method = _with_call(
                method, number, call, int4.Int4Convolution.packed(conv, weights), conv
            )
    return method


def _packed_dsp(method: LinkedMethod, *, unaligned: bool) -> LinkedMethod:
    found = [
        (number, call, without_groups(conv) if conv.has_few_groups else conv)
        for number, call, conv in all_convolutions(method, scaling.MOST_SUM)
    ]
    rooms = _rooms(method)
    # Three pixels at once also compute one. The other kernel has to pay.
    most = [c for _, _, c in found if c.groups == 1]
    pays = _pays([c for c in most if c.is_matrix and c.has_one_scale], most)
    for number, call, conv in found:
        with suppress(UnknownCallError):
            need(unaligned or conv.has_words or conv.groups == 1)
            packed = _packed_for_dsp(conv, rooms[number], pays=pays)
            method = _with_call(method, number, call, packed, conv)
    return method


def _packed_for_dsp(conv: Convolution, room: Room, *, pays: bool) -> Packed:
    """What a call becomes.

    Args:
        conv: What the call computes.
        room: For scratch memory.
        pays: Whether the kernel for matrix products does.

    Raises:
        UnknownCallError: No kernel can take it.
    """
    if conv.groups > 1:
        # The loops load words of four channels.
        need(conv.groups == conv.channels >= TILE)
        with suppress(UnknownCallError):
            return depthwise.Depthwise3x3.packed(conv)
        return depthwise.Depthwise.packed_dsp(conv)
    weights = int4.int4_of(conv)
    if pays:
        with suppress(UnknownCallError):
            return int4.Int4Matrix.packed(conv, weights) if weights else Matrix.packed(conv)
    return int4.Int4Pairs.packed_in(conv, weights, room) if weights else Pairs.packed(conv)


def _pays(few: list[Convolution], most: list[Convolution]) -> bool:
    """Whether a kernel of its own saves enough for some of all calls."""
    part, whole = (sum(c.products for c in cs) for cs in (few, most))
    return _PART_OF_PRODUCTS * part > whole


def _packed_mve(method: LinkedMethod, *, fast: bool) -> LinkedMethod:
    found = all_convolutions(method, steps.MOST_SUM)
    rooms = _rooms(method)
    # Two pixels at once also compute one. The other kernel has to pay.
    most = [c for _, _, c in found if not c.depthwise]
    pays = _pays([c for c in most if c.is_single], most)
    several = []
    for number, call, conv in found:
        packed = _packed_for_mve(conv, rooms[number], pays=pays, fast=fast)
        if packed is not None:
            method = _with_call(method, number, call, packed, conv)
            continue
        # Fewer outputs than a tile make weights several times as large.
        few = conv.groups > 1 and len(conv.weights) < TILE * conv.groups
        if fast or not few or conv.has_few_groups:
            whole = without_groups(conv) if few and conv.has_few_groups else conv
            several.append((number, call, groups_of(in_one_column(whole))))
    # Where lines of the output lie further apart than the loop can add, the call keeps its kernel.
    for number, call, phases in (*several, *transposed(method, steps.MOST_SUM)):
        if phases[0].line < steps.LINE_BOUND:
            strips = [(phase, strip_of(phase, rooms[number].spare_bytes)) for phase in phases]
            packed = Pixels.packed(strips, fast=fast)
            method = _with_call(method, number, call, packed, phases[0].conv)
    return method


def _packed_for_mve(conv: Convolution, room: Room, *, pays: bool, fast: bool) -> Packed | None:
    """What a call becomes; None for that of several phases.

    Args:
        conv: What the call computes.
        room: For scratch memory.
        pays: Whether the kernel for single pixels does.
        fast: Whether speed is worth the flash of more kernels.
    """
    if conv.depthwise:
        return Strips.packed(conv, room.spare_bytes) or depthwise.Depthwise.packed_mve(conv)
    weights = int4.int4_of(conv)
    if conv.is_single and pays:
        return int4.Int4Pixel.packed_int4(conv, weights) if weights else Pixel.packed(conv)
    if weights is not None:
        (phase,) = groups_of(in_one_column(conv))
        is_near = phase.line < steps.LINE_BOUND
        return int4.Int4Pixels.packed_in(phase, weights, room, fast=fast) if is_near else None
    return Lines.packed(conv, room.spare_bytes) if fast else None


def _rooms(method: LinkedMethod) -> list[Room]:
    """By instruction: the room for its scratch memory."""
    live = [0] * len(method.instructions)
    spaces = {
        v.allocation.memory_id
        for v in method.values
        if isinstance(v, TensorValue) and v.allocation is not None
    }
    # With several arenas it is not known which of them a scratch tensor makes larger: no room.
    if len(spaces) == 1:
        for time, count in live_bytes(lifetimes(effects_of_linked(method), *spaces)):
            # From there on, until the next change.
            live[max(time, 0) :] = [count] * (len(live) - max(time, 0))
    # A scratch tensor that fits between what is live at its call and the peak costs nothing.
    most = max(live, default=0)
    return [Room(most - count, most) for count in live]


def _with_call(
    method: LinkedMethod, number: int, call: LinkedCall, packed: Packed, conv: Convolution
) -> LinkedMethod:
    """The method whose call has the packed kernel, with slots for its arguments."""
    (out,) = [i for i, a in call.arguments if a in _WRITES]
    value = method.values[out]
    if not isinstance(value, TensorValue) or value.allocation is None:
        return method
    space = value.allocation.memory_id
    # The arena of shared state stays as it is: nothing is added to it.
    if space == SHARED_ID:
        return method
    header = bytes_of(packed.header.words())
    # A struct of its own, so that bands of a call have other structs and the same weights.
    parts = [header, settled(packed.weights)]
    if packed.header.is_several:
        parts = [settled(bytes(header) + packed.weights)]
    memory = placed(
        replace(constant_of(ScalarType.Byte, packed.scratch_bytes), data_buffer_index=0),
        *(space, method.behind(("arena", space))),
    )
    constants: list[tuple[Value, Bytes | None]] = [
        (constant_of(ScalarType.Int, len(part) // ScalarType.Int.item_bytes), part)
        for part in parts
    ]
    limits = () if conv.is_unlimited else (IntValue(conv.low), IntValue(conv.high))
    method, slots = with_slots(
        method, *constants, (memory, None), *((limit, None) for limit in limits)
    )
    family = type(packed.header)
    row = packed.kernel or family.kernels()[0]
    kernel = Kernel(family=family, row=row, is_limited=bool(limits))
    return with_call(
        method,
        number,
        replace(
            call,
            function=kernel.unprepared,
            args=(call.args[0], *slots, out),
            accesses=(
                *(Access.READS, *[Access.READS] * len(parts)),
                *(Access.SCRATCH, *[Access.READS] * len(limits), Access.FILLS),
            ),
            # Scratch memory counts as written: nothing that lives on may lie there.
            outs=(out, slots[len(parts)]),
            in_place=(),
        ),
    )


# int8 weights rounded to numbers of 4 bits times a step: outputs change.
#
# Each output of a convolution or matrix product has the step that suits its weights best, or each
# group of its inputs. Scales and biases stay as they are. `pack_weights` then stores the numbers.


def round_weights(method: LinkedMethod) -> LinkedMethod:
    """Round the weights of all calls that can have 4 bits."""
    rounding = method.rounding
    if rounding is None:
        return method
    for number, call, conv in all_convolutions(method, scaling.MOST_SUM):
        if int4.why_int8(conv):
            continue
        taps = conv.weights.shape[1]
        group = rounding.group if int4.may_have_groups(conv) else None
        rounded = rounded_weights(conv.weights, min(group or taps, taps))
        if (rounded == conv.weights).all():
            continue
        arguments = Arguments(method, call)
        new = with_weights(arguments, call.function, rounded, rounded - conv.weights)
        method, slots = with_slots(
            method, *((arguments.tensor(name), settled(data)) for name, data in new.items())
        )
        args = arguments.replaced(dict(zip(new, slots, strict=True)))
        method = with_call(method, number, replace(call, args=args))
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
        for step in range(1, int4.MOST_STEP + 1):
            of = np.clip(np.rint(part / step).astype(np.int64), int4.LOWEST, int4.HIGHEST)
            error = ((part - of * step) ** 2).sum(axis=1)
            better = np.flatnonzero(error < least)
            least[better] = error[better]
            numbers[better, first : first + group] = of[better]
            steps[better, first : first + group] = step
    # What `_balance` is worth: SQNR of outputs of a small net of digits is 22.7 dB, 18.3 without.
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
    may_move = (moved >= int4.LOWEST) & (moved <= int4.HIGHEST) & (sign * lost > 0)
    taps = np.flatnonzero(may_move)
    for tap in taps[np.argsort(-sign * lost[taps] / steps[taps], kind="stable")]:
        # One more would take the sum further away.
        if 2 * sign * missing <= steps[tap]:
            break
        numbers[tap] += sign
        missing -= sign * int(steps[tap])


def rounding_notes(before: LinkedMethod, after: LinkedMethod) -> tuple[str, ...]:
    """What became of the weights of each call."""
    was = {number: conv for number, _, conv in all_convolutions(before, scaling.MOST_SUM)}
    now = {number: conv for number, _, conv in all_convolutions(after, scaling.MOST_SUM)}
    return tuple(
        f"instruction {before.origins[number]}, {call.operator}: {text}"
        for number, call in enumerate(before.instructions)
        if isinstance(call, LinkedCall) and call.function in FUNCTIONS
        for text in [_note(was.get(number), now.get(number))]
    )


def _note(was: Convolution | None, now: Convolution | None) -> str:
    if was is None or now is None:
        return "int8, as its sums, scales or limits are not those of packed kernels"
    if reason := int4.why_int8(was):
        return f"int8, {reason}"
    lost = int(((was.weights - now.weights) ** 2).sum())
    if not lost:
        return "4 bits, the same weights"
    power = int((was.weights**2).sum())
    return f"4 bits, SQNR of the weights {10 * log10(power / lost):.1f} dB"
