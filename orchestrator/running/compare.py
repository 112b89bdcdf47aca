"""Compares outputs with what was expected."""

from __future__ import annotations

from cmath import isfinite
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from math import floor, inf
from operator import sub
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from orchestrator.core.dtype import ScalarType
from orchestrator.program.values import ValueKind
from orchestrator.running.npy import Array
from orchestrator.running.product import Port
from orchestrator.running.protocol import CallResult
from orchestrator.running.values import Call, ListValue, RunValue, dequantized, describe

Numbers = Sequence[int] | Sequence[float] | Sequence[complex]

# Integers of 64 bits differ by less. A tolerance may be larger than any integer that a
# float has room for, and `floor` of infinity raises.
_LARGEST_INTEGER_ERROR: Final = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Largest accepted error: `|got - want| <= atol + rtol * |want|`.

    Args:
        atol: Absolute, finite, not negative.
        rtol: Relative to what was expected, finite, not negative.
    """

    atol: float
    rtol: float

    def __str__(self) -> str:
        if not self.rtol:
            return f"{self.atol:g}" if self.atol else "exact"
        relative = f"{self.rtol:g}*|expected|"
        return f"{self.atol:g} + {relative}" if self.atol else relative


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One element of an output: its index by dimension, what came, what should have."""

    index: tuple[int, ...]
    got: complex
    want: complex


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One output against what was expected.

    Args:
        is_ok: Within the tolerance.
        problem: Why the two cannot be compared element by element; "" if they can.
        element_count: Number of elements compared.
        failed_count: Elements out of tolerance.
        max_abs_error: Largest `|got - want|`; infinite if exactly one of the two is
            not finite, or both are and differ.
        max_rel_error: Largest `|got - want| / |want|`, where `want` is not 0.
        worst: Element farthest out of tolerance; if none is, that with the largest
            absolute error; None if nothing differs.
    """

    is_ok: bool
    problem: str = ""
    element_count: int = 0
    failed_count: int = 0
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    worst: Element | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputResult:
    """An output of a call.

    Args:
        call: 0-based position of the call.
        output: 0-based position of the output.
        value: What came out.
        port: Its port in the product.
        comparison: None if nothing was expected.
    """

    call: int
    output: int
    value: RunValue
    port: Port
    comparison: Comparison | None


def compare_calls(
    calls: Sequence[Call], results: Sequence[CallResult], tolerance: Tolerance
) -> tuple[OutputResult, ...]:
    """Every output that came, in order, compared where something is expected.

    Args:
        calls: Those of the request.
        results: Of the first `len(results)` calls; an error has no outputs.
        tolerance: For all outputs.
    """
    found = []
    for number, (call, result) in enumerate(zip(calls, results, strict=False)):
        # A call that fails ends the response, so fewer results than calls are no error
        # here: the failed call is one in `report`.
        wanted = call.expected if call.expected is not None else repeat(None)
        for index, (got, want) in enumerate(zip(result.outputs, wanted, strict=False)):
            port = call.method.outputs[index]
            found.append(
                OutputResult(
                    call=number,
                    output=index,
                    value=got,
                    port=port,
                    comparison=None if want is None else compare_output(got, want, port, tolerance),
                )
            )
    return tuple(found)


def compare_output(got: RunValue, want: RunValue, port: Port, tolerance: Tolerance) -> Comparison:
    """One output against what was expected.

    Two NaN are equal, as are two infinities of the same sign. Integers and truth
    values follow the same formula, in exact arithmetic.

    Where floats are expected of an int8 output, what its numbers stand for counts.

    Args:
        got: What came out.
        want: What was expected.
        port: Of the output; says whether integers are bit patterns, or quantized.
        tolerance: What counts as equal.
    """
    match got, want:
        case Array(), Array():
            # The same expected outputs serve a model with and without `[models.io]`:
            # floats are compared with what the int8 numbers stand for.
            if port.quantization is not None and want.dtype == "<f4":
                got = Array.of(dequantized(got.numpy, port.quantization))
            return _compare_arrays(got, want, port, tolerance)
        # `type`, not isinstance: True is no 1 here.
        case (int() | float(), int() | float()) if type(got) is type(want):
            return _compare([got], [want], (), tolerance)
        case ListValue(), ListValue() if got.kind is want.kind:
            return _compare_lists(got, want, port, tolerance)
    if type(got) is not type(want) or got != want:
        return _different(got, want)
    return Comparison(is_ok=True, element_count=1)


def _compare_arrays(got: Array, want: Array, port: Port, tolerance: Tolerance) -> Comparison:
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return _different(got, want)
    # Equal bits are right whatever they mean, NaN too.
    if got.data == want.data:
        return Comparison(is_ok=True, element_count=got.numel)
    numbers = elements(got, port.dtype), elements(want, port.dtype)
    return _compare(*numbers, got.shape, tolerance)


def _compare_lists(got: ListValue, want: ListValue, port: Port, tolerance: Tolerance) -> Comparison:
    """Lists of numbers as arrays; lists of tensors item by item, reported together."""
    if len(got.items) != len(want.items):
        return _different(got, want)
    if got.kind is not ValueKind.TENSOR_LIST:
        if not got.items:
            return Comparison(is_ok=True)
        numbers = [cast("list[float]", [*x.items]) for x in (got, want)]
        return _compare(numbers[0], numbers[1], (len(numbers[0]),), tolerance)
    found = [
        compare_output(one, other, own, tolerance)
        for one, other, own in zip(got.items, want.items, port.items, strict=True)
    ]
    worst = None
    for number, item in enumerate(found):
        if item.worst is not None and (worst is None or not item.is_ok):
            worst = replace(item.worst, index=(number, *item.worst.index))
            if not item.is_ok:
                break
    return Comparison(
        is_ok=all(item.is_ok for item in found),
        problem="; ".join(
            f"item {n}: {item.problem}" for n, item in enumerate(found) if item.problem
        ),
        element_count=sum(item.element_count for item in found),
        failed_count=sum(item.failed_count for item in found),
        max_abs_error=max((item.max_abs_error for item in found), default=0.0),
        max_rel_error=max((item.max_rel_error for item in found), default=0.0),
        worst=worst,
    )


def _different(got: RunValue, want: RunValue) -> Comparison:
    return Comparison(is_ok=False, problem=f"{describe(got)}, expected {describe(want)}")


def elements(item: Array, dtype: ScalarType | None) -> Numbers:
    """The elements in C order as numbers; truth values are 0 and 1.

    Args:
        item: Any array.
        dtype: Bit patterns of BFloat16 and ComplexHalf are decoded; otherwise the
            array's is taken.
    """
    found: list[int] | list[float] | list[complex] = decoded(item, dtype).tolist()
    return found


def decoded(item: Array, dtype: ScalarType | None) -> npt.NDArray[Any]:
    """The items as a NumPy array of one dimension."""
    numbers = item.numpy.ravel()
    if dtype is ScalarType.BFloat16:
        # The bits are the upper half of a float32.
        return (numbers.astype("<u4") << 16).view("<f4")
    if dtype is ScalarType.ComplexHalf:
        return numbers.view("<f2").astype("<f4").view("<c8")
    return numbers.view("|u1") if item.dtype == "|b1" else numbers


def _compare(
    got: Numbers, want: Numbers, shape: tuple[int, ...], tolerance: Tolerance
) -> Comparison:
    """Elements of the same type, in C order. Whole passes in C: outputs are large."""
    errors: list[float] = list(map(abs, map(sub, got, want)))
    atol, rtol = tolerance.atol, tolerance.rtol
    # Doubles, whatever the dtype: the formula's own rounding is far below that of
    # float32 (tests/unit/running/test_compare.py compares it with exact arithmetic).
    limits: list[float] = [atol + rtol * abs(w) for w in want]
    is_integer = isinstance(want[0], int)
    if is_integer:
        # Integers against floats would lose bits; their floor decides alike.
        limits = [floor(min(x, _LARGEST_INTEGER_ERROR)) for x in limits]
    relative = [e / abs(w) if w else 0.0 for e, w in zip(errors, want, strict=True)]
    excess = list(map(sub, errors, limits))
    if not is_integer and not (all(map(isfinite, got)) and all(map(isfinite, want))):
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            if isfinite(g) and isfinite(w):
                continue
            same = g == w or (g != g and w != w)  # noqa: PLR0124  # NaN
            errors[i] = relative[i] = 0.0 if same else inf
            excess[i] = -inf if same else inf
    failed = sum(e > 0 for e in excess)
    worst = None
    if any(errors):
        # With `rtol` the element that fails most need not have the largest error.
        measure = excess if failed else errors
        at = measure.index(max(measure))
        worst = Element(index=index_of(at, shape), got=got[at], want=want[at])
    return Comparison(
        is_ok=failed == 0,
        element_count=len(errors),
        failed_count=failed,
        max_abs_error=float(max(errors)),
        max_rel_error=float(max(relative)),
        worst=worst,
    )


def index_of(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Index by dimension of an element in C order."""
    return tuple(map(int, np.unravel_index(position, shape)))
