"""Pads become padding of the convolution or pooling that reads them.

What a pad adds has to be what the reader's own padding counts as: the zero point of a
convolution, zero where items are floats, and for the largest item one that is never
larger than what the call stores at least.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from orchestrator.core.dtype import FLOATING
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import (
    NHWC,
    Arguments,
    UnknownCallError,
    lies_as_nhwc,
    need,
)
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.joining import Site, at_each_call
from orchestrator.method.windows import Axis
from orchestrator.program.values import IntListValue, IntValue, TensorValue

_PAD: Final = "orch::cortex_m::pad_out"
_PAD_CONTIGUOUS: Final = "orch::cortex_m::pad_contiguous_out"
_CONSTANT_PAD: Final = "orch::portable::constant_pad_nd_out"
_PADS: Final = frozenset({_PAD, _PAD_CONTIGUOUS, _CONSTANT_PAD})


_FLOAT: Final = "orch::portable::convolution_out"
_CONVOLUTIONS: Final = frozenset(
    f"orch::cortex_m::quantized_{name}{layout}_out"
    for name in ("conv2d", "depthwise_conv2d")
    for layout in ("", "_nhwc")
)
_LARGEST: Final = frozenset(
    f"orch::cortex_m::quantized_max_pool2d{layout}_out" for layout in ("", "_nhwc")
)
_OF_NHWC: Final = frozenset(
    f"orch::cortex_m::quantized_{name}_nhwc_out"
    for name in ("conv2d", "depthwise_conv2d", "max_pool2d")
)
"""Kernels that read images with sizes N, H, W, C."""
_READERS: Final = frozenset({_FLOAT, *_CONVOLUTIONS, *_LARGEST})
"""Kernels that pad their first argument themselves."""
_PLANE: Final = 2
"""Dimensions of images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pad:
    """What a call adds around a tensor.

    Args:
        tensor: Value index.
        before: Items in front, by dimension.
        after: Items behind.
        value: What it adds.
    """

    tensor: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    value: float


def is_pad(call: LinkedCall) -> bool:
    """Whether a call pads a tensor."""
    return call.function in _PADS


def fold_pads(method: LinkedMethod, context: Context) -> LinkedMethod:
    """Let convolutions and pooling pad their inputs themselves."""
    return at_each_call(method, partial(_folded, uneven=None), grows=context.plans)


def fold_uneven_pads(method: LinkedMethod, *, but: Collection[int]) -> LinkedMethod:
    """Let int8 convolutions have more padding behind an image than in front of it.

    Only kernels for packed weights can take these calls: no argument says how much.

    Args:
        method: The method, whose memory is planned afterwards.
        but: Outputs of calls that stay as they are.
    """
    if not any(isinstance(i, LinkedCall) and is_pad(i) for i in method.instructions):
        return method
    return at_each_call(method, partial(_folded, uneven=but), grows=True)


def uneven_calls(method: LinkedMethod) -> frozenset[int]:
    """Outputs of calls that only kernels for packed weights can take."""
    found = set()
    for call in method.instructions:
        if not isinstance(call, LinkedCall) or call.function not in _READERS:
            continue
        with suppress(UnknownCallError):
            axes = _windows(Arguments(method, call), call.function).values()
            if not all(_fits(axis, axis.size, axis.padding) for axis in axes):
                found.add(call.args[-1])
    return frozenset(found)


def _folded(site: Site, *, uneven: Collection[int] | None) -> Site | None:
    """The method where a call pads its input itself; None if nothing pads it.

    Args:
        site: The call.
        uneven: Outputs of calls that may not have uneven padding; None if none may.

    Raises:
        UnknownCallError: The call cannot.
    """
    call = site.call
    if call.function not in _READERS:
        return None
    arguments = site.arguments
    found = site.producer(arguments.index("input"))
    if found is None or not is_pad(found.call):
        return None
    pad = _pad_of(found.arguments, found.call.function)
    padded, x = arguments.tensor("input"), arguments.tensor_at(pad.tensor)
    need(x.dtype is padded.dtype and x.dim_order == padded.dim_order)
    sizes = zip(pad.before, x.sizes, pad.after, strict=True)
    need(tuple(b + n + a for b, n, a in sizes) == padded.sizes)
    may_be_uneven = (
        uneven is not None and call.function in _CONVOLUTIONS and call.args[-1] not in uneven
    )
    padding = _padding(arguments, call.function, pad, x, may_be_uneven=may_be_uneven)
    site, items = site.with_slots(*((IntValue(p), None) for p in padding))
    site, (slot,) = site.with_slots((IntListValue(items), None))
    new = replace(call, args=arguments.replaced({"input": pad.tensor, "padding": slot}))
    return site.reads_earlier((found.number,), new, pad.tensor)


