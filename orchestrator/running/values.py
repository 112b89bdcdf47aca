"""Values that go into a method and come out of it, and calls made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from orchestrator.core.border import SIGN_OFFSET, Quantization
from orchestrator.core.dtype import ScalarType
from orchestrator.core.layout import FORMATS
from orchestrator.program.values import ValueKind
from orchestrator.running.npy import Array, dtype_name
from orchestrator.running.product import Port, ProductMethod

NPY_DTYPES: Final[Mapping[ScalarType, str]] = MappingProxyType(
    {
        **FORMATS,
        ScalarType.Bool: "|b1",
        # Real and imaginary half in one number of 32 bits.
        ScalarType.ComplexHalf: "<u4",
        ScalarType.ComplexFloat: "<c8",
        ScalarType.ComplexDouble: "<c16",
    }
)
"""How arrays of a dtype are stored; those that NumPy does not have as bit patterns.

All the runtime has.
"""

PATTERNS: Final[Mapping[ScalarType, tuple[str, str]]] = MappingProxyType(
    {
        ScalarType.BFloat16: ("bfloat16", "tensor.view(torch.uint16).numpy()"),
        ScalarType.ComplexHalf: ("complex32", "tensor.view(torch.uint32).numpy()"),
    }
)
"""Dtypes that NumPy does not have: PyTorch's name, and how to get the bit patterns."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class OtherValue:
    """A value without content: None."""

    kind: ValueKind


@dataclass(frozen=True, slots=True)
class ListValue:
    """A list: of ints, doubles or bools, or of tensors and None."""

    kind: ValueKind
    items: tuple[RunValue, ...]


RunValue = Array | bool | int | float | str | OtherValue | ListValue
"""Tensors are arrays in logical order, whatever the dim order of the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a method.

    Args:
        method: What is called.
        inputs: One per input of the method.
        fresh: All methods are forgotten before the call and loaded anew.
        expected: One per output of the method; None if nothing is expected.
    """

    method: ProductMethod
    inputs: tuple[RunValue, ...]
    fresh: bool = False
    expected: tuple[RunValue, ...] | None = None


class Misfit(NamedTuple):
    """Why a value cannot be given to an input: parts of a diagnostic."""

    message: str
    found: str
    expected: str
    hint: str = ""


def kind_of(value: RunValue) -> ValueKind:
    """What a value holds."""
    match value:
        case Array():
            return ValueKind.TENSOR
        case bool():  # before int, of which it is one
            return ValueKind.BOOL
        case int():
            return ValueKind.INT
        case float():
            return ValueKind.DOUBLE
        case str():
            return ValueKind.STRING
    return value.kind


def describe(value: RunValue) -> str:
    """A value in a few words: `float32 [1, 12]`, `int 3`."""
    match value:
        case Array():
            return str(value)
        case OtherValue():
            return value.kind.label
        case ListValue(kind=ValueKind.TENSOR_LIST, items=items):
            return f"{value.kind.label} of {', '.join(map(describe, items)) or 'nothing'}"
        case ListValue():
            return f"{value.kind.label} {_text(list(value.items))}"
        case bool():
            return f"bool {str(value).lower()}"
    return f"{kind_of(value).label} {value!r:.80}"


def _text(value: object) -> str:
    """Numbers and truth values as they are written in JSON and on command lines."""
    return f"{value!r:.80}".replace("True", "true").replace("False", "false")


def stored_as(port: Port) -> str:
    """What a `.npy` file for a port holds: `float32 [1, 12]`."""
    if port.is_fixed:
        return describe(fixed_value(port))
    if port.items:
        return f"{port.kind.label} of {', '.join(map(stored_as, port.items))}"
    if port.dtype is None or port.dtype not in NPY_DTYPES:
        return str(port)
    name = dtype_name(NPY_DTYPES[port.dtype])
    if port.dtype in PATTERNS:
        name += f" (bit patterns of {PATTERNS[port.dtype][0]})"
    if port.is_unsigned:
        name = f"uint8 or {name}"
    if port.quantization is not None:
        name = f"float32 or {name}"
    bound = "at most " if port.is_dynamic else ""
    return f"{name} {bound}{list(port.sizes)}{port.bounds_text}"


def fixed_value(port: Port) -> RunValue:
    """The value an input has in the program and cannot be given."""
    if isinstance(port.fixed, tuple):
        return ListValue(port.kind, port.fixed)
    return OtherValue(port.kind) if port.fixed is None else port.fixed


