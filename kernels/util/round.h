// Rounding to whole numbers, without libm.
#pragma once

namespace orch {

/// `x` rounded to the nearest whole number, ties to even; NaN stays. From 2^23
/// on every float is whole. The sign of zero is not kept.
inline float round_even(float x) {
  // Sums of this size have steps of 1: the addition rounds, as floats are.
  const float whole = x < 0 ? -0x1p23F : 0x1p23F;
  return x > -0x1p23F && x < 0x1p23F ? (x + whole) - whole : x;
}

}  // namespace orch
