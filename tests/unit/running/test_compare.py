from __future__ import annotations

import cmath
import time
from fractions import Fraction
from math import inf, nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.dtype import ScalarType
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import (
    Comparison,
    Element,
    OutputResult,
    Tolerance,
    compare_calls,
    compare_output,
    elements,
)
from orchestrator.running.npy import Array
from orchestrator.running.product import Port, ProductMethod
from orchestrator.running.protocol import CallResult, DeviceError
from orchestrator.running.values import Call, ListValue, OtherValue, RunValue

EXACT: Final = Tolerance(atol=0, rtol=0)
ANY: Final = Port(kind=ValueKind.TENSOR)
"""A port that nothing is said of."""


def array(item: Any, dtype: str = "<f4") -> Array:
    values = np.asarray(item, dtype=dtype)
    return Array(dtype=dtype, shape=values.shape, data=values.tobytes())


def compare(got: Any, want: Any, dtype: str = "<f4", **tolerance: float) -> Comparison:
    return compare_output(
        array(got, dtype), array(want, dtype), ANY, Tolerance(**{"atol": 0, "rtol": 0, **tolerance})
    )


def test_equal_bytes() -> None:
    assert compare([1, nan, inf], [1, nan, inf]) == Comparison(is_ok=True, element_count=3)


def test_formula() -> None:
    found = compare([[1, 2.5], [3, 4.25]], [[1, 2], [3, 4]], atol=0.25, rtol=0.0625)
    assert found == Comparison(
        is_ok=False,
        element_count=4,
        failed_count=1,
        max_abs_error=0.5,
        max_rel_error=0.25,
        worst=Element(index=(0, 1), got=2.5, want=2.0),
    )
    # Exactly on the limit is in.
    assert compare([2.5], [2], atol=0.25, rtol=0.125).is_ok
    assert not compare([2.5], [2], atol=0.25, rtol=0.1249).is_ok
    # What was expected counts, not what came.
    assert compare([100], [110], rtol=0.0910).is_ok
    assert not compare([110], [100], rtol=0.0910).is_ok


def test_worst_need_not_be_the_largest_error() -> None:
    found = compare([1002, 1.5], [1000, 1], rtol=0.01)
    assert found.max_abs_error == 2
    assert found.max_rel_error == 0.5
    assert found.worst == Element(index=(1,), got=1.5, want=1.0)


def test_worst_of_what_passes() -> None:
    found = compare([1, 2.25], [1, 2], atol=1)
    assert found.is_ok
    assert found.worst == Element(index=(1,), got=2.25, want=2.0)
    assert compare([0.0], [-0.0]).worst is None


@pytest.mark.parametrize("atol", [0.0, 1e300])
@pytest.mark.parametrize("rtol", [0.0, 0.5])
@pytest.mark.parametrize(
    ("got", "want", "is_ok"),
    [
        (nan, nan, True),
        (inf, inf, True),
        (-inf, -inf, True),
        (inf, -inf, False),
        (1.0, inf, False),
        (inf, 1.0, False),
        (nan, 1.0, False),
        (1.0, nan, False),
        (nan, inf, False),
        (inf, nan, False),
    ],
)
def test_not_finite(got: float, want: float, *, is_ok: bool, atol: float, rtol: float) -> None:
    found = compare([1, got, 3.5], [1, want, 3.5 + 2**-20], atol=atol, rtol=rtol)
    alone = compare_output(got, want, ANY, Tolerance(atol=atol, rtol=rtol))
    assert alone.is_ok is is_ok
    near = atol > 0 or rtol > 0
    assert found.failed_count == (not is_ok) + (not near)
    if is_ok:
        assert found.max_abs_error == 2**-20
        assert found.worst is not None
        assert found.worst.index == (2,)
    else:
        assert found.max_abs_error == found.max_rel_error == inf
        assert found.worst is not None
        assert found.worst.index == (1,)


def test_nan_with_other_bits() -> None:
    other = np.array([0x7FC00001, 0x3F800000], dtype="<u4").view("<f4")
    found = compare([nan, 1], other)
    assert found == Comparison(is_ok=True, element_count=2)


def test_relative_error_leaves_zeros_out() -> None:
    assert compare([0.5, 1], [0, 1], atol=1).max_rel_error == 0


def test_integers_are_exact() -> None:
    big = 2**63 - 1
    found = compare([big, 1], [big - 1, 1], "<i8")
    assert (found.is_ok, found.failed_count, found.max_abs_error) == (False, 1, 1)
    assert found.worst == Element(index=(0,), got=big, want=big - 1)
    assert compare([big], [big - 1], "<i8", atol=1).is_ok
    assert not compare([big], [-big], "<i8", atol=1.8e19).is_ok
    assert compare([big], [-big], "<i8", rtol=1e308).is_ok
    assert not compare([5], [3], "|u1", atol=1.999).is_ok
    assert compare([3], [5], "|u1", atol=2).is_ok


