"""Operators without a kernel, computed with operators that have one. Needs PyTorch.

Lowering keeps operators that its backend may take, and some that ExecuTorch never
decomposes. What no kernel serves in the end is replaced in the lowered graph, by
PyTorch's own decompositions or those of `decompositions`. The rest of the graph stays:
an operator that has a kernel is never decomposed.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.pass_base import ExportPass, ProxyValue
from executorch.exir.passes import MemoryFormatOpsPass, OpReplacePass, base_pre_op_replace_passes
from executorch.exir.passes.dim_order_ops_registry import DimOrderOpsMap
from executorch.exir.passes.executorch_prim_ops_registry import _EXECUTORCH_SYM_OPS
from executorch.exir.passes.remove_mixed_type_operators import RemoveMixedTypeOperators
from executorch.exir.passes.replace_aten_with_edge_pass import aten_to_edge
from executorch.exir.program._program import _transform, lift_constant_tensor_pass
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._ops import OpOverload
from torch.func import functionalize
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree

if TYPE_CHECKING:
    from orchestrator.export.request import Offered


# Decompositions that PyTorch does not have. Needs PyTorch.
#
# One that raises `NotImplementedError` leaves the call as it is: the build then reports an
# operator without a kernel.

aten = torch.ops.aten


def channel_shuffle(x: Any, groups: int) -> Any:
    """Channels of several groups, taken in turn from each."""
    batch, channels, *sizes = x.shape
    parts = x.reshape(batch, groups, channels // groups, *sizes)
    return parts.transpose(1, 2).reshape(x.shape)


def conv_tbc(x: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """A convolution of [time, batch, channels] with [width, in, out]."""
    found = torch.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return found.permute(2, 0, 1)


def empty_permuted(size: Sequence[int], physical_layout: Any, **options: Any) -> Any:
    """Memory of whatever content; zeros are one."""
    del physical_layout
    return torch.zeros(size, dtype=options.get("dtype"))


def exp2(x: Any) -> Any:
    """Powers of 2."""
    return torch.pow(2.0, x)


def fmax(one: Any, two: Any) -> Any:
    """The larger number; what is not a number is passed over."""
    return torch.where(one.isnan(), two, torch.where(two.isnan(), one, torch.maximum(one, two)))


def fmin(one: Any, two: Any) -> Any:
    """The smaller number; what is not a number is passed over."""
    return torch.where(one.isnan(), two, torch.where(two.isnan(), one, torch.minimum(one, two)))


def rrelu_without_noise(  # noqa: PLR0917  # as PyTorch's
    x: Any,
    noise: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,  # noqa: FBT001, FBT002  # as PyTorch's
    generator: Any = None,
) -> Any:
    """A leaky ReLU, which it is outside of training; the noise as it was."""
    del generator
    if training:
        raise NotImplementedError("rrelu in training draws random slopes")
    slope = (lower + upper) / 2
    return torch.nn.functional.leaky_relu(x, slope), noise.clone()


OWN: dict[Any, Callable[..., Any]] = {
    aten.conv_tbc.default: conv_tbc,
    # The tensor is no longer quantized.
    aten.dequantize.self: torch.clone,
    aten.empty_permuted.default: empty_permuted,
    aten.exp2.default: exp2,
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
    aten.native_channel_shuffle.default: channel_shuffle,
    aten.rrelu_with_noise_functional.default: rrelu_without_noise,
}
"""By operator: a function of the same arguments."""


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
        if isinstance(node.target, EdgeOpOverload) and not _has_kernel(node.target, offered)
    ]
    # Replaying the whole graph takes time: not where nothing can come of it.
    if not any(_decomposition(edge._op) for edge in leftovers):  # noqa: SLF001
        return program, Counter()
    step = _Decompose(offered)
    changed = _transform(program, step)
    if not step.done:
        return program, Counter()
    # A decomposition may make constants, which `to_executorch` expects as inputs of the
    # graph.
    return lift_constant_tensor_pass(changed), step.done


def _name(op: Any) -> str:
    """The name of an operator, such as `aten::add.out`."""
    schema = op._schema  # noqa: SLF001
    return f"{schema.name}.{schema.overload_name}".removesuffix(".")


def _has_kernel(edge: Any, offered: Offered) -> bool:
    # There is no out variant, or it is an operator of TorchScript's lists.
    with suppress(RuntimeError, AssertionError):
        return _name(edge.to_out_variant()) in offered
    return False


@cache
def _core_table() -> Mapping[Any, Callable[..., Any]]:
    found: Mapping[Any, Callable[..., Any]] = core_aten_decompositions()
    return found


def _decomposition(op: OpOverload) -> Callable[..., Any] | None:
    """A function of the same arguments that calls other operators."""
    found: Callable[..., Any] | None
    # Own ones first; then those that ExecuTorch would use, then all of PyTorch's, then
    # the operator's own composite form.
    found = OWN.get(op) or _core_table().get(op) or decomposition_table.get(op)
    key = torch._C.DispatchKey.CompositeImplicitAutograd  # noqa: SLF001
    if found is None and op.has_kernel_for_dispatch_key(key):
        found = op.decompose
    return found


def _operators(graph: GraphModule) -> list[OpOverload]:
    """Operators that a graph calls, each once."""
    found = dict.fromkeys(node.target for node in graph.graph.nodes)
    return [op for op in found if isinstance(op, OpOverload) and op not in _EXECUTORCH_SYM_OPS]


def _converted(x: Any, dtype: Any) -> Any:
    return x.to(dtype)


# Named, not Exception: an error of ours in here must not look like a call that PyTorch
# refuses.
_REFUSALS = (*(RuntimeError, AssertionError), *(AttributeError, IndexError, TypeError, ValueError))
"""What PyTorch raises for a call that a decomposition does not take.

