"""Weights that a model computes from parameters, as constants. Needs PyTorch.

Weight normalization and standardization compute the same weights in each run, and
quantizers choose scales for constants only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.fx.node import Node, map_arg

if TYPE_CHECKING:
    from torch.fx import GraphModule

_aten: Final = torch.ops.aten
_LAYERS: Final = frozenset(
    {
        *(_aten.conv1d, _aten.conv2d, _aten.conv3d, _aten.convolution),
        *(_aten.conv_transpose1d, _aten.conv_transpose2d, _aten.conv_transpose3d),
        _aten.linear,
    }
)
"""Operators whose second argument is a weight and whose third is a bias."""


def with_constant_weights(graph: GraphModule) -> GraphModule:
    """Replace weights and biases of layers that depend on constants alone.

    Args:
        graph: Changed in place; it computes the same.
    """
    values = constants_of(graph)
    for layer in list(graph.graph.nodes):
        if getattr(layer.target, "overloadpacket", None) not in _LAYERS:
            continue
        for at in (1, 2):
            weight = layer.args[at] if at < len(layer.args) else None
            if isinstance(weight, Node) and weight in values and weight.op != "get_attr":
                layer.update_arg(at, parameter_for(graph, weight, values[weight]))
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


def constants_of(graph: GraphModule) -> dict[Node, Any]:
    """What nodes give that depend on constants alone, by node."""
    changed = changed_nodes(graph)
    values: dict[Node, Any] = {}
    for node in graph.graph.nodes:
        # A buffer that a method writes is no constant, however it looks at its first
        # call.
        if node.op == "get_attr" and node not in changed:
            values[node] = _attribute(graph, node.target)
        elif _is_pure(node) and values.keys() >= set(node.all_input_nodes):
            args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
            with torch.no_grad():
                values[node] = node.target(*args, **kwargs)
    return values


def _is_pure(node: Node) -> bool:
    """Whether a node gives the same each time, from tensors or one number."""
    target = node.target
    if node.op != "call_function":
        return False
    # `full` is the only call without inputs that is worth a constant: it is what
    # torch.export makes of a number beside weights.
    if not node.all_input_nodes and target is not _aten.full.default:
        return False
    if not isinstance(target, torch._ops.OpOverload):  # noqa: SLF001  # its only name
        return _is_item(node)
    seeded = torch.Tag.nondeterministic_seeded in target.tags
    return not seeded and not target._schema.is_mutable  # noqa: SLF001  # likewise


def changed_nodes(graph: Any) -> set[Node]:
    """What operators change in place, and what it shares its memory with."""
    found: set[Node] = set()
    waiting = [
        source for node in graph.graph.nodes for source, alias in _aliases(node) if alias.is_write
    ]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [source for source, _ in _aliases(node)]
            if _is_item(node):
                waiting += node.all_input_nodes
    return found


def _aliases(node: Node) -> Iterator[tuple[Node, Any]]:
    """Tensors that an operator changes or returns views of, with PyTorch's words."""
    if isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001  # its only name
        arguments = node.target._schema.arguments  # noqa: SLF001  # likewise
        for argument, source in zip(arguments, node.args, strict=False):
            if argument.alias_info is not None and isinstance(source, Node):
                yield source, argument.alias_info


def _is_item(node: Node) -> bool:
    """Whether it takes an item of a tuple."""
    return getattr(node.target, "__module__", "") == "_operator"


def _attribute(graph: GraphModule, name: str) -> Any:
    found: Any = graph
    for part in name.split("."):
        found = getattr(found, part)
    return found


def parameter_for(graph: GraphModule, node: Node, value: torch.Tensor) -> Node:
    """A new parameter that can stand for a node, which has this value."""
    number = sum(name.startswith("_weight") for name, _ in graph.named_parameters())
    name = f"_weight{number}"
    # PyTorch folds batch norms into parameters only.
    weight = torch.nn.Parameter(value.detach().clone(), requires_grad=False)
    graph.register_parameter(name, weight)
    with graph.graph.inserting_before(node):
        constant = graph.graph.get_attr(name)
    constant.meta = dict(node.meta)
    return constant
