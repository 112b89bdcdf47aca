"""Prim ops on numbers against Python's own operators, on the host with sanitizers."""

from __future__ import annotations

import math
import operator
import random
import struct
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.cpp.support.native import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

Number = int | float  # bool included
Case = tuple[str, tuple[Number, ...], str]

pytestmark = pytest.mark.toolchain

_MIN, _MAX = -(2**63), 2**63 - 1
_INTS: Final = (
    *(0, 1, -1, 2, -2, 3, -3, 7, -7, 10**9 + 7, 2**31 - 1, -(2**31), 2**32),
    *(2**53, 2**53 + 1, -(2**53) - 1, 2**62, -(2**62), _MAX, _MAX - 1, _MIN, _MIN + 1),
    *(3037000499, 3037000500, -3037000500, 2**63 // 3),
)
_DOUBLES: Final = (
    *(0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0, 3.0, -7.0, 0.1, 0.3, 1e-3),
    *(0.49999999999999994, 4503599627370497.5, 2.0**53, 2.0**53 + 2, 2.0**63),
    *(-(2.0**63), 9223372036854774784.0, 1e300, -1e300, 5e-324, -5e-324),
    *(2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308),
    *(math.inf, -math.inf, math.nan),
)
_PLACEHOLDER: Final = {"I": 77, "D": 77.5, "B": True}


@pytest.fixture(scope="module")
def call() -> Callable[[list[Case]], list[str]]:
    """Runs kernels: per case its error or the result, as text."""
    program: Path = build("call_numbers")

    def run(cases: list[Case]) -> list[str]:
        lines = [
            " ".join([name, *map(_encoded, args), _encoded(_PLACEHOLDER[kind])])
            for name, args, kind in cases
        ]
        done = subprocess.run(
            [program],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers = [line.split() for line in done.stdout.splitlines()]
        found = []
        for (error, result), (_, _, kind) in zip(answers, cases, strict=True):
            if error != "Ok":
                # What is refused is not written.
                assert result == _encoded(_PLACEHOLDER[kind])
            found.append(_text(_decoded(result)) if error == "Ok" else error)
        return found

    return run


def _letter(number: Number) -> str:
    return "B" if isinstance(number, bool) else "I" if isinstance(number, int) else "D"


def _encoded(number: Number) -> str:
    code = "d" if isinstance(number, float) else "q"
    (bits,) = struct.unpack("<Q", struct.pack(f"<{code}", number))
    return f"{_letter(number)}{bits}"


def _decoded(word: str) -> Number:
    data = struct.pack("<Q", int(word[1:]))
    if word[0] == "B":
        assert word in ("B0", "B1")
        return word == "B1"
    (number,) = struct.unpack("<d" if word[0] == "D" else "<q", data)
    assert isinstance(number, int | float)
    return number


def _text(number: Number) -> str:
    return f"{_letter(number)} {number!r}"  # tells 0.0 from -0.0, and has one NaN


def _pairs(seed: int) -> Iterable[tuple[Number, Number]]:
    numbers = (*_INTS, *_DOUBLES)
    yield from ((a, b) for a in numbers for b in numbers)
    source = random.Random(seed)  # noqa: S311
    for _ in range(2000):
        yield source.randint(_MIN, _MAX), source.randint(-1000, 1000)
        yield source.randint(-(2**40), 2**40), source.randint(-(2**25), 2**25)
        yield _any_double(source), _any_double(source)
        yield round(source.uniform(-99, 99), 1), round(source.uniform(-9, 9), 1)
        yield source.randint(-99, 99), source.uniform(-9, 9)


def _any_double(source: random.Random) -> float:
    (number,) = struct.unpack("<d", source.randbytes(8))
    assert isinstance(number, float)
    return number


def _want(compute: Callable[..., Number], *args: Number) -> str:
    """What Python gives; a refusal where it raises, or 64 bits do not hold it."""
    try:
        found = compute(*args)
    except (ZeroDivisionError, ValueError, OverflowError):
        return "InvalidArgument"
    if isinstance(found, int) and not _MIN <= found <= _MAX:
        return "InvalidArgument"
    return _text(found)


def _result_kind(a: Number, b: Number) -> str:
    return "D" if isinstance(a, float) or isinstance(b, float) else "I"


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_sums_and_products(name: str, call: Callable[[list[Case]], list[str]]) -> None:
    compute = getattr(operator, name)
    pairs = list(_pairs(1))
    op = f"executorch_prim::{name}.Scalar"
    found = call([(op, (a, b), _result_kind(a, b)) for a, b in pairs])
    # An int beside a float becomes one first, as in Python.
    assert found == [_want(compute, a, b) for a, b in pairs]
    assert "InvalidArgument" in found


def _floor_divide(a: Number, b: Number) -> Number:
    if _result_kind(a, b) == "D" and b == 0:
        # As ExecuTorch.
        return math.nan if math.isnan(a) else math.copysign(math.inf, a)
    return a // b


def test_quotients_and_remainders(call: Callable[[list[Case]], list[str]]) -> None:
    pairs = list(_pairs(2))
    name = "executorch_prim::floordiv.Scalar"
    found = call([(name, (a, b), _result_kind(a, b)) for a, b in pairs])
    assert found == [_want(_floor_divide, a, b) for a, b in pairs]
    ints = [(a, b) for a, b in pairs if _result_kind(a, b) == "I"]
    for name, compute in (
        ("floordiv.int", operator.floordiv),
        ("mod.int", operator.mod),
        ("mod.Scalar", operator.mod),
    ):
        found = call([(f"executorch_prim::{name}", pair, "I") for pair in ints])
        assert found == [_want(compute, *p) for p in ints]
        assert "InvalidArgument" in found


def _true_divide(a: Number, b: Number) -> float:
    a, b = float(a), float(b)
    if b != 0:
        return a / b
    # IEEE 754, where Python raises.
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def test_true_quotients(call: Callable[[list[Case]], list[str]]) -> None:
    pairs = list(_pairs(3))
    found = call([("executorch_prim::truediv.Scalar", pair, "D") for pair in pairs])
    assert found == [_text(_true_divide(a, b)) for a, b in pairs]


@pytest.mark.parametrize("name", ["eq", "gt", "lt", "ge", "le"])
def test_comparisons_are_exact(name: str, call: Callable[[list[Case]], list[str]]) -> None:
    pairs = [*_pairs(4), *((a, b) for a in (False, True) for b in (False, True))]
    found = call([(f"executorch_prim::{name}.Scalar", pair, "B") for pair in pairs])
    assert found == [_text(getattr(operator, name)(a, b)) for a, b in pairs]


_UNARY: Final[dict[str, tuple[str, Callable[[Number], Number]]]] = {
    "ceil": ("I", math.ceil),
    "round": ("I", round),
    "trunc": ("I", math.trunc),
    "sym_int": ("I", int),
    "sym_float": ("D", float),
    "neg": ("", operator.neg),
}


@pytest.mark.parametrize("name", sorted(_UNARY))
def test_conversions(name: str, call: Callable[[list[Case]], list[str]]) -> None:
    kind, compute = _UNARY[name]
    numbers: list[Number] = [*_INTS, *_DOUBLES]
    source = random.Random(5)  # noqa: S311
    numbers += [source.uniform(-20, 20) for _ in range(500)]
    numbers += [source.randrange(-41, 41) / 2 for _ in range(100)]
    numbers += [_any_double(source) for _ in range(500)]
    numbers += [] if name == "neg" else [False, True]
    op = f"executorch_prim::{name}.Scalar"
    found = call([(op, (x,), kind or _letter(x)) for x in numbers])
    assert found == [_want(compute, x) for x in numbers]


def test_choices(call: Callable[[list[Case]], list[str]]) -> None:
    pairs = [(a, b) for a in _INTS for b in _INTS]
    for name, pick in (("sym_max", max), ("sym_min", min)):
        op = f"executorch_prim::{name}.Scalar"
        assert call([(op, pair, "I") for pair in pairs]) == [_text(pick(pair)) for pair in pairs]
    op = "executorch_prim::sym_not.Scalar"
    assert call([(op, (flag,), "B") for flag in (False, True)]) == ["B True", "B False"]
    op = "executorch_prim::sym_ite.Scalar"
    choices = [(5, -6), (0.5, math.inf), (True, False)]
    assert call([(op, (b, *two), _letter(two[0])) for b in (False, True) for two in choices]) == [
        _text(two[0 if b else 1]) for b in (False, True) for two in choices
    ]


def test_kinds_that_do_not_fit_are_refused(call: Callable[[list[Case]], list[str]]) -> None:
    arithmetic = ["add", "sub", "mul", "floordiv"]
    comparisons = ["eq", "gt", "lt", "ge", "le"]
    cases: list[Case] = [
        # Bools are no numbers to compute with.
        *((name, (a, b), "I") for name in arithmetic for a, b in [(True, 1), (1, True)]),
        *((name, (a, b), "D") for name in ["truediv"] for a, b in [(True, 1), (1.5, True)]),
        *((name, (True, True), "B") for name in arithmetic),
        ("neg", (True,), "B"),
        *((name, (a, b), "B") for name in comparisons for a, b in [(True, 1), (1.0, True)]),
        # The result is of another kind.
        *((name, (3, 2), kind) for name in arithmetic for kind in "DB"),
        *((name, (3, 2.5), kind) for name in arithmetic for kind in "IB"),
        ("neg", (3,), "D"),
        ("neg", (3.0,), "I"),
        ("sym_ite", (True, 1, 1.5), "D"),
        ("sym_ite", (False, 1, 1.5), "I"),
    ]
    found = call([(f"executorch_prim::{n}.Scalar", args, k) for n, args, k in cases])
    assert found == ["InvalidArgument"] * len(cases)
