// Rounding to whole numbers, without libm.
#pragma once

#include <stdint.h>
#include <string.h>

#include "util/types.h"

namespace orch {

/// Where numbers between two whole ones go.
enum class Rounding { Down, Up, ToZero, ToEven };

/// `value` as a whole number; zeros keep the sign of `value`, NaN stays.
///
/// From the bits: exact, and cheap where floats are computed in software.
template <Rounding kTo, typename F>
F whole(F value) {
  using Bits = typename Choose<sizeof(F) == 8, uint64_t, uint32_t>::type;
  constexpr int kFraction = sizeof(F) == 8 ? 52 : 23;
  constexpr int kBias = sizeof(F) == 8 ? 1023 : 127;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  constexpr Bits kOne = Bits{kBias} << kFraction;
  Bits bits;
  memcpy(&bits, &value, sizeof bits);
  const Bits sign = bits & kSign;
  Bits size = bits ^ sign;
  const int exponent = static_cast<int>(size >> kFraction) - kBias;
  if (exponent >= kFraction) return value;
  const bool away = kTo == (sign != 0 ? Rounding::Down : Rounding::Up);
  if (exponent < 0) {
    // Halves lie just below 1: the one tie is with the even 0.
    const bool is_one = kTo == Rounding::ToEven
                            ? size > kOne - (Bits{1} << kFraction)
                            : away && size != 0;
    size = is_one ? kOne : 0;
  } else {
    // What carries into the exponent doubles the number, as it should.
    const Bits unit = Bits{1} << (kFraction - exponent);
    if (kTo == Rounding::ToEven) {
      size += (unit >> 1) - ((size & unit) != 0 ? 0 : 1);
    } else if (away) {
      size += unit - 1;
    }
    size &= ~(unit - 1);
  }
  bits = size | sign;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// `x` rounded to the nearest whole number, ties to even; NaN stays. From 2^23
/// on every float is whole. The sign of zero is not kept.
inline float round_even(float x) {
  // Sums of this size have steps of 1: the addition rounds, as floats are.
  const float whole = x < 0 ? -0x1p23F : 0x1p23F;
  return x > -0x1p23F && x < 0x1p23F ? (x + whole) - whole : x;
}

}  // namespace orch
