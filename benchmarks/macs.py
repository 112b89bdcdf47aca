"""Multiply-accumulates of a program, from the shapes of its operators."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from orchestrator.program.program import KernelCall
from orchestrator.program.values import BoolValue, TensorValue

if TYPE_CHECKING:
    from orchestrator.program.program import Method
    from orchestrator.program.values import Value

_FIRST_MATRIX = {"aten::mm.out": 0, "aten::bmm.out": 0, "aten::addmm.out": 1}
"""Which argument is the left matrix of the product."""
_DEPTH = {
    **dict.fromkeys(  # [out, H, W, in of a group]
        ("cortex_m::quantized_conv2d.out", "cortex_m::quantized_conv2d_nhwc.out"), (1, 2, 3)
    ),
    **dict.fromkeys(
        (
            "cortex_m::quantized_transpose_conv2d.out",
            "cortex_m::quantized_transpose_conv2d_nhwc.out",
        ),
        (0, 1, 2),
    ),
    **dict.fromkeys(  # [1, H, W, out]
        (
            "cortex_m::quantized_depthwise_conv2d.out",
            "cortex_m::quantized_depthwise_conv2d_nhwc.out",
        ),
        (1, 2),
    ),
    "cortex_m::quantized_linear.out": (1,),
    "cortex_m::quantized_batch_matmul.out": (2,),
}
"""Dimensions of the weights, or of the left matrix, that a sum runs over."""


def multiply_accumulates(method: Method) -> dict[str, int]:
    """Multiply-accumulates of one run, by operator; operators without any are left out.

    Padding counts as if it were multiplied, as is usual.
    """
    found: dict[str, int] = {}
    for instruction in method.instructions:
        if not isinstance(instruction, KernelCall):
            continue
        operator = str(method.operators[instruction.operator])
        arguments = [method.values[index] for index in instruction.args]
        if count := _count(operator, arguments):
            found[operator] = found.get(operator, 0) + count
    return found


def _count(operator: str, arguments: list[Value]) -> int:
    if operator == "aten::convolution.out":
        weight, output = arguments[1], arguments[9]
        # Each output, or input of a transposed one, meets one filter per channel.
        transposed = arguments[6] == BoolValue(value=True)
        many = arguments[0] if transposed else output
        return _tensor(many).numel * prod(_tensor(weight).sizes[1:])
    if operator.startswith("cortex_m::"):
        return _count_int8(operator, arguments)
    if operator in _FIRST_MATRIX:
        left = _tensor(arguments[_FIRST_MATRIX[operator]])
        return _tensor(arguments[-1]).numel * left.sizes[-1]
    return 0


def _count_int8(operator: str, arguments: list[Value]) -> int:
    if operator not in _DEPTH:
        return 0
    # Each output, or input of a transposed convolution, meets so many items.
    transposed = "transpose" in operator
    many = _tensor(arguments[0 if transposed else -1]).numel
    sizes = _tensor(arguments[0 if "matmul" in operator else 1]).sizes
    return many * prod(sizes[d] for d in _DEPTH[operator])


def _tensor(value: Value) -> TensorValue:
    assert isinstance(value, TensorValue)  # noqa: S101  # the reader checked the schema
    return value
