// Square root: by integers, once for float and double, or by an instruction.
#pragma once

#include "float_format.h"
#include "orch/math.h"

namespace orch::math {

/// Digit by digit: one more bit than the format holds, then rounded. That last
/// bit decides alone: no root of a representable number lies halfway between
/// two of them.
template <typename F>
F sqrt_of(F x) {
  using Bits = typename Format<F>::Bits;
  constexpr int kFraction = Format<F>::kFraction;
  constexpr Bits kOne = static_cast<Bits>(1) << kFraction;

  Bits bits = to_bits(x);
  if ((bits & ~kSignBit<F>) == 0) return x;
  if (bits >= kInfinityBits<F>) {  // negative, infinite or NaN
    return bits == kInfinityBits<F> ? x : (x - x) / (x - x);
  }
  int exponent = static_cast<int>(bits >> kFraction);
  if (exponent == 0) {
    for (exponent = 1; bits < kOne; --exponent) bits <<= 1;
  } else {
    bits = (bits & (kOne - 1)) | kOne;
  }
  exponent -= Format<F>::kBias;
  if (exponent % 2 != 0) {
    bits <<= 1;
    --exponent;
  }
  Bits root = 0;
  Bits twice = 0;  // twice the root so far, aligned to the remainder
  for (Bits bit = kOne << 1; bit != 0; bit >>= 1) {
    bits <<= 1;
    if (bits >= twice + bit) {
      bits -= twice + bit;
      twice += 2 * bit;
      root += bit;
    }
  }
  root = (root + 1) >> 1;
  // The leading bit of the root adds one to the exponent field.
  return from_bits<F>(
      root +
      (static_cast<Bits>(exponent / 2 + Format<F>::kBias - 1) << kFraction));
}

// Processors round the root correctly as well. (Compilers call libm for
// negative numbers where they are asked for a root.)
#if defined(__arm__) && defined(__ARM_FP)
#if (__ARM_FP & 4) != 0
inline float sqrt_of(float x) {
  __asm__("vsqrt.f32 %0, %0" : "+t"(x));
  return x;
}
#endif
#if (__ARM_FP & 8) != 0
inline double sqrt_of(double x) {
  __asm__("vsqrt.f64 %P0, %P0" : "+w"(x));
  return x;
}
#endif
#elif defined(__SSE2__)
inline float sqrt_of(float x) {
  __asm__("sqrtss %0, %0" : "+x"(x));
  return x;
}
inline double sqrt_of(double x) {
  __asm__("sqrtsd %0, %0" : "+x"(x));
  return x;
}
#elif defined(__aarch64__)
inline float sqrt_of(float x) {
  __asm__("fsqrt %s0, %s0" : "+w"(x));
  return x;
}
inline double sqrt_of(double x) {
  __asm__("fsqrt %d0, %d0" : "+w"(x));
  return x;
}
#endif

}  // namespace orch::math
