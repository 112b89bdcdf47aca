"""ExecuTorch's prim ops: what a program computes besides tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from orchestrator.core.dtype import FLOATING, ScalarType
from orchestrator.core.operator import ArgKind, OperatorName

_SIGNATURES: Final = {
    "aten::_local_scalar_dense": "T>S",
    "aten::sym_numel": "T>I",
    "aten::sym_size.int": "TI>I",
    "executorch_prim::add.Scalar": "SS>S",
    "executorch_prim::ceil.Scalar": "S>I",
    "executorch_prim::eq.Scalar": "SS>B",
    "executorch_prim::et_copy_index.tensor": "tTI",
    "executorch_prim::et_view.default": "TJ>t",
    "executorch_prim::floordiv.Scalar": "SS>S",
    "executorch_prim::floordiv.int": "II>I",
    "executorch_prim::ge.Scalar": "SS>B",
    "executorch_prim::gt.Scalar": "SS>B",
    "executorch_prim::le.Scalar": "SS>B",
    "executorch_prim::lt.Scalar": "SS>B",
    "executorch_prim::mod.Scalar": "II>I",
    "executorch_prim::mod.int": "II>I",
    "executorch_prim::mul.Scalar": "SS>S",
    "executorch_prim::neg.Scalar": "S>S",
    "executorch_prim::round.Scalar": "S>I",
    "executorch_prim::sub.Scalar": "SS>S",
    "executorch_prim::sym_float.Scalar": "S>D",
    "executorch_prim::sym_int.Scalar": "S>I",
    "executorch_prim::sym_ite.Scalar": "BSS>S",
    "executorch_prim::sym_max.Scalar": "II>I",
    "executorch_prim::sym_min.Scalar": "II>I",
    "executorch_prim::sym_not.Scalar": "B>B",
    "executorch_prim::truediv.Scalar": "SS>D",
    "executorch_prim::trunc.Scalar": "S>I",
}

PRIM_OPS: Final[Mapping[OperatorName, str]] = MappingProxyType(
    {OperatorName.parse(name): text for name, text in _SIGNATURES.items()}
)
"""All that ExecuTorch 1.5 registers, with their kernel signatures.

Source: ExecuTorch `kernels/prim_ops/register_prim_ops.cpp`; the kinds are those that
its kernels take and give.
"""


def result_kind(signature: str, arguments: Iterable[ArgKind | ScalarType | None]) -> ArgKind | None:
    """Kind of the number that a call returns; None if it returns none.

    A result that the signature calls Scalar is a double if an argument is one, else an
    int unless all are bools; the dtype counts for a tensor. The rule is that of
    `settle_result` in runtime/src/find_kernel.cpp.

    Args:
        signature: `OpSchema.signature`, without optional arguments.
        arguments: What each argument is: the dtype of a tensor, else its kind; None
            for what is neither a tensor nor a number.
    """
    letters, _, returned = signature.partition(">")
    if returned in (ArgKind.INT, ArgKind.FLOAT, ArgKind.BOOL):
        return ArgKind(returned)
    if returned != ArgKind.SCALAR:
        return None
    kinds = {
        _number(argument)
        for letter, argument in zip(letters, arguments, strict=True)
        if letter in (ArgKind.SCALAR, ArgKind.TENSOR)
    }
    if ArgKind.FLOAT in kinds:
        return ArgKind.FLOAT
    return ArgKind.BOOL if kinds == {ArgKind.BOOL} else ArgKind.INT


def _number(argument: ArgKind | ScalarType | None) -> ArgKind | None:
    if not isinstance(argument, ScalarType):
        return argument
    if argument in FLOATING:
        return ArgKind.FLOAT
    return ArgKind.BOOL if argument is ScalarType.Bool else ArgKind.INT