def test_limits_between_doubles() -> None:
    # As doubles, error and limit would be the same.
    error = 2**53 + 1
    assert not compare([error], [0], "<u8", atol=2.0**53).is_ok
    assert compare([error - 1], [0], "<u8", atol=2.0**53).is_ok


def test_truth_values() -> None:
    found = compare([True, False], [True, True], "|b1")
    assert found.failed_count == 1
    assert found.worst == Element(index=(1,), got=0, want=1)


def test_empty() -> None:
    assert compare(np.zeros((2, 0)), np.zeros((2, 0))) == Comparison(is_ok=True)


def test_zero_dimensions() -> None:
    found = compare(2, 1)
    assert found.worst == Element(index=(), got=2.0, want=1.0)


@pytest.mark.parametrize(
    ("got", "want", "problem"),
    [
        (array([1]), array([[1]]), "float32 [1], expected float32 [1, 1]"),
        (array([1]), array([1], "<f8"), "float32 [1], expected float64 [1]"),
        (array(1), 1.0, "float32 [], expected double 1.0"),
        (1, 1.0, "int 1, expected double 1.0"),
        (1, True, "int 1, expected bool true"),
        ("a", "b", "string 'a', expected string 'b'"),
        (OtherValue(ValueKind.NONE), 1, "none, expected int 1"),
        (
            OtherValue(ValueKind.NONE),
            ListValue(ValueKind.INT_LIST, (1, 2)),
            "none, expected int_list [1, 2]",
        ),
    ],
)
def test_nothing_alike(got: RunValue, want: RunValue, problem: str) -> None:
    generous = Tolerance(atol=1e9, rtol=1)
    assert compare_output(got, want, ANY, generous) == Comparison(is_ok=False, problem=problem)


@pytest.mark.parametrize(
    ("got", "want", "is_ok"),
    [
        (3, 3, True),
        (3, 4, False),
        (True, True, True),
        (True, False, False),
        (0.25, 0.25, True),
        (0.25, 0.26, False),
        ("a", "a", True),
        (OtherValue(ValueKind.NONE), OtherValue(ValueKind.NONE), True),
    ],
)
def test_single_values(got: RunValue, want: RunValue, *, is_ok: bool) -> None:
    found = compare_output(got, want, ANY, EXACT)
    assert (found.is_ok, found.element_count) == (is_ok, 1)
    if isinstance(want, float):
        assert compare_output(got, want, ANY, Tolerance(atol=0.02, rtol=0)).is_ok


def test_complex_numbers_differ_by_their_distance() -> None:
    got, want = array([3 + 4j, 1j], "<c8"), array([3 + 4.5j, 1j], "<c8")
    result = compare_output(got, want, ANY, Tolerance(atol=0.5, rtol=0))
    assert (result.is_ok, result.element_count) == (True, 2)
    assert result.max_abs_error == 0.5
    result = compare_output(got, want, ANY, Tolerance(atol=0, rtol=0.05))
    assert not result.is_ok
    assert result.worst is not None
    assert (result.worst.index, result.worst.got) == ((0,), 3 + 4j)
    broken = array([complex(nan, 1), complex(inf, 0)], "<c8")
    assert compare_output(broken, broken, ANY, Tolerance(atol=0, rtol=0)).is_ok
    assert not compare_output(broken, got, ANY, Tolerance(atol=9, rtol=9)).is_ok


def test_halves_of_complex_numbers_are_decoded() -> None:
    halves = np.array([1.5, -2.0, 0.0, inf], "<f2").view("<u4")
    found = elements(array(halves, "<u4"), ScalarType.ComplexHalf)
    assert found == [1.5 - 2j, complex(0, inf)]


def bfloat16(values: Any) -> Array:
    bits = np.asarray(values, dtype="<f4").view("<u4") >> 16
    return array(bits, "<u2")


def test_bfloat16_is_decoded() -> None:
    values = [1.5, -2.0, 0.0, inf, nan, 2.0**-133]
    found = elements(bfloat16(values), ScalarType.BFloat16)
    assert [*found[:4], found[5]] == [1.5, -2, 0, inf, 2.0**-133]
    assert cmath.isnan(found[4])
    result = compare_output(
        bfloat16([1.5, 3.0]),
        bfloat16([1.5, 2.0]),
        Port(kind=ValueKind.TENSOR, dtype=ScalarType.BFloat16),
        Tolerance(atol=1, rtol=0),
    )
    assert (result.is_ok, result.max_abs_error) == (True, 1.0)
    assert list(elements(bfloat16([1.5]), ScalarType.UInt16)) == [0x3FC0]


