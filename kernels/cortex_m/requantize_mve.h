// From four 32-bit sums to int8, as requantize.h has it.
#pragma once

#include <stdint.h>

#include "image.h"
#include "isa.h"
#include "mve.h"

namespace orch::cortex_m {

/// What four sums are scaled by.
struct Scales {
  int32x4_t multipliers;
  int32x4_t shifts;
};

/// Four items from `from` on; the first one four times if they are `same`.
ORCH_ALWAYS_INLINE int32x4_t load4(const int32_t* from, bool same) {
  return same ? vdupq_n_s32(*from) : vldrwq_s32(from);
}

/// Scales of `channel` and the next three; of the first one only if they are
/// `same`.
ORCH_ALWAYS_INLINE Scales scales_at(const Output& to, int32_t channel,
                                    bool same) {
  const int32_t at = channel * to.step;
  same = same || to.step == 0;
  return {load4(to.multipliers + at, same), load4(to.shifts + at, same)};
}

/// Whether a sum is made larger before it is multiplied.
inline bool has_left_shift(const Output& to, int32_t channels) {
  for (int32_t c = 0; c < channels; ++c) {
    if (to.shifts[c * to.step] > 0) return true;
  }
  return false;
}

/// The scaled sums, with offset and limits. `left` says whether a shift may be
/// positive.
ORCH_ALWAYS_INLINE int32x4_t requantize(int32x4_t sums, const Scales& scales,
                                        const Output& to, bool left) {
  int32x4_t shifts = scales.shifts;
  if (left) {
    const int32x4_t zero = vdupq_n_s32(0);
    sums = vshlq_s32(sums, vmaxq_s32(shifts, zero));
    shifts = vminq_s32(shifts, zero);
  }
  sums = vqrdmulhq_s32(sums, scales.multipliers);
  // Ties of negative numbers go down, for which they are made smaller first.
  sums = vaddq_s32(sums, vshrq_n_s32(vandq_s32(sums, shifts), 31));
  sums = vaddq_n_s32(vrshlq_s32(sums, shifts), to.offset);
  sums = vmaxq_s32(sums, vdupq_n_s32(to.range.low));
  return vminq_s32(sums, vdupq_n_s32(to.range.high));
}

}  // namespace orch::cortex_m
