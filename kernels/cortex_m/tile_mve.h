// Sums of products of int8 runs, 16 products per instruction. In loops of
// assembly, as both compilers take it: gcc would not unite loads and steps.
#pragma once

#include <stdint.h>

#include "isa.h"
#include "mve.h"

namespace orch::cortex_m {

/// Adds the products of one run with each of four.
ORCH_ALWAYS_INLINE void add_products(const int8_t* one, const int8_t* four,
                                     int32_t step, int32_t count,
                                     int32_t (&sums)[4]) {
  const int8_t* b = four + step;
  const int8_t* c = b + step;
  const int8_t* d = c + step;
  asm volatile(
      "wlstp.8 lr, %[count], 2f\n"
      "1:\n"
      "vldrb.8 q0, [%[one]], #16\n"
      "vldrb.8 q1, [%[a]], #16\n"
      "vmladava.s8 %[s0], q0, q1\n"
      "vldrb.8 q2, [%[b]], #16\n"
      "vmladava.s8 %[s1], q0, q2\n"
      "vldrb.8 q1, [%[c]], #16\n"
      "vmladava.s8 %[s2], q0, q1\n"
      "vldrb.8 q2, [%[d]], #16\n"
      "vmladava.s8 %[s3], q0, q2\n"
      "letp lr, 1b\n"
      "2:\n"
      : [one] "+r"(one), [a] "+r"(four), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d),
        [s0] "+Te"(sums[0]), [s1] "+Te"(sums[1]), [s2] "+Te"(sums[2]),
        [s3] "+Te"(sums[3])
      : [count] "r"(count)
      : "q0", "q1", "q2", "lr", "cc", "memory");
}

/// Adds the items of a run.
ORCH_ALWAYS_INLINE void add_items(const int8_t* from, int32_t count,
                                  int32_t& sum) {
  asm volatile(
      "wlstp.8 lr, %[count], 2f\n"
      "1:\n"
      "vldrb.8 q0, [%[from]], #16\n"
      "vaddva.s8 %[sum], q0\n"
      "letp lr, 1b\n"
      "2:\n"
      : [from] "+r"(from), [sum] "+Te"(sum)
      : [count] "r"(count)
      : "q0", "lr", "cc", "memory");
}

/// Four sums as a vector.
ORCH_ALWAYS_INLINE int32x4_t as_vector(const int32_t (&sums)[4]) {
  int32x4_t vector;
  asm("vmov %q0[2], %q0[0], %1, %3\n"
      "vmov %q0[3], %q0[1], %2, %4\n"
      : "=&w"(vector)
      : "r"(sums[0]), "r"(sums[1]), "r"(sums[2]), "r"(sums[3]));
  return vector;
}

}  // namespace orch::cortex_m
