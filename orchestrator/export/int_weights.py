"""Weights that torchao keeps as integers with scales. Needs PyTorch, ExecuTorch.

torchao's `quantize_` leaves `torchao::dequantize_affine` in a graph, which has no form
that a program could call. Where each row or each group of a row has a scale, a matrix
product with such weights is ExecuTorch's `mixed_linear`, unless they have zero points,
and an embedding its `embedding_byte`, `embedding_4bit` or `embedding_2bit`. Others
become floats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401  # mixed_linear
import torch
from torch.fx.node import Node

from orchestrator.export.weights import constants_of, parameter_for, with_constant_weights

if TYPE_CHECKING:
    from torch.fx import GraphModule

_DEQUANTIZE: Final = "torchao::dequantize_affine"
_MATRIX: Final = 2
_aten: Final = torch.ops.aten
_quantized: Final = torch.ops.quantized_decomposed
_mixed: Final = _quantized.mixed_linear
_EMBEDDINGS: Final = {
    2: _quantized.embedding_2bit,
    4: _quantized.embedding_4bit,
    8: _quantized.embedding_byte,
}
"""By bits of a weight."""


# ExecuTorch registers `mixed_linear` for its own runtime only, in C++ and with `out`;
# capturing and comparing need it in Python.
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
        packet = getattr(layer.target, "overloadpacket", None)
        if packet not in {_aten.linear, _aten.embedding}:
            continue
        # linear(input, weight) and embedding(weight, indices): the weight is argument 1
        # or 0.
        weight = _rows_of(layer.args[packet is _aten.linear], constants)
        if weight is not None and packet is _aten.embedding:
            _embed(graph, layer, *weight)
        elif weight is not None and weight[2] is None and _is_plain(layer):
            _mix(graph, layer, *weight[:2])
    for node in list(graph.graph.nodes):
        if _is_dequantized(node) and node in constants:
            node.replace_all_uses_with(parameter_for(graph, node, constants[node]))
    return with_constant_weights(graph)


def _is_dequantized(node: Any) -> bool:
    return getattr(getattr(node, "target", None), "name", str)() == _DEQUANTIZE


def _is_plain(layer: Node) -> bool:
    """Whether a product has an input of floats with known sizes."""
    items = layer.args[0].meta["val"]
    static = all(isinstance(size, int) for size in items.shape)
    return static and items.dtype == torch.float32


def _rows_of(
    source: Any, constants: dict[Node, Any]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None] | None:
    """Integers, scales and zero points of weights, if they are by rows or groups."""
    if source not in constants or not _is_dequantized(source):
        return None
    weight, block, scale, zero = source.args[:4]
    integers = constants[weight]
    if (
        source.meta["val"].dtype != torch.float32
        or integers.dtype != torch.int8
        or len(block) != _MATRIX
        # torchao's block sizes are items that share a scale: (1, n) is a row or groups
        # of one.
        or block[0] != 1
        or integers.shape[1] % block[1]
    ):
        return None
    shape = integers.shape[0], integers.shape[1] // block[1]
    zeros = None if zero is None else constants[zero].float().reshape(shape)
    scales = constants[scale].detach().float().reshape(shape)
    return integers, scales, zeros if zeros is not None and zeros.any() else None


def _constant(graph: GraphModule, value: torch.Tensor) -> Node:
    """A new buffer."""
    number = sum(name.startswith("_integers") for name, _ in graph.named_buffers())
    graph.register_buffer(f"_integers{number}", value.detach().clone())
    return graph.graph.get_attr(f"_integers{number}")


def _put(graph: GraphModule, layer: Node, found: Node) -> None:
    """Put a node in the place of a layer."""
    found.meta = dict(layer.meta)
    layer.replace_all_uses_with(found)
    graph.graph.erase_node(layer)


def _embed(
    graph: GraphModule,
    layer: Node,
    integers: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor | None,
) -> None:
    """Put ExecuTorch's embedding in the place of a layer, of as few bits as do."""
    low, high = int(integers.min()), int(integers.max())
    bits = next(
        bits
        for bits in _EMBEDDINGS
        if -(1 << bits - 1) <= low and high < 1 << bits - 1 and integers.shape[1] % (8 // bits) == 0
    )
    packed = integers
    if bits < integers.itemsize * 8:
        # In ExecuTorch's own order of bits
        # (exir/passes/_quant_patterns_and_replacements.py).
        packed = torch.ops.quant_fusion._pack_embedding_weight(integers, bits)  # noqa: SLF001  # its name
    with graph.graph.inserting_before(layer):
        found = graph.graph.call_function(
            _EMBEDDINGS[bits].default,
            (
                _constant(graph, packed),
                _constant(graph, scales),
                None if zeros is None else _constant(graph, zeros),
                *(-(1 << bits - 1), (1 << bits - 1) - 1, layer.args[1]),
            ),
        )
    _put(graph, layer, found)


def _mix(graph: GraphModule, layer: Node, integers: torch.Tensor, scales: torch.Tensor) -> None:
    """Put ExecuTorch's product in the place of a layer."""
    items = layer.args[0]
    *outer, columns = items.meta["val"].shape
    bias = layer.args[2] if len(layer.args) > 2 else None  # noqa: PLR2004  # its place
    with graph.graph.inserting_before(layer):
        weight, scale = _constant(graph, integers), _constant(graph, scales)
        # `mixed_linear` takes matrices only.
        if len(outer) != 1:
            items = graph.graph.call_function(_aten.reshape.default, (items, [-1, columns]))
        found = graph.graph.call_function(_mixed.default, (items, weight, scale, None))
        if len(outer) != 1:
            shape = [*outer, integers.shape[0]]
            found = graph.graph.call_function(_aten.reshape.default, (found, shape))
        if bias is not None:
            found = graph.graph.call_function(_aten.add.Tensor, (found, bias))
    _put(graph, layer, found)
