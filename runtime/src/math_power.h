// e^x - 1, powers, sinh and cosh, once for float and double.
#pragma once

#include "float_format.h"
#include "math_exp.h"
#include "math_log.h"
#include "math_parts.h"
#include "orch/math.h"

namespace orch::math {

/// Constants of one format. The coefficients come from interpolation at
/// Chebyshev nodes, computed with 400 bits.
template <typename F>
struct Power;

template <>
struct Power<float> {
  static constexpr float kTwoThirdsHigh = 0x1.555556p-1F;
  static constexpr float kTwoThirdsLow = -0x1.555556p-26F;
  /// The terms of Log without the first: (... - 2 / 3) / z.
  static constexpr float kLogTerms[] = {0.191203579F, 0.222047657F,
                                        0.285715312F, 0.400000006F};
  /// (sinh(x) / x - 1) / z for z = x * x, |x| <= 1.
  static constexpr float kSinhTerms[] = {2.80628024e-06F, 0.000198381022F,
                                         0.00833333936F, 0.166666672F};
};

template <>
struct Power<double> {
  static constexpr double kTwoThirdsHigh = 0x1.5555555555555p-1;
  static constexpr double kTwoThirdsLow = 0x1.5555555555555p-55;
  static constexpr double kLogTerms[] = {
      0.11723051028097753, 0.11706248540922386, 0.13334804238225345,
      0.15384594970895457, 0.18181818335314404, 0.22222222221656232,
      0.28571428571429364, 0.40000000000000002};
  static constexpr double kSinhTerms[] = {
      7.7461785930188273e-13, 1.6057679623801638e-10, 2.5052117695907823e-08,
      2.7557319191381816e-06, 0.00019841269841324198, 0.0083333333333332985,
      0.16666666666666666};
};

/// e^(x + extra) = 2^k * (1 + y.high + y.low), where |y.high| < 0.36, for an x
/// for which k is within the exponents and a small `extra`.
template <typename F, typename V, typename I>
inline __attribute__((always_inline)) Parts<V> exp_parts_of(V x, V extra,
                                                            I& k) {
  using C = Constants<F>;
  k = per_ln2<F>(x);
  const V whole = number_of<F>(k);
  const V high = x - whole * C::kLn2High;
  const V low = whole * C::kLn2Low - extra;
  const V r = high - low;
  const V z = r * r;
  const V c = r - z * C::exp_kernel(z);
  return {high, r * c / (2 - c) - low};
}
template <typename F>
int exp_parts(F x, F extra, Parts<F>& y) {
  int k;
  y = exp_parts_of<F>(x, extra, k);
  return k;
}

/// y * 2^k, where 2^k alone may be out of range; rounded at most once.
template <typename F>
F scaled(F y, int k) {
  const int half = k / 2;
  return y * power_of_two<F>(half) * power_of_two<F>(k - half);
}

template <typename F>
F expm1_of(F x) {
  if (!(x <= Constants<F>::kLargest)) {
    return x + from_bits<F>(kInfinityBits<F>);
  }
  constexpr int kDigits = Format<F>::kFraction + 1;
  if (x < F(-0.7 * kDigits - 1)) return -1;
  // Zeros keep their sign.
  if (to_bits(x) << 1 < to_bits(power_of_two<F>(-kDigits - 1)) << 1) return x;
  Parts<F> y;
  const int k = exp_parts(x, F(0), y);
  if (k == 0) return y.high + y.low;
  // 2^k * (1 - 2^-k + y)
  const F less = k > 2 * kDigits ? F(0) : power_of_two<F>(-k);
  const bool fits = k < kDigits;
  const Parts<F> sum = sum_of(fits ? 1 - less : F(1), y.high);
  return scaled(sum.high + (sum.low + (fits ? y.low : y.low - less)), k);
}

/// (e^a + sign * e^-a) / 2 for a >= 0.
template <typename F>
F half_exp(F a, F sign) {
  // From here on e^-a does not show, nor is 2^k * e^a needed.
  if (!(a <= Constants<F>::kLargest + 1)) {
    return a + from_bits<F>(kInfinityBits<F>);
  }
  Parts<F> y;
  const int k = exp_parts(a, F(0), y);
  Parts<F> sum = sum_of(F(1), y.high);
  sum.low += y.low;
  if (k <= Format<F>::kFraction) {
    sum.low += sign * power_of_two<F>(-2 * k) / (sum.high + sum.low);
  }
  return scaled(sum.high + sum.low, k - 1);
}

template <typename F>
F cosh_of(F x) {
  return half_exp(from_bits<F>(to_bits(x) & ~kSignBit<F>), F(1));
}

template <typename F>
F sinh_of(F x) {
  const typename Format<F>::Bits sign = to_bits(x) & kSignBit<F>;
  const F a = from_bits<F>(to_bits(x) ^ sign);
  F y;
  if (a < 1) {
    const F z = a * a;
    y = a + a * (z * polynomial(Power<F>::kSinhTerms, z));
  } else {
    y = half_exp(a, F(-1));
  }
  return from_bits<F>(to_bits(y) | sign);
}

/// log(x) for a positive finite x, with at least 10 bits more than F has.
template <typename F, typename V>
Parts<V> log_parts(V x) {
  using P = Power<F>;
  V f;
  const V k = number_of<F>(split(x, f));
  // log(1 + f) = 2s + 2/3 s^3 + ... for s = f / (2 + f)
  const Parts<V> s = quotient_of<V>({f, F(0)}, sum_of(V(2), f));
  Parts<V> z = product_of(s.high, s.high);
  z.low = z.low + 2 * s.high * s.low;
  Parts<V> t =
      sum_of<V>(P::kTwoThirdsHigh, z.high * polynomial(P::kLogTerms, z.high));
  t.low = t.low + P::kTwoThirdsLow;
  Parts<V> w = product_of(z.high, t.high);
  w.low = w.low + (z.high * t.low + z.low * t.high);
  const Parts<V> two = sum_of<V>(2, w.high);
  const Parts<V> y = product_of(s.high, two.high);
  const V y_low = y.low + s.high * (two.low + w.low) + s.low * two.high;
  if constexpr (sizeof(V) == sizeof(F)) {
    if (k == 0) return sum_of(y.high, y_low);
  }
  const Parts<V> sum = sum_of<V>(k * Log<F>::kLn2High, y.high);
  return sum_of<V>(sum.high, sum.low + (y_low + k * Log<F>::kLn2Low));
}

/// 0 if `y`, which is not 0, has a fraction; 1 if it is odd, otherwise 2.
template <typename F>
int wholeness(F y) {
  using Bits = typename Format<F>::Bits;
  constexpr int kFraction = Format<F>::kFraction;
  constexpr Bits kOne = static_cast<Bits>(1) << kFraction;
  const Bits bits = to_bits(y) & ~kSignBit<F>;
  const int exponent = static_cast<int>(bits >> kFraction) - Format<F>::kBias;
  if (exponent < 0) return 0;
  if (exponent > kFraction) return 2;
  const Bits aligned = ((bits & (kOne - 1)) | kOne) << exponent;
  if ((aligned & (kOne - 1)) != 0) return 0;
  return (aligned & kOne) != 0 ? 1 : 2;
}

/// Special values as C's pow, annex F.
template <typename F>
F pow_of(F x, F y) {
  using C = Constants<F>;
  const F kInf = from_bits<F>(kInfinityBits<F>);
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return x + y;
  typename Format<F>::Bits sign = to_bits(x) & kSignBit<F>;
  const F a = from_bits<F>(to_bits(x) ^ sign);
  const int whole = wholeness(y);
  if (whole != 1) {
    if (whole == 0 && sign != 0 && a != 0 && a != kInf) {
      return (x - x) / (x - x);
    }
    sign = 0;
  }
  F power;
  if (a == 1) {
    power = 1;
  } else if (a == 0 || a == kInf || y == kInf || y == -kInf) {
    power = (a > 1) == (y > 0) ? kInf : 0;
  } else {
    const Parts<F> log = log_parts<F>(a);
    Parts<F> t = product_of(y, log.high);
    if (!(t.high < C::kLargest + 1)) {
      power = t.high < 0 ? F(0) : kInf;
    } else if (t.high < C::kSmallest - 1) {
      power = 0;
    } else {
      t.low += y * log.low;
      Parts<F> e;
      const int k = exp_parts(t.high, t.low, e);
      const Parts<F> sum = sum_of(F(1), e.high);
      power = scaled(sum.high + (sum.low + e.low), k);
    }
  }
  return from_bits<F>(to_bits(power) | sign);
}

}  // namespace orch::math
