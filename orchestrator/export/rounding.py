"""Sums and averages of int8 kernels, rounded as PyTorch rounds. Needs ExecuTorch."""

from __future__ import annotations

import math
from typing import Any, Final

import torch
from executorch.backends.transforms.utils import get_param_tensor
from executorch.exir.dialects._ops import ops as exir_ops

# A multiplier has 31 bits; without its last 15 it is off by 2**-17 of itself at most,
# and an output of 256 steps by 2**-9 of a step.
_MOST_SHIFT: Final = 15
"""Up to this shift, the bits that a multiplier loses count less than rounding twice."""
# Positions in the schemas of ExecuTorch 1.5.1 (backends/cortex_m/ops/operators.yaml):
# these operators have multiplier and shift at two places, by channel or alone.
_FACTORS: Final = {
    exir_ops.edge.cortex_m.quantized_conv2d.default: (8, 9),
    exir_ops.edge.cortex_m.quantized_depthwise_conv2d.default: (9, 10),
    exir_ops.edge.cortex_m.quantized_transpose_conv2d.default: (9, 10),
    exir_ops.edge.cortex_m.quantized_linear.default: (7, 8),
    exir_ops.edge.cortex_m.quantized_mul.default: (5, 6),
    exir_ops.edge.cortex_m.quantized_batch_matmul.default: (5, 6),
}
"""Where operators have multiplier and shift."""
_POOLS: Final = frozenset({exir_ops.edge.cortex_m.quantized_avg_pool2d.default})


def round_as_pytorch(program: Any) -> None:
    """Let calls of a program round once, and ties of averages as floats do."""
    for node in program.graph_module.graph.nodes:
        _round_once(node, program)
        _round_averages(node)


def _round_once(node: Any, program: Any) -> None:
    """Scale sums by a smaller multiplier instead of a shift.

    A kernel rounds a product with the multiplier, and what it shifts once more: one in
    2^(shift + 1) sums is then off by one.
    """
    places = _FACTORS.get(node.target)
    if places is None or node.meta["val"].dtype is not torch.int8:
        return  # kernels for int16 round once, and need all bits of multipliers
    multipliers, shifts = (node.args[i] for i in places)
    # Three forms in the schemas: constants per channel, a list, a number.
    if isinstance(multipliers, torch.fx.Node):
        tensors = [get_param_tensor(program, i) for i in (multipliers, shifts)]
        lists = (tensor.tolist() for tensor in tensors)
        changed = [_once(*pair) for pair in zip(*lists, strict=True)]
        for tensor, values in zip(tensors, zip(*changed, strict=True), strict=True):
            tensor.copy_(torch.tensor(values, dtype=tensor.dtype))
        return
    args = list(node.args)
    if isinstance(multipliers, int):
        args[places[0]], args[places[1]] = _once(multipliers, shifts)
    else:
        pairs = [_once(*pair) for pair in zip(multipliers, shifts, strict=True)]
        args[places[0]], args[places[1]] = map(list, zip(*pairs, strict=True))
    node.args = tuple(args)


def _once(multiplier: int, shift: int) -> tuple[int, int]:
    """The nearest multiplier without a shift to the right, if it is as good."""
    if not -_MOST_SHIFT <= shift < 0:
        return multiplier, shift
    # CMSIS-NN rounds after the multiplication and again after the shift, PyTorch once:
    # with the shift in the multiplier there is one rounding.
    half = 1 << (-shift - 1)
    return (multiplier + half) >> -shift, 0


def _round_averages(node: Any) -> None:
    """Let floats decide ties of averages, which are else rounded away from zero.

    A scratch tensor of int8 asks this project's kernel for it. ExecuTorch's uses none.
    """
    if node.target not in _POOLS or node.meta["val"].dtype is not torch.int8:
        return
    _, kernel, _, padding, ceil_mode, *_, scratch = node.args
    # Only windows of an even number of items have ties. The dtype of the scratch tensor
    # is the sign by which kernels/cortex_m rounds as PyTorch does: a schema has no room
    # for it, and programs of other exporters keep CMSIS-NN's rounding.
    if math.prod(kernel) % 2 == 0 or any(padding) or ceil_mode:
        ((sizes, _),) = scratch.args
        scratch.args = ((sizes, torch.int8),)
        scratch.meta["val"] = scratch.meta["val"].to(torch.int8)
