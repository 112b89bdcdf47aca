// exp and tanh, once for float, double and vectors of floats.
#pragma once

#include "float_format.h"
#include "math_parts.h"
#include "orch/lanes.h"
#include "orch/math.h"

namespace orch::math {

/// Constants of one format. The coefficients come from interpolation at
/// Chebyshev nodes, computed with 300 bits.
template <typename F>
struct Constants;

template <>
struct Constants<float> {
  static constexpr float kLargest = 88.7228394F;    // exp overflows above
  static constexpr float kSmallest = -103.972084F;  // exp is 0 below
  static constexpr float kPerLn2 = 1.44269504F;
  // ln 2 in two parts; the first has 16 bits, so that k * kLn2High is exact.
  static constexpr float kLn2High = 0x1.62e4p-1F;
  static constexpr float kLn2Low = 0x1.7f7d1cp-20F;

  /// (r * coth(r / 2) - 2) / z for z = r * r, |r| <= ln 2 / 2.
  template <typename V>
  static V exp_kernel(V z) {
    return 0.16666654727578F + z * -0.00276983878543F;
  }
  /// (tanh(x) / x - 1) / z for z = x * x, |x| <= 0.55.
  template <typename V>
  static V tanh_kernel(V z) {
    return -0.33333332008F +
           z * (0.13333113729F +
                z * (-0.0539094288275F +
                     z * (0.0213093886644F + z * -0.00661022783111F)));
  }
};

template <>
struct Constants<double> {
  static constexpr double kLargest = 709.782712893384;
  static constexpr double kSmallest = -745.1332191019412;
  static constexpr double kPerLn2 = 1.4426950408889634;
  static constexpr double kLn2High = 0x1.62e42feep-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

  static double exp_kernel(double z) {
    return 0.16666666666666661494 +
           z * (-0.0027777777777562863279 +
                z * (0.000066137564708555082022 +
                     z * (-1.6534058842837583218e-6 +
                          z * 4.143709688078019665e-8)));
  }
  static double tanh_kernel(double z) {
    const double numerator =
        -1612.7680543973871337 +
        z * (-99.194742437943875134 + z * -0.96436267947744998269);
    const double denominator =
        4838.3041631921614206 +
        z * (2232.9058925906915043 + z * (112.71096151044647376 + z));
    return numerator / denominator;
  }
};

/// x / ln 2 as a whole number, the nearest or one of them.
template <typename F>
int per_ln2(F x) {
  return static_cast<int>(x * Constants<F>::kPerLn2 +
                          (x < 0 ? F(-0.5) : F(0.5)));
}
#if ORCH_VECTORS
template <typename F>
IntLanes per_ln2(Lanes x) {
  const Lanes half = from_bits(with_bits<0x3F000000>(sign_of(x)));
  return whole_of(x * Constants<F>::kPerLn2 + half);
}
template <typename F>
Lanes power_of_two(IntLanes k) {
  return from_bits(shifted_up<23>(k) + 0x3F800000);
}
#endif

/// e^x = 2^k * e^r with x = k * ln 2 + r, |r| <= ln 2 / 2, and
/// e^r = 1 + 2r / (R - r) with R = r * coth(r / 2), which is even in r.
///
/// From kSmallest to kLargest: returns e^r.
template <typename F, typename V, typename I>
inline __attribute__((always_inline)) V exp_rest(V x, I& k) {
  using C = Constants<F>;
  k = per_ln2<F>(x);
  const V whole = number_of<F>(k);
  const V high = x - whole * C::kLn2High;
  const V low = whole * C::kLn2Low;
  const V r = high - low;
  const V z = r * r;
  const V c = r - z * C::exp_kernel(z);
  return 1 + (high - (low - r * c / (2 - c)));
}

template <typename F>
F exp_of(F x) {
  using C = Constants<F>;
  if (!(x <= C::kLargest)) return x + from_bits<F>(kInfinityBits<F>);
  if (x < C::kSmallest) return 0;
  int k;
  const F y = exp_rest<F>(x, k);
  // In two steps: 2^k alone may be out of range, and only the second may round.
  const int half = k / 2;
  return y * power_of_two<F>(half) * power_of_two<F>(k - half);
}

/// For |x| < 0.55.
template <typename F, typename V>
V small_tanh(V x) {
  const V z = x * x;
  return x + x * (z * Constants<F>::tanh_kernel(z));
}

template <typename F>
F tanh_of(F x) {
  const typename Format<F>::Bits sign = to_bits(x) & kSignBit<F>;
  const F a = from_bits<F>(to_bits(x) ^ sign);
  const F y = a < F(0.55) ? small_tanh<F>(a) : 1 - 2 / (exp(2 * a) + 1);
  return from_bits<F>(to_bits(y) | sign);
}

}  // namespace orch::math
