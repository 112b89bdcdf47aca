"""Dim orders that are the same memory, because sizes are 1, are one to the passes."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.dtype import ScalarType
from orchestrator.core.layout import lies_in_order
from orchestrator.core.rounding import WeightRounding
from orchestrator.method.passes import run_passes
from orchestrator.program.values import TensorValue
from tests.unit.method.recorded_calls import Call, Tensor, method_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_S = ScalarType
_NHWC: Final = (0, 2, 3, 1)
_PASSES: Final = ("fold_constants", "round_weights", "pack_weights", "prepare_calls")


def alike(tensor: Tensor) -> list[Tensor]:
    """The tensor in every dim order that is the same memory."""
    orders = permutations(range(len(tensor.sizes)))
    same = (o for o in orders if lies_in_order(tensor.sizes, tensor.order, o))
    return [replace(tensor, order=order) for order in same]


def _tensor(sizes: tuple[int, ...], dtype: _S, data: bytes = b"") -> Tensor:
    size = int(np.prod(sizes, dtype=int)) * dtype.item_bytes
    return Tensor(dtype, sizes, tuple(range(len(sizes))), data or bytes(size))


def _row(numbers: list[int]) -> Tensor:
    return _tensor((len(numbers),), _S.Int, np.array(numbers, "<i4").tobytes())


@st.composite
def convolutions(draw: st.DrawFn) -> Call:
    """Convolutions of few channels, windows and pixels: most have sizes of 1."""
    few = st.sampled_from([1, 1, 2, 3])
    batch, groups = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 8]))
    channels, more = groups * draw(few), draw(few)
    kernel, image = (draw(few), draw(few)), (draw(few) + 2, draw(few) + 2)
    depthwise = draw(st.booleans()) and groups > 1
    if depthwise:
        channels = groups
    outputs = groups * more
    sizes = (outputs, *kernel, channels // groups)
    if depthwise:
        sizes = (1, *kernel, outputs)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    count = int(np.prod(sizes, dtype=int))
    weights = rng.integers(-127, 128, count).astype("i1").tobytes()
    out = [n - k + 1 for n, k in zip(image, kernel, strict=True)]
    x = _tensor((batch, channels, *image), _S.Char)
    y = _tensor((batch, outputs, *out), _S.Char)
    return Call(
        f"cortex_m::quantized_{'depthwise_' * depthwise}conv2d.out",
        (
            replace(x, order=_NHWC, is_out=True),
            _tensor(sizes, _S.Char, weights),
            _row(rng.integers(-9000, 9000, outputs).tolist()),
            *((1, 1), (0, 0), (1, 1)),
            *((more,) if depthwise else ()),
            *(3, -4),
            _row(rng.integers(1 << 30, 1 << 31, outputs).tolist()),
            _row([-6] * outputs),
            *(-128, 127),
            Tensor(_S.Byte, (0,), (0,), b""),
            replace(y, order=_NHWC, is_out=True),
        ),
    )


@st.composite
def matrices(draw: st.DrawFn) -> Call:
    """Matrix products with few rows, columns or both."""
    few = st.sampled_from([1, 1, 2, 5])
    rows, depth, outputs = draw(few), draw(few), draw(few)
    sums = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    weights = rng.integers(-127, 128, outputs * depth).astype("i1").tobytes()
    added = _row(rng.integers(-9000, 9000, outputs).tolist())
    return Call(
        "cortex_m::quantized_linear.out",
        (
            replace(_tensor((rows, depth), _S.Char), is_out=True),
            _tensor((outputs, depth), _S.Char, weights),
            *((None, added) if sums else (added, None)),
            *(3, 0, -4),
            *((1 << 30,), (-6,)),
            *(127, -128),
            replace(_tensor((rows, outputs), _S.Char), is_out=True),
        ),
    )


def _variants(call: Call) -> Iterator[Call]:
    """The call with each tensor in other dim orders of the same memory."""
    for at, argument in enumerate(call.args):
        if isinstance(argument, Tensor):
            for other in alike(argument):
                yield replace(call, args=(*call.args[:at], other, *call.args[at + 1 :]))


def _made(call: Call, isa: str, *, rounds: bool) -> object:
    """What a device gets: functions, numbers of structs, and constants."""
    method = method_of([call])
    if rounds:
        method = replace(method, rounding=WeightRounding(group=None))
    method = run_passes(method, _PASSES, plans=True, replans=True, isa=isa, fast=True)
    data = dict(method.data)
    calls = [
        (
            i.function,  # type: ignore[union-attr]  # there are calls only
            i.prepared,  # type: ignore[union-attr]
            [bytes(data[a]) for a in i.args if a in data],  # type: ignore[union-attr]
        )
        for i in method.instructions
    ]
    planned = (v for v in method.values if isinstance(v, TensorValue) and v.allocation)
    return calls, [(v.dtype, v.size_bytes) for v in planned]


@pytest.mark.parametrize("isa", ["scalar", "dsp", "mve"])
@given(call=st.one_of(convolutions(), matrices()), rounds=st.booleans())
@settings(deadline=None, max_examples=40)
def test_packed_weights_are_the_same(call: Call, isa: str, *, rounds: bool) -> None:
    expected = _made(call, isa, rounds=rounds)
    for variant in _variants(call):
        assert _made(variant, isa, rounds=rounds) == expected
