// Sums of products of int8 items, 16 products per instruction. In assembly, as
// both compilers take it: a loop of theirs is about twice as long, since what
// it needs is more than fits the registers they would use.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"
#include "mve.h"

namespace orch::cortex_m {

/// Items that lie in several pieces.
struct Runs {
  int32_t items;   // of a run
  int32_t count;   // of runs, at least one
  int32_t x_skip;  // from the last vector of a run of inputs to the next run
  int32_t w_skip;  // the same of weights
};

/// What is passed when a run is read in whole vectors.
inline int32_t passed_items(int32_t items) { return (items + 15) & ~15; }

/// Runs with `x_step` and `w_step` items between their beginnings.
inline Runs runs_of(int32_t items, int32_t count, int32_t x_step,
                    int32_t w_step) {
  if (count == 0) return {0, 1, 0, 0};
  const int32_t passed = passed_items(items);
  return {items, count, x_step - passed, w_step - passed};
}

/// Four output channels of a row of pixels. Known to the assembly below.
struct Line {
  const int8_t* w[4];
  int32_t begin[4];  // what sums begin with
  int32_t count;     // twice the runs; one less if only sums are wanted
  int32_t items;
  int32_t x_skip;
  int32_t w_skip;
  int32_t x_column;  // from the last vector of a pixel to the next pixel
  int32_t y_column;
  const int8_t* y_end;
  int32_t lanes;  // that are stored
  int32_t offset;
  int32_t low;
  int32_t high;
  int32_t sums[4];  // the result if only sums are wanted
  int32_t multipliers[4];
  int32_t shifts[4];  // none is positive
};

static_assert(offsetof(Line, begin) == 16 && offsetof(Line, count) == 32 &&
                  offsetof(Line, items) == 36 && offsetof(Line, x_skip) == 40 &&
                  offsetof(Line, w_skip) == 44 &&
                  offsetof(Line, x_column) == 48 &&
                  offsetof(Line, y_column) == 52 &&
                  offsetof(Line, y_end) == 56 && offsetof(Line, lanes) == 60 &&
                  offsetof(Line, offset) == 64 && offsetof(Line, low) == 68 &&
                  offsetof(Line, high) == 72 && offsetof(Line, sums) == 76 &&
                  offsetof(Line, multipliers) == 92 &&
                  offsetof(Line, shifts) == 108,
              "the assembly knows where things are");

/// Computes a line of at least one pixel.
__attribute__((noinline)) inline void compute_line(Line& line, const int8_t* x,
                                                   int8_t* y) {
  register const int8_t* x_register asm("r1") = x;
  register int8_t* y_register asm("r3") = y;
  asm volatile(
      "ldr lr, [%[line], #60]\n"
      "vctp.32 lr\n"
      "ldr lr, [%[line], #68]\n"
      "vdup.32 q3, lr\n"
      "ldr lr, [%[line], #64]\n"
      "vdup.32 q4, lr\n"
      "ldr lr, [%[line], #72]\n"
      "vdup.32 q5, lr\n"
      "vldrw.32 q6, [%[line], #92]\n"
      "vldrw.32 q7, [%[line], #108]\n"
      "1:\n"  // a pixel
      "ldrd r2, r4, [%[line], #16]\n"
      "ldrd r6, r8, [%[line], #24]\n"
      "ldr r12, [%[line], #32]\n"
      "ldrd r5, r9, [%[line]]\n"
      "ldrd r10, r11, [%[line], #8]\n"
      "2:\n"  // a run
      "ldr lr, [%[line], #36]\n"
      "wlstp.8 lr, lr, 4f\n"
      "3:\n"  // sixteen items
      "vldrb.8 q0, [r1], #16\n"
      "vldrb.8 q1, [r5], #16\n"
      "vmladava.s8 r2, q0, q1\n"
      "vldrb.8 q2, [r9], #16\n"
      "vmladava.s8 r4, q0, q2\n"
      "vldrb.8 q1, [r10], #16\n"
      "vmladava.s8 r6, q0, q1\n"
      "vldrb.8 q2, [r11], #16\n"
      "vmladava.s8 r8, q0, q2\n"
      "letp lr, 3b\n"
      "4:\n"
      "subs r12, r12, #2\n"
      "bgt 5f\n"
      "vmov q0[2], q0[0], r2, r6\n"
      "vmov q0[3], q0[1], r4, r8\n"
      "bmi 6f\n"
      "vqrdmulh.s32 q0, q0, q6\n"
      // Ties of negative numbers go down, for which they are made smaller.
      "vand q1, q0, q7\n"
      "vshr.s32 q1, q1, #31\n"
      "vadd.i32 q0, q0, q1\n"
      "vrshl.s32 q0, q0, q7\n"
      "vadd.i32 q0, q0, q4\n"
      "vmax.s32 q0, q0, q3\n"
      "vmin.s32 q0, q0, q5\n"
      "vpst\n"
      "vstrbt.32 q0, [r3]\n"
      "ldrd r2, r4, [%[line], #48]\n"
      "add r1, r1, r2\n"
      "add r3, r3, r4\n"
      "ldr lr, [%[line], #56]\n"
      "cmp r3, lr\n"
      "bne 1b\n"
      "b 7f\n"
      "5:\n"  // to the next run
      "ldr lr, [%[line], #44]\n"
      "add r5, r5, lr\n"
      "add r9, r9, lr\n"
      "add r10, r10, lr\n"
      "add r11, r11, lr\n"
      "ldr lr, [%[line], #40]\n"
      "add r1, r1, lr\n"
      "b 2b\n"
      "6:\n"
      "vstrw.32 q0, [%[line], #76]\n"
      "7:\n"
      : "+r"(x_register), "+r"(y_register)
      : [line] "r"(&line)
      : "r2", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "q0",
        "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");
}

/// The sum of the items of `count` runs, `skip` from one's last vector to the
/// next.
inline int32_t sum_of_items(const int8_t* from, int32_t items, int32_t count,
                            int32_t skip) {
  int32_t sum = 0;
  for (; count > 0; --count) {
    asm volatile(
        "wlstp.8 lr, %[items], 2f\n"
        "1:\n"
        "vldrb.8 q0, [%[from]], #16\n"
        "vaddva.s8 %[sum], q0\n"
        "letp lr, 1b\n"
        "2:\n"
        : [from] "+r"(from), [sum] "+Te"(sum)
        : [items] "r"(items)
        : "q0", "lr", "cc", "memory");
    from += skip;
  }
  return sum;
}

}  // namespace orch::cortex_m
