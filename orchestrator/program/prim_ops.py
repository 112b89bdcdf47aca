"""ExecuTorch's prim ops: what a program computes besides tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from orchestrator.core.dtype import FLOATING, ScalarType
from orchestrator.core.operator import ArgKind, OperatorName
from orchestrator.program.program import KernelCall, Method
from orchestrator.program.values import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
    Value,
)

_SIGNATURES: Final = {
    # Registered with the prim ops though named aten: a call of it gives a number, not a
    # tensor.
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
    # As the kernels of ExecuTorch promote: a double if any is one, bool only if all
    # are.
    if ArgKind.FLOAT in kinds:
        return ArgKind.FLOAT
    return ArgKind.BOOL if kinds == {ArgKind.BOOL} else ArgKind.INT


def _number(argument: ArgKind | ScalarType | None) -> ArgKind | None:
    if not isinstance(argument, ScalarType):
        return argument
    if argument in FLOATING:
        return ArgKind.FLOAT
    return ArgKind.BOOL if argument is ScalarType.Bool else ArgKind.INT


# Kinds of the numbers that calls return.
#
# A program declares each of them as an int, because the exporter leaves it to the kernel what it
# writes there. Everything else is checked against what the kernel does write.

ARG_KINDS: Final[Mapping[type[Value], ArgKind]] = {
    TensorValue: ArgKind.TENSOR,
    TensorListValue: ArgKind.TENSOR_LIST,
    OptionalTensorListValue: ArgKind.TENSOR_LIST,
    IntValue: ArgKind.INT,
    DoubleValue: ArgKind.FLOAT,
    BoolValue: ArgKind.BOOL,
    StringValue: ArgKind.STRING,
    IntListValue: ArgKind.INT_LIST,
    DoubleListValue: ArgKind.FLOAT_LIST,
    BoolListValue: ArgKind.BOOL_LIST,
}


def settle_results(method: Method) -> Method:
    """The method with the kinds that its prim ops give.

    What is declared as anything but an int stays as it is. Instructions are gone
    through once and in order, as the device does. Indices are not trusted: calls with
    one that names nothing are left out.
    """
    called = {i: PRIM_OPS.get(name, "") for i, name in enumerate(method.operators)}
    values = list(method.values)
    for instruction in method.instructions:
        if isinstance(instruction, KernelCall):
            signature = called.get(instruction.operator, "")
            if ">" in signature:
                _settle(values, signature, instruction.args)
    return replace(method, values=tuple(values))


def _settle(values: list[Value], signature: str, args: tuple[int, ...]) -> None:
    count = signature.index(">")
    if len(args) != count + 1 or not all(0 <= arg < len(values) for arg in args):
        return
    # A program of another exporter may declare what the kernel writes: then it is
    # checked like any other.
    if not isinstance(values[args[count]], IntValue):
        return
    kind = result_kind(signature, [_kind(values[arg]) for arg in args[:count]])
    if kind is ArgKind.BOOL:
        values[args[count]] = BoolValue(False)  # noqa: FBT003
    elif kind is ArgKind.FLOAT:
        values[args[count]] = DoubleValue(0.0)


def _kind(value: Value) -> ArgKind | ScalarType | None:
    return value.dtype if isinstance(value, TensorValue) else ARG_KINDS.get(type(value))
