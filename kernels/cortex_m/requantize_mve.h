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

}  // namespace orch::cortex_m
