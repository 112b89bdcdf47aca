"""Batch normalization becomes part of the weights before it.

The only pass that changes bits: products are rounded after weights are scaled, not
before. It runs where the profile wants it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes, settled
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, need
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.joining import Site, at_each_call
from orchestrator.method.passes.views import items_in_order
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_NORM: Final = "orch::portable::_native_batch_norm_legit_no_training_out"
_CONVOLUTION: Final = "orch::portable::convolution_out"
_ADDMM: Final = "orch::portable::addmm_out"


def is_batch_norm(call: LinkedCall) -> bool:
    """Whether a call normalizes with known means and variances."""
    return call.function == _NORM


def fold_batch_norm(method: LinkedMethod, context: Context) -> LinkedMethod:
    """Scale weights and biases by the batch normalization that follows."""
    return at_each_call(method, _folded, grows=context.plans)


def _folded(site: Site) -> Site | None:
    if not is_batch_norm(site.call):
        return None
    norm = site.arguments
    found = site.producer(norm.index("input"))
    # In a loop, what a call reads may come from one behind it.
    if found is None or found.number > site.number:
        return None
    x, y = norm.tensor("input"), norm.tensor("out0")
    need(x.dtype is y.dtype is ScalarType.Float and x.numel > 0)
    need((x.sizes, x.dim_order) == (y.sizes, y.dim_order))
    # Its other outputs, mean and deviation, are empty where nothing trains.
    need(not any(o in site.method.places for o in site.call.outs if o != norm.index("out0")))
    channels = x.sizes[1]
    scale, shift = _scale_and_shift(norm, channels)
    producer, arguments = found.call, found.arguments
    if producer.function == _CONVOLUTION:
        layer = _convolution(arguments, channels)
    elif producer.function == _ADDMM:
        layer = _matrix(arguments, channels)
    else:
        return None
    weights_at, bias_at, axis, weights, bias = layer
    sizes = [channels if d == axis else 1 for d in range(weights.ndim)]
    kept = arguments.tensor(weights_at)
    # Weights that others need as they are would be there two times.
    need(site.has_one_user(arguments.index(weights_at)))
    new_bias = replace(kept, sizes=(channels,), dim_order=(0,), data_buffer_index=1, extra=None)
    found, slots = found.with_slots(
        (kept, _bytes(weights * scale.reshape(sizes), kept)),
        (new_bias, _bytes(bias * scale + shift, new_bias)),
    )
    view = items_in_order(site.method, norm.index("input"), norm.index("out0"))
    args = arguments.replaced(dict(zip((weights_at, bias_at), slots, strict=True)))
    return found.writes_later(site.number, replace(producer, args=args), view)


def _items(arguments: Arguments, name: str) -> Floats:
    """Items of a constant tensor of floats, as doubles."""
    import numpy as np  # noqa: PLC0415  # only where something is folded

    from orchestrator.method.passes.evaluate.numbers import read_items  # noqa: PLC0415

    tensor, data = arguments.tensor(name), arguments.constant(name)
    need(tensor.dtype is ScalarType.Float)
    found = read_items(data, tensor).numbers.astype(np.float64)
    need(np.isfinite(found).all())
    return found


def _items_or(arguments: Arguments, name: str, default: float, count: int) -> Floats:
    """Items of a tensor of one dimension; the default for None."""
    import numpy as np  # noqa: PLC0415

    if arguments.is_none(name):
        return np.full(count, default)
    found = _items(arguments, name)
    need(found.shape == (count,))
    return found


def _scale_and_shift(norm: Arguments, channels: int) -> tuple[Floats, Floats]:
    """What a batch normalization multiplies with and adds, by channel."""
    import numpy as np  # noqa: PLC0415

    weight, bias = _items_or(norm, "weight", 1, channels), _items_or(norm, "bias", 0, channels)
    need(not norm.is_none("running_mean") and not norm.is_none("running_var"))
    mean, var = (_items_or(norm, name, 0, channels) for name in ("running_mean", "running_var"))
    need((var + norm.scalar("eps") > 0).all())
    scale = weight / np.sqrt(var + norm.scalar("eps"))
    return scale, bias - mean * scale


def _convolution(layer: Arguments, channels: int) -> tuple[str, str, int, Floats, Floats]:
    """Names of weights and bias, the axis of channels, and the items of both."""
    need(not layer.truth("transposed"))
    weights, bias = _items(layer, "weight"), _items_or(layer, "bias", 0, channels)
    need(weights.shape[0] == channels)
    return "weight", "bias", 0, weights, bias


def _matrix(layer: Arguments, channels: int) -> tuple[str, str, int, Floats, Floats]:
    # Other factors would have to be in the new weights, too; exporters write none.
    need(layer.scalar("beta") == layer.scalar("alpha") == 1)
    weights, bias = _items(layer, "mat2"), _items_or(layer, "self", 0, channels)
    need(weights.shape[1] == channels)
    return "mat2", "self", 1, weights, bias


def _bytes(numbers: Floats, tensor: TensorValue) -> Bytes:
    """The memory of a constant with these items.

    Raises:
        UnknownCallError: Some are no finite floats.
    """
    import numpy as np  # noqa: PLC0415

    from orchestrator.method.passes.evaluate.numbers import write_items  # noqa: PLC0415

    # Doubles beyond all floats become infinities, which the check below finds.
    with np.errstate(over="ignore"):
        items = numbers.astype(np.float32)
    need(np.isfinite(items).all())
    return settled(write_items(items, tensor))