@pytest.mark.parametrize(
    "dtype", ["|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]
)
def test_elements(dtype: str) -> None:
    kind = np.dtype(dtype)
    info = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    values = [info.min, info.max, 0, 1]
    assert list(elements(array(values, dtype), None)) == values
    assert list(elements(array([True, False], "|b1"), None)) == [1, 0]


def exact(got: Any, want: Any, atol: float, rtol: float) -> list[bool]:
    """The formula without rounding."""
    return [
        abs(Fraction(g) - Fraction(w)) <= Fraction(atol) + Fraction(rtol) * abs(Fraction(w))
        for g, w in zip(got, want, strict=True)
    ]


DYADIC = st.integers(-1000, 1000).map(lambda n: n / 16)


@given(
    pairs=st.lists(st.tuples(DYADIC, DYADIC), min_size=1, max_size=24),
    atol=st.integers(0, 64).map(lambda n: n / 16),
    rtol=st.integers(0, 32).map(lambda n: n / 16),
)
def test_agrees_with_exact_arithmetic(
    pairs: list[tuple[float, float]], atol: float, rtol: float
) -> None:
    got, want = zip(*pairs, strict=True)
    fits = exact(got, want, atol, rtol)
    found = compare(got, want, "<f4", atol=atol, rtol=rtol)
    assert found.failed_count == fits.count(False)
    assert found.is_ok is all(fits)
    errors = [abs(g - w) for g, w in pairs]
    assert found.max_abs_error == max(errors)
    if not all(fits):
        assert found.worst is not None
        assert not fits[found.worst.index[0]]
    integers = ([int(v * 16) for v in got], [int(v * 16) for v in want])
    fits = exact(*integers, atol, rtol)
    assert compare(*integers, "<i4", atol=atol, rtol=rtol).failed_count == fits.count(False)


@pytest.mark.parametrize("dtype", ["<f4", "<f2", "<i8", "<f8", "bf"])
def test_large_outputs_take_little_time(dtype: str) -> None:
    rng = np.random.default_rng(1)
    want: npt.NDArray[Any] = rng.normal(size=100_000) * 100
    got = want + 1
    got[7] = want[7] if dtype == "<i8" else nan
    make = bfloat16 if dtype == "bf" else lambda v: array(v, dtype)
    kind = ScalarType.BFloat16 if dtype == "bf" else None
    with np.errstate(invalid="ignore"):
        pair = make(got), make(want)
    start = time.process_time()
    found = compare_output(
        *pair, Port(kind=ValueKind.TENSOR, dtype=kind), Tolerance(atol=1, rtol=0.1)
    )
    assert time.process_time() - start < 0.3
    assert found.element_count == 100_000


@pytest.mark.parametrize(
    ("tolerance", "text"),
    [
        (EXACT, "exact"),
        (Tolerance(atol=1e-5, rtol=0), "1e-05"),
        (Tolerance(atol=0, rtol=0.5), "0.5*|expected|"),
        (Tolerance(atol=0.0001, rtol=1e-05), "0.0001 + 1e-05*|expected|"),
    ],
)
def test_texts_of_tolerances(tolerance: Tolerance, text: str) -> None:
    assert str(tolerance) == text


def test_calls() -> None:
    ports = (Port(kind=ValueKind.INT), Port(kind=ValueKind.DOUBLE))
    method = ProductMethod(
        index=0, model="m", name="forward", state_bytes=0, inputs=(), outputs=ports
    )
    call = Call(method=method, inputs=(), expected=(1, 0.5))
    good = CallResult(error=DeviceError.Ok, instruction=None, state_used_bytes=0, outputs=(1, 0.75))
    bad = CallResult(error=DeviceError.NotSupported, instruction=1, state_used_bytes=0, outputs=())
    free = Call(method=method, inputs=())
    found = compare_calls([call, free, call, call], [good, good, bad], EXACT)
    assert found == (
        OutputResult(
            call=0,
            output=0,
            value=1,
            port=ports[0],
            comparison=Comparison(is_ok=True, element_count=1),
        ),
        OutputResult(
            call=0,
            output=1,
            value=0.75,
            port=ports[1],
            comparison=Comparison(
                is_ok=False,
                element_count=1,
                failed_count=1,
                max_abs_error=0.25,
                max_rel_error=0.5,
                worst=Element(index=(), got=0.75, want=0.5),
            ),
        ),
        OutputResult(call=1, output=0, value=1, port=ports[0], comparison=None),
        OutputResult(call=1, output=1, value=0.75, port=ports[1], comparison=None),
    )
