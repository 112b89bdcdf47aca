// Products of a piece of an input with the weights of four output channels.
#pragma once

#include <stdint.h>

#include "cortex_m/isa.h"

namespace orch::cortex_m_int16 {

/// Output channels that are computed together.
inline constexpr int kChannels = 4;

#if ORCH_ISA == ORCH_ISA_MVE
/// Adds x * w of `count` items that lie side by side to the sum of each
/// channel; w has where the weights of each begin. Eight products at a time.
ORCH_HOT void add_products(const int16_t* x, const int8_t* const* w,
                           int32_t count, int32_t* sums) {
  // Loads that widen take their address from the lower registers; sums are in
  // those with even numbers.
  register const int16_t* from asm("r12") = x;
  register const int8_t* const* weights asm("r1") = w;
  register int32_t items asm("r5") = count;
  register int32_t* to asm("r9") = sums;
  asm volatile(
      "ldm r9, {r4, r6, r8, r10}\n"
      "ldm r1, {r0, r1, r2, r3}\n"
      "wlstp.16 lr, r5, 2f\n"
      "1:\n"
      "vldrh.u16 q0, [r12], #16\n"
      "vldrb.s16 q1, [r0], #8\n"
      "vmladava.s16 r4, q0, q1\n"
      "vldrb.s16 q2, [r1], #8\n"
      "vmladava.s16 r6, q0, q2\n"
      "vldrb.s16 q3, [r2], #8\n"
      "vmladava.s16 r8, q0, q3\n"
      "vldrb.s16 q1, [r3], #8\n"
      "vmladava.s16 r10, q0, q1\n"
      "letp lr, 1b\n"
      "2:\n"
      "stm r9, {r4, r6, r8, r10}\n"
      : "+r"(from), "+r"(weights), "+r"(items)
      : "r"(to)
      : "r0", "r2", "r3", "r4", "r6", "r8", "r10", "lr", "q0", "q1", "q2", "q3",
        "cc", "memory");
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
