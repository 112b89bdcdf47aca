"""Layers as operators that the quantizer for Cortex-M knows. Needs PyTorch, ExecuTorch.

PyTorch captures some layers as one operator and takes it apart only when it is lowered,
after scales were chosen. Here this happens before: recurrent layers and attention
become products, sums and functions; a batch norm without a convolution becomes one.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import torch
from executorch.exir.pass_base import ExportPass, ProxyValue
from torch._decomp import get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree

from orchestrator.export.layout import dense

_aten: Final = torch.ops.aten
_IMAGE: Final = 4
_RANKS: Final = (2, _IMAGE)
"""Ranks of tensors whose channels become those of an image here; lines already are images."""
_OF_PAIRS: Final = frozenset(
    {_aten.add.Tensor, _aten.sub.Tensor, _aten.mul.Tensor, _aten.div.Tensor}
)
_TENSORS: Final = (ProxyValue, torch.Tensor)


def quantizable(model: Any) -> Any:
    """The graph with such layers taken apart; it computes the same."""
    _reshape_constants(model)
    _convolve_instead_of_normalizing(model)
    _scale_below_zero(model)
    model = _TakeApart()(model).graph_module
    _give_one_rank(model)
    return model


def _give_one_rank(model: Any) -> None:
    """Let both inputs of an operator have the rank of its result.

    int8 operators take tensors of equal sizes: no `[1, 8]` beside `[1, 1, 8]`.
    """
    for node in list(model.graph.nodes):
        if node.target not in _OF_PAIRS:
            continue
        sizes = node.meta["val"].shape
        for given in node.all_input_nodes:
            value = given.meta["val"]
            # Only where no item is repeated: a broadcast has no int8 kernel, a view
            # costs nothing.
            if value.shape == sizes or value.numel() != node.meta["val"].numel():
                continue
            with model.graph.inserting_before(node):
                view = model.graph.call_function(_aten.view.default, (given, list(sizes)))
            view.meta = {**given.meta, "val": value.reshape(sizes)}
            node.replace_input_with(given, view)
    model.recompile()


def _reshape_constants(model: Any) -> None:
    """Weights with another dimension as constants, which have scales of their own."""
    for node in list(model.graph.nodes):
        if (
            node.target is not _aten.unsqueeze.default
            or node.args[0].op != "get_attr"
            or any(user.target is not _aten.conv2d.default for user in node.users)
        ):
            continue
        weight = _constant(model, node.args[0]).unsqueeze(node.args[1])
        node.replace_all_uses_with(_new_constant(model, node, node.name, weight))
        model.graph.erase_node(node)
    model.graph.eliminate_dead_code()
    model.recompile()


def _new_constant(model: Any, before: Any, name: str, data: Any) -> Any:
    # ExecuTorch knows that sizes of a parameter do not change.
    constant = torch.nn.Parameter(data.contiguous(), requires_grad=False)
    model.register_parameter(name, constant)
    with model.graph.inserting_before(before):
        return model.graph.get_attr(name)


def _convolve_instead_of_normalizing(model: Any) -> None:
    """Batch norms as depthwise convolutions of one pixel.

    A batch norm after a convolution is already part of that.
    """
    for node in list(model.graph.nodes):
        if node.target is not _aten.batch_norm.default:
            continue
        image, *given, training, _, epsilon, _ = node.args
        if training or image.meta["val"].dim() not in _RANKS:
            continue
        scale, shift, mean, variance = (None if i is None else _constant(model, i) for i in given)
        if mean is None or variance is None:
            continue
        # In double, and rounded once.
        weight = torch.rsqrt(variance.double() + epsilon)
        weight = weight if scale is None else weight * scale
        bias = -mean * weight if shift is None else shift - mean * weight
        _replace(node, _scaled(model, node, image, weight, bias))
    model.graph.eliminate_dead_code()
    model.recompile()


def _scale_below_zero(model: Any) -> None:
    """`prelu` as int8 operators: a function of items, if it has one slope.

    One for each channel multiplies what is below zero; the rest is added.
    """
    for node in list(model.graph.nodes):
        if node.target is not _aten.prelu.default or node.args[1].op != "get_attr":
            continue
        image, slopes = node.args[0], _constant(model, node.args[1])
        if slopes.numel() == 1:
            node.target, node.args = _aten.leaky_relu.default, (image, slopes.item())
        elif image.meta["val"].dim() in _RANKS:
            below = _before(node, _aten.clamp.default, image, None, 0.0)
            above = _before(node, _aten.relu.default, image)
            scaled = _scaled(model, node, below, slopes)
            _replace(node, _before(node, _aten.add.Tensor, above, scaled))
    model.graph.eliminate_dead_code()
    model.recompile()


def _scaled(model: Any, node: Any, image: Any, weight: Any, bias: Any = None) -> Any:
    """A depthwise convolution of one pixel, before a node that gives a tensor of its size.

    Its one weight for each channel has a scale of its own, so that it loses nothing as
    int8. Tensors [N, C] become images of one pixel.
    """
    is_image = node.meta["val"].dim() == _IMAGE
    factors = _new_constant(model, node, f"{node.name}_weight", weight.float().view(-1, 1, 1, 1))
    if bias is not None:
        bias = _new_constant(model, node, f"{node.name}_bias", bias.float())
    for axis in () if is_image else (2, 3):
        image = _before(node, _aten.unsqueeze.default, image, axis)
    sizes = ([1, 1], [0, 0], [1, 1], weight.numel())
    found = _before(node, _aten.conv2d.default, image, factors, bias, *sizes)
    return found if is_image else _before(node, _aten.squeeze.dims, found, [2, 3])


def _before(node: Any, target: Any, *args: Any) -> Any:
    """A call before a node; `_TakeApart` gives it the metadata of its own."""
    with node.graph.inserting_before(node):
        call = node.graph.call_function(target, args)
    call.meta = dict(node.meta)
    return call


def _replace(node: Any, other: Any) -> None:
    node.replace_all_uses_with(other)
    node.graph.erase_node(node)


def _constant(model: Any, node: Any) -> Any:
    """The tensor that a node gets from its module."""
    return operator.attrgetter(node.target)(model).detach()


class _TakeApart(ExportPass):  # type: ignore[misc]  # ExecuTorch's is Any
    """Replaces operators by those that they consist of."""

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        """Call an operator, or its parts."""
        function: Any = _LAYERS.get(op)
        if op is _aten.scaled_dot_product_attention.default:
            function = _attention if _is_plain(*args, **kwargs) else None
        if op is _aten.softmax.int and args[1] not in (-1, args[0].to_tensor().dim() - 1):
            function = _softmax
        if function is None:
            return super().call_operator(op, args, kwargs, meta)
        # Lists of nodes are of a type that does not count as one here.
        plain = [list(arg) if isinstance(arg, list) else arg for arg in args]
        leaves, spec = _pytree.tree_flatten((plain, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, _TENSORS)]

        def call(*values: Any) -> Any:
            given = iter(values)
            filled = [next(given) if isinstance(leaf, _TENSORS) else leaf for leaf in leaves]
            args, kwargs = _pytree.tree_unflatten(filled, spec)
            return function(*args, **kwargs)

        mode = next(t.data for t in tensors if isinstance(t, ProxyValue)).fake_mode
        with mode:  # a fake tensor made from a parameter would have symbols as sizes
            values = [
                t.data
                if isinstance(t, ProxyValue)
                else torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
                for t in tensors
            ]
        # With oneDNN, PyTorch captures a recurrent layer as mkldnn_rnn_layer, which
        # nothing takes apart.
        with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
            # pre_dispatch: quantizers match linear and matmul, which are taken apart
            # behind the dispatcher.
            graph = make_fx(call, pre_dispatch=True)(*values).graph
        return self._replayed(graph, tensors, meta)

    def _replayed(self, graph: Any, inputs: list[Any], meta: Any) -> Any:
        """Call what a graph calls."""
        given = iter(inputs)
        found: dict[Any, Any] = {}
        for node in graph.nodes:
            if node.op == "placeholder":
                found[node] = next(given)
                continue
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), found.__getitem__)
            if node.op == "output":
                return args[0]
            if node.target is operator.getitem:
                found[node] = self.call_getitem(args[0], args[1], meta)
            else:
                found[node] = super().call_operator(node.target, args, kwargs, meta)
        raise AssertionError("a graph has an output")


def _is_plain(*args: Any, **kwargs: Any) -> bool:
    """Whether attention has no mask, whose infinities have no scale."""
    # With is_causal or a mask, minus infinity is added before softmax: a scale that
    # holds it has no steps left for other numbers.
    return len(args) == 3 and not any(  # noqa: PLR2004  # query, key, value
        value for name, value in kwargs.items() if name != "scale"
    )


def _attention(query: Any, key: Any, value: Any, **options: Any) -> Any:
    scale = options.get("scale") or query.shape[-1] ** -0.5
    weights = _aten.matmul.default(query * scale, key.transpose(-2, -1))
    return _aten.matmul.default(_aten.softmax.int(weights, -1), value)


def _gru_cell(  # noqa: PLR0917  # PyTorch's
    x: Any, state: Any, inner: Any, outer: Any, bias: Any = None, more: Any = None
) -> Any:
    # Order of gates as in torch.nn.GRUCell and LSTMCell: r, z, n and i, f, g, o.
    reset, update, new = torch.chunk(_aten.linear.default(x, inner, bias), 3, 1)
    gates = torch.chunk(_aten.linear.default(state, outer, more), 3, 1)
    reset, update = (gates[0] + reset).sigmoid(), (gates[1] + update).sigmoid()
    new = torch.tanh(new + gates[2] * reset)
    return (state - new) * update + new


def _lstm_cell(  # noqa: PLR0917  # PyTorch's
    x: Any, states: Any, inner: Any, outer: Any, bias: Any = None, more: Any = None
) -> Any:
    state, kept = states
    sums = _aten.linear.default(x, inner, bias) + _aten.linear.default(state, outer, more)
    add, forget, new, out = torch.chunk(sums, 4, 1)
    kept = forget.sigmoid() * kept + add.sigmoid() * new.tanh()
    return out.sigmoid() * kept.tanh(), kept


def _softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    order = [*range(x.dim())]
    order.append(order.pop(dim))
    back = [order.index(at) for at in range(x.dim())]
    return dense(_aten.softmax.int(dense(x.permute(order)), -1, dtype).permute(back))


def _rrelu(x: Any, lower: Any = 1 / 8, upper: Any = 1 / 3, *_: Any) -> Any:
    return torch.nn.functional.leaky_relu(x, (lower + upper) / 2)  # as if not in training


def _glu(x: Any, dim: int = -1) -> Any:
    value, gate = torch.chunk(x, 2, dim)
    return value * gate.sigmoid()


_LAYERS: Final = {
    **get_decompositions(
        [_aten.gru.input, _aten.lstm.input, _aten.rnn_tanh.input, _aten.rnn_relu.input]
    ),
    _aten.gru_cell.default: _gru_cell,
    _aten.lstm_cell.default: _lstm_cell,
    _aten.glu.default: _glu,
    _aten.rrelu.default: _rrelu,
}
