"""Passes whose source does not show which operators they change.

Each entry states when a method of a pass may do something other than pass a node on, by
the node's operator, or by the node if the operator does not decide. They apply to the
versions that `orchestrator.lowering.accelerate` supports.

Source: ExecuTorch 1.5 `exir/passes`, `backends/arm/_passes`,
`backends/cortex_m/passes`; PyTorch 2.13 `torch/_export/passes`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch
from torch._ops import HigherOrderOperator
from torch.fx import Node

Question: TypeAlias = Callable[[Any, Any], bool]

_ATEN: Final = torch.ops.aten


def _transposes(_: Any, op: Any) -> bool:
    return bool(op == _ATEN.t.default)


def _is_view(_: Any, op: Any) -> bool:
    return bool(op.is_view)


def _promotes(_: Any, op: Any) -> bool:
    # Written out by hand from each pass's source (its name is the key below):
    # tests/interop/lowering_targets.py records what passes really leave unchanged and
    # compares.
    return op in {
        *(_ATEN.add.Tensor, _ATEN.mul.Tensor, _ATEN.sub.Tensor, _ATEN.div.Tensor),
        *(_ATEN.div.Tensor_mode, _ATEN.minimum.default),
    }


def _has_edge_variant(own: Any, op: Any) -> bool:
    return bool(_module_of(own).should_lower_to_edge(op))


def _has_dim_order(own: Any, op: Any) -> bool:
    return op in _module_of(own).DimOrderOpsMap


def _quantizes(own: Any, op: Any) -> bool:
    return op in own.op_replacements or op in own.disallowed_targets


def _lacks_fake_kernel(_: Any, op: Any) -> bool:
    from executorch.exir.dialects._ops import ops  # noqa: PLC0415

    edge = ops.edge.aten
    return op in {edge.bmm.default, edge.leaky_relu.default}


def _is_targeted(own: Any, op: Any) -> bool:
    return op in own.target_ops


def _views_or_is_unsafe(_: Any, op: Any) -> bool:
    module = sys.modules["torch._export.passes.replace_view_ops_with_view_copy_ops_pass"]
    return op in module._NON_FUNCTIONAL_OPS_TO_FUNCTIONAL_OPS or (
        not isinstance(op, HigherOrderOperator) and module.is_view_op(op._schema)
    )


def _has_scalar_for_tensor(_: Any, node: Any) -> bool:
    return any(isinstance(x, (int, float, bool)) for x in _for_tensors(node))


def _has_symbol_for_tensor(_: Any, node: Any) -> bool:
    return any(
        isinstance(x, Node) and not isinstance(x.meta.get("val"), torch.Tensor)
        for x in _for_tensors(node)
    )


def _for_tensors(node: Any) -> list[Any]:
    """The arguments of an operator for the tensors of its schema."""
    found = []
    for number, argument in enumerate(node.target._schema.arguments):
        if isinstance(argument.type, torch.TensorType):
            # An operator's tensors may come by name or by place.
            if argument.name in node.kwargs:
                found.append(node.kwargs[argument.name])
            elif not argument.kwarg_only and number < len(node.args):
                found.append(node.args[number])
    return found


def _module_of(own: Any) -> Any:
    # Tables of a pass are globals of the module that defines the method, not of a
    # subclass's.
    owner = next(c for c in type(own).__mro__ if "call_operator" in vars(c))
    return sys.modules[owner.__module__]


_EXIR: Final = "executorch.exir.passes"
_ARM: Final = "executorch.backends.arm._passes"
_CORTEX_M: Final = "executorch.backends.cortex_m.passes"

BY_OPERATOR: Final[dict[str, Question]] = {
    f"{_EXIR}.normalize_transpose_pass.NormalizeTransposePass": _transposes,
    f"{_EXIR}.replace_broken_ops_with_function_ops_pass"
    ".ReplaceBrokenOpsWithFunctionalOpsPass": _is_view,
    f"{_EXIR}.remove_mixed_type_operators.RemoveMixedTypeOperators": _promotes,
    f"{_EXIR}.replace_aten_with_edge_pass.OpReplacePass": _has_edge_variant,
    f"{_EXIR}.memory_format_ops_pass.MemoryFormatOpsPass": _has_dim_order,
    f"{_CORTEX_M}.replace_quant_nodes_pass.ReplaceQuantNodesPass": _quantizes,
    f"{_ARM}.arm_pass.ArmPass": _lacks_fake_kernel,
    f"{_ARM}.decompose_tosa_unsupported_clamp_pass.DecomposeTOSAUnsupportedClampPass": _is_targeted,
    f"{_ARM}.decompose_grouped_conv_pass.DecomposeGroupedConvPass": _is_targeted,
    "torch._export.passes.replace_view_ops_with_view_copy_ops_pass"
    ".ReplaceViewOpsWithViewCopyOpsPass": _views_or_is_unsafe,
}
"""By class: whether its `call_operator` may change calls of an operator."""

BY_NODE: Final[dict[str, Question]] = {
    f"{_EXIR}.scalar_to_tensor_pass.ScalarToTensorPass": _has_scalar_for_tensor,
    f"{_EXIR}.sym_to_tensor_pass.SymToTensorPass": _has_symbol_for_tensor,
}
"""By class whose `call_operator` reads arguments: whether it may change a node."""
