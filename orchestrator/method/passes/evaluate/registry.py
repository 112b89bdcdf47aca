"""The kernels that have an evaluator, and the evaluator of each.

NumPy is imported when the first call is computed: most programs have none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ALL, COMPLEX
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import UnknownCallError
from orchestrator.program.values import OptionalTensorListValue, TensorListValue, TensorValue, Value

if TYPE_CHECKING:
    from orchestrator.method.passes.evaluate.constant_call import ConstantCall
    from orchestrator.method.passes.evaluate.numbers import Items, Scalar

_LISTS = (TensorListValue, OptionalTensorListValue)
_MOST_BYTES: Final = 1 << 26
"""Of the results of a call, 64 MiB: more than the flash of any board."""
_PACKAGE: Final = __name__.rpartition(".")[0]

_TENSORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "orch::cortex_m::dequantize_per_tensor_out": "affine.dequantize_int8",
        "orch::cortex_m::quantize_per_tensor_out": "affine.quantize_per_tensor",
        "orch::portable::add_out": "arithmetic.add",
        "orch::portable::addmm_out": "matrix.addmm",
        "orch::portable::arange_start_out": "create.arange",
        "orch::portable::bmm_out": "matrix.bmm",
        "orch::portable::div_out": "arithmetic.div",
        "orch::portable::embedding_out": "gather.embedding",
        "orch::portable::full_out": "create.full",
        "orch::portable::index_Tensor_out": "gather.index",
        "orch::portable::mm_out": "matrix.mm",
        "orch::portable::mul_out": "arithmetic.mul",
        "orch::portable::neg_out": "arithmetic.neg",
        "orch::portable::scalar_tensor_out": "create.scalar_tensor",
        "orch::portable::sub_out": "arithmetic.sub",
        "orch::quantized::dequantize_per_channel_out": "affine.dequantize_per_channel",
        "orch::quantized::dequantize_per_tensor_out": "affine.dequantize_per_tensor",
        "orch::quantized::quantize_per_tensor_out": "affine.quantize_per_tensor",
    }
)
"""Kernels that write a tensor: module and function that compute its items."""

_LIMITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "orch::portable::clamp_out": "limits.clamp",
        "orch::portable::hardtanh_out": "limits.hardtanh",
        "orch::portable::relu_out": "limits.relu",
    }
)
LIMITS: Final = frozenset(_LIMITS)
"""Kernels that keep floats within limits, for tables of islands.

They have no evaluator for other programs: these do not limit constants.
"""

_NUMBERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "orch::prim_ops::_local_scalar_dense": "scalars.local_scalar_dense",
        "orch::prim_ops::add_Scalar": "scalars.add",
        "orch::prim_ops::ceil_Scalar": "scalars.ceil",
        "orch::prim_ops::eq_Scalar": "scalars.eq",
        "orch::prim_ops::floordiv_Scalar": "scalars.floordiv",
        "orch::prim_ops::floordiv_int": "scalars.floordiv_int",
        "orch::prim_ops::ge_Scalar": "scalars.ge",
        "orch::prim_ops::gt_Scalar": "scalars.gt",
        "orch::prim_ops::le_Scalar": "scalars.le",
        "orch::prim_ops::lt_Scalar": "scalars.lt",
        "orch::prim_ops::mod_int": "scalars.mod",
        "orch::prim_ops::mul_Scalar": "scalars.mul",
        "orch::prim_ops::neg_Scalar": "scalars.neg",
        "orch::prim_ops::round_Scalar": "scalars.round_even",
        "orch::prim_ops::sub_Scalar": "scalars.sub",
        "orch::prim_ops::sym_float_Scalar": "scalars.sym_float",
        "orch::prim_ops::sym_int_Scalar": "scalars.trunc",
        "orch::prim_ops::sym_ite_Scalar": "scalars.sym_ite",
        "orch::prim_ops::sym_max_Scalar": "scalars.sym_max",
        "orch::prim_ops::sym_min_Scalar": "scalars.sym_min",
        "orch::prim_ops::sym_not_Scalar": "scalars.sym_not",
        "orch::prim_ops::sym_numel": "scalars.sym_numel",
        "orch::prim_ops::sym_size_int": "scalars.sym_size",
        "orch::prim_ops::truediv_Scalar": "scalars.truediv",
    }
)
"""Kernels that return a number: module and function that compute it."""


def evaluated_kernels() -> frozenset[str]:
    """C++ names of the kernels that have an evaluator."""
    return frozenset({*_TENSORS, *_NUMBERS})


def has_evaluator(call: LinkedCall) -> bool:
    """Whether there is an evaluator for the kernel of a call.

    Not for its operator: a kernel of another library may round differently.
    """
    return call.function in _TENSORS or call.function in _NUMBERS


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
    name = _TENSORS.get(call.function) or _LIMITS.get(call.function)
    inputs = _inputs(method, call)
    if name is None or inputs is None or not inputs <= method.contents.keys() - unknown:
        return None
    constants = import_module(f"{_PACKAGE}.constant_call")
    known = constants.ConstantCall(method, call, frozenset(unknown))
    try:
        results: dict[int, Bytes] = known.computed(_function(name))
    except UnknownCallError:
        return None
    return results


def may_be_number(call: LinkedCall) -> bool:
    """Whether `number_of` knows the call."""
    return call.function in _NUMBERS and len(call.outs) == 1


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
    # A cheap look at an argument, before NumPy is imported for the call.
    first, *_ = call.args
    if not isinstance(method.values[first], TensorValue) and first in unknown:
        return None
    scalars = import_module(f"{_PACKAGE}.scalars")
    constants = import_module(f"{_PACKAGE}.constant_call")
    known = constants.ConstantCall(method, call, frozenset(unknown), moved)
    try:
        number: Value = scalars.as_value(_function(_NUMBERS[call.function])(known))
    except UnknownCallError:
        return None
    return number if type(number) is type(method.values[call.outs[0]]) else None


def _function(name: str) -> Callable[[ConstantCall], Items | Scalar]:
    """Import the function that a table names."""
    module, _, function = name.partition(".")
    found: Callable[[ConstantCall], Items | Scalar]
    found = getattr(import_module(f"{_PACKAGE}.{module}"), function)
    return found


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
