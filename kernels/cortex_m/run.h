// Items that lie one after the other, in inputs and in weights.
#pragma once

#include <stdint.h>

#include "isa.h"

namespace orch::cortex_m {

/// `count` items of pixel p from x + p * x_step and of output channel c from
/// w + c * w_step.
struct Run {
  const int8_t* x;
  const int8_t* w;
  int32_t x_step;
  int32_t w_step;
  int32_t count;
  int32_t x_offset;  // added to every input
};

/// The taps of a depthwise convolution at one pixel. Pixel p has its items from
/// x + p * x_step.
struct Grid {
  const int8_t* x;
  const int8_t* w;
  int32_t rows;
  int32_t columns;
  int32_t x_row;
  int32_t x_column;
  int32_t w_row;
  int32_t w_column;
  int32_t x_step;
  int32_t x_offset;  // added to every input
};

/// Output channels of a depthwise convolution that are computed together.
inline constexpr int kDepthChannels = 4;

/// Adds a product. Sums wrap around: what programs hold is not checked.
ORCH_ALWAYS_INLINE void add_product(int32_t& sum, int32_t x, int32_t w) {
  sum = static_cast<int32_t>(static_cast<uint32_t>(sum) +
                             static_cast<uint32_t>(x * w));
}

}  // namespace orch::cortex_m