def _pad_of(arguments: Arguments, function: str) -> _Pad:
    tensor = arguments.tensor(0)
    rank = len(tensor.sizes)
    before, after = [0] * rank, [0] * rank
    if function == _CONSTANT_PAD:
        pairs = arguments.numbers("pad")
        need(len(pairs) % 2 == 0 and len(pairs) // 2 <= rank)
        for pair in range(len(pairs) // 2):
            before[rank - 1 - pair] = pairs[2 * pair]
            after[rank - 1 - pair] = pairs[2 * pair + 1]
        value: float = arguments.literal("value")
    else:
        need(rank == len(NHWC))
        dims: tuple[int, ...] = tuple(range(rank))
        if function == _PAD and lies_as_nhwc(tensor):
            dims = NHWC
        pads = map(arguments.numbers, ("pre_pad", "post_pad"))
        for d, front, behind in zip(dims, *pads, strict=True):
            before[d], after[d] = front, behind
        value = arguments.number("pad_value")
    # A negative pad cuts items off.
    need(min((*before, *after), default=0) >= 0)
    return _Pad(tensor=arguments.index(0), before=tuple(before), after=tuple(after), value=value)


def _fits(axis: Axis, size: int, padding: int) -> bool:
    """Whether a reader finds all outputs with so much padding on both sides."""
    room = size + 2 * padding - axis.window
    return room >= 0 and room // axis.stride + 1 == axis.out


def _windows(arguments: Arguments, function: str) -> dict[int, Axis]:
    """The windows of a reader, by dimension of the image that it reads.

    Raises:
        UnknownCallError: They are not known.
    """
    dims = _image_dims(arguments, function)
    sizes, out = arguments.tensor("input").sizes, arguments.tensor("out").sizes
    if function in _LARGEST:
        kernel = arguments.numbers("kernel_size")
    else:
        weights = arguments.tensor("weight").sizes
        kernel = weights[2:] if function == _FLOAT else weights[1:3]
    own, stride, dilation = map(arguments.numbers, ("padding", "stride", "dilation"))
    # Lists may be shorter, with one number for all dimensions.
    need(len(kernel) == len(own) == len(stride) == len(dilation) == len(dims))
    return {
        d: Axis.of((sizes[d], out[d], *numbers))
        for d, *numbers in zip(dims, kernel, stride, own, dilation, strict=True)
    }


def _image_dims(arguments: Arguments, function: str) -> tuple[int, ...]:
    rank = len(arguments.tensor("input").sizes)
    return (1, 2) if function in _OF_NHWC else tuple(range(2, rank))


def _padding(
    arguments: Arguments, function: str, pad: _Pad, x: TensorValue, *, may_be_uneven: bool
) -> tuple[int, ...]:
    """The padding with which a call needs no pad before it.

    Raises:
        UnknownCallError: There is none.
    """
    dims = _image_dims(arguments, function)
    rest = set(range(len(x.sizes))) - {*dims}
    need(not any(pad.before[d] or pad.after[d] for d in rest))
    if function in _LARGEST:
        need(not arguments.truth("ceil_mode"))
        # Such an item is no larger than what the call stores at least, so it never decides.
        need(pad.value <= arguments.number("activation_min"))
    if function in _CONVOLUTIONS:
        # Kernels count taps outside of the image as the zero point.
        need(pad.value == -arguments.number("input_offset"))
    if function == _FLOAT:
        need(pad.value == 0 and not arguments.truth("transposed"))
        _check_floats(arguments, x)
        # Sums of a volume begin with its first image in a window.
        need(len(dims) <= _PLANE or not (pad.before[dims[0]] or pad.after[dims[0]]))
    windows = _windows(arguments, function)
    need(windows)
    found = []
    for dim, of in windows.items():
        # Windows begin where they began. Those that end beyond the pad did so before.
        front, size = of.padding + pad.before[dim], x.sizes[dim]
        need(may_be_uneven or _fits(of, size, front))
        if function in _LARGEST:
            # The kernel wants an item in each window.
            first = range(-front, of.window - front, of.dilation)
            last = (of.out - 1) * of.stride - front
            for taps_at in (first, range(last, last + of.window, of.dilation)):
                need(any(0 <= at < size for at in taps_at))
        found.append(front)
    return tuple(found)


def _check_floats(arguments: Arguments, x: TensorValue) -> None:
    """Check that adding products with zero changes no sum.

    The kernel leaves out what lies in its padding. Zero times a weight is zero, unless
    that is infinite, and adding it changes only a sum of -0; only a bias begins as one.

    Raises:
        UnknownCallError: It might.
    """
    if x.dtype not in FLOATING:
        return
    import numpy as np  # noqa: PLC0415  # only where something is padded

    from orchestrator.method.passes.evaluate.numbers import computed, read_items  # noqa: PLC0415

    for name in ("weight", "bias"):
        if arguments.is_none(name):
            continue
        items = read_items(arguments.constant(name), arguments.tensor(name))
        numbers = computed(items.numbers, items.dtype)
        need(np.isfinite(numbers).all())
        need(name == "weight" or not np.signbit(numbers[numbers == 0]).any())
