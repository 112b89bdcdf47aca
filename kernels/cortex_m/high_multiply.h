// Products of numbers that leave a bit free, with the multiply instruction of
// cores with DSP that rounds.
#pragma once

#include <stdint.h>

#include "isa.h"
#include "requantize.h"

namespace orch::cortex_m {

/// high_multiply(value, multiplier) for a value from -2^30 to 2^30 - 1.
ORCH_ALWAYS_INLINE int32_t high_multiply_small(int32_t value,
                                               int32_t multiplier) {
#if ORCH_ISA >= ORCH_ISA_DSP
  int32_t result;
  asm("smmulr %0, %1, %2" : "=r"(result) : "r"(value * 2), "r"(multiplier));
  return result;
#else
  return high_multiply(value, multiplier);
#endif
}

/// divide_by_power(value, exponent) + offset, wrapping around.
ORCH_ALWAYS_INLINE int32_t divide_and_add(int32_t value, uint32_t exponent,
                                          int32_t offset) {
#if ORCH_ISA >= ORCH_ISA_DSP
  // As in multiply_and_divide.
  int32_t result;
  asm("adds %0, %1, %1, asr #31\n\t"
      "asrs %0, %0, %2\n\t"
      "adc %0, %0, %3"
      : "=&r"(result)
      : "r"(value), "r"(exponent), "r"(offset)
      : "cc");
  return result;
#else
  const uint32_t divided =
      static_cast<uint32_t>(divide_by_power(value, exponent));
  return static_cast<int32_t>(divided + static_cast<uint32_t>(offset));
#endif
}

}  // namespace orch::cortex_m
