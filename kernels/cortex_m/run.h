// What tiles sum up.
#pragma once

#include <stdint.h>

#include "isa.h"
#include "util/check.h"

namespace orch::cortex_m {

/// The taps of a convolution that lie in the input, as pieces of `items` that
/// lie one after the other in inputs as well as in weights. Pixel p is at
/// x + p * x_step, output channel c of a tile at w + c * w_step, its last one
/// at w + w_last.
struct Patch {
  int32_t rows;
  int32_t columns;
  int32_t items;
  int32_t x_row;
  int32_t x_column;
  int32_t w_row;
  int32_t w_column;
  int32_t x_step;
  int32_t w_step;
  int32_t w_last;     // less than the others' steps in a tile that is not full
  int32_t w_channel;  // from one output channel to the next
  int32_t x_offset;   // added to every input
};

/// Calls fn(x, w) for all pieces of a patch.
template <typename Fn>
ORCH_ALWAYS_INLINE void for_each_piece(const Patch& patch, const int8_t* x,
                                       const int8_t* w, const Fn& fn) {
  ORCH_FEW_ROUNDS
  for (int32_t i = patch.rows; i > 0; --i) {
    const int8_t* from = x;
    const int8_t* weights = w;
    ORCH_FEW_ROUNDS
    for (int32_t j = patch.columns; j > 0; --j) {
      fn(from, weights);
      from += patch.x_column;
      weights += patch.w_column;
    }
    x += patch.x_row;
    w += patch.w_row;
  }
}

/// Adds a product. Sums wrap around: what programs hold is not checked.
ORCH_ALWAYS_INLINE void add_product(int32_t& sum, int32_t x, int32_t w) {
  sum = static_cast<int32_t>(static_cast<uint32_t>(sum) +
                             static_cast<uint32_t>(x * w));
}

/// A tap of a depthwise convolution: items from the first channel of a pixel,
/// and from the first weight.
struct Tap {
  int32_t x;
  int32_t w;
};

/// Most taps that are summed up at once.
inline constexpr int kMostTaps = 40;

/// Taps of one pixel.
struct TapList {
  Tap at[kMostTaps];
  int32_t count;
  int32_t x_offset;  // added to every input
};

/// Output channels of a depthwise convolution that are computed together.
inline constexpr int kDepthChannels = 4;

/// Most sums that are kept before they become items. Those of a pixel lie side
/// by side.
inline constexpr int kMostSums = 32;

}  // namespace orch::cortex_m