def input_misfit(  # noqa: PLR0911  # one per reason
    value: RunValue, port: Port
) -> Misfit | None:
    """Why a value cannot be given to an input; None if it can."""
    if port.kind not in _INPUT_KINDS and not port.is_fixed:
        return Misfit(
            f"an input of kind {port.kind.label} cannot be given",
            describe(value),
            "a method that takes tensors, ints, doubles and bools only",
            "export the model without this input",
        )
    if kind_of(value) is not port.kind:
        return Misfit(
            "the input has the wrong kind for this method", describe(value), stored_as(port)
        )
    # As texts NaN is NaN.
    if port.is_fixed and repr(value) != repr(fixed_value(port)):
        return Misfit(
            "the program was exported for another value of this input",
            describe(value),
            stored_as(port),
            "give that value, or export the model for the other one",
        )
    if isinstance(value, ListValue) and not port.is_fixed:
        return _list_misfit(value, port)
    if isinstance(value, Array):
        return _array_misfit(value, port)
    if type(value) is int and not INT_MIN <= value <= INT_MAX:
        return Misfit("the integer is too large", str(value), "a signed integer of 64 bits")
    return None


def _list_misfit(value: ListValue, port: Port) -> Misfit | None:
    """A list of tensors; what is None in the program stays None."""
    if len(value.items) != len(port.items):
        return Misfit(
            "the list has the wrong length for this method", describe(value), stored_as(port)
        )
    for number, (item, own) in enumerate(zip(value.items, port.items, strict=True)):
        if own.kind is ValueKind.NONE:
            own = Port(kind=own.kind, fixed=None)  # noqa: PLW2901  # stays None
        misfit = input_misfit(item, own)
        if misfit is not None:
            return misfit._replace(message=f"item {number}: {misfit.message}")
    return None


_INPUT_KINDS: Final = frozenset(
    {ValueKind.TENSOR, ValueKind.INT, ValueKind.DOUBLE, ValueKind.BOOL, ValueKind.TENSOR_LIST}
)


def _array_misfit(value: Array, port: Port) -> Misfit | None:
    dtype = NPY_DTYPES.get(port.dtype) if port.dtype is not None else None
    if dtype is None:
        return Misfit("the method takes a dtype that no .npy file can hold", str(value), str(port))
    if value.dtype != dtype:
        name = dtype_name(dtype)
        hint = f'convert the array with astype("{name}") before it is saved'
        if port.dtype is not None and port.dtype in PATTERNS:
            hint = f"save the bit patterns: {PATTERNS[port.dtype][1]}"
        return Misfit(
            "the array has the wrong dtype for this method", str(value), stored_as(port), hint
        )
    if not sizes_fit(value.shape, port):
        return Misfit("the array has the wrong shape for this method", str(value), stored_as(port))
    return None


def sizes_fit(sizes: tuple[int, ...], port: Port) -> bool:
    """Whether a tensor port can have these sizes."""
    if not port.is_dynamic:
        return sizes == port.sizes
    return (
        len(sizes) == len(port.sizes)
        and all(size <= most for size, most in zip(sizes, port.sizes, strict=True))
        and all(bound.allows(sizes[bound.dim]) for bound in port.bounds)
    )


# Floats for inputs that are int8, as the kernels of the library quantize them.

_FLOATS: Final = ("<f2", "<f4", "<f8")


def given(value: RunValue, port: Port) -> RunValue:
    """A value as the method takes it.

    Floats are quantized where the profile has an input as int8; where it has pixels of
    uint8, 128 is subtracted. Everything else stays.
    """
    if not isinstance(value, Array):
        return value
    if port.quantization is not None and value.dtype in _FLOATS:
        return Array.of(quantized(value.numpy, port.quantization))
    if port.is_unsigned and value.dtype == "|u1":
        return Array.of((value.numpy ^ SIGN_OFFSET).view("|i1"))
    return value


def quantized(floats: npt.NDArray[Any], quantization: Quantization) -> npt.NDArray[np.int8]:
    """Floats as int8, bit for bit as the kernels compute them.

    Source: `orch_quantize` in runtime/include/orch/quantize.h.
    """
    with np.errstate(all="ignore"):
        # Multiplied with the inverse, each step in float32, as the C code does: a
        # division rounds otherwise. Limited before it is rounded, since floats past
        # int32 have no integer.
        inverse = np.float32(1) / np.float32(quantization.scale)
        scaled = floats.astype(np.float32) * inverse
    low = quantization.low - quantization.zero_point
    high = quantization.high - quantization.zero_point
    limited = np.where(scaled > low, scaled, np.float32(low))  # NaN as well
    rounded = np.rint(np.minimum(limited, np.float32(high))).astype(np.int32)
    found: npt.NDArray[np.int8] = (rounded + quantization.zero_point).astype(np.int8)
    return found


def dequantized(numbers: npt.NDArray[Any], quantization: Quantization) -> npt.NDArray[np.float32]:
    """The floats that int8 numbers stand for, as the kernels compute them."""
    found: npt.NDArray[np.float32] = (numbers.astype(np.int32) - quantization.zero_point).astype(
        np.float32
    ) * np.float32(quantization.scale)
    return found
