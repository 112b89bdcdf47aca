// Exponentials and quotients of softmax, in whole numbers.
#pragma once

#include <stdint.h>

#include "high_multiply.h"
#include "isa.h"
#include "prepared.h"
#include "requantize.h"

namespace orch::cortex_m {

// Numbers are fixed point: Qm.n has m bits in front of the point, n behind it,
// and a sign.
//
// Source: softmax of gemmlowp's fixedpoint.h and of CMSIS-NN, bit for bit.

/// Bits in front of the point of an exponent.
inline constexpr int kExponentBits = 5;
inline constexpr uint32_t kExponentFraction = 31 - kExponentBits;

/// value * 2^exponent, limited to what fits.
ORCH_ALWAYS_INLINE int32_t multiply_by_power(int32_t value, uint32_t exponent) {
  const int32_t limit = INT32_MAX >> exponent;
  if (value > limit) return INT32_MAX;
  if (value < -limit) return INT32_MIN;
  return static_cast<int32_t>(static_cast<uint32_t>(value) << exponent);
}

inline constexpr int32_t kExpEighth = 1895147668;  // exp(-1/8)
inline constexpr int32_t kThird = 715827883;

/// exp(-1/4), exp(-1/2), exp(-1), ... exp(-16).
inline constexpr int32_t kPowers[] = {
    1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};

/// exp(value) as Q0.31, for a value from -32 to 0 as Q5.26.
ORCH_HOT inline int32_t exponential(int32_t value) {
  constexpr uint32_t kQuarter = 1U << (kExponentFraction - 2);
  if (value == 0) return INT32_MAX;
  // value = rest - steps / 4, where the rest is from -1/4 to 0.
  const uint32_t bits = static_cast<uint32_t>(value);
  const uint32_t rest = (bits & (kQuarter - 1)) - kQuarter;
  const uint32_t steps = (rest - bits) / kQuarter;

  // Four terms of the series around -1/8.
  const int32_t x =
      static_cast<int32_t>((rest << kExponentBits) + (1U << 28));  // Q0.31
  const int32_t x2 = high_multiply_small(x, x);
  const int32_t x3 = high_multiply_small(x2, x);
  const int32_t x4 = high_multiply_small(x2, x2);
  const int32_t higher = divide_by_power(
      high_multiply_small(divide_by_power(x4, 2) + x3, kThird) + x2, 1);
  int32_t result = kExpEighth + high_multiply_small(x + higher, kExpEighth);

  // Of more than 32, the seven lower bits count.
  uint32_t left = steps & 127;
  for (const int32_t* power = kPowers; left != 0; ++power) {
    if ((left & 1U) != 0) result = high_multiply(result, *power);
    left >>= 1;
  }
  return result;
}

/// 1 / (1 + value) for a value from 0 to 1, all of them Q0.31.
inline int32_t reciprocal(int32_t value) {
  constexpr int32_t k48Over17 = 1515870810;  // Q2.29
  constexpr int32_t kMinus32Over17 = -1010580540;
  constexpr int32_t kOne = 1 << 29;
  const int32_t half =
      static_cast<int32_t>((static_cast<uint32_t>(value) + (1U << 31)) >> 1);
  int32_t x = k48Over17 + high_multiply(half, kMinus32Over17);
  for (int step = 0; step < 3; ++step) {  // Newton's
    const int32_t error = kOne - high_multiply(half, x);
    x += multiply_by_power(high_multiply(x, error), 2);
  }
  return multiply_by_power(x, 1);
}

/// exp of an item's distance to the largest one. False: it counts as 0.
inline bool power(const Softmax& softmax, int32_t distance, int32_t& result) {
  if (distance < softmax.diff_min) return false;
  const uint32_t shifted = static_cast<uint32_t>(distance) << softmax.shift;
  result = exponential(
      high_multiply(static_cast<int32_t>(shifted), softmax.multiplier));
  return true;
}

}  // namespace orch::cortex_m
