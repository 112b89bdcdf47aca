// Fixed-point scaling of 32-bit sums, with CMSIS-NN's two roundings.
#pragma once

#include <stdint.h>

#include "isa.h"

namespace orch::cortex_m {

/// value * multiplier / 2^31, rounded to nearest, ties up.
inline int32_t high_multiply(int32_t value, int32_t multiplier) {
  const int64_t product = int64_t{value} * multiplier + (1 << 30);
  return static_cast<int32_t>(product >> 31);
}

/// value / 2^exponent, rounded to nearest, ties away from zero. `exponent` is
/// 0 to 31.
inline int32_t divide_by_power(int32_t value, uint32_t exponent) {
  exponent &= 31;
  if (exponent == 0) return value;
  const int32_t lower = static_cast<int32_t>(static_cast<uint32_t>(value) -
                                             (value < 0 ? 1U : 0U));
  return (lower >> exponent) + ((lower >> (exponent - 1)) & 1);
}

/// value * multiplier / 2^31, rounded to nearest, ties up; then divided by
/// 2^exponent, rounded to nearest, ties away from zero; plus `offset`. What
/// overflows wraps around. `exponent` is 0 to 31.
ORCH_ALWAYS_INLINE int32_t multiply_and_divide(int32_t value,
                                               int32_t multiplier,
                                               uint32_t exponent,
                                               int32_t offset) {
#if defined(__thumb2__)
  // What a shift drops last is its carry. A negative number is made smaller by
  // one before, so that ties go down; if nothing is dropped, the carry of that
  // is still there and undoes it.
  int32_t low;
  int32_t result;
  asm("smull %[low], %[result], %[value], %[multiplier]\n\t"
      "adds %[low], %[low], #0x40000000\n\t"
      "adc %[result], %[result], #0\n\t"
      "lsls %[low], %[low], #1\n\t"
      "adc %[result], %[result], %[result]\n\t"
      "adds %[result], %[result], %[result], asr #31\n\t"
      "asrs %[result], %[result], %[exponent]\n\t"
      "adc %[result], %[result], %[offset]"
      : [low] "=&r"(low), [result] "=&r"(result)
      : [value] "r"(value), [multiplier] "r"(multiplier),
        [exponent] "r"(exponent), [offset] "r"(offset)
      : "cc");
  return result;
#else
  const uint32_t scaled = static_cast<uint32_t>(
      divide_by_power(high_multiply(value, multiplier), exponent));
  return static_cast<int32_t>(scaled + static_cast<uint32_t>(offset));
#endif
}

/// Whether scales may have this shift: sums have 32 bits. Where memories
/// overlap, what was written may be a shift after this was asked: then five
/// bits count.
inline bool is_shift(int32_t shift) { return shift >= -31 && shift <= 31; }

/// value * 2^shift, for a shift from 0 to 31. Overflow wraps around.
ORCH_ALWAYS_INLINE int32_t shifted_left(int32_t value, int32_t shift) {
  return static_cast<int32_t>(static_cast<uint32_t>(value)
                              << (static_cast<uint32_t>(shift) & 31));
}

/// value * multiplier / 2^31 * 2^shift + offset, for a shift that `is_shift`
/// has.
///
/// Source: arm_nn_requantize of CMSIS-NN, and
/// executorch/backends/cortex_m/passes/passes_utils.py, requantize_cmsis.
ORCH_ALWAYS_INLINE int32_t requantize(int32_t value, int32_t multiplier,
                                      int32_t shift, int32_t offset = 0) {
  if (shift > 0) {
    return multiply_and_divide(shifted_left(value, shift), multiplier, 0,
                               offset);
  }
  return multiply_and_divide(value, multiplier,
                             0U - static_cast<uint32_t>(shift), offset);
}

/// Limits of a fused activation, within those of int8.
struct Range {
  int32_t low;
  int32_t high;
};

/// A factor: multiplier / 2^31 * 2^shift.
struct Scale {
  int32_t multiplier;
  int32_t shift;

  int32_t of(int32_t value) const {
    return requantize(value, multiplier, shift);
  }
};

ORCH_ALWAYS_INLINE int32_t clamp(int32_t value, const Range& range) {
  if (value < range.low) return range.low;
  return value > range.high ? range.high : value;
}

/// Whether limits are those of int8, as most are.
inline bool is_full(const Range& range) {
  return range.high - range.low == UINT8_MAX;
}

/// `value` within `range`, of which `full` tells whether it is all of int8.
ORCH_ALWAYS_INLINE int8_t clamp_item(int32_t value, bool full,
                                     const Range& range) {
#if defined(__thumb2__)
  asm("ssat %0, #8, %0" : "+r"(value));
  if (full) return static_cast<int8_t>(value);
  stay_branch();
#else
  (void)full;
#endif
  return static_cast<int8_t>(clamp(value, range));
}

}  // namespace orch::cortex_m
