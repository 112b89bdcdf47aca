// Numbers as the sum of two parts, which together have twice the precision, and
// polynomials; once for float and double.
//
// Source: Dekker, "A floating-point technique for extending the available
// precision", 1971.
#pragma once

#include <stddef.h>

#include "float_format.h"

namespace orch::math {

template <typename F>
struct Parts {
  F high;
  F low;
};

template <typename F>
Parts<F> operator-(Parts<F> x) {
  return {-x.high, -x.low};
}

/// a + b exactly, for |a| >= |b| or a = 0.
template <typename F>
Parts<F> sum_of(F a, F b) {
  const F high = a + b;
  return {high, b - (high - a)};
}

/// `x` without the lower half of its significand: products of such are exact.
template <typename F>
F upper_half(F x) {
  using Bits = typename Format<F>::Bits;
  constexpr Bits kLower =
      (static_cast<Bits>(1) << (Format<F>::kFraction / 2 + 1)) - 1;
  return from_bits<F>(to_bits(x) & ~kLower);
}

/// a * b, exactly for float.
template <typename F>
Parts<F> product_of(F a, F b) {
  const F a_high = upper_half(a);
  const F a_low = a - a_high;
  const F b_high = upper_half(b);
  const F b_low = b - b_high;
  const F high = a * b;
  const F low = a_low * b_low -
                (((high - a_high * b_high) - a_low * b_high) - a_high * b_low);
  return {high, low};
}

/// a / b; the second part is rounded.
template <typename F>
Parts<F> quotient_of(Parts<F> a, Parts<F> b) {
  const F high = a.high / b.high;
  const Parts<F> back = product_of(high, b.high);
  const F rest = (a.high - back.high) - back.low + a.low - high * b.low;
  return {high, rest / b.high};
}

/// terms[0] * z^(n - 1) + ... + terms[n - 1].
template <typename F, size_t kTerms>
F polynomial(const F (&terms)[kTerms], F z) {
  F sum = terms[0];
  for (size_t i = 1; i < kTerms; ++i) sum = sum * z + terms[i];
  return sum;
}

}  // namespace orch::math
