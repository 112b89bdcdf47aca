"""Angles as whole quarter turns and a rest.

Source: reduce() in runtime/src/math_trig.h, after Payne and Hanek, "Radian reduction
for trigonometric functions", 1983.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.method.passes.evaluate.numbers import Array

_WORD: Final = 32
_LOW_WORD: Final = np.uint64(0xFFFFFFFF)
_HALF_PI_HIGH: Final = np.uint64(0xC90FDAA2)  # pi / 2 times 2^63
_HALF_PI_LOW: Final = np.uint64(0x2168C234)
_TWO_PER_PI: Final = (
    *(0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041),
    *(0xFE5163AB, 0xDEBBC561, 0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C),
    *(0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41),
    *(0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F),
    *(0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D),
    *(0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08),
    *(0x56033046, 0),
)
"""Bits of 2 / pi, highest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    """How a type holds numbers; `words`: of 32 bits in what it holds."""

    bits: Any
    fraction_bits: int
    bias: int
    words: int
    quarter_pi: float


_FORMATS: Final[Mapping[str, _Format]] = {
    "f4": _Format(
        bits=np.uint32, fraction_bits=23, bias=127, words=1, quarter_pi=0.785398163
    ),
    "f8": _Format(
        bits=np.uint64,
        fraction_bits=52,
        bias=1023,
        words=2,
        quarter_pi=0.78539816339744831,
    ),
}


def reduced(sizes: Array) -> tuple[Array, Array]:
    """Whole quarter turns, modulo 4, and the rest, from -pi / 4 to pi / 4.

    Args:
        sizes: Angles in radians, not negative, float32 or float64, with one dimension
            or more. What comes of those that are not finite means nothing.
    """
    form = _FORMATS[sizes.dtype.str[1:]]
    large = np.isfinite(sizes) & (sizes > sizes.dtype.type(form.quarter_pi))
    turns = np.zeros(sizes.shape, np.int64)
    rests = np.where(np.isfinite(sizes), sizes, sizes.dtype.type(0))
    turns[large], rests[large] = _reduced(sizes[large], form)
    return turns, rests


def _bits_at(words: Array, bit: Array) -> Array:
    """32 bits from `bit` on, counted from the highest of the first word.

    Args:
        words: [words, items] or [words, 1], as 64-bit integers.
        bit: [items].
    """
    column = np.arange(bit.size) if words.shape[1] > 1 else np.zeros(bit.size, int)
    at = bit // _WORD
    both = (words[at, column] << np.uint64(_WORD)) | words[at + 1, column]
    shifted = both << (bit % _WORD).astype(np.uint64)
    return np.asarray(shifted >> np.uint64(_WORD))


def _reduced(sizes: Array, form: _Format) -> tuple[Array, Array]:
    bits = sizes.view(form.bits).astype(np.uint64)
    one = np.uint64(1 << form.fraction_bits)
    exponent = (bits >> np.uint64(form.fraction_bits)).astype(np.int64)
    exponent -= form.bias + form.fraction_bits
    significand = (bits & (one - np.uint64(1))) | one
    product = _product(significand, exponent, form)

    quarters = (product[0] >> np.uint64(30)).astype(np.int64)
    above = (product[0] >> np.uint64(29)) & np.uint64(1)
    flip = above * _LOW_WORD
    count = 3 * form.words
    fraction = np.zeros_like(product)
    for i in range(count):
        fraction[i] = _bits_at(product, np.full(sizes.size, 2 + _WORD * i)) ^ flip
    zeros = _leading_zeros(fraction, form)
    top = _bits_at(fraction, zeros)
    if form.words == 1:
        angle = _single_angle(top, zeros)
    else:
        low = _bits_at(fraction, zeros + _WORD)
        angle = _double_angle((top << np.uint64(_WORD)) | low, zeros)
    return quarters + above.astype(np.int64), np.where(above != 0, -angle, angle)


def _product(significand: Array, exponent: Array, form: _Format) -> Array:
    """The significand times the bits of 2 / pi that matter, modulo 4; [words, items].

    In units of 2^(2 - 32 * words); a word of zeros follows.
    """
    words = np.array([[0]] * form.words + [[w] for w in _TWO_PER_PI], np.uint64)
    count = 3 * form.words
    product = np.zeros((count + 1, significand.size), np.uint64)
    first = _WORD * form.words + exponent - 2
    for j in range(form.words):
        factor = (significand >> np.uint64(_WORD * j)) & _LOW_WORD
        carry = np.zeros_like(significand)
        for i in reversed(range(count - j)):
            total = _bits_at(words, first + _WORD * (i + j)) * factor + carry
            total += product[i]
            product[i] = total & _LOW_WORD
            carry = total >> np.uint64(_WORD)
    return product


def _leading_zeros(fraction: Array, form: _Format) -> Array:
    """Bits before the highest that is set; no number comes with more than its words."""
    zeros = np.zeros(fraction.shape[1], np.int64)
    for i in range(form.words):
        zeros += np.where((zeros == _WORD * i) & (fraction[i] == 0), _WORD, 0)
    # The exponent of a word is the number of bits it has.
    word = _bits_at(fraction, zeros).astype(np.float64)
    return np.asarray(zeros + _WORD - np.frexp(word)[1])


def _single_angle(fraction: Array, zeros: Array) -> Array:
    product = (fraction * _HALF_PI_HIGH) >> np.uint64(_WORD)
    whole = product.astype(np.uint32).astype(np.float32)
    return np.asarray(np.ldexp(whole, (-31 - zeros).astype(np.int32)))


def _double_angle(fraction: Array, zeros: Array) -> Array:
    """What is left out of the product is less than 3 units of 2^-64."""
    word = np.uint64(_WORD)
    high, low = fraction >> word, fraction & _LOW_WORD
    product = high * _HALF_PI_HIGH
    product += (high * _HALF_PI_LOW) >> word
    product += (low * _HALF_PI_HIGH) >> word
    small = product >> np.uint64(63) == 0
    product = np.where(small, product << np.uint64(1), product)
    rounded = (product >> np.uint64(11)) + ((product >> np.uint64(10)) & np.uint64(1))
    exponent = (-52 - (zeros + small)).astype(np.int32)
    whole = rounded.astype(np.int64).astype(np.float64)
    return np.asarray(np.ldexp(whole, exponent))
