// Pixels of four channels that were brought together: one tap of the four after
// the other, so that a load takes them apart by channel.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace orch::cortex_m {

/// Most taps of a window: as many as a vector has items.
inline constexpr int32_t kMostStripTaps = 16;

/// Four channels of a depthwise convolution. Known to the assembly below.
struct Quad {
  int32_t begin[4];  // what sums begin with
  int32_t multipliers[4];
  int32_t shifts[4];  // none is positive
  int32_t low[4];
  int32_t high[4];
  int8_t w[kMostStripTaps][4];  // 0 where there is no tap
};

static_assert(offsetof(Quad, multipliers) == 16 &&
                  offsetof(Quad, shifts) == 32 && offsetof(Quad, low) == 48 &&
                  offsetof(Quad, high) == 64 && offsetof(Quad, w) == 80,
              "the assembly knows where things are");

/// Computes `count` pixels, at least one, `x_step` and `y_step` bytes apart.
/// `x` has 64 bytes for each, at addresses that 4 divides.
__attribute__((noinline)) inline void compute_quad(
    const Quad& quad, const int8_t* x, int32_t x_step, int8_t* y,
    int32_t y_step, int32_t count, int32_t offset) {
  const int8_t* w = quad.w[0];
  int32_t s0;
  int32_t s1;
  int32_t s2;
  int32_t s3;
  asm volatile(
      "vld40.8 {q4, q5, q6, q7}, [%[w]]\n"
      "vld41.8 {q4, q5, q6, q7}, [%[w]]\n"
      "vld42.8 {q4, q5, q6, q7}, [%[w]]\n"
      "vld43.8 {q4, q5, q6, q7}, [%[w]]\n"
      "dls lr, %[count]\n"
      "1:\n"
      "vld40.8 {q0, q1, q2, q3}, [%[x]]\n"
      "vld41.8 {q0, q1, q2, q3}, [%[x]]\n"
      "vld42.8 {q0, q1, q2, q3}, [%[x]]\n"
      "vld43.8 {q0, q1, q2, q3}, [%[x]]\n"
      "ldrd %[s0], %[s1], [%[quad]]\n"
      "ldrd %[s2], %[s3], [%[quad], #8]\n"
      "vmladava.s8 %[s0], q0, q4\n"
      "vmladava.s8 %[s1], q1, q5\n"
      "vmladava.s8 %[s2], q2, q6\n"
      "vmladava.s8 %[s3], q3, q7\n"
      "vldrw.32 q1, [%[quad], #16]\n"
      "vmov q0[2], q0[0], %[s0], %[s2]\n"
      "vmov q0[3], q0[1], %[s1], %[s3]\n"
      "vqrdmulh.s32 q0, q0, q1\n"
      "vldrw.32 q1, [%[quad], #32]\n"
      // Ties of negative numbers go down, for which they are made smaller.
      "vand q2, q0, q1\n"
      "vshr.s32 q2, q2, #31\n"
      "vadd.i32 q0, q0, q2\n"
      "vrshl.s32 q0, q0, q1\n"
      "vldrw.32 q1, [%[quad], #48]\n"
      "vadd.i32 q0, q0, %[offset]\n"
      "vldrw.32 q2, [%[quad], #64]\n"
      "vmax.s32 q0, q0, q1\n"
      "vmin.s32 q0, q0, q2\n"
      "vstrb.32 q0, [%[y]]\n"
      "add %[x], %[x], %[x_step]\n"
      "add %[y], %[y], %[y_step]\n"
      "le lr, 1b\n"
      : [x] "+r"(x), [y] "+l"(y), [s0] "=&Te"(s0), [s1] "=&Te"(s1),
        [s2] "=&Te"(s2), [s3] "=&Te"(s3)
      : [quad] "r"(&quad), [w] "r"(w), [x_step] "r"(x_step),
        [y_step] "r"(y_step), [count] "r"(count), [offset] "r"(offset)
      : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");
}

}  // namespace orch::cortex_m
