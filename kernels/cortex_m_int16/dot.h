// Products of a piece of an input with the weights of four output channels.
#pragma once

#include <stdint.h>

#include "cortex_m/isa.h"

namespace orch::cortex_m_int16 {

/// Output channels that are computed together.
inline constexpr int kChannels = 4;

#if ORCH_ISA == ORCH_ISA_MVE
// Adds x * w of `count` items that lie side by side to the sum of each channel;
// w has where the weights of each begin. Eight products at a time.
extern "C" void orch_int16_sums(const int16_t* x, const int8_t* const* w,
                                int32_t count, int32_t* sums);

ORCH_ALWAYS_INLINE void add_products(const int16_t* x, const int8_t* const* w,
                                     int32_t count, int32_t* sums) {
  orch_int16_sums(x, w, count, sums);
}
#else

#if ORCH_ISA == ORCH_ISA_DSP && ORCH_UNALIGNED
// Four items at a time, `fours` times, at least once. r0: `x`; r1: `w`; r2:
// `fours`; r3: `sums`. Leaves sums behind.
extern "C" void orch_int16_products(const int16_t* x, const int8_t* const* w,
                                    int32_t fours, int32_t* sums);
#endif

/// Adds x * w of `count` items that lie side by side to the sum of each
/// channel; w has where the weights of each begin.
ORCH_HOT void add_products(const int16_t* x, const int8_t* const* w,
                           int32_t count, int32_t* sums) {
  int32_t done = 0;
#if ORCH_ISA == ORCH_ISA_DSP && ORCH_UNALIGNED
  if (count >= 4) {
    orch_int16_products(x, w, count / 4, sums);
    done = count & ~3;
    if (done == count) return;
  }
#endif
  int32_t a = sums[0];
  int32_t b = sums[1];
  int32_t c = sums[2];
  int32_t d = sums[3];
  const int8_t* w0 = w[0] + done;
  const int8_t* w1 = w[1] + done;
  const int8_t* w2 = w[2] + done;
  const int8_t* w3 = w[3] + done;
  ORCH_FEW_ROUNDS
  for (const int16_t *from = x + done, *end = x + count; from != end; ++from) {
    const int32_t item = *from;
    a += item * *w0++;
    b += item * *w1++;
    c += item * *w2++;
    d += item * *w3++;
  }
  sums[0] = a;
  sums[1] = b;
  sums[2] = c;
  sums[3] = d;
}
#endif

}  // namespace orch::cortex_m_int16
