"""Weights that torchao keeps as integers with scales. Needs PyTorch, ExecuTorch.

torchao's `quantize_` leaves `torchao::dequantize_affine` in a graph, which has no form
that a program could call. A matrix product with such weights is ExecuTorch's
`mixed_linear`, if each row or each group of a row has a scale and no zero point; other
weights become floats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401  # mixed_linear
import torch
from torch.fx.node import Node

from orchestrator.export.weights import constants_of, with_constant_weights

if TYPE_CHECKING:
    from torch.fx import GraphModule

_DEQUANTIZE: Final = "torchao::dequantize_affine"
_MATRIX: Final = 2
_aten: Final = torch.ops.aten
_mixed: Final = torch.ops.quantized_decomposed.mixed_linear


@torch.library.impl(  # type: ignore[untyped-decorator]  # PyTorch is Any
    "quantized_decomposed::mixed_linear", "CompositeExplicitAutograd"
)
def _mixed_linear(
    items: torch.Tensor,
    weight: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor | None,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """What the operator computes; ExecuTorch has only its form with `out`."""
    if zeros is not None:
        raise NotImplementedError
    rows = scales.reshape(weight.shape[0], -1)
    factors = rows.repeat_interleave(weight.shape[1] // rows.shape[1], dim=1)
    found = _aten.linear(items, weight.to(items.dtype) * factors)
    return found.to(dtype or items.dtype)


def with_int_weights(graph: GraphModule) -> GraphModule:
    """Make calls of weights that torchao quantized ones that a program can have.

    Args:
        graph: Changed in place; it computes the same but for the order of sums.
    """
    constants = constants_of(graph)
    for layer in list(graph.graph.nodes):
        if getattr(layer.target, "overloadpacket", None) is _aten.linear:
            weight = _rows_of(layer, constants)
            if weight is not None:
                _mix(graph, layer, *weight)
    return with_constant_weights(graph)


def _rows_of(
    layer: Node, constants: dict[Node, Any]
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Integers and scales of the weights of a layer, if they are by rows or groups."""
    source = layer.args[1]
    if not isinstance(source, Node) or source not in constants:
        return None
    if getattr(source.target, "name", str)() != _DEQUANTIZE:
        return None
    weight, block, scale, zero = source.args[:4]
    integers, scales = constants[weight], constants[scale]
    zeros = None if zero is None else constants[zero]
    is_float = all(
        node.meta["val"].dtype == torch.float32 for node in (layer.args[0], source)
    )
    static = all(isinstance(size, int) for size in layer.args[0].meta["val"].shape)
    if (
        not is_float
        or not static
        or integers.dtype != torch.int8
        or len(block) != _MATRIX
        or block[0] != 1
        or integers.shape[1] % block[1]
        or (zeros is not None and bool(zeros.any()))
    ):
        return None
    rows, groups = integers.shape[0], integers.shape[1] // block[1]
    return integers, scales.reshape(rows, groups)


def _mix(
    graph: GraphModule, layer: Node, integers: torch.Tensor, scales: torch.Tensor
) -> None:
    """Put ExecuTorch's product in the place of a layer."""
    number = sum(name.startswith("_integers") for name, _ in graph.named_buffers())
    graph.register_buffer(f"_integers{number}", integers.detach().clone())
    graph.register_buffer(f"_scales{number}", scales.detach().float().clone())
    items = layer.args[0]
    *outer, columns = items.meta["val"].shape
    bias = layer.args[2] if len(layer.args) > 2 else None  # noqa: PLR2004  # its place
    with graph.graph.inserting_before(layer):
        weight = graph.graph.get_attr(f"_integers{number}")
        scale = graph.graph.get_attr(f"_scales{number}")
        if len(outer) != 1:
            items = graph.graph.call_function(
                _aten.reshape.default, (items, [-1, columns])
            )
        found = graph.graph.call_function(
            _mixed.default,
            (items, weight, scale, None),
        )
        if len(outer) != 1:
            shape = [*outer, integers.shape[0]]
            found = graph.graph.call_function(_aten.reshape.default, (found, shape))
        if bias is not None:
            found = graph.graph.call_function(_aten.add.Tensor, (found, bias))
    layer.replace_all_uses_with(found)
    graph.graph.erase_node(layer)
