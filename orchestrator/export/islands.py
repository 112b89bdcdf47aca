"""Float operators between int8 tensors, as int8 calls. Needs PyTorch, ExecuTorch.

A quantizer marks the operators that it knows. Each other one stays between `dequantize`
and `quantize`. Where int8 calls give the same items, they take its place:

- operators that move or compare items do so on int8;
- functions of the items of one int8 tensor become a table of 256 items, computed by
  PyTorch's own operators;
- limits after a layer become limits of what the layer stores, a `hardsigmoid` also
  its scale and bias.

Every change keeps all bits of the outputs. The same is done between int16 tensors,
whose tables have some of the items only, as many as it takes for the others to be
within a step.
"""

from __future__ import annotations

import operator
from hashlib import sha256
from typing import Any, Final

import executorch.backends.cortex_m.ops.operators  # noqa: F401  # registers them
import torch
from executorch.backends.arm.common.annotation_meta import ArmAnnotationInfo
from executorch.backends.cortex_m.passes.passes_utils import get_activation_bounds
from executorch.backends.transforms.utils import (
    create_constant_placeholder,
    get_param_tensor,
    is_param_node,
)
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export.graph_signature import InputKind

from orchestrator.export.layout import without_equal_copies
from orchestrator.export.lines import ONE, factor_of, lines_of
from orchestrator.export.pads import put_in_order
from orchestrator.export.rounding import round_as_pytorch

_aten: Final = exir_ops.edge.aten
_dim_order: Final = exir_ops.edge.dim_order_ops
_decomposed: Final = exir_ops.edge.quantized_decomposed
_QUANTIZE: Final = _decomposed.quantize_per_tensor.default
_DEQUANTIZE: Final = _decomposed.dequantize_per_tensor.default
_CONVERT: Final = _dim_order._to_dim_order_copy.default  # noqa: SLF001  # its name
_DEQUANTIZERS: Final = (_DEQUANTIZE, _decomposed.dequantize_per_channel.default)
_DTYPES: Final = (torch.int8, torch.int16)
# An int8 number has 256 values: a function of one is a table of as many.
_ITEMS: Final = 256


@torch.library.custom_op("orchestrator::int8", mutates_args=())  # type: ignore[untyped-decorator]  # PyTorch's is Any
def _int8(numbers: torch.Tensor) -> torch.Tensor:
    """Passes numbers through that are int8 already.

    ExecuTorch's passes join operators with their scales and interpret them on integers
    before they become int8 operators: a linear layer then gives int32.
    """
    return numbers.to(torch.int8, copy=True)


