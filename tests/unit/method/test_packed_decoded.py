"""Packed weights say what the program does: read by the formats, they give its numbers.

`packed_reader` knows neither the packers nor the kernels; what is right comes from
tests/data/cortex_m/semantics.py.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.inventory import PACKED
from orchestrator.method.passes.pack_weights import pack_weights
from orchestrator.method.passes.packing.header import Header, Packed
from orchestrator.method.passes.packing.kernels import FAMILIES, UNPREPARED, arguments_of
from orchestrator.program.values import Allocation, IntValue, TensorValue
from tests.data.cortex_m import semantics
from tests.unit.method.packed_reader import outputs_of
from tests.unit.method.random_convolutions import RandomCalls
from tests.unit.method.recorded_calls import Call, Tensor, method_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS: Final = 12
"""Calls of each kind."""
CONTEXTS: Final = (
    *(Context(isa="scalar"), Context(isa="dsp"), Context(isa="mve")),
    Context(isa="mve", fast=True),
)
_FORMS: Final = {ScalarType.Char: "i1", ScalarType.Int: "<i4", ScalarType.Byte: "u1"}


class Int4Calls(RandomCalls):
    """The same with numbers of 4 bits times a step, of an output or of 32 of its taps."""

    def weights(self, *sizes: int) -> Any:
        outputs, taps = sizes[0], prod(sizes[1:])
        group = 32 if self.one(0, 1) else taps
        steps = self.rng.integers(1, 17, (outputs, -(-taps // group)))
        each = steps.repeat(group, axis=1)[:, :taps]
        return (self.rng.integers(-8, 8, (outputs, taps)) * each).reshape(sizes)


RANDOM: Final = (RandomCalls(40), Int4Calls(41))


def calls(random: RandomCalls) -> Iterator[Call]:
    kinds = (
        *(random.image, random.depthwise, random.words, random.first, random.narrow),
        *(random.lines, random.squares, random.transposed, random.matrix),
    )
    return (kind() for _ in range(ROUNDS) for kind in kinds)


def items(tensor: Tensor) -> Any:
    """A tensor as it lies in memory; images of the operators are NHWC."""
    sizes = [tensor.sizes[d] for d in tensor.order]
    return np.frombuffer(tensor.data, _FORMS[tensor.dtype]).reshape(sizes)


def expected(call: Call) -> Any:
    """What a call stores, as it lies in memory."""
    x, w, *others, _ = (items(a) if isinstance(a, Tensor) else a for a in call.args)
    if "linear" in call.operator:
        bias, sums, x_offset, w_offset, offset, (multipliers,), (shifts,), high, low = others
        added = bias if sums is None else sums
        # The part of the offset is in such sums.
        found = semantics.linear(x, w, added, 0 if sums is not None else x_offset, w_offset)
    elif "transpose" in call.operator:
        *given, offset, multipliers, shifts, low, high, _, _ = others
        found = semantics.transpose_conv2d(x, w, *given)
    elif "depthwise" in call.operator:
        *given, _, x_offset, offset, multipliers, shifts, low, high, _ = others
        found = semantics.depthwise(x, w, *(*given, x_offset))
    else:
        *given, offset, multipliers, shifts, low, high, _ = others
        found = semantics.conv2d(x, w, *given)
    return semantics.to_int8(found, multipliers, shifts, offset, low, high).reshape(-1)


def packed(call: Call, context: Context) -> tuple[str, list[Packed], tuple[int, int]] | None:
    """The family that a call is packed for, what it becomes, and its limits.

    What bands would be made of comes second.
    """
    method = method_of([call])
    (one,) = method.instructions
    assert isinstance(one, LinkedCall)
    x = method.tensor(one.args[0])
    # Inputs are in the arena, behind everything.
    place = Allocation(memory_id=1, offset_bytes=1 << 20)
    values = list(method.values)
    values[one.args[0]] = replace(x, allocation=place, data_buffer_index=0)
    data = tuple(pair for pair in method.data if pair[0] != one.args[0])
    method = pack_weights(replace(method, values=tuple(values), data=data), context)
    (one,) = method.instructions
    assert isinstance(one, LinkedCall)
    kernel = UNPREPARED.get(one.function)
    if kernel is None:
        return None
    at = dict(zip(arguments_of(kernel, len(one.args)), one.args, strict=True))
    header = bytes(method.contents[at["header"]])
    weights = bytes(method.contents[at["weights"]]) if "weights" in at else b""
    words = np.frombuffer(header[: len(header) // 4 * 4], "<i4").tolist()
    of = kernel.family.of(words)
    scratch = method.values[at["scratch"]]
    assert isinstance(scratch, TensorValue)
    limits = -128, 127
    if kernel.is_limited:
        low, high = (method.values[at[name]] for name in ("low", "high"))
        assert isinstance(low, IntValue)
        assert isinstance(high, IntValue)
        limits = low.value, high.value
    found = [Packed(of, weights, scratch.size_bytes)]
    if of.is_several:
        size = 4 * len(of.words())
        found = [Packed(of, header[size:], scratch.size_bytes)]
    else:
        found += filter(None, [of.for_bands(found[0], 0), of.for_bands(found[0], 4000)])
    return kernel.family.__name__, found, limits


@cache
def cases() -> tuple[tuple[Call, Any], ...]:
    """Calls, and what is right."""
    return tuple((call, expected(call)) for of in RANDOM for call in calls(of))


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda c: c.isa + "-fast" * c.fast)
def test_packed_weights_say_what_the_program_does(context: Context) -> None:
    families, banded = set(), set()
    for call, right in cases():
        made = packed(call, context)
        if made is None:
            continue
        family, found, limits = made
        families.add(family)
        banded.update([family] * (len(found) > 1))
        x = items(call.args[0]).reshape(-1).astype(np.int64)
        for one in found:
            data = np.array(one.header.words(), "<i4").tobytes() + one.weights
            y = outputs_of(family, context.isa, data, x, len(right))
            assert (np.clip(y, *limits) == right).all(), (family, call.operator, one.header)
    # All families that such products have.
    whens = {"", "speed"} if context.fast else {""}
    rows = (row for row in PACKED if context.isa in row.isa and row.when in whens)
    assert families == {row.of for row in rows}
    may_be = {f.__name__ for f in FAMILIES if f.for_bands is not Header.for_bands}
    assert banded == may_be & families
