"""Pads of int8 images, in the order in which the image lies. Needs ExecuTorch.

`cortex_m::pad` takes pads in the order of the memory. ExecuTorch's pass writes them for
the layout of the float image, before it knows that of the int8 one: an int8 softmax
keeps the layout of its input, PyTorch's does not. So the pass writes pads by dimension
here, and they are put in order when all layouts are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from executorch.backends.arm._passes.arm_pass_utils import get_first_fake_tensor
from executorch.backends.cortex_m.ops.operators import _pad_to_logical_order
from executorch.backends.cortex_m.passes.aten_to_cortex_m_pass import AtenToCortexMPass
from executorch.backends.cortex_m.passes.passes_utils import is_channels_last, to_physical_order
from executorch.exir.dialects._ops import ops as exir_ops

_PADDED: Final = (exir_ops.edge.aten.constant_pad_nd.default, exir_ops.edge.aten.avg_pool2d.default)
"""Operators in whose place the pass puts a pad, or puts one before them."""


def _pad(image: torch.Tensor, before: list[int], after: list[int], value: int) -> torch.Tensor:
    """Pad a tensor; the lists have four items, of the last dimension last."""
    pairs = list(zip(before, after, strict=True))[-image.dim() :]
    flat = [size for pair in reversed(pairs) for size in pair]
    found = torch.nn.functional.pad(image, flat, value=value)
    layout = torch.channels_last if is_channels_last(image) else torch.contiguous_format
    return found.contiguous(memory_format=layout)


# An operator of our own stands for `cortex_m::pad` until layouts are known; it computes
# by dimension, so that metadata and the comparison with PyTorch are right meanwhile.
torch.library.custom_op("orchestrator::pad", _pad, mutates_args=()).register_fake(_pad)
_BY_DIMENSION: Final = exir_ops.edge.orchestrator.pad.default
_IN_ORDER: Final = exir_ops.edge.cortex_m.pad.default


def _reordered(args: Any, order: Callable[[list[int], Any], list[int]]) -> Any:
    image, before, after, value = args
    like = get_first_fake_tensor(image)
    return (image, order(before, like), order(after, like), value)


def _by_dimension(write: Any) -> Any:
    """A substitution of ExecuTorch's pass that pads by dimension."""

    def written(node: Any, substitutions: Any) -> Any:
        found = write(node, substitutions)
        if found is None:
            return None
        if found.op is _IN_ORDER:
            found.op = _BY_DIMENSION
            found.args = _reordered(found.args, _pad_to_logical_order)
        elif found.args[0].target is _IN_ORDER:
            pad = found.args[0]
            pad.target = _BY_DIMENSION
            pad.args = _reordered(pad.args, _pad_to_logical_order)
        return found

    return written


# A table of the class (ExecuTorch 1.5.1,
# backends/cortex_m/passes/aten_to_cortex_m_pass.py), changed when this module is
# imported: in the export's own process, for good.
_written: Final = AtenToCortexMPass._DIALECT_SUBSTITUTIONS  # noqa: SLF001  # its table
_written.update({target: _by_dimension(_written[target]) for target in _PADDED})


def put_in_order(graph: Any) -> None:
    """Write the pads for the layouts that images have after ExecuTorch's passes."""
    for node in graph.nodes:
        if node.target is _BY_DIMENSION:
            node.target = _IN_ORDER
            node.args = _reordered(node.args, to_physical_order)
