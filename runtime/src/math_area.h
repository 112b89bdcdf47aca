// asinh, acosh and atanh, once for float and double.
#pragma once

#include "math_log.h"
#include "math_parts.h"
#include "math_sqrt.h"
#include "orch/math.h"

namespace orch::math {

/// Below it two terms of a series are enough.
template <typename F>
inline constexpr F kFewTerms = sizeof(F) == 4 ? F(0x1p-7) : F(0x1p-14);

/// From it on numbers are large: 1 does not matter beside their squares.
template <typename F>
inline constexpr F kLargeArea = static_cast<F>(1U << (Format<F>::kFraction / 2 +
                                                      3));

/// a + sqrt(a * a + one) for a > 0 that are not large, where the root is one of
/// a positive number.
template <typename V>
Parts<V> area_sum(V a, V one) {
  Parts<V> square = product_of(a, a);
  const V below = square.low;
  square = any_sum_of(square.high, one);
  const V root = sqrt(square.high);
  const Parts<V> back = product_of(root, root);
  const V rest = (square.high - back.high) - back.low + (square.low + below);
  Parts<V> sum = any_sum_of(root, a);
  sum.low = sum.low + rest / (2 * root);
  return sum;
}

/// log(a + sqrt(a * a + one)), as area_sum().
template <typename F>
F area(F a, F one) {
  F f;
  if (!(a < kLargeArea<F>)) {
    // log(2a); infinity and NaN stay
    if (!has_log(a, f)) return f;
    const int k = split(a, f);
    return log_sum<F>(k + 1, f, F(0));
  }
  return log_of(area_sum(a, one));
}

template <typename F>
F asinh_of(F x) {
  const typename Format<F>::Bits sign = to_bits(x) & kSignBit<F>;
  const F a = from_bits<F>(to_bits(x) ^ sign);
  const F y = a < kFewTerms<F> ? a - a * (a * a / 6) : area(a, F(1));
  return from_bits<F>(to_bits(y) | sign);
}

template <typename F>
F acosh_of(F x) {
  if (x > 1) return area(x, F(-1));
  return x == 1 ? F(0) : (x - x) / (x - x);
}

template <typename F>
F atanh_of(F x) {
  const typename Format<F>::Bits sign = to_bits(x) & kSignBit<F>;
  const F a = from_bits<F>(to_bits(x) ^ sign);
  F y;
  if (a < kFewTerms<F>) {
    y = a + a * (a * a / 3);
  } else if (a < 1) {
    y = log_of(quotient_of(sum_of(F(1), a), sum_of(F(1), -a))) / 2;
  } else {
    y = (a == 1 ? a : a - a) / F(0);
  }
  return from_bits<F>(to_bits(y) | sign);
}

}  // namespace orch::math
