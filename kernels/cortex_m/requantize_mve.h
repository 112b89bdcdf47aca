// From four 32-bit sums to int8, as requantize.h has it.
#pragma once

#include <stdint.h>

#include "image.h"
#include "isa.h"
#include "mve.h"

namespace orch::cortex_m {

/// Whether a sum is made larger before it is multiplied.
inline bool has_left_shift(const Output& to, int32_t channels) {
  for (int32_t c = 0; c < channels * to.step + 1 - to.step; ++c) {
    if (to.shifts[c] > 0) return true;
  }
  return false;
}

/// Parameters of four channels from the first one's on, `step` apart (0 or 1).
/// Where only `count` are left, the last one stands in.
__attribute__((noinline)) inline void load_four(const int32_t* from,
                                                int32_t step, int32_t count,
                                                int32_t* to) {
  if (step == 0) {
    vstrwq_s32(to, vdupq_n_s32(*from));
    return;
  }
  if (count == 4) {
    vstrwq_s32(to, vldrwq_s32(from));
    return;
  }
  for (int32_t i = 0; i < 4; ++i) {
    *to++ = *from;
    if (i + 1 < count) from += step;
  }
}

}  // namespace orch::cortex_m
