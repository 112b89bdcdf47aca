"""Views of tensors that are not contiguous, made right. Needs PyTorch, ExecuTorch."""

from __future__ import annotations

from typing import Any

from executorch.exir.dialects._ops import ops
from executorch.exir.pass_base import ExportPass, ProxyValue
from executorch.exir.program._program import _transform
from torch.fx import GraphModule
from torch.utils import _pytree

from orchestrator.core.layout import layout_of

_VIEW = ops.edge.aten.view_copy.default
_CLONE = ops.edge.dim_order_ops._clone_dim_order.default  # noqa: SLF001


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
