"""Numbers of a data set as inputs of a method, and outputs as real numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from orchestrator.core.border import Quantization as CallerQuantization
from orchestrator.core.dtype import ScalarType
from orchestrator.evaluation.bad_data import bad_data
from orchestrator.evaluation.samples import Sample
from orchestrator.program.program import KernelCall, Method
from orchestrator.program.values import DoubleValue, IntValue, ValueKind
from orchestrator.running.compare import decoded
from orchestrator.running.npy import Array
from orchestrator.running.product import Port, ProductMethod
from orchestrator.running.values import (
    NPY_DTYPES,
    RunValue,
    dequantized,
    fixed_value,
    given,
    quantized,
    sizes_fit,
    stored_as,
)

_QUANTIZED: Final = (ScalarType.Char, ScalarType.Byte, ScalarType.Short)
_NUMBERS: Final = (ValueKind.INT, ValueKind.DOUBLE, ValueKind.BOOL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """Integers that stand for real numbers: `(q - zero_point) * scale`."""

    scale: float
    zero_point: int


def given_ports(method: ProductMethod) -> tuple[Port, ...]:
    """The inputs that a sample has to give: all that the program has not fixed."""
    return tuple(port for port in method.inputs if not port.is_fixed)


def inputs_of(
    sample: Sample, method: ProductMethod, quantizations: Mapping[int, Quantization], place: str
) -> tuple[RunValue, ...]:
    """The inputs of a call with a sample.

    Numbers keep their values: integers become floats, and float64 becomes float32. A
    line of numbers fills an input in C order, or all inputs, one after the other.
    Where the method takes integers of a known scale, real numbers are quantized; where
    the profile has an input as int8, with the rounding of the kernels.

    Args:
        sample: From the data.
        method: What is called.
        quantizations: By number of the input, where they are known.
        place: The sample, for messages.

    Raises:
        UsageError: The sample does not fit (`bad-data`).
    """
    ports = given_ports(method)
    arrays = sample.inputs
    *ends, end = 0, *accumulate(prod(port.sizes) for port in ports)
    numbers = sum(array.size for array in arrays)
    is_line = numbers == end and all(array.ndim <= 1 for array in arrays)
    # A row of a table fills several inputs one after the other.
    if len(arrays) != len(ports) and is_line and arrays:
        arrays = tuple(np.split(np.hstack(arrays), ends[1:]))
    if len(arrays) != len(ports):
        needed = ", ".join(map(stored_as, ports))
        raise bad_data(
            place,
            "the sample has the wrong number of inputs for the method",
            found=f"{len(arrays)}, with {numbers} numbers",
            expected=f"{len(ports)}, with {end} numbers: {needed}",
        )
    left = iter(arrays)
    values: list[RunValue] = []
    for number, port in enumerate(method.inputs):
        if port.is_fixed:
            values.append(fixed_value(port))
            continue
        at = place if len(ports) == 1 else f"{place}, input {number}"
        found, quantization = next(left), quantizations.get(number)
        if sample.pixels and found.dtype == np.uint8 and found.shape[2:] == (3,):
            found = _image(found, port)
            # Bytes go in as they are only where nothing says what number of the model
            # they are.
            if quantization or port.quantization or port.dtype != ScalarType.Byte:
                low, high = sample.pixels
                # 255 is white; 0 to 1 by default, as torchvision's ToTensor.
                found = found.astype(np.float32) * (high - low) / 255 + low
        values.append(_fitted(found, port, quantization, at))
    return tuple(values)


def _image(rgb: npt.NDArray[Any], port: Port) -> npt.NDArray[Any]:
    """The bytes of an image in colour or grey, channels first or last, as they fit.

    Source: the grey of colours is that of `convert("L")` in Pillow.
    """
    red, green, blue = np.moveaxis(rgb.astype(np.int64), -1, 0)
    grey = (red * 19595 + green * 38470 + blue * 7471 + (1 << 15) >> 16).astype("u1")
    forms = (np.moveaxis(rgb, -1, 0), rgb, grey, grey[..., np.newaxis])
    return next((form for form in forms if _shape(form.shape, port)), rgb)


def _fitted(
    found: npt.NDArray[Any], port: Port, quantization: Quantization | None, place: str
) -> RunValue:
    if port.kind in _NUMBERS and found.size == 1:
        number = found.reshape(()).item()
        return _number(number, port.kind, place)
    dtype = None if port.dtype is None else NPY_DTYPES.get(port.dtype)
    if port.kind is not ValueKind.TENSOR or dtype is None or port.dtype is None:
        raise bad_data(
            place,
            "no sample can give this input",
            expected=stored_as(port),
            hint="export the model with inputs that are tensors or numbers",
        )
    shape = _shape(found.shape, port)
    if shape is None:
        raise bad_data(
            place,
            "the sample has the wrong shape for the method",
            found=f"{found.dtype} {list(found.shape)}",
            expected=f"{stored_as(port)}, {prod(port.sizes)} numbers",
            hint="nothing is resized, padded or cut; --inputs chooses columns; the"
            " first axis of an array in an .npz file counts samples",
        )
    # A firmware would answer something, and the sample would count as a wrong answer of
    # the model.
    if found.dtype.kind in "fc" and np.isnan(found).any():
        raise bad_data(
            place,
            "the sample has values that are not a number (NaN)",
            found=f"{int(np.isnan(found).sum())} of {found.size} values",
            hint="repair the sample, or leave it out with --samples",
        )
    if port.quantization is not None and quantization is None:
        numbers = _quantized(found, port, port.quantization)
    else:
        numbers = _converted(found, port.dtype, np.dtype(dtype), quantization, place)
    return Array.of(numbers.reshape(shape))


def _quantized(found: npt.NDArray[Any], port: Port, known: CallerQuantization) -> npt.NDArray[Any]:
    """Numbers as the int8 of an input that the profile quantizes."""
    as_given = given(Array.of(found), port)
    if isinstance(as_given, Array) and as_given.dtype == "|i1":
        return as_given.numpy
    return quantized(found.real, known)


def _number(number: complex, kind: ValueKind, place: str) -> RunValue:
    real = number.real
    if kind is ValueKind.INT and not float(real).is_integer():
        raise bad_data(place, "the input is an integer", found=str(number))
    kinds: dict[ValueKind, type[bool | int | float]] = {
        ValueKind.INT: int,
        ValueKind.DOUBLE: float,
        ValueKind.BOOL: bool,
    }
    return kinds[kind](real)


def _shape(shape: tuple[int, ...], port: Port) -> tuple[int, ...] | None:
    """The sizes to give; None if they do not fit. Leading sizes of 1 do not count."""
    if shape == (prod(port.sizes),):
        return port.sizes
    rank = len(port.sizes)
    stripped = _stripped(shape)
    padded = (1,) * (rank - len(stripped)) + stripped
    return padded if len(padded) == rank and sizes_fit(padded, port) else None


def _stripped(shape: Sequence[int]) -> tuple[int, ...]:
    first = next((at for at, size in enumerate(shape) if size != 1), len(shape))
    return tuple(shape[first:])


def _converted(
    found: npt.NDArray[Any],
    dtype: ScalarType,
    wanted: np.dtype[Any],
    quantization: Quantization | None,
    place: str,
) -> npt.NDArray[Any]:
    if found.dtype.newbyteorder("<").str == wanted.str:
        return found
    if dtype is ScalarType.BFloat16 and found.dtype.kind == "f":
        bits: npt.NDArray[Any] = found.astype("<f4").view("<u4")
        # To the nearest, ties to even: the upper half of a float32.
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return bits.astype(wanted)
    if wanted.kind in "fc" and (found.dtype.kind in "biuf" or wanted.kind == "c"):
        with np.errstate(over="ignore"):
            return found.astype(wanted)
    if quantization is not None and dtype in _QUANTIZED and found.dtype.kind in "biuf":
        limits = np.iinfo(wanted)
        scaled = np.rint(found.astype(np.float64) / quantization.scale)
        scaled += quantization.zero_point
        return scaled.clip(limits.min, limits.max).astype(wanted)
    # What fits into a few bits may be a real number, or quantized already.
    # int8, uint8 and int16 without a scale: an error that names --input-quant, since
    # truncated floats give an accuracy that looks like the model's.
    is_plain = dtype not in _QUANTIZED
    if is_plain and found.dtype.kind in "biuf" and wanted.kind in "biu":
        low, high = 0, 1
        if wanted.kind != "b":
            low, high = np.iinfo(wanted).min, np.iinfo(wanted).max
        if not found.size or (
            low <= found.min().item() <= found.max().item() <= high
            and (found == np.rint(found)).all()
        ):
            return found.astype(wanted)
    hint = f'convert the data with astype("{wanted.name}")'
    if dtype in _QUANTIZED:
        hint = (
            "the program does not have the scale of this input: give it with"
            f" --input-quant SCALE,ZERO_POINT, or quantize the data to {wanted.name}"
        )
    raise bad_data(
        place,
        "the sample has the wrong dtype for the method",
        found=f"{found.dtype} {list(found.shape)}",
        expected=f"{wanted.name}",
        hint=hint,
    )


def output_numbers(
    value: RunValue, port: Port, quantization: Quantization | None
) -> npt.NDArray[np.float64]:
    """An output as a line of real numbers; empty if it has none: text, lists, None.

    Integers without a known scale are taken as they are; that of the profile's int8
    outputs is known.
    """
    if isinstance(value, bool | int | float):
        return np.array([value], np.float64)
    if not isinstance(value, Array):
        return np.array([], np.float64)
    found = decoded(value, port.dtype)
    if found.dtype.kind == "c":
        # Metrics order scores, which complex numbers cannot be.
        found = np.abs(found)
    numbers: npt.NDArray[np.float64] = found.astype(np.float64)
    if quantization is None and port.quantization is not None:
        return dequantized(found, port.quantization).astype(np.float64)
    if quantization is not None and port.dtype in _QUANTIZED:
        numbers = (numbers - quantization.zero_point) * quantization.scale
    return numbers


def input_quantizations(method: Method) -> dict[int, Quantization]:
    """Scales of inputs that the program itself turns into real numbers."""
    # Arguments of the operators in ExecuTorch's quantized.yaml: input, scale,
    # zero_point, quant_min, quant_max, dtype, out.
    return _quantizations(method, method.inputs, "dequantize_per_tensor", 0)


def output_quantizations(method: Method) -> dict[int, Quantization]:
    """Scales of outputs that the program itself makes of real numbers."""
    return _quantizations(method, method.outputs, "quantize_per_tensor", -1)


def _quantizations(
    method: Method, values: Sequence[int], base: str, position: int
) -> dict[int, Quantization]:
    """By number of a value: the scale of a call of an operator with it as argument."""
    calls = [
        call
        for call in method.instructions
        if isinstance(call, KernelCall) and method.operators[call.operator].base == base
    ]
    return {
        number: scale
        for number, index in enumerate(values)
        for call in calls
        if call.args[position] == index and (scale := _quantization(method, call))
    }


def _quantization(method: Method, call: KernelCall) -> Quantization | None:
    """Arguments 1 and 2: scale and zero point, if they are constants."""
    scale, zero_point = (method.values[index] for index in call.args[1:3])
    if isinstance(scale, DoubleValue) and isinstance(zero_point, IntValue):
        return Quantization(scale=scale.value, zero_point=zero_point.value)
    return None
