"""The kernels that have an evaluator, and the evaluator of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from orchestrator.core.dtype import ALL, COMPLEX
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import UnknownCallError
from orchestrator.method.passes.evaluate import functions
from orchestrator.method.passes.evaluate.numbers import NUMBERS, ConstantCall, Items, as_value
from orchestrator.program.values import OptionalTensorListValue, TensorListValue, TensorValue, Value

_LISTS = (TensorListValue, OptionalTensorListValue)
_MOST_BYTES: Final = 1 << 26
"""Most bytes of the results of a call, 64 MiB: more than the flash of any board."""

_TENSORS: Final[Mapping[str, Callable[[ConstantCall], Items]]] = MappingProxyType(
    {
        "orch::cortex_m::dequantize_per_tensor_out": functions.dequantize_int8,
        "orch::cortex_m::quantize_per_tensor_out": functions.quantize_per_tensor,
        "orch::portable::add_out": functions.add,
        "orch::portable::addmm_out": functions.addmm,
        "orch::portable::arange_start_out": functions.arange,
        "orch::portable::bmm_out": functions.bmm,
        "orch::portable::div_out": functions.div,
        "orch::portable::embedding_out": functions.embedding,
        "orch::portable::full_out": functions.full,
        "orch::portable::index_Tensor_out": functions.index,
        "orch::portable::mm_out": functions.mm,
        "orch::portable::mul_out": functions.mul,
        "orch::portable::neg_out": functions.neg,
        "orch::portable::scalar_tensor_out": functions.scalar_tensor,
        "orch::portable::sub_out": functions.sub,
        "orch::quantized::dequantize_per_channel_out": functions.dequantize_per_channel,
        "orch::quantized::dequantize_per_tensor_out": functions.dequantize_per_tensor,
        "orch::quantized::quantize_per_tensor_out": functions.quantize_per_tensor,
    }
)
"""Kernels that write a tensor: the function that computes its items."""

_LIMITS: Final[Mapping[str, Callable[[ConstantCall], Items]]] = MappingProxyType(
    {
        "orch::portable::clamp_out": functions.clamp,
        "orch::portable::hardtanh_out": functions.hardtanh,
        "orch::portable::relu_out": functions.relu,
    }
)
LIMITS: Final = frozenset(_LIMITS)
"""Kernels that keep floats within limits, for tables of islands.

They have no evaluator for other programs: these do not limit constants.
"""


def evaluated_kernels() -> frozenset[str]:
    """C++ names of the kernels that have an evaluator."""
    return frozenset({*_TENSORS, *NUMBERS})


def has_evaluator(call: LinkedCall) -> bool:
    """Whether there is an evaluator for the kernel of a call.

    Not for its operator: a kernel of another library may round differently.
    """
    return call.function in _TENSORS or call.function in NUMBERS


def may_be_computed(method: LinkedMethod, call: LinkedCall) -> bool:
    """Whether a call has an evaluator for tensors, and reads no tensor in an arena.

    Not if its results are large: a small program can name sizes without end.
    """
    if call.function not in _TENSORS or _inputs(method, call) is None:
        return False
    sizes = (getattr(method.values[out], "size_bytes", 0) for out in call.outs)
    return sum(sizes) <= _MOST_BYTES


def results_of(
    method: LinkedMethod, call: LinkedCall, unknown: Collection[int]
) -> dict[int, Bytes] | None:
    """Compute what a call writes, if all its inputs are constant.

    Args:
        method: Has the call.
        call: One of its calls.
        unknown: Values that an instruction writes or moves.

    Returns:
        By value index: the items of the output, in memory order. None if an
        input may differ from run to run, if the kernel would report an error, if the
        evaluator does not cover the arguments, or if an item would be NaN, whose bits
        kernels do not define.
    """
    compute = _TENSORS.get(call.function) or _LIMITS.get(call.function)
    inputs = _inputs(method, call)
    if compute is None or inputs is None or not inputs <= method.contents.keys() - unknown:
        return None
    try:
        return ConstantCall(method, call, frozenset(unknown)).computed(compute)
    except UnknownCallError:
        return None


def may_be_number(call: LinkedCall) -> bool:
    """Whether `number_of` knows the call."""
    return call.function in NUMBERS and len(call.outs) == 1


def number_of(
    method: LinkedMethod, call: LinkedCall, unknown: Collection[int], moved: Collection[int]
) -> Value | None:
    """Compute the number that a call returns, if it is the same in every run.

    Args:
        method: Has the call.
        call: One of its calls.
        unknown: Values that an instruction writes or moves.
        moved: Values that moves read or write.

    Returns:
        A number of the kind of its slot. None if an input may differ from run to
        run, if the kernel would report an error, and for NaN.
    """
    if not may_be_number(call):
        return None
    known = ConstantCall(method, call, frozenset(unknown), moved)
    try:
        number: Value = as_value(NUMBERS[call.function](known))
    except UnknownCallError:
        return None
    # The value takes the place of the slot, whose kind other instructions rely on.
    return number if type(number) is type(method.values[call.outs[0]]) else None


def _inputs(method: LinkedMethod, call: LinkedCall) -> set[int] | None:
    """Tensors that a call only reads; None unless all are constants."""
    inputs = set()
    for index in _tensors(method, call):
        tensor = method.values[index]
        if not isinstance(tensor, TensorValue) or tensor.dtype not in ALL - COMPLEX:
            return None
        if index not in call.outs:
            inputs.add(index)
            if tensor.allocation is not None:
                return None
    return inputs


def _tensors(method: LinkedMethod, call: LinkedCall) -> Iterator[int]:
    for argument in call.args:
        value = method.values[argument]
        if isinstance(value, _LISTS):
            yield from (item for item in value.items if item >= 0)
        elif isinstance(value, TensorValue):
            yield argument
