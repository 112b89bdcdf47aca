// Inner loops of packed convolutions for two pixels, where fewer than three are
// left.
#pragma once

#include <stdint.h>

#include "tile_dsp.h"

namespace orch::cortex_m {

/// Pixels that are computed at once.
inline constexpr int32_t kPixels = 3;

/// What `orch_packed_pixels` takes besides pointers. Known to the assembly.
struct PairLoop {
  int32_t weight_bytes;  // of a pair of channels
  int32_t all_bytes;     // of all pairs
  int32_t ties;          // as in PackedPairs
  int8_t* y[kPixels];
};

// What orch_packed_pixels of packed_three_pixels.h does, for two pixels, which
// take less than three.
extern "C" void orch_packed_two_pixels(const int32_t* x, const uint8_t* w,
                                       const PairLoop* loop);

// Pairs of the inputs of two pixels, for that, up to `end` of the first one:
// whole words that lie side by side.
extern "C" void orch_widen_two_pixels(const int8_t* first, const int8_t* second,
                                      const int8_t* end, Pair* to);

}  // namespace orch::cortex_m
