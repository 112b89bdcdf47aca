// From sums of 64 bits to int16, rounded once.
#pragma once

#include <stdint.h>

#include "cortex_m/requantize.h"

namespace orch::cortex_m_int16 {

using cortex_m::Range;
using cortex_m::Scale;

/// `scaled` for any number and shift.
__attribute__((noinline)) inline int32_t scaled_any(int64_t value, Scale scale,
                                                    const Range& range) {
  const int32_t shift = scale.shift;
  const uint32_t left = shift > 0 ? static_cast<uint32_t>(shift) & 31 : 0;
  const uint32_t right =
      shift < 0 ? (0U - static_cast<uint32_t>(shift)) & 31 : 0;
  const uint64_t bits = static_cast<uint64_t>(value) << left;
  // The product has 96 bits: those of `low` count from bit 0, of `high` from
  // bit 32.
  const int64_t low =
      static_cast<int64_t>(static_cast<uint32_t>(bits)) * scale.multiplier;
  const int64_t high =
      int64_t{static_cast<int32_t>(bits >> 32)} * scale.multiplier;
  const uint64_t upper =
      static_cast<uint64_t>(high) + static_cast<uint64_t>(low >> 32);
  // What is rounded has one bit behind the point.
  int64_t twice;
  if (right == 0) {
    const uint32_t next = static_cast<uint32_t>(low) >> 30;
    twice = static_cast<int64_t>((upper << 2) + next);
  } else {
    const uint64_t two = (upper << 1) + (static_cast<uint32_t>(low) >> 31);
    twice = static_cast<int64_t>(two) >> (right - 1);
  }
  const int64_t rounded = (twice + 1) >> 1;
  if (rounded < range.low) return range.low;
  return rounded > range.high ? range.high : static_cast<int32_t>(rounded);
}

/// value * multiplier / 2^31 * 2^shift, rounded to nearest, ties up, for a
/// shift that `is_fast` has: the lower half of the product does not matter.
ORCH_ALWAYS_INLINE int32_t scaled_fast(int32_t value, const Scale& scale) {
  const int32_t high =
      static_cast<int32_t>((int64_t{value} * scale.multiplier) >> 32);
  return ((high >> (-2 - scale.shift)) + 1) >> 1;
}

/// Whether a shift is -31 to -2, as most are.
ORCH_ALWAYS_INLINE bool is_fast(int32_t shift) {
  return static_cast<uint32_t>(-2) - static_cast<uint32_t>(shift) <= 29;
}

/// value * multiplier / 2^31 * 2^shift, rounded to nearest, ties up, within
/// `range`. `shift` is -31 to 31; others wrap around, as sums do that do not
/// fit 64 bits.
///
/// CMSIS-NN rounds multipliers of such sums to 16 bits, which is up to half a
/// step of the largest items; this does not.
ORCH_ALWAYS_INLINE int32_t scaled(int64_t value, const Scale& scale,
                                  const Range& range) {
  const int32_t small = static_cast<int32_t>(value);
  if (small == value && is_fast(scale.shift)) {
    return cortex_m::clamp(scaled_fast(small, scale), range);
  }
  return scaled_any(value, scale, range);
}

/// The same for 32 bits and without limits: what a shift to the left makes too
/// large wraps around.
ORCH_ALWAYS_INLINE int32_t scaled(int32_t value, const Scale& scale) {
  if (is_fast(scale.shift)) return scaled_fast(value, scale);
  const int32_t shift = scale.shift;
  const uint32_t right =
      shift < 0 ? (0U - static_cast<uint32_t>(shift)) & 31 : 0;
  if (shift > 0) value = cortex_m::shifted_left(value, shift);
  const int64_t product = int64_t{value} * scale.multiplier;
  return static_cast<int32_t>((product + (int64_t{1} << (30 + right))) >>
                              (31 + right));
}

}  // namespace orch::cortex_m_int16
