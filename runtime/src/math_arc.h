// asin, acos, atan and atan2, once for float and double.
#pragma once

#include "math_parts.h"
#include "math_sqrt.h"
#include "orch/math.h"

namespace orch::math {

/// Constants of one format. The coefficients come from interpolation at
/// Chebyshev nodes, computed with 400 bits.
template <typename F>
struct Arc;

template <>
struct Arc<float> {
  static constexpr float kHalfPiHigh = 0x1.921fb6p+0F;
  static constexpr float kHalfPiLow = -0x1.777a5cp-25F;
  /// (asin(x) / x - 1) / z for z = x * x, |x| <= 1/2.
  static constexpr float kSinTerms[] = {
      0.0380850248F, 0.0265545417F, 0.0450013801F, 0.0749885514F, 0.166666731F};
  /// (atan(x) / x - 1) / z for z = x * x, |x| <= 7/16.
  static constexpr float kTanTerms[] = {
      -0.0621581152F, 0.106683858F, -0.142565757F, 0.199993148F, -0.333333313F};
  /// atan(1/2), atan(1) and atan(3/2).
  static constexpr Parts<float> kAngles[] = {
      {0x1.dac67p-2F, 0x1.586ed4p-28F},
      {0x1.921fb6p-1F, -0x1.777a5cp-26F},
      {0x1.f730bep-1F, -0x1.afc12cp-26F}};
};

template <>
struct Arc<double> {
  static constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;
  static constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
  static constexpr double kSinTerms[] = {
      0.028169218060881414,  -0.010749050339697808, 0.016035514349148822,
      0.0078029494773533175, 0.011875494382636922,  0.013929652902326633,
      0.017355259955786323,  0.02237204763174451,   0.03038194736709848,
      0.044642857103423646,  0.075000000000207637,  0.16666666666666649};
  static constexpr double kTanTerms[] = {
      -0.017547235157290005, 0.037825218661067118,  -0.050339427764858481,
      0.058477247206451061,  -0.066632392991071362, 0.076920873487671682,
      -0.090909001955601476, 0.11111110900560475,   -0.1428571428314864,
      0.19999999999987769,   -0.33333333333333326};
  static constexpr Parts<double> kAngles[] = {
      {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
      {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
      {0x1.f730bd281f69bp-1, 0x1.007887af0cbbdp-56}};
};

/// asin(sqrt(z)) of z = (1 - a) / 2 for 1/2 <= a <= 1: half of acos(a). Of
/// vectors NaN for a = 1.
template <typename F, typename V>
Parts<V> half_arc(V a) {
  const V z = (1 - a) * F(0.5);
  if constexpr (sizeof(V) == sizeof(F)) {
    if (z == 0) return {0, 0};
  }
  const V root = sqrt(z);
  const V high = upper_half(root);
  const V low = (z - high * high) / (root + high);
  return {high, root * (z * polynomial(Arc<F>::kSinTerms, z)) + low};
}

/// The part of asin(x) behind x, for |x| <= 1/2.
template <typename F, typename V>
V small_arc(V x) {
  const V z = x * x;
  return x * (z * polynomial(Arc<F>::kSinTerms, z));
}

/// quarters * pi / 2 - y for |y| <= quarters * pi / 2.
template <typename F, typename V>
V from_quarters(F quarters, Parts<V> y) {
  const Parts<V> rest = sum_of<V>(quarters * Arc<F>::kHalfPiHigh, -y.high);
  return rest.high + (rest.low + (quarters * Arc<F>::kHalfPiLow - y.low));
}

template <typename V>
Parts<V> twice(Parts<V> y) {
  return {2 * y.high, 2 * y.low};
}

template <typename F>
F asin_of(F x) {
  const typename Format<F>::Bits sign = to_bits(x) & kSignBit<F>;
  const F a = from_bits<F>(to_bits(x) ^ sign);
  if (!(a <= 1)) return (x - x) / (x - x);
  const F y = a < F(0.5) ? a + small_arc<F>(a)
                         : from_quarters(F(1), twice(half_arc<F>(a)));
  return from_bits<F>(to_bits(y) | sign);
}

template <typename F>
F acos_of(F x) {
  const F a = x < 0 ? -x : x;
  if (!(a <= 1)) return (x - x) / (x - x);
  if (a < F(0.5)) return from_quarters(F(1), Parts<F>{x, small_arc<F>(x)});
  const Parts<F> half = half_arc<F>(a);
  if (x > 0) return 2 * (half.high + half.low);
  return from_quarters(F(2), twice(half));
}

/// atan(a) for a >= 0 or NaN.
template <typename F>
Parts<F> atan_parts(F a) {
  using A = Arc<F>;
  Parts<F> base = {0, 0};
  if (a > F(2.4375)) {
    base = {A::kHalfPiHigh, A::kHalfPiLow};
    a = -1 / a;
  } else if (a > F(0.4375)) {
    // tan(x - y) = (tan x - tan y) / (1 + tan x * tan y)
    const int i = a > F(1.1875) ? 2 : a > F(0.6875) ? 1 : 0;
    const F other = static_cast<F>(i + 1) / 2;
    base = A::kAngles[i];
    a = (a - other) / (1 + a * other);
  }
  const F z = a * a;
  const F more = a * (z * polynomial(A::kTanTerms, z));
  if (base.high == 0) return {a, more};
  const Parts<F> sum = sum_of(base.high, a);
  return {sum.high, sum.low + (base.low + more)};
}

template <typename F>
F atan_of(F x) {
  const typename Format<F>::Bits sign = to_bits(x) & kSignBit<F>;
  const Parts<F> y = atan_parts(from_bits<F>(to_bits(x) ^ sign));
  return from_bits<F>(to_bits(y.high + y.low) | sign);
}

/// Special values as C's atan2, annex F.
template <typename F>
F atan2_of(F y, F x) {
  using Bits = typename Format<F>::Bits;
  if (x != x || y != y) return x + y;
  const Bits sign = to_bits(y) & kSignBit<F>;
  const Bits left = to_bits(x) & kSignBit<F>;
  const F height = from_bits<F>(to_bits(y) ^ sign);
  const F width = from_bits<F>(to_bits(x) ^ left);
  F slope;
  if (height == width) {  // also both 0 or infinite
    slope = height == 0 ? F(0) : F(1);
  } else {
    slope = width == 0 ? from_bits<F>(kInfinityBits<F>) : height / width;
  }
  const Parts<F> angle = atan_parts(slope);
  const F result =
      left != 0 ? from_quarters(F(2), angle) : angle.high + angle.low;
  return from_bits<F>(to_bits(result) | sign);
}

}  // namespace orch::math
