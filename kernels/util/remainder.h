// Remainders of numbers, without libm.
#pragma once

#include <stdint.h>
#include <string.h>

#include "orch/scalar_type.h"
#include "orch/value.h"
#include "util/types.h"

namespace orch {

/// a - n * b for the whole n nearest to a / b that is not above it in size:
/// exact, with the sign of a. `a` is finite; `b` is neither 0 nor NaN.
///
/// Long division of the significands, bit by bit: at most 276 steps for float,
/// 2098 for double.
template <typename F>
F remainder(F a, F b) {
  using Bits = typename Choose<sizeof(F) == 8, uint64_t, uint32_t>::type;
  constexpr int kFraction = sizeof(F) == 8 ? 52 : 23;
  constexpr Bits kOne = Bits{1} << kFraction;  // the leading bit
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  Bits x;
  Bits y;
  memcpy(&x, &a, sizeof x);
  memcpy(&y, &b, sizeof y);
  const Bits sign = x & kSign;
  x &= ~kSign;
  y &= ~kSign;
  if (x < y) return a;

  // Significand times 2^exponent; subnormals have the exponent of the smallest
  // normal numbers.
  int exponent = static_cast<int>(x >> kFraction);
  int divisor_exponent = static_cast<int>(y >> kFraction);
  x &= kOne - 1;
  y &= kOne - 1;
  if (exponent != 0) {
    x |= kOne;
  } else {
    exponent = 1;
  }
  if (divisor_exponent != 0) {
    y |= kOne;
  } else {
    divisor_exponent = 1;
  }
  x %= y;  // more than once y if that is subnormal
  for (; exponent > divisor_exponent; --exponent) {
    x <<= 1;
    if (x >= y) x -= y;
  }
  // x is below y, in units of the divisor's last place.
  while (x != 0 && x < kOne && exponent > 1) {
    x <<= 1;
    --exponent;
  }
  // The leading bit adds 1 to an exponent that is one less; without it the
  // number is subnormal.
  if (x >= kOne) x += static_cast<Bits>(exponent - 1) << kFraction;
  x |= sign;
  F result;
  memcpy(&result, &x, sizeof result);
  return result;
}

/// C's fmod: NaN where `a` is infinite or `b` is 0, or one is NaN.
template <typename F>
F float_mod(F a, F b) {
  if (!(a - a == 0) || b != b || b == 0) return (a * b) / (a * b);
  return remainder(a, b);
}

/// Remainder of a division of items, which has the sign of `a`; of integers,
/// `b` is not 0.
template <typename T>
T truncated_mod(T a, T b) {
  if constexpr (kIsFloating<T>) {
    return static_cast<T>(float_mod(number_of(a), number_of(b)));
  } else {
    if constexpr (lowest<T>() != T(0)) {
      // Divides everything; but the quotient of the lowest integer overflows.
      if (b == T(-1)) return T(0);
    }
    return static_cast<T>(a % b);
  }
}

/// Remainder of a division rounded towards minus infinity: it has the sign of
/// `b`, which is not 0 for integers.
template <typename T>
T floored_mod(T a, T b) {
  if constexpr (kIsHalf<T>) {
    return static_cast<T>(floored_mod(number_of(a), number_of(b)));
  } else {
    const T rest = truncated_mod(a, b);
    const bool other_sign = is_negative(rest) != is_negative(b);
    return rest != T(0) && other_sign ? static_cast<T>(rest + b) : rest;
  }
}

/// Whether `number` is 0 as an item of `dtype`, and that holds integers.
inline bool is_zero_integer(const Scalar& number, ScalarType dtype) {
  if (kFloating.has(dtype) || kComplex.has(dtype)) return false;
  const int unused = 64 - 8 * static_cast<int>(item_bytes(dtype));
  return static_cast<uint64_t>(number.bits()) << unused == 0;
}

}  // namespace orch
