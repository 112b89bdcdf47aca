"""Relu becomes part of the float convolution that computes its input.

Of prepared calls: their kernels exist with it and without, and a product with both
would have their loops twice. So all convolutions of a method get it, or none.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.joining import at_each_call, producer_of, writes_later
from orchestrator.method.passes.tables import items_in_order

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.passes.dataflow import Dataflow

_SPACE: Final = "orch::portable"
_RELU: Final = f"{_SPACE}::relu_out"
_CONVOLUTION: Final = f"{_SPACE}::convolution_out"
WITH_RELU: Final = f"{_SPACE}::convolution_relu_out"


def is_float_relu(call: LinkedCall) -> bool:
    """Whether a call is a relu."""
    return call.function == _RELU


def fuse_float_activations(method: LinkedMethod, *, grows: bool = False) -> LinkedMethod:
    """Let all convolutions compute the relu after them, if each has one.

    Args:
        method: The method, with prepared calls.
    """
    fused = at_each_call(method, partial(_fused, grows=grows))
    left = (i for i in fused.instructions if isinstance(i, LinkedCall))
    return method if any(call.function == _CONVOLUTION for call in left) else fused


def _fused(
    method: LinkedMethod, flow: Dataflow, at: int, call: LinkedCall, *, grows: bool
) -> LinkedMethod | None:
    if not is_float_relu(call):
        return None
    source, out = call.args[0], call.args[-1]
    found = producer_of(method, flow, at, source)
    if found is None or found[1].function != _CONVOLUTION or found[0] > at:
        return None
    number, producer = found
    view = items_in_order(method, source, out)
    new = replace(producer, function=WITH_RELU)
    return writes_later(method, number, at, new, view, grows=grows)
