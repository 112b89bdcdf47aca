"""Floats for inputs that are int8, as the kernels of the library quantize them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from orchestrator.core.border import SIGN_OFFSET, Quantization
from orchestrator.running.npy import Array

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from orchestrator.running.product import Port
    from orchestrator.running.values import RunValue

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
    import numpy as np  # noqa: PLC0415  # only for arrays

    with np.errstate(all="ignore"):
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
    import numpy as np  # noqa: PLC0415  # only for arrays

    found: npt.NDArray[np.float32] = (numbers.astype(np.int32) - quantization.zero_point).astype(
        np.float32
    ) * np.float32(quantization.scale)
    return found
