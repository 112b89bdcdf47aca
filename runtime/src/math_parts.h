// Numbers as the sum of two parts, which together have twice the precision, and
// polynomials; once for float and double.
//
// Source: Dekker, "A floating-point technique for extending the available
// precision", 1971.
#pragma once

#include <stddef.h>

#include "float_format.h"
#include "orch/lanes.h"

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
template <typename V>
Parts<V> sum_of(V a, V b) {
  const V high = a + b;
  return {high, b - (high - a)};
}

/// a + b exactly, where the larger one is not below 0 and not smaller in size.
template <typename F>
Parts<F> any_sum_of(F a, F b) {
  return a > b ? sum_of(a, b) : sum_of(b, a);
}
#if ORCH_VECTORS
inline Parts<Lanes> any_sum_of(Lanes a, Lanes b) {
  return sum_of(if_above(a, b, a, b), if_above(a, b, b, a));
}
#endif

/// `x` without the lower half of its significand: products of such are exact.
template <typename F>
F upper_half(F x) {
  using Bits = typename Format<F>::Bits;
  constexpr Bits kLower =
      (static_cast<Bits>(1) << (Format<F>::kFraction / 2 + 1)) - 1;
  return from_bits<F>(to_bits(x) & ~kLower);
}

#if ORCH_VECTORS
inline Lanes upper_half(Lanes x) {
#if ORCH_VECTORS_FLUSH
  return from_bits(shifted_up<12>(shifted_in_zeros<12>(to_bits(x))));
#else
  return from_bits(IntLanes{to_bits(x).v & 0xFFFFF000U});
#endif
}
#endif

#if defined(__arm__) && defined(__ARM_FEATURE_FMA) && (__ARM_FP & 4) != 0
/// a * b, exactly: the second part is that of the plain form below, which is
/// exact for float, too. Compilers may call libm where they are asked for it.
inline Parts<float> product_of(float a, float b) {
  const float high = a * b;
  float low = -high;
  __asm__("vfma.f32 %0, %1, %2" : "+t"(low) : "t"(a), "t"(b));
  return {high, low};
}
#if ORCH_VECTORS
inline Parts<Lanes> product_of(Lanes a, Lanes b) {
  const Lanes high = a * b;
  Lanes low = -high;
  __asm__("vfma.f32 %q0, %q1, %q2" : "+w"(low.v) : "w"(a.v), "w"(b.v));
  return {high, low};
}
#endif
#endif

#if ORCH_FUSED
/// Floats whose products take the instruction for a * b - c, which not every
/// processor of the build has: `has_fused` knows.
struct FusedLanes : Lanes {
  using Lanes::Lanes;
  FusedLanes() = default;
  FusedLanes(Lanes x) : Lanes(x) {}
};

/// a * b, exactly: the same as the plain form gives, where nothing overflows or
/// comes near to the smallest floats.
inline Parts<FusedLanes> product_of(FusedLanes a, FusedLanes b) {
  const FusedLanes high = a * b;
  FusedLanes low = high;
  __asm__("vfmsub231ps %2, %1, %0" : "+x"(low.v) : "x"(a.v), "x"(b.v));
  return {high, low};
}
#endif

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

/// a / b; the second part is rounded, and has what the first one, by the
/// inverse of b, is off.
template <typename F>
Parts<F> quotient_of(Parts<F> a, Parts<F> b) {
  const F inverse = 1 / b.high;
  const F high = a.high * inverse;
  const Parts<F> back = product_of(high, b.high);
  const F rest = (a.high - back.high) - back.low + a.low - high * b.low;
  return {high, rest * inverse};
}

/// A whole number, or vectors of them, in the format F.
template <typename F>
F number_of(int k) {
  return static_cast<F>(k);
}
#if ORCH_VECTORS
template <typename F>
Lanes number_of(IntLanes k) {
  return number_of(k);
}
template <typename F>
Lanes number_of(Lanes whole) {
  return whole;
}
#endif

/// terms[0] * z^(n - 1) + ... + terms[n - 1].
template <typename F, size_t kTerms, typename V>
V polynomial(const F (&terms)[kTerms], V z) {
  V sum = terms[0];
  for (size_t i = 1; i < kTerms; ++i) sum = sum * z + terms[i];
  return sum;
}

}  // namespace orch::math
