"""Views of what has another order, or is written, made right. Needs ExecuTorch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from executorch.exir.dialects._ops import ops
from executorch.exir.pass_base import ExportPass, ProxyValue
from executorch.exir.program._program import _transform
from torch.fx import GraphModule
from torch.fx.node import Node
from torch.utils import _pytree

from orchestrator.core.layout import layout_of

_VIEW = ops.edge.aten.view_copy.default
_CLONE = ops.edge.dim_order_ops._clone_dim_order.default  # noqa: SLF001
_COPY = ops.edge.dim_order_ops._to_dim_order_copy.default  # noqa: SLF001
_UPDATES: Final = ("BUFFER_MUTATION", "USER_INPUT_MUTATION")


def with_contiguous_views(program: Any) -> Any:
    """An edge program that views no tensor whose items lie in another order.

    ExecuTorch gives a view the memory of its base and forgets the order of dimensions
    that the base has, as an image in channels-last does. Here the base is copied to the
    default order first where that matters.

    Args:
        program: An exported program in the edge dialect.

    Returns:
        The same object if nothing was done.
    """
    if not any(
        _is_reordered(node.args[0].meta["val"], node.meta["val"])
        for part in program.graph_module.modules()
        if isinstance(part, GraphModule)
        for node in part.graph.nodes
        if node.target is _VIEW
    ):
        return program
    return _transform(program, _Contiguous())


class _Contiguous(ExportPass):  # type: ignore[misc]  # ExecuTorch's is Any
    """Copies the base of a view to the default order of dimensions."""

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        """Call an operator."""
        if op is not _VIEW or not isinstance(args[0], ProxyValue):
            return super().call_operator(op, args, kwargs, meta)
        values = _pytree.tree_map_only(ProxyValue, lambda value: value.data, args)
        if _is_reordered(values[0], op(*values)):
            order = {"dim_order": list(range(values[0].dim()))}
            base = super().call_operator(_CLONE, args[:1], order, meta)
            args = (base, *args[1:])
        return super().call_operator(op, args, kwargs, meta)


def _is_reordered(base: Any, view: Any) -> bool:
    """Whether a view that shares the bytes of its base has its items elsewhere."""
    tensors = (base, view)
    if all(tensor.dim_order() == tuple(range(tensor.dim())) for tensor in tensors):
        return False
    if not all(isinstance(size, int) for tensor in tensors for size in tensor.shape):
        return True
    one, other = (layout_of(tensor.shape, tensor.dim_order()) for tensor in tensors)
    return one != other


def without_equal_copies(graph: Any) -> None:
    """Leave out copies to another layout that is the same one, as of one channel.

    ExecuTorch names the layout of such a result in two ways, and kernels want one.

    Args:
        graph: Of an edge program; changed in place.
    """
    for node in list(graph.nodes):
        if node.target not in (_CLONE, _COPY) or node.kwargs.get("dim_order") is None:
            continue
        given, found = (n.meta["val"] for n in (node.args[0], node))
        sizes = found.shape
        if given.dtype is not found.dtype or not all(isinstance(n, int) for n in sizes):
            continue
        one, other = (layout_of(sizes, tensor.dim_order()) for tensor in (given, found))
        # Of other operators, results have the layout that their inputs have.
        names = (getattr(user.target, "__name__", "") for user in node.users)
        if one == other and all(name.startswith("cortex_m.") for name in names):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def with_updates_apart(program: Any) -> None:
    """Copy what is read from a buffer or an input before a method writes it.

    At the end of a method ExecuTorch writes new values of buffers and inputs one after
    the other. It takes a new value that is another buffer for one in place, and drops
    the write; and what an output shows of a buffer would be its new value.

    Args:
        program: An exported program in the edge dialect.

    Source: ExecuTorch 1.5 `exir/passes/insert_write_back_for_buffers_pass.py`.
    """
    signature, graph = program.graph_signature, program.graph
    names = {buffer: name for name, buffer in signature.inputs_to_buffers.items()}
    specs = signature.output_specs
    targets = [
        names.get(spec.target, spec.target) if spec.kind.name in _UPDATES else "" for spec in specs
    ]
    if not any(targets):
        return
    (output,) = graph.find_nodes(op="output")
    (results,) = output.args
    found = []
    for node, spec, target in zip(results, specs, targets, strict=True):
        base = node
        while isinstance(base, Node) and base.target is _VIEW:
            base, *_ = base.args
        is_given = isinstance(base, Node) and base.op == "placeholder"
        if is_given and node.name != target and (target or base.name in targets):
            with graph.inserting_before(output):
                copied = graph.call_function(_CLONE, (node,))
            copied.meta = {**node.meta, "val": node.meta["val"].clone()}
            spec.arg = replace(spec.arg, name=copied.name)
            found.append(copied)
        else:
            found.append(node)
    output.args = (tuple(found),)
    program.graph_module.recompile()