@_int8.register_fake  # type: ignore[untyped-decorator]  # PyTorch's is Any
def _like(numbers: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(numbers, dtype=torch.int8)


_INT8: Final = exir_ops.edge.orchestrator.int8.default
# ExecuTorch 1.5.1 (backends/cortex_m/ops/operators.py) makes the result with
# torch.empty: contiguous, whatever the images are.
torch.library.register_fake("cortex_m::maximum", torch.maximum, allow_override=True)
torch.library.register_fake("cortex_m::minimum", torch.minimum, allow_override=True)

_TABLE: Final = exir_ops.edge.cortex_m.quantized_activation.default
_MULTIPLY: Final = exir_ops.edge.cortex_m.quantized_mul.default

_LAYERS: Final = frozenset(
    {*(_aten.convolution.default, _aten.linear.default), *(_aten.add.Tensor, _aten.sub.Tensor)}
)
"""Operators whose int8 kernels have limits of their own."""
_LIMITS: Final = frozenset(
    {*(_aten.relu.default, _aten.hardtanh.default), *(_aten.clamp.default, _aten.clamp.Tensor)}
)
_PRODUCTS: Final = frozenset({_aten.convolution.default, _aten.linear.default})
_HARDSIGMOIDS: Final = frozenset({_aten.hardsigmoid.default})
_INT32: Final = 2**31 - 1
# Half of what int32 holds: the other half is for the products.
_MOST_BIAS: Final = 2**30
"""Largest bias, so that sums of 32 bits have room for products."""
# Both compute each item alone and lack torch.Tag.pointwise in PyTorch 2.13.
_POINTWISE: Final = frozenset({_aten.hardswish.default, _aten.floor_divide.default})
"""Functions of items that PyTorch does not tag as such."""
# ExecuTorch's dialect has some of them as PyTorch's own.
_SCALARS: Final = frozenset({_aten.scalar_tensor.default, torch.ops.aten.scalar_tensor.default})
_FILLED: Final = _SCALARS | {_aten.full.default, _aten.full_like.default}
_MOVES: Final = frozenset(
    {
        *(_aten.view_copy.default, _aten.permute_copy.default),
        *(_aten.transpose_copy.int, _aten.unsqueeze_copy.default),
        *(_aten.squeeze_copy.default, _aten.squeeze_copy.dim, _aten.squeeze_copy.dims),
        *(_aten.slice_copy.Tensor, _aten.select_copy.int, _aten.expand_copy.default),
        *(_aten.split_copy.Tensor, _aten.split_with_sizes_copy.default),
        *(_aten.unbind_copy.int, _aten.alias_copy.default, _aten.clone.default),
        *(_aten.cat.default, _aten.stack.default, _aten.repeat.default),
        *(_aten.flip.default, _aten.roll.default),
        *(_aten.pixel_shuffle.default, _aten.pixel_unshuffle.default),
        *(_aten.index_select.default, _aten.gather.default),
        *(_aten.upsample_nearest2d.vec, _aten.upsample_nearest2d.default),
        *(_aten.amax.default, _aten.amin.default),
        _dim_order._clone_dim_order.default,  # noqa: SLF001  # its name
    }
)
"""Operators whose results are some of the items of their inputs.

Quantizing keeps the order of items, so the largest one may be chosen before or after.
"""


def fused(program: Any) -> Any:
    """The program with int8 calls in place of such operators; changed in place.

    Args:
        program: An exported program of edge operators, before other passes.
    """
    graph = program.graph_module.graph
    # The order of these steps: maxima become movable first; limits and hardsigmoids go
    # into layers while these are still marked; then marks without complete scales are
    # taken away; moves bring functions next to each other, so that tables take whole
    # chains of them.
    _choose_maxima(graph)
    _name_limits(graph)
    _scale_hardsigmoids(program)
    _limit_what_layers_store(graph)
    _unmark(graph)
    _unmark_int16_moves(graph)
    _move_items(graph)
    _tabulate(program)
    _keep_int8(graph)
    graph.eliminate_dead_code()
    graph.lint()
    program.graph_module.recompile()
    return program


def finished(program: Any) -> Any:
    """The program after ExecuTorch's passes; changed in place."""
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if node.target is _INT8:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    # After all of ExecuTorch's passes: pads and copies depend on layouts that are only
    # then known.
    put_in_order(graph)
    without_equal_copies(graph)
    round_as_pytorch(program)
    program.graph_module.recompile()
    return program


def _is(node: Any, target: Any) -> bool:
    """Whether a node quantizes, or dequantizes, int8 or int16 with one scale."""
    return bool(
        isinstance(node, torch.fx.Node)
        and node.target is target
        and node.args[5] in _DTYPES
        and not any(value is not None for value in node.kwargs.values())
    )


def _is_marked(node: Any) -> bool:
    """Whether the quantizer marked a node: its lowering joins it with its scales."""
    info = node.meta.get("custom", {}).get(ArmAnnotationInfo.CUSTOM_META_KEY)
    return info is not None and bool(ArmAnnotationInfo(info).quantized)


def _value(node: Any) -> Any:
    """What a node gives, with sizes; None if it is no tensor."""
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return value if isinstance(value, torch.Tensor) else None


def _is_float(node: Any) -> bool:
    value = _value(node)
    return value is not None and value.is_floating_point()


def _call(before: Any, target: Any, args: Any, like: Any, kwargs: Any = None) -> Any:
    """A new call before a node, with the metadata of the one that it stands for."""
    with before.graph.inserting_before(before):
        new = before.graph.create_node("call_function", target, args, kwargs or {})
    custom = dict(like.meta.get("custom", {}))
    custom.pop(ArmAnnotationInfo.CUSTOM_META_KEY, None)
    new.meta = {**like.meta, "custom": custom}
    return new


def _name_limits(graph: Any) -> None:
    """Both limits of each `hardtanh`: ExecuTorch's passes read them without defaults."""
    for node in graph.nodes:
        if node.target is _aten.hardtanh.default:
            image, *limits = node.args
            given = {"min_val": -1, "max_val": 1, **node.kwargs}
            given |= dict(zip(given, limits, strict=False))
            node.args, node.kwargs = (image, given["min_val"], given["max_val"]), {}


def _choose_maxima(graph: Any) -> None:
    """`max` and `min` along a dimension without indices, as `amax` and `amin`."""
    targets = {_aten.max.dim: _aten.amax.default, _aten.min.dim: _aten.amin.default}
    for node in list(graph.nodes):
        target = targets.get(node.target) if node.op == "call_function" else None
        # Whoever reads the indices needs the operator with indices.
        if target is None or any(
            user.target is not operator.getitem or user.args[1] != 0 for user in node.users
        ):
            continue
        for user in list(node.users):
            args = (node.args[0], [node.args[1]], *node.args[2:3])
            new = _call(user, target, args, user)
            user.replace_all_uses_with(new)
            graph.erase_node(user)
        graph.erase_node(node)


def _follows_layer(node: Any, targets: frozenset[Any], layers: frozenset[Any]) -> bool:
    """Whether a node is all that reads a marked layer, and is quantized itself."""
    return bool(
        node.op == "call_function"
        and node.target in targets
        and node.args[0].target in layers
        and _is_marked(node.args[0])
        and len(node.args[0].users) == 1
        and node.users
        and all(_is(user, _QUANTIZE) for user in node.users)
    )


def _scale_hardsigmoids(program: Any) -> None:
    """`hardsigmoid` after a product: a larger scale, another zero point, and limits.

    It is a sixth of the sum plus 1/2. In steps of the output that is not whole; what is
    left becomes part of the bias. ExecuTorch's pass rounds it away.
    """
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if not _follows_layer(node, _HARDSIGMOIDS, _PRODUCTS):
            continue
        layer = node.args[0]
        users = list(node.users)
        if users[0].args[5] is not torch.int8:
            # Otherwise ActivationFusionPass would change scale and zero point in whole
            # steps of the output: off by one for up to half of the items
            # (docs/export.md).
            del node.meta["custom"][ArmAnnotationInfo.CUSTOM_META_KEY]
            continue
        scale, zero_point = users[0].args[1:3]
        # hardsigmoid(x) = x / 6 + 0.5: six times the scale, and a zero point that is
        # half an output further; what does not fit int8 of that goes into the bias.
        middle = max(-_ITEMS // 2, min(_ITEMS // 2 - 1, zero_point + round(0.5 / scale)))
        bias = _larger_bias(layer, 6 * (0.5 - (middle - zero_point) * scale), program)
        if bias is None or len({user.args[1:] for user in users}) != 1:
            del node.meta["custom"][ArmAnnotationInfo.CUSTOM_META_KEY]
            continue
        limits = [_quantized(bound, users[0]) for bound in (0.0, 1.0)]
        layer.args = (*layer.args[:2], bias, *layer.args[3:])
        for user in users:
            user.args = (layer, 6 * scale, middle, *limits, user.args[5])
        graph.erase_node(node)


def _larger_bias(layer: Any, more: float, program: Any) -> Any:
    """The bias of a layer and a number; None if 32 bits do not hold the sum."""
    image, weight, bias = (*layer.args, None)[:3]
    if not _is(image, _DEQUANTIZE) or weight.target not in _DEQUANTIZERS:
        return None
    scales = (weight if bias is None else bias).args[1]
    if isinstance(scales, torch.fx.Node):
        scales = get_param_tensor(program, scales)
    scales = torch.as_tensor(scales, dtype=torch.float64).reshape(-1)
    if bias is None:
        scales *= image.args[1]
        axis = 1 if layer.target is _aten.convolution.default else -1
        numbers = torch.zeros(_value(layer).shape[axis], dtype=torch.float64)
    else:
        numbers = get_param_tensor(program, bias.args[0]).double()
    # In double: float has 24 bits, a bias 31.
    numbers += (more / scales).round()
    if not bool(scales.min() > 0) or float(numbers.abs().max()) > _MOST_BIAS:
        return None
    first = next(node for node in layer.graph.nodes if node.op == "placeholder")

    def constant(name: str, data: Any) -> Any:
        name = f"{layer.name}_{name}"
        with layer.graph.inserting_before(first):
            return create_constant_placeholder(
                program, layer.graph, name, InputKind.PARAMETER, data
            )

    biases = constant("larger_bias", numbers.to(torch.int32))
    if bias is not None:
        return _call(layer, bias.target, (biases, *bias.args[1:]), bias)
    count = len(numbers)
    steps = constant("bias_scales", scales.float().expand(count).contiguous())
    zeros = constant("bias_zero_points", torch.zeros(count, dtype=torch.int64))
    args = (biases, steps, zeros, 0, -_INT32 - 1, _INT32, torch.int32)
    new = _call(layer, _DEQUANTIZERS[1], args, weight)
    new.meta["val"] = biases.meta["val"].to(torch.float32)
    return new


def _limit_what_layers_store(graph: Any) -> None:
    """Limits between a layer and `quantize`, as limits of the int8 numbers."""
    for node in list(graph.nodes):
        if not _follows_layer(node, _LIMITS, _LAYERS):
            continue
        bounds = get_activation_bounds(node)
        if bounds is None:
            continue
        for user in list(node.users):
            limits = [
                given if bound is None else _quantized(bound, user)
                for bound, given in zip(bounds, user.args[3:5], strict=True)
            ]
            # With a minimum above the maximum, PyTorch gives the maximum.
            limits[0] = min(limits)
            user.args = (node.args[0], *user.args[1:3], *limits, user.args[5])
        graph.erase_node(node)


def _quantized(number: float, quantize: Any) -> int:
    """A number as a call quantizes it."""
    return int(quantize.target(torch.tensor([number]), *quantize.args[1:]))


def _move_items(graph: Any) -> None:
    """Move items as int8: after `quantize`, before `dequantize`."""
    # Backwards and then forwards, so that a chain of moves is passed as a whole by a
    # quantize behind it or a dequantize before it.
    for node in reversed(list(graph.nodes)):
        if _may_move(node) and all(_is(user, _QUANTIZE) for user in _readers(node)):
            _quantize_before(node)
    for node in list(graph.nodes):
        if _may_move(node):
            _dequantize_after(node)


def _unmark_int16_moves(graph: Any) -> None:
    """Let items of int16 be moved here: ExecuTorch's passes know int8."""
    for node in graph.nodes:
        beside = [*node.all_input_nodes, *node.users]
        if (node.target in _MOVES or node.target is operator.getitem) and any(
            (_is(n, _QUANTIZE) or _is(n, _DEQUANTIZE)) and n.args[5] is torch.int16 for n in beside
        ):
            node.meta.get("custom", {}).pop(ArmAnnotationInfo.CUSTOM_META_KEY, None)


def _may_move(node: Any) -> bool:
    return bool(
        node.op == "call_function" and node.target in _MOVES and not _is_marked(node) and node.users
    )


def _readers(node: Any) -> list[Any]:
    """Calls that read the results of a node, or items of its list of results."""
    return [
        reader
        for user in node.users
        for reader in (user.users if user.target is operator.getitem else [user])
    ]


def _moved(node: Any) -> list[Any]:
    """The float tensors whose items a node moves."""
    first = node.args[0]
    return list(first) if isinstance(first, list | tuple) else [first]


def _quantize_before(node: Any) -> None:
    """Quantize what a node moves, in place of what it gives."""
    readers = _readers(node)
    inputs = _moved(node)
    scales = {tuple(reader.args[1:]) for reader in readers}
    if not readers or len(scales) != 1 or not all(map(_is_float, inputs)):
        return
    new = {
        given: _call(node, _QUANTIZE, (given, *scales.copy().pop()), given)
        for given in dict.fromkeys(inputs)
    }
    for given, quantize in new.items():
        quantize.meta["val"] = given.meta["val"].to(quantize.args[5])
    _move_numbers(node, new)
    for reader in readers:
        reader.replace_all_uses_with(reader.args[0])
        node.graph.erase_node(reader)


def _dequantize_after(node: Any) -> None:
    """Dequantize what a node gives, in place of what it moves."""
    inputs = _moved(node)
    if not all(_is(given, _DEQUANTIZE) for given in inputs):
        return
    scales = {tuple(given.args[1:]) for given in inputs}
    # Items with different scales are different numbers: such a cat has to be computed
    # in floats.
    if len(scales) != 1:
        return
    _move_numbers(node, {given: given.args[0] for given in inputs})
    results = [node]
    if not isinstance(node.meta["val"], torch.Tensor):
        results = [user for user in node.users if user.target is operator.getitem]
    for result in results:
        users = list(result.users)
        args = (result, *scales.copy().pop())
        new = _call(result.next, _DEQUANTIZE, args, result)
        new.meta["val"] = result.meta["val"].to(torch.float32)
        for user in users:
            user.replace_input_with(result, new)


def _move_numbers(node: Any, new: dict[Any, Any]) -> None:
    """Let a node move numbers: give it new inputs, and it and its results dtypes."""
    first = node.args[0]
    dtype = next(iter(new.values())).meta["val"].dtype
    is_list = isinstance(first, list | tuple)
    node.args = ([new[given] for given in first] if is_list else new[first], *node.args[1:])
    for changed in (node, *node.users):
        if changed is not node and changed.target is not operator.getitem:
            continue
        value = changed.meta["val"]
        changed.meta["val"] = (
            value.to(dtype)
            if isinstance(value, torch.Tensor)
            else type(value)(item.to(dtype) for item in value)
        )


def _tabulate(program: Any) -> None:
    """Replace functions of the items of one tensor by tables."""
    graph = program.graph_module.graph
    first = next(node for node in graph.nodes if node.op == "placeholder")
    origins: dict[Any, Any] = {}
    known: dict[Any, dict[Any, Any]] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or not node.users:
            continue
        if _is(node, _QUANTIZE) and node.args[0].target in _FILLED:
            _fill_numbers(node, program)
            continue
        origin = _origin(node, origins, program)
        if origin is None:
            continue
        origins[node] = origin
        if not _is(node, _QUANTIZE):
            continue
        every = _all_items(origin.meta["val"].dtype)
        # Each function of one tensor is computed once for all of its items, also where
        # several tables share the way.
        items = known.setdefault(origin, {origin: every})
        table = _items(node, items, program)
        if (
            table is None
            or table.dtype is not every.dtype
            or node.meta["val"].shape != origin.meta["val"].shape
        ):
            continue
        # A quantize that undoes a dequantize with the same scale is not even a copy.
        if _is_same(table, every):
            replacement = origin
        else:
            replacement = _table_call(node, origin, table, (program, first))
        if replacement is None:
            continue
        node.replace_all_uses_with(replacement)
        # What reads it reads the table, so that functions of it begin at the origin.
        if replacement is not origin:
            origins[replacement] = origin
            items[replacement] = table
        graph.erase_node(node)


def _is_same(table: Any, every: Any) -> bool:
    """Whether a function gives its argument. Int16 is quantized from -32767 on."""
    if table.dtype is torch.int16:
        table, every = table[1:], every[1:]
    return bool(torch.equal(table, every))


def _table_call(node: Any, origin: Any, table: Any, constants: Any) -> Any:
    """A call that gives the items of a table; None if no call does.

    Args:
        node: What the call stands for.
        origin: Whose items the function is of.
        table: Its results.
        constants: The program, and the node in front of which its constants go.
    """
    # int16 has 65,536 values: lines between some of them (lines.py), or a product where
    # the function is a change of scale.
    target, entries = _TABLE, table
    args: tuple[int, ...] = ()
    if len(table) != _ITEMS:
        factor = factor_of(table)
        entries = lines_of(table) if factor is None else ONE
        if factor is not None:
            target, args = _MULTIPLY, (0, 0, *factor)
    if entries is None:
        return None
    program, first = constants
    graph = program.graph_module.graph
    # Named by content, so that equal tables of a model are one constant.
    digest = sha256(entries.numpy().tobytes()).hexdigest()
    with graph.inserting_before(first):
        constant = create_constant_placeholder(
            program, graph, f"table_{digest[:16]}", InputKind.PARAMETER, entries
        )
    before = (origin,) if target is _TABLE else (origin, 0)
    return _call(node, target, (*before, constant, *args), node)


def _fill_numbers(node: Any, program: Any) -> None:
    """Quantize a constant: a pass drops the call, and the constant stays float."""
    number = int(_items(node, {}, program).item())
    value = node.meta["val"]
    args = (list(value.shape), number)
    new = _call(node, _aten.full.default, args, node, {"dtype": node.args[5]})
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)


def _all_items(dtype: Any) -> Any:
    limits = torch.iinfo(dtype)
    return torch.arange(limits.min, limits.max + 1).to(dtype)


def _origin(node: Any, origins: dict[Any, Any], program: Any) -> Any:
    """The tensor of whose items those of a node are a function; None if none."""
    if _is(node, _DEQUANTIZE):
        given = node.args[0]
        if _is_number(given, program):
            return None
        return origins.get(given, given)
    computes = _is_function(node.target) and _value(node) is not None
    if node.target not in _FILLED and not _is(node, _QUANTIZE) and not computes:
        return None
    found = {origins.get(given) for given in node.all_input_nodes if not _is_number(given, program)}
    return found.pop() if len(found) == 1 and node.target not in _FILLED else None


def _is_function(target: Any) -> bool:
    """Whether an operator computes each item from those at its place."""
    tags = getattr(getattr(target, "_op", None), "tags", ())
    # A table would hold one draw for ever.
    if torch.Tag.nondeterministic_seeded in tags:
        return False
    return bool(target in _POINTWISE or torch.Tag.pointwise in tags)


def _is_number(node: Any, program: Any) -> bool:
    """Whether a node is a constant with one value everywhere."""
    if node.op == "placeholder":
        return bool(is_param_node(program, node) and node.meta["val"].numel() == 1)
    if node.op != "call_function":
        return False
    if node.target in _FILLED:
        return True
    converts = node.target is _CONVERT and not node.args[0].meta["val"].dim()
    return (converts or _is(node, _DEQUANTIZE)) and _is_number(node.args[0], program)


def _items(node: Any, known: dict[Any, Any], program: Any) -> Any:
    """What a node gives for each item; None for what whole numbers cannot hold."""
    if node in known:
        return known[node]
    if node.op == "placeholder":
        value = get_param_tensor(program, node).detach()
        result = value.reshape([1] if value.dim() else [])
    elif node.target in _FILLED:
        number = node.args[0 if node.target in _SCALARS else 1]
        value = node.meta["val"]
        result = torch.full([1] if value.dim() else [], number, dtype=value.dtype)
    else:
        given = {i: _items(i, known, program) for i in node.all_input_nodes}
        if any(value is None for value in given.values()):
            return None
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), given.__getitem__)
        if _is(node, _QUANTIZE) and bool(args[0].isnan().any()):
            return None
        result = node.target(*args, **kwargs)
    known[node] = result
    return result


