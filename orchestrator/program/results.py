"""Kinds of the numbers that calls return.

A program declares each of them as an int, because the exporter leaves it to the kernel
what it writes there. Everything else is checked against what the kernel does write.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import ArgKind
from orchestrator.program.prim_ops import PRIM_OPS, result_kind
from orchestrator.program.program import KernelCall, Method
from orchestrator.program.values import BoolValue, DoubleValue, IntValue, TensorValue, Value

_KINDS: Final[dict[type, ArgKind]] = {
    IntValue: ArgKind.INT,
    BoolValue: ArgKind.BOOL,
    DoubleValue: ArgKind.FLOAT,
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
    if not isinstance(values[args[count]], IntValue):
        return
    kind = result_kind(signature, [_kind(values[arg]) for arg in args[:count]])
    if kind is ArgKind.BOOL:
        values[args[count]] = BoolValue(False)  # noqa: FBT003
    elif kind is ArgKind.FLOAT:
        values[args[count]] = DoubleValue(0.0)


def _kind(value: Value) -> ArgKind | ScalarType | None:
    return value.dtype if isinstance(value, TensorValue) else _KINDS.get(type(value))
