"""Relu becomes part of the float convolution that computes its input.

Of prelinked models, whose convolutions can be prepared: a kernel finishes its sums so
where it stores them. A product with convolutions of both kinds would have their loops
twice. So all of a method get it, or none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.arguments import Arguments, need
from orchestrator.method.passes.joining import at_each_call, producer_of, writes_later
from orchestrator.method.passes.preparing.floats import convolution_with_relu
from orchestrator.method.passes.tables import items_in_order

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.passes.dataflow import Dataflow

_SPACE: Final = "orch::portable"
_RELU: Final = f"{_SPACE}::relu_out"
_CONVOLUTION: Final = f"{_SPACE}::convolution_out"
_WITH_RELU: Final = f"{_SPACE}::convolution_relu_out"
_OUT: Final = 9
"""Position of a convolution's output."""


def is_relu(call: LinkedCall) -> bool:
    """Whether a call is a relu of any dtype."""
    return call.function == _RELU


def fuse_float_activations(method: LinkedMethod) -> LinkedMethod:
    """Let all convolutions compute the relu after them, if each has one.

    Args:
        method: The method, whose memory is planned afterwards.
    """
    fused = at_each_call(method, _fused)
    calls = (i for i in fused.instructions if isinstance(i, LinkedCall))
    return method if any(c.function == _CONVOLUTION for c in calls) else fused


def _fused(
    method: LinkedMethod, flow: Dataflow, at: int, call: LinkedCall
) -> LinkedMethod | None:
    if not is_relu(call):
        return None
    source, out = call.args
    found = producer_of(method, flow, at, source)
    if found is None or found[1].function != _CONVOLUTION or found[0] > at:
        return None
    number, producer = found
    arguments = Arguments(method, producer, method.written)
    convolution_with_relu(arguments, "")
    tensors = [arguments.tensor(place) for place in (0, 1, _OUT)]
    need(all(tensor.size_bytes > 0 for tensor in tensors))
    need(not method.given.intersection((*producer.args, out)))
    limited = Arguments(method, call, method.written).tensor(1)
    need(limited.dim_order == arguments.tensor(_OUT).dim_order)
    new = replace(producer, function=_WITH_RELU)
    view = items_in_order(method, source, out)
    return writes_later(method, number, at, new, view, grows=True)
