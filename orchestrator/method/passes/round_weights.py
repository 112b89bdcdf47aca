"""int8 weights rounded to numbers of 4 bits times a step: outputs change.

Each output of a convolution or matrix product has the step that suits its weights best,
or each group of its inputs. Scales and biases stay as they are. `pack_weights` then
stores the numbers.
"""

from __future__ import annotations

from dataclasses import replace
from math import log10
from typing import TYPE_CHECKING, Final

from orchestrator.core.lazy_bytes import settled
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments
from orchestrator.method.passes.joining import with_call, with_slots
from orchestrator.method.passes.packing.convolution import (
    FUNCTIONS,
    all_convolutions,
    memory_of,
    sums_with,
)
from orchestrator.method.passes.packing.dsp import MOST
from orchestrator.method.passes.packing.int4 import (
    HIGHEST,
    LOWEST,
    MOST_STEP,
    may_have_groups,
    why_int8,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.method.passes.packing.convolution import Convolution

    Ints = NDArray[np.int64]

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