def _unmark(graph: Any) -> None:
    """Keep float operators whose scales are incomplete; as int8 they would be wrong."""
    changed = True
    # A node that loses its mark takes scales from its neighbours.
    while changed:
        changed = False
        for node in graph.nodes:
            if (
                node.op == "call_function"
                and node.target not in (_QUANTIZE, *_DEQUANTIZERS)
                and _is_marked(node)
                and not _has_scales(node)
            ):
                del node.meta["custom"][ArmAnnotationInfo.CUSTOM_META_KEY]
                changed = True


def _has_scales(node: Any) -> bool:
    """Whether the inputs and results of a marked node that are floats are quantized."""
    activations = {*_LIMITS, _aten.hardsigmoid.default}
    for given in node.all_input_nodes:
        is_layer = node.target in activations and _is_marked(given) and len(given.users) == 1
        is_list = node.target is operator.getitem and _is_marked(given)
        is_float = is_list or node.target is operator.getitem or _is_float(given)
        if is_float and not (given.target in _DEQUANTIZERS or is_layer or is_list):
            return False
    for user in node.users:
        is_item = user.target is operator.getitem and _is_marked(user)
        is_activation = user.target in activations and _is_marked(user)
        if _is_float(user if user.target is operator.getitem else node) and not (
            user.target is _QUANTIZE or is_item or is_activation
        ):
            return False
    return True


def _keep_int8(graph: Any) -> None:
    """Keep the dtype of what marked operators give."""
    for node in list(graph.nodes):
        is_int8 = _is(node, _QUANTIZE) and node.args[5] is torch.int8
        if is_int8 and _is_marked(node.args[0]):
            users = list(node.users)
            new = _call(node.next, _INT8, (node,), node)
            for user in users:
                user.replace_input_with(node, new)