RuntimeError is that of its checks and of its dispatcher. Others derive from it: results
that depend on data, what is not implemented, and operators that are decomposed to
themselves (RecursionError). Decompositions in Python assert as well, and have the
errors of Python's own calls. AttributeError: an operator of `prims` has no form that
copies, for which ExecuTorch's passes look.
"""


def _unless_refused(step: Callable[[], GraphModule]) -> GraphModule | None:
    """What a step of PyTorch or ExecuTorch gives; None if it refuses the call."""
    try:
        return step()
    except _REFUSALS:
        return None


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
            fixed = self._fixed_sizes()
            parts = function and self._parts(function, args, kwargs)
            # Python code of a decomposition that branches on a size adds a guard: the
            # program would be right for the example's size only.
            if self._fixed_sizes() != fixed:
                raise ValueError(
                    f"{_name(op)} has no kernel, and its decomposition needs sizes"
                    " that do not change"
                )
            if parts:
                self.done[_name(op)] += 1
                return self._inlined(parts, args, kwargs, meta)
        return super().call_operator(op, args, kwargs, meta)

    def _fixed_sizes(self) -> int:
        """The number of dynamic sizes that something has taken for constants."""
        sizes = getattr(self.fake_tensor_mode, "shape_env", None)
        return len(sizes.replacements) if sizes else 0

    def call_getitem(self, value: Any, key: int, meta: Any) -> Any:
        """One of several results."""
        # Parts of a decomposition give tuples of values, where ExportPass expects one
        # value that stands for a tuple.
        if isinstance(value, (tuple, list)):
            return value[key]
        return super().call_getitem(value, key, meta)

    def _parts(self, function: Callable[..., Any], args: Any, kwargs: Any) -> GraphModule | None:
        """The graph of a decomposition; None if it has operators without a kernel."""
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        values = [v for v in leaves if isinstance(v, ProxyValue)]

        def flat(*given: Any) -> Any:
            rest = iter(given)
            called, named = _pytree.tree_unflatten(
                [next(rest) if isinstance(v, ProxyValue) else v for v in leaves], spec
            )
            # make_fx traces flat arguments: nested lists and keywords would be
            # constants of the graph.
            found = function(*called, **named)
            # Results with names are for Python only.
            return tuple(found) if isinstance(found, tuple) else found

        table: dict[Any, Callable[..., Any]] = {}

        def traced() -> GraphModule:
            return make_fx(
                functionalize(flat, remove="mutations_and_views"),
                decomposition_table=table,
                # Weights are real tensors beside fake inputs.
                _allow_non_fake_inputs=True,
            )(*(value.data for value in values))

        # A decomposition may call operators that have no kernel either: traced again
        # with these in the table, until nothing new is found.
        while True:
            graph = _unless_refused(traced)
            if graph is None:
                return None
            more = {op: self._inner(op) for op in _operators(graph) if op not in table}
            table |= (found := {op: f for op, f in more.items() if f})
            if not found:
                break
        edge = _unless_refused(lambda: _as_edge(graph))
        if edge is None:
            return None
        served = all(self._is_served(node.target) for node in edge.graph.nodes)
        return edge if served else None

    def _inner(self, op: OpOverload) -> Callable[..., Any] | None:
        """What replaces an operator that a decomposition calls, if it has no kernel."""
        # PyTorch's references (torch._refs) compute with `prims`, which no program can
        # call.
        name = op._schema.name.rpartition(":")[2]  # noqa: SLF001
        if op.namespace != "prims":
            # Copies become others that name the order of dimensions.
            edge = aten_to_edge(op)
            kept = _has_kernel(DimOrderOpsMap.get(edge, edge), self._offered)
            return None if kept else _decomposition(op)
        if name == "convert_element_type":
            return _converted
        # Most prims stand for an operator of the same name.
        packet = getattr(torch.ops.aten, name, None)
        overloads = [getattr(packet, o) for o in packet.overloads()] if packet else []
        plain = [aten_to_edge(o) for o in overloads if not o._schema.is_mutable]  # noqa: SLF001
        return packet if any(_has_kernel(o, self._offered) for o in plain) else None

    def _is_served(self, target: Any) -> bool:
        """Whether a node needs no kernel, or has one."""
        if isinstance(target, OpOverload) and target not in _EXECUTORCH_SYM_OPS:
            target = aten_to_edge(target)  # such as `scalar_tensor`
        if isinstance(target, EdgeOpOverload):
            return _has_kernel(target, self._offered)
        module = getattr(target, "__module__", "")
        return (
            isinstance(target, str)  # an input, a constant or the output
            or module in {"_operator", "builtins", "math"}
            or target in _EXECUTORCH_SYM_OPS
        )

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
                found[node] = self.call_getitem(called[0], called[1], meta)
            elif isinstance(node.target, (EdgeOpOverload, OpOverload)) and (
                node.target not in _EXECUTORCH_SYM_OPS
            ):
                found[node] = super().call_operator(node.target, called, named, meta)
            else:
                found[node] = self.call_sym(node.target, called, meta)
        raise AssertionError("a graph without an output")


def _as_edge(graph: GraphModule) -> GraphModule:
    """A graph in the edge dialect, by the passes that ExecuTorch runs for it."""
    graph.graph.eliminate_dead_code()
    for step in (
        # The order of `_generate_edge_program` (exir/program/_program.py, 1.5.1), so
        # that a decomposed call looks as if it had been there from the start.
        *base_pre_op_replace_passes,
        RemoveMixedTypeOperators(),
        OpReplacePass(),
        # Last: it renames copies to those with a dim order, which `_inner` asks for.
        MemoryFormatOpsPass(),
    ):
        graph = step(graph).graph_module
    graph.graph.eliminate_dead_code()
    return graph
