"""Operators without a kernel, computed with operators that have one. Needs PyTorch.

Lowering keeps operators that its backend may take, and some that ExecuTorch never takes
apart. What no kernel serves in the end is replaced in the lowered graph, by PyTorch's own
decompositions or those of `decompositions`. The rest of the graph stays as it is: an
operator that has a kernel is never taken apart.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.pass_base import ExportPass, ProxyValue
from executorch.exir.passes import (
    MemoryFormatOpsPass,
    OpReplacePass,
    base_pre_op_replace_passes,
)
from executorch.exir.passes.dim_order_ops_registry import DimOrderOpsMap
from executorch.exir.passes.remove_mixed_type_operators import RemoveMixedTypeOperators
from executorch.exir.passes.replace_aten_with_edge_pass import aten_to_edge
from executorch.exir.program._program import _transform, lift_constant_tensor_pass
from torch._decomp import core_aten_decompositions, decomposition_table
from torch.func import functionalize
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree

from orchestrator.export.decompositions import OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch._ops import OpOverload

    from orchestrator.export.offered import Offered


def without_leftovers(program: Any, offered: Offered) -> tuple[Any, Counter[str]]:
    """An edge program in which operators without a kernel are decomposed.

    Args:
        program: An exported program in the edge dialect; delegates are left alone.
        offered: Operators that have kernels.

    Returns:
        The program, the same object if nothing was done; calls that were decomposed,
        by operator.
    """
    leftovers = [
        node.target
        for part in program.graph_module.modules()
        if isinstance(part, GraphModule)
        for node in part.graph.nodes
        if isinstance(node.target, EdgeOpOverload)
        and not _has_kernel(node.target, offered)
    ]
    if not any(_decomposition(edge._op) for edge in leftovers):  # noqa: SLF001
        return program, Counter()
    step = _Decompose(offered)
    changed = _transform(program, step)
    if not step.done:
        return program, Counter()
    return lift_constant_tensor_pass(changed), step.done


def _name(op: Any) -> str:
    """Of an operator, such as `aten::add.out`."""
    schema = op._schema  # noqa: SLF001
    return f"{schema.name}.{schema.overload_name}".removesuffix(".")


def _has_kernel(edge: Any, offered: Offered) -> bool:
    with suppress(RuntimeError):  # there is no out variant
        return _name(edge.to_out_variant()) in offered
    return False


@cache
def _core_table() -> Mapping[Any, Callable[..., Any]]:
    found: Mapping[Any, Callable[..., Any]] = core_aten_decompositions()
    return found


def _decomposition(op: OpOverload) -> Callable[..., Any] | None:
    """A function of the same arguments that calls other operators."""
    found = OWN.get(op) or _core_table().get(op) or decomposition_table.get(op)
    if found is None and op.has_kernel_for_dispatch_key(
        torch._C.DispatchKey.CompositeImplicitAutograd  # noqa: SLF001
    ):
        return op.decompose  # type: ignore[no-any-return]  # PyTorch's is Any
    return found  # type: ignore[no-any-return]  # PyTorch's is Any


class _Table(Mapping[Any, Any]):
    """Decompositions of operators without a kernel, looked up when they are met."""

    def __init__(self, offered: Offered) -> None:
        self._offered = offered

    def __getitem__(self, op: Any) -> Callable[..., Any]:
        found = None if self._is_kept(op) else _decomposition(op)
        if found is None:
            raise KeyError(op)
        return found

    def _is_kept(self, op: Any) -> bool:
        if not isinstance(op, torch._ops.OpOverload):
            return True
        edge = aten_to_edge(op)
        # Copies become others that name the order of dimensions.
        return _has_kernel(DimOrderOpsMap.get(edge, edge), self._offered)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 1


class _Decompose(ExportPass):  # type: ignore[misc]  # ExecuTorch's is Any
    """Replaces calls of operators without a kernel."""

    def __init__(self, offered: Offered) -> None:
        super().__init__()
        self._offered = offered
        self.done: Counter[str] = Counter()

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        """Replace a call, or keep it."""
        if isinstance(op, EdgeOpOverload) and not _has_kernel(op, self._offered):
            function = _decomposition(op._op)  # noqa: SLF001
            parts = function and self._parts(function, args, kwargs)
            if parts:
                self.done[_name(op)] += 1
                return self._inlined(parts, args, kwargs, meta)
        return super().call_operator(op, args, kwargs, meta)

    def call_getitem(self, value: Any, key: int, meta: Any) -> Any:
        """One of several results."""
        if isinstance(value, (tuple, list)):
            return value[key]
        return super().call_getitem(value, key, meta)

    def _parts(
        self, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> GraphModule | None:
        """The graph of a decomposition; None if it has operators without a kernel."""
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        values = [v for v in leaves if isinstance(v, ProxyValue)]

        def flat(*given: Any) -> Any:
            rest = iter(given)
            called, named = _pytree.tree_unflatten(
                [next(rest) if isinstance(v, ProxyValue) else v for v in leaves], spec
            )
            return function(*called, **named)

        try:
            graph = make_fx(
                functionalize(flat, remove="mutations_and_views"),
                decomposition_table=_Table(self._offered),
                _allow_non_fake_inputs=True,
            )(*(value.data for value in values))
            graph = _as_edge(graph)
        except Exception:  # noqa: BLE001  # a decomposition may refuse its arguments
            return None
        for node in graph.graph.nodes:
            if isinstance(node.target, torch._ops.OpOverload):
                return None
            is_edge = isinstance(node.target, EdgeOpOverload)
            if is_edge and not _has_kernel(node.target, self._offered):
                return None
        return graph

    def _inlined(self, parts: GraphModule, args: Any, kwargs: Any, meta: Any) -> Any:
        """Call what a graph calls; its result."""
        leaves, _ = _pytree.tree_flatten((args, kwargs))
        given = (v for v in leaves if isinstance(v, ProxyValue))
        found: dict[Any, Any] = {}
        for node in parts.graph.nodes:
            if node.op == "placeholder":
                found[node] = next(given)
                continue
            called, named = torch.fx.map_arg((node.args, node.kwargs), found.get)
            if node.op == "output":
                return called[0]
            if node.op == "get_attr":
                found[node] = getattr(parts, node.target)
            elif node.target is operator.getitem:
                found[node] = self.call_getitem(*called, meta)
            elif isinstance(node.target, EdgeOpOverload):
                found[node] = super().call_operator(node.target, called, named, meta)
            else:
                found[node] = self.call_sym(node.target, called, meta)
        raise AssertionError("a graph without an output")


def _as_edge(graph: GraphModule) -> GraphModule:
    """A graph in the edge dialect, by the passes that ExecuTorch runs for it."""
    graph.graph.eliminate_dead_code()
    for step in (
        *base_pre_op_replace_passes,
        RemoveMixedTypeOperators(),
        OpReplacePass(),
        MemoryFormatOpsPass(),
    ):
        graph = step(graph).graph_module
    graph.graph.eliminate_dead_code()
    return graph
