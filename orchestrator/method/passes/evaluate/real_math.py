"""Functions of real numbers, to the bits of the runtime's own.

Arrays are of float32 or float64, with one dimension or more; every operation is rounded
to that type. Coefficients are those of the source; the square root is `numpy.sqrt`, as
both round correctly.

Source: runtime/src/math_exp.h, math_erf.h and math_trig.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.method.passes.evaluate.quarter_turns import reduced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.method.passes.evaluate.numbers import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    """Constants of one type; coefficients come with the highest power first.

    Args:
        largest: Above it the exponential overflows.
        smallest: Below it the exponential is 0.
        per_ln2: 1 / ln 2.
        ln2: In two parts, of which the first has few bits.
        exp: (r * coth(r / 2) - 2) / z for z = r * r.
        tanh: (tanh(x) / x - 1) / z, as a quotient of two polynomials.
        erf: erf(x) / x - 1, up to 1.
        erf_center: What is taken from 1 / (x + 2) before `erf_tail`.
        erf_tail: e^(x * x) * (1 - erf(x)), from 1 on.
        sin: (sin(r) / r - 1) / z.
        cos: (cos(r) - 1 + z / 2) / z^2.
    """

    largest: float
    smallest: float
    per_ln2: float
    ln2: tuple[float, float]
    exp: tuple[float, ...]
    tanh: tuple[tuple[float, ...], tuple[float, ...]]
    erf: tuple[float, ...]
    erf_center: float
    erf_tail: tuple[float, ...]
    sin: tuple[float, ...]
    cos: tuple[float, ...]


_FLOAT: Final = _Format(
    largest=88.7228394,
    smallest=-103.972084,
    per_ln2=1.44269504,
    ln2=(float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20")),
    exp=(-0.00276983878543, 0.16666654727578),
    tanh=(
        (
            *(-0.00661022783111, 0.0213093886644, -0.0539094288275),
            *(0.13333113729, -0.33333332008),
        ),
        (1.0,),
    ),
    erf=(
        *(0.0000787587506269, -0.000801686428717, 0.00518908742343),
        *(-0.0268542120106, 0.112835947152, -0.376126266667, 0.128379165848),
    ),
    erf_center=0.25,
    erf_tail=(
        *(-7.00146359049, 0.919723699375, 5.0542049468),
        *(3.86662440099, 1.70874355315, 0.25539564033),
    ),
    sin=(
        *(2.7249895230612e-6, -0.00019840086499594),
        *(0.0083333318742737, -0.16666666663854),
    ),
    cos=(2.4547916853691e-5, -0.0013888302919114, 0.041666664658901),
)
_DOUBLE: Final = _Format(
    largest=709.782712893384,
    smallest=-745.1332191019412,
    per_ln2=1.4426950408889634,
    ln2=(float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")),
    exp=(
        *(4.143709688078019665e-8, -1.6534058842837583218e-6),
        *(0.000066137564708555082022, -0.0027777777777562863279),
        0.16666666666666661494,
    ),
    tanh=(
        (-0.96436267947744998269, -99.194742437943875134, -1612.7680543973871337),
        (1.0, 112.71096151044647376, 2232.9058925906915043, 4838.3041631921614206),
    ),
    erf=(
        *(-7.7958988270021422416e-10, 1.3720064546777685604e-8),
        *(-1.6208483801871705902e-7, 1.644742470331736241e-6),
        *(-0.000014924736907419660338, 0.00012055294904839707917),
        *(-0.00085483259753896920806, 0.0052239776071164227321),
        *(-0.02686617064323777036, 0.11283791670945006266),
        *(-0.37612638903183540438, 0.12837916709551256654),
    ),
    erf_center=0.234375,
    erf_tail=(
        *(1051.4775993545124307, -352.15846705801182424, -187.84231022637839368),
        *(156.42775064681800607, 5.343269982798526542, -48.473920711072128409),
        *(9.5197691582480331622, 15.319409309670622079, -5.1951342955919361769),
        *(-6.7585707472615170177, 1.5005795240813347226, 4.977707342659357725),
        *(3.6312651223836863108, 1.5915997174746599509, 0.22962131986684041052),
    ),
    sin=(
        *(1.5918115263265975194e-10, -2.505113165023518147e-8),
        *(2.7557316101617874437e-6, -0.00019841269836756772528),
        *(0.0083333333333309472945, -0.16666666666666664622),
    ),
    cos=(
        *(-1.1382623647474604629e-11, 2.0876146146558611582e-9),
        *(-2.7557317271145145962e-7, 0.000024801587298764560771),
        *(-0.0013888888888887396492, 0.041666666666666665388),
    ),
)
_FORMATS: Final[Mapping[str, _Format]] = {"f4": _FLOAT, "f8": _DOUBLE}


def _format(x: Array) -> tuple[_Format, Any]:
    """Constants for an array, and the type of its items."""
    return _FORMATS[x.dtype.str[1:]], x.dtype.type


def _polynomial(x: Array, terms: Sequence[float]) -> Array:
    """terms[0] * x^n + ... + terms[n], by Horner's rule."""
    total = np.full(x.shape, terms[0], x.dtype)
    for term in terms[1:]:
        total = total * x + x.dtype.type(term)
    return total


