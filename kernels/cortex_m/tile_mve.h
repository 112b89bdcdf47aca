// Sums of products of int8 items, 16 products per instruction. In assembly, as
// both compilers take it: a loop of theirs is about twice as long.
#pragma once

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

/// Four output channels of a row of pixels. Known to the assembly.
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

// Computes a line of at least one pixel.
extern "C" void orch_compute_line(Line* line, const int8_t* x, int8_t* y);

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
