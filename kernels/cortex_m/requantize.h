// Fixed-point scaling of 32-bit sums, with CMSIS-NN's two roundings.
#pragma once

#include <stdint.h>

namespace orch::cortex_m {

/// value * multiplier / 2^31, rounded to nearest, ties up.
inline int32_t high_multiply(int32_t value, int32_t multiplier) {
  const int64_t product = int64_t{value} * multiplier + (1 << 30);
  return static_cast<int32_t>(product >> 31);
}

/// value / 2^exponent, rounded to nearest, ties away from zero. `exponent` is
/// 0 to 31.
inline int32_t divide_by_power(int32_t value, uint32_t exponent) {
  if (exponent == 0) return value;
  // Ties of negative numbers go down, for which they are made smaller first.
  const int32_t lower = static_cast<int32_t>(static_cast<uint32_t>(value) -
                                             (value < 0 ? 1U : 0U));
  return (lower >> exponent) + ((lower >> (exponent - 1)) & 1);
}

/// value * multiplier / 2^31 * 2^shift. Only the lower five bits of shifts
/// count: what programs hold is not checked. Sums that overflow wrap around.
///
/// Source: arm_nn_requantize of CMSIS-NN, and
/// executorch/backends/cortex_m/passes/passes_utils.py, requantize_cmsis.
inline int32_t requantize(int32_t value, int32_t multiplier, int32_t shift) {
  const uint32_t left = shift > 0 ? static_cast<uint32_t>(shift) & 31U : 0;
  const uint32_t right =
      shift < 0 ? (0U - static_cast<uint32_t>(shift)) & 31U : 0;
  const uint32_t shifted = static_cast<uint32_t>(value) << left;
  return divide_by_power(
      high_multiply(static_cast<int32_t>(shifted), multiplier), right);
}

/// Limits of a fused activation.
struct Range {
  int32_t low;
  int32_t high;
};

inline int32_t clamp(int32_t value, const Range& range) {
  if (value < range.low) return range.low;
  return value > range.high ? range.high : value;
}

}  // namespace orch::cortex_m