def _power_of_two(exponent: Array, like: Array) -> Array:
    ones = np.ones_like(like)
    return np.asarray(np.ldexp(ones, exponent.astype(np.int32)))


def exp(x: Array) -> Array:
    """Euler's number to the power of every item."""
    form, number = _format(x)
    inside = (x <= number(form.largest)) & (x >= number(form.smallest))
    taken = np.where(inside, x, number(0))
    rounding = np.where(taken < 0, number(-0.5), number(0.5))
    k = (taken * number(form.per_ln2) + rounding).astype(np.int32)
    whole = k.astype(x.dtype)
    high = taken - whole * number(form.ln2[0])
    low = whole * number(form.ln2[1])
    r = high - low
    z = r * r
    c = r - z * _polynomial(z, form.exp)
    y = number(1) + (high - (low - r * c / (number(2) - c)))
    # Divided as C++ does, towards 0; only the second product may round.
    half = np.sign(k) * (np.abs(k) // 2)
    y = y * _power_of_two(half, x) * _power_of_two(k - half, x)
    beyond = np.where(x < 0, number(0), x + number(np.inf))
    return np.asarray(np.where(inside, y, beyond))


def tanh(x: Array) -> Array:
    """Hyperbolic tangent of every item."""
    form, number = _format(x)
    a = np.abs(x)
    z = a * a
    above, below = form.tanh
    share = _polynomial(z, above)
    if len(below) > 1:
        share = share / _polynomial(z, below)
    near = a + a * (z * share)
    far = number(1) - number(2) / (exp(number(2) * a) + number(1))
    return np.asarray(np.copysign(np.where(a < number(0.55), near, far), x))


def erf(x: Array) -> Array:
    """Error function of every item."""
    form, number = _format(x)
    a = np.abs(x)
    near = a + a * _polynomial(a * a, form.erf)
    t = number(1) / (a + number(2)) - number(form.erf_center)
    far = number(1) - exp(-(a * a)) * _polynomial(t, form.erf_tail)
    return np.asarray(np.copysign(np.where(a < 1, near, far), x))


def sin(x: Array) -> Array:
    """Sine of every item, in radians."""
    y = _turned(np.abs(x), 0)
    return np.where(np.signbit(x), -y, y)


def cos(x: Array) -> Array:
    """Cosine of every item, in radians."""
    return _turned(np.abs(x), 1)


def _turned(size: Array, quarters: int) -> Array:
    """sin(size + quarters * pi / 2), of sizes that are not negative."""
    form, number = _format(size)
    turns, r = reduced(size)
    turns = turns + quarters
    z = r * r
    sine = r + r * (z * _polynomial(z, form.sin))
    half = z / number(2)
    w = number(1) - half
    cosine = w + ((number(1) - w - half) + z * z * _polynomial(z, form.cos))
    y = np.where(turns % 2 == 0, sine, cosine)
    y = np.where(turns & 2 != 0, -y, y)
    return np.asarray(np.where(np.isfinite(size), y, number(np.nan)))
