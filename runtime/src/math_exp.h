// exp and tanh, once for float and double.
#pragma once

#include "float_format.h"
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
  static float exp_kernel(float z) {
    return 0.16666654727578F + z * -0.00276983878543F;
  }
  /// (tanh(x) / x - 1) / z for z = x * x, |x| <= 0.55.
  static float tanh_kernel(float z) {
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

/// e^x = 2^k * e^r with x = k * ln 2 + r, |r| <= ln 2 / 2, and
/// e^r = 1 + 2r / (R - r) with R = r * coth(r / 2), which is even in r.
template <typename F>
F exp_of(F x) {
  using C = Constants<F>;
  if (!(x <= C::kLargest)) return x + from_bits<F>(kInfinityBits<F>);
  if (x < C::kSmallest) return 0;
  const int k = static_cast<int>(x * C::kPerLn2 + (x < 0 ? F(-0.5) : F(0.5)));
  const F high = x - static_cast<F>(k) * C::kLn2High;
  const F low = static_cast<F>(k) * C::kLn2Low;
  const F r = high - low;
  const F z = r * r;
  const F c = r - z * C::exp_kernel(z);
  const F y = 1 + (high - (low - r * c / (2 - c)));
  // In two steps: 2^k alone may be out of range, and only the second may round.
  const int half = k / 2;
  return y * power_of_two<F>(half) * power_of_two<F>(k - half);
}

template <typename F>
F tanh_of(F x) {
  const typename Format<F>::Bits sign = to_bits(x) & kSignBit<F>;
  const F a = from_bits<F>(to_bits(x) ^ sign);
  F y;
  if (a < F(0.55)) {
    const F z = a * a;
    y = a + a * (z * Constants<F>::tanh_kernel(z));
  } else {
    y = 1 - 2 / (exp(2 * a) + 1);
  }
  return from_bits<F>(to_bits(y) | sign);
}

}  // namespace orch::math
