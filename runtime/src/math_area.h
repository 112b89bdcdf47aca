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

/// log(a + sqrt(a * a + one)) for a > 0, where the root is one of a positive
/// number.
template <typename F>
F area(F a, F one) {
  F f;
  if (!(a < power_of_two<F>(Format<F>::kFraction / 2 + 3))) {
    // log(2a); infinity and NaN stay
    if (!has_log(a, f)) return f;
    const int k = split(a, f);
    return log_sum<F>(k + 1, f, F(0));
  }
  Parts<F> square = product_of(a, a);
  const F below = square.low;
  square =
      square.high > 1 ? sum_of(square.high, one) : sum_of(one, square.high);
  const F root = sqrt(square.high);
  const Parts<F> back = product_of(root, root);
  const F rest = (square.high - back.high) - back.low + (square.low + below);
  Parts<F> sum = root > a ? sum_of(root, a) : sum_of(a, root);
  sum.low += rest / (2 * root);
  return log_of(sum);
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
