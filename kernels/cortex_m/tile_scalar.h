// Tiles in plain C++.
#pragma once

#include <stdint.h>

#include "isa.h"
#include "run.h"
#include "unroll.h"

namespace orch::cortex_m {

inline constexpr int kWidePixels = 2;
inline constexpr int kWideChannels = 2;
inline constexpr int kNarrowChannels = 2;

/// sums[p][c] += sum over i of (x[p][i] + x_offset) * w[c][i]
template <int kPixels, int kChannels>
ORCH_ALWAYS_INLINE void accumulate(const Run& run,
                                   int32_t (&sums)[kPixels][kChannels]) {
  const int8_t* x = run.x;
  const int8_t* w = run.w;
  const int8_t* const end = w + run.count;
  while (w != end) {
    int32_t inputs[kPixels];
    unrolled<kPixels>(
        [&](auto p) { inputs[p] = x[p * run.x_step] + run.x_offset; });
    unrolled<kChannels>([&](auto c) {
      const int32_t weight = w[c * run.w_step];
      unrolled<kPixels>(
          [&](auto p) { add_product(sums[p][c], inputs[p], weight); });
    });
    ++x;
    ++w;
  }
}

/// sums[p][c] += sum over taps of (x[p][c] + x_offset) * w[c]; x[p][0] for all
/// channels if they share their input.
template <int kPixels, int kChannels, bool kShared>
ORCH_ALWAYS_INLINE void accumulate_taps(const Grid& grid,
                                        int32_t (&sums)[kPixels][kChannels]) {
  const int8_t* x_row = grid.x;
  const int8_t* w_row = grid.w;
  for (int32_t i = 0; i < grid.rows; ++i) {
    const int8_t* x = x_row;
    const int8_t* w = w_row;
    for (int32_t j = 0; j < grid.columns; ++j) {
      unrolled<kChannels>([&](auto c) {
        unrolled<kPixels>([&](auto p) {
          const int8_t item = x[p * grid.x_step + (kShared ? 0 : c)];
          add_product(sums[p][c], item + grid.x_offset, w[c]);
        });
      });
      x += grid.x_column;
      w += grid.w_column;
    }
    x_row += grid.x_row;
    w_row += grid.w_row;
  }
}

}  // namespace orch::cortex_m
