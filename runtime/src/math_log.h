// Logarithms, once for float and double.
#pragma once

#include "float_format.h"
#include "math_parts.h"
#include "orch/math.h"

namespace orch::math {

/// Constants of one format. The coefficients come from interpolation at
/// Chebyshev nodes, computed with 400 bits.
template <typename F>
struct Log;

template <>
struct Log<float> {
  static constexpr float kSqrtHalf = 0x1.6a09e6p-1F;
  // ln 2 and its decimal logarithm in two parts; the first have so few bits
  // that products with exponents are exact.
  static constexpr float kLn2High = 0x1.62e4p-1F;
  static constexpr float kLn2Low = 0x1.7f7d1cp-20F;
  static constexpr float kLog2High = 0x1.3442p-2F;
  static constexpr float kLog2Low = -0x1.95ec1p-19F;
  // 1 / ln 2 and 1 / ln 10; the first parts have half of the bits.
  static constexpr float kPerLn2High = 0x1.716p+0F;
  static constexpr float kPerLn2Low = -0x1.7135a8p-13F;
  static constexpr float kPerLn10High = 0x1.bccp-2F;
  static constexpr float kPerLn10Low = -0x1.09d5b2p-15F;
  /// (log((1 + s) / (1 - s)) / s - 2) / z for z = s * s, where (1 + s) /
  /// (1 - s) is at most the root of 2.
  static constexpr float kTerms[] = {0.295799494F, 0.3998878F, 0.666666865F};
};

template <>
struct Log<double> {
  static constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  static constexpr double kLn2High = 0x1.62e42feep-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kLog2High = 0x1.34413509f8p-2;
  static constexpr double kLog2Low = -0x1.80433b83b532ap-44;
  static constexpr double kPerLn2High = 0x1.7154768p+0;
  static constexpr double kPerLn2Low = -0x1.6a3e80f444178p-27;
  static constexpr double kPerLn10High = 0x1.bcb7b18p-2;
  static constexpr double kPerLn10Low = -0x1.6c8d78e6acaa4p-29;
  static constexpr double kTerms[] = {0.14616449685043406, 0.15331721600556042,
                                      0.18182889125261723, 0.22222211134795081,
                                      0.28571428625975487, 0.39999999999899505,
                                      0.66666666666666696};
};

/// x = 2^k * (1 + f) with 1 + f between the roots of 1/2 and of 2, for a
/// positive finite x.
template <typename F>
int split(F x, F& f) {
  using Bits = typename Format<F>::Bits;
  constexpr int kFraction = Format<F>::kFraction;
  constexpr Bits kOne = static_cast<Bits>(1) << kFraction;
  constexpr int kUp = kFraction + 2;
  int k = -Format<F>::kBias;
  if (to_bits(x) < kOne) {  // subnormal
    x *= power_of_two<F>(kUp);
    k -= kUp;
  }
  const Bits lowest = to_bits(Log<F>::kSqrtHalf);
  const Bits bits = to_bits(x) + (to_bits(F(1)) - lowest);
  k += static_cast<int>(bits >> kFraction);
  f = from_bits<F>((bits & (kOne - 1)) + lowest) - 1;
  return k;
}

#if ORCH_VECTORS
/// x = 2^whole * (1 + f) as `split`. Subnormal numbers, which vectors may not
/// know, are multiplied before.
inline Lanes split(Lanes x, Lanes& f) {
  const int32_t lowest = 0x3F3504F3;
  Lanes down = static_cast<float>(Format<float>::kBias);
#if !ORCH_VECTORS_FLUSH
  const Lanes smallest = 0x1p-126F;
  down = if_at_least(x, smallest, down, down + 25);
  x = if_at_least(x, smallest, x, x * 0x1p25F);
#endif
  const IntLanes bits = to_bits(x) + (0x3F800000 - lowest);
  const IntLanes k = shifted_down<23>(bits);
  f = from_bits(bits - shifted_up<23>(k) + lowest) - 1;
  return number_of(k) - down;
}
#endif
#if ORCH_FUSED
inline Lanes split(FusedLanes x, FusedLanes& f) {
  Lanes& rest = f;
  return split(static_cast<Lanes>(x), rest);
}
#endif

/// Whether the logarithm of `x` is one of an ordinary number; otherwise `y` is
/// the logarithm.
template <typename F>
bool has_log(F x, F& y) {
  if (x > 0 && to_bits(x) != kInfinityBits<F>) return true;
  if (x == 0) {
    y = -from_bits<F>(kInfinityBits<F>);
  } else {
    y = x > 0 ? x : (x - x) / (x - x);
  }
  return false;
}

/// The part of log(1 + f) below f - half, where half = f * f / 2.
template <typename F, typename V>
V log_kernel(V f, V half) {
  const V s = f / (2 + f);
  const V z = s * s;
  return s * (half + z * polynomial(Log<F>::kTerms, z));
}

/// log(2^k * (1 + f)) + c for a small c.
template <typename F, typename I, typename V>
V log_sum(I k, V f, V c) {
  const V half = f * F(0.5) * f;
  const V small = log_kernel<F>(f, half);
  const V whole = number_of<F>(k);
  return whole * Log<F>::kLn2High -
         ((half - (small + (whole * Log<F>::kLn2Low + c))) - f);
}

template <typename F>
F log_of(F x) {
  F f;
  if (!has_log(x, f)) return f;
  const int k = split(x, f);
  return log_sum<F>(k, f, F(0));
}

/// log(x.high + x.low) for a positive x.
template <typename F>
F log_of(Parts<F> x) {
  F f;
  const int k = split(x.high, f);
  return log_sum<F>(k, f, x.low / x.high);
}

template <typename F>
F log1p_of(F x) {
  F f;
  if (!(x > -1) || to_bits(x) == kInfinityBits<F>) {
    return has_log(1 + x, f) ? x : f;
  }
  // Where no sum with 1 is needed, none is rounded; zeros keep their sign.
  if (x > F(-0.29) && x < F(0.41)) return x == 0 ? x : log_sum<F>(0, x, F(0));
  return log_of(x > 1 ? sum_of(x, F(1)) : sum_of(F(1), x));
}

/// top + main, where top is 0 for k = 0, else the larger one.
template <typename F>
inline __attribute__((always_inline)) Parts<F> sum_for(int k, F top, F main) {
  return k == 0 ? Parts<F>{main, 0} : sum_of(top, main);
}
#if ORCH_VECTORS
inline Parts<Lanes> sum_for(Lanes, Lanes top, Lanes main) {
  return sum_of(top, main);
}
#endif

/// Logarithm of 2^k * (1 + f) to another base: per_ln is 1 / log(base) and log2
/// the logarithm of 2, each in two parts.
template <typename F, typename I, typename V>
inline __attribute__((always_inline)) V log_to_base(I k, V f,
                                                    const Parts<F>& per_ln,
                                                    const Parts<F>& log2) {
  const V half = f * F(0.5) * f;
  const V high = upper_half(f - half);
  const V low = ((f - high) - half) + log_kernel<F>(f, half);
  const V whole = number_of<F>(k);
  const V top = whole * log2.high;
  const V main = high * per_ln.high;
  const Parts<V> sum = sum_for(k, top, main);
  return sum.high + (sum.low + ((low + high) * per_ln.low + low * per_ln.high +
                                whole * log2.low));
}
template <typename F>
F log_of(F x, Parts<F> per_ln, Parts<F> log2) {
  F f;
  if (!has_log(x, f)) return f;
  const int k = split(x, f);
  return log_to_base<F>(k, f, per_ln, log2);
}

template <typename F>
F log2_of(F x) {
  using L = Log<F>;
  return log_of(x, {L::kPerLn2High, L::kPerLn2Low}, {F(1), F(0)});
}

template <typename F>
F log10_of(F x) {
  using L = Log<F>;
  return log_of(x, {L::kPerLn10High, L::kPerLn10Low},
                {L::kLog2High, L::kLog2Low});
}

}  // namespace orch::math
