"""Operands for tests of floating-point arithmetic: random ones and hard ones.

All are bit patterns in 64-bit words, the same in every run. Functions return the
columns (a, b) of pairs; operations of one operand ignore the second.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable

Bits = npt.NDArray[np.uint64]
Pairs = tuple[Bits, Bits]

COUNT: Final = 1 << 13
"""Random pairs of each kind."""
_BIAS: Final = 1023
_FRACTION: Final = np.uint64((1 << 52) - 1)
_FLOAT_FRACTION: Final = np.uint64((1 << 23) - 1)
# Subnormals, the smallest and largest normal numbers, both ends of float, of the
# integers and of exact integers, infinity and NaN.
_EXPONENTS: Final = (
    *(0, 1, 2, 53, 873, 874, 896, 897, _BIAS - 1, _BIAS, _BIAS + 1, _BIAS + 31),
    *(_BIAS + 32, _BIAS + 33, _BIAS + 53, _BIAS + 63, 1150, 1151, 2045, 2046, 2047),
)
_FRACTIONS: Final = (
    *(0, 1, 2, 1 << 28, (1 << 28) + 1, 3 << 28),
    *(1 << 51, (1 << 51) - 1, (1 << 52) - 1),
)


def _random(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def _words(random: np.random.Generator, bits: int, count: int = COUNT) -> Bits:
    return random.integers(0, 1 << bits, count, dtype=np.uint64)


def _shifts(random: np.random.Generator, end: int, count: int = COUNT) -> Bits:
    return random.integers(0, end, count, dtype=np.uint64)


def _fractions(random: np.random.Generator) -> Bits:
    """Random ones, long runs of ones or zeros, single bits: where rounding is hard."""
    any_bits = _words(random, 52)
    n = _shifts(random, 53)
    one = np.uint64(1) << n
    kinds = [
        any_bits,
        any_bits >> n,
        _FRACTION >> n,
        _FRACTION << n,
        one,
        one ^ (any_bits & np.uint64(3)),
    ]
    chosen = np.choose(random.integers(0, len(kinds), COUNT), kinds)
    return np.asarray(chosen, np.uint64) & _FRACTION


def _doubles(random: np.random.Generator, exponents: npt.NDArray[np.int64]) -> Bits:
    exponent = np.clip(exponents, 0, 2046).astype(np.uint64) << np.uint64(52)
    return _words(random, 1) << np.uint64(63) | exponent | _fractions(random)


@cache
def _special() -> Bits:
    values = [
        sign << 63 | exponent << 52 | fraction
        for sign in (0, 1)
        for exponent in _EXPONENTS
        for fraction in _FRACTIONS
    ]
    return np.array(values, np.uint64)


def _joined(pairs: Iterable[Pairs]) -> Pairs:
    first, second = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second)


def _alone(*columns: Bits) -> Pairs:
    a = np.concatenate(columns)
    return a, np.zeros_like(a)


@cache
def _plain_pairs() -> Pairs:
    random = _random(1)
    a, b = np.meshgrid(_special(), _special())
    random_pairs = (_words(random, 64), _words(random, 64))
    return _joined([(a.ravel(), b.ravel()), random_pairs])


@cache
def doubles() -> Pairs:
    """Pairs whose exponents are close enough for both to matter in a sum."""
    random = _random(2)
    pairs = [_plain_pairs()]
    for low, high in ((0, 70), (900, 1100), (1980, 2047), (0, 2047)):
        exponent = random.integers(low, high, COUNT)
        apart = random.integers(-66, 67, COUNT)
        pairs.append((_doubles(random, exponent), _doubles(random, exponent + apart)))
    return _joined(pairs)


@cache
def factors() -> Pairs:
    """Pairs with products and quotients everywhere, many at the ends of the range."""
    random = _random(3)
    exponent = random.integers(0, 2047, COUNT)
    spread = random.integers(-60, 61, COUNT)
    others = (
        _BIAS - exponent,  # product at the subnormal end
        3 * _BIAS - exponent,  # product at infinity
        exponent + _BIAS,  # quotient at the subnormal end
        exponent - _BIAS,  # quotient at infinity
        exponent,
    )
    pairs = [(_doubles(random, exponent), _doubles(random, other + spread)) for other in others]
    return _joined([_plain_pairs(), *pairs])


@cache
def floats() -> Pairs:
    """Floats: every exponent with every kind of end, and random ones."""
    random = _random(4)
    ends = [0, 1, 2, (1 << 22) - 1, 1 << 22, (1 << 23) - 1]
    special = [
        sign << 31 | exponent << 23 | end
        for sign in (0, 1)
        for exponent in range(256)
        for end in ends
    ]
    return _alone(
        np.array(special, np.uint64),
        _words(random, 32, 3 * COUNT),
        _words(random, 24),  # a quarter of them and more subnormal
    )


_FLOAT_BIAS: Final = 127


def _floats(random: np.random.Generator, exponents: npt.NDArray[np.int64]) -> Bits:
    exponent = np.clip(exponents, 0, 254).astype(np.uint64) << np.uint64(23)
    fraction = _fractions(random) >> np.uint64(29) * _words(random, 1)
    sign = _words(random, 1) << np.uint64(31)
    return np.asarray(sign | exponent | fraction & _FLOAT_FRACTION, np.uint64)


@cache
def _float_pairs() -> Pairs:
    """Ends of every kind against each other, and random pairs."""
    random = _random(8)
    exponents = (0, 1, 2, 23, 24, 25, 63, 102, 126, 127, 128, 150, 151, 252, 253, 254)
    ends = (0, 1, 2, 3, 1 << 11, (1 << 22) - 1, 1 << 22, (1 << 22) + 1, (1 << 23) - 1)
    special = np.array(
        [
            sign << 31 | exponent << 23 | end
            for sign in (0, 1)
            for exponent in (*exponents, 255)
            for end in ends
        ],
        np.uint64,
    )
    a, b = np.meshgrid(special, special)
    random_pairs = (_words(random, 32), _words(random, 32))
    return _joined([(a.ravel(), b.ravel()), random_pairs])


@cache
def float_sums() -> Pairs:
    """Pairs of floats whose exponents are close enough for both to matter in a sum."""
    random = _random(9)
    pairs = [_float_pairs()]
    for low, high in ((0, 40), (110, 140), (220, 255), (0, 255)):
        exponent = random.integers(low, high, COUNT)
        apart = random.integers(-35, 36, COUNT)
        pairs.append((_floats(random, exponent), _floats(random, exponent + apart)))
    return _joined(pairs)


@cache
def float_factors() -> Pairs:
    """Pairs of floats, many with products and quotients at the ends of the range."""
    random = _random(10)
    exponent = random.integers(0, 255, COUNT)
    spread = random.integers(-30, 31, COUNT)
    others = (
        _FLOAT_BIAS - exponent,  # product at the subnormal end
        3 * _FLOAT_BIAS - exponent,  # product at infinity
        exponent + _FLOAT_BIAS,  # quotient at the subnormal end
        exponent - _FLOAT_BIAS,  # quotient at infinity
        exponent,
    )
    pairs = [(_floats(random, exponent), _floats(random, other + spread)) for other in others]
    return _joined([_float_pairs(), *pairs])


@cache
def near_floats() -> Pairs:
    """Doubles in the range of float and around it, many halfway between two."""
    random = _random(5)
    fraction = _words(random, 25) << np.uint64(27)
    halfway = fraction + _words(random, 2) - np.uint64(1) & _FRACTION
    exponents = random.integers(860, 1160, COUNT).astype(np.uint64) << np.uint64(52)
    sign = _words(random, 1) << np.uint64(63)
    return _alone(
        _special(),
        _words(random, 64),
        _doubles(random, random.integers(860, 1160, COUNT)),
        sign | exponents | halfway,
        sign | exponents | _words(random, 26) << np.uint64(26),
    )


@cache
def integers() -> Pairs:
    """Integers of every length, many halfway between two doubles or two floats."""
    random = _random(6)
    few = random.integers(-3, 4, COUNT).astype(np.int64).view(np.uint64)
    values = [
        _words(random, 64) >> _shifts(random, 64),
        (np.uint64(1) << _shifts(random, 64)) + few,
        ((_words(random, 25) << np.uint64(39)) + few) >> _shifts(random, 40),
        ((_words(random, 54) << np.uint64(10)) + few) >> _shifts(random, 12),
    ]
    return _alone(*values, *(np.uint64(0) - value for value in values))


@cache
def in_range(source: str, to: str) -> Pairs:
    """Floats or doubles that an integer type can hold once their fraction is cut.

    Args:
        source: "float32" or "float64".
        to: numpy's name of the integer type.
    """
    random = _random(7)
    limits = np.iinfo(np.dtype(to))
    signed = limits.min < 0
    is_double = source == "float64"
    bias, fraction_bits = (_BIAS, 52) if is_double else (127, 23)
    count = 4 * COUNT
    exponents = random.integers(bias - 4, bias + limits.bits - signed, count)
    sign = _words(random, int(signed), count) << np.uint64(63 if is_double else 31)
    fraction = _words(random, fraction_bits, count)
    a = sign | exponents.astype(np.uint64) << np.uint64(fraction_bits) | fraction
    a = np.concatenate([a, _special() if is_double else floats()[0]])
    # The end is a power of two: exact in every format.
    end = 2.0 ** (limits.bits - signed)
    with np.errstate(invalid="ignore"):
        narrow = a if is_double else a.astype(np.uint32)
        values = np.trunc(narrow.view(source).astype(np.float64))
        return _alone(a[(values >= float(limits.min)) & (values < end)])
