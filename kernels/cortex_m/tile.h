// Sums of products for a tile: several pixels times several output channels, so
// that each item that is loaded serves several products.
//
// Every variant offers the same:
//   kWidePixels, kWideChannels   size of the tile that most of an image is
//   kNarrowChannels              size of the tile of a single pixel
//   sum_patch<P, C>(patch, x, w, sums, tiles)
//       sums[p][c] += sum over the patch of (x of pixel p + x_offset) * w of c,
//       for so many tiles of channels, one after the other
//   sum_channels<C, kShared>(taps, x, w, sums, tiles)
//       sums[c] += sum over the taps of (x of c + x_offset) * w of c; channels
//       have inputs of their own, side by side, or share one
#pragma once

#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP
#include "tile_dsp.h"
#else
#include "tile_scalar.h"
#endif

namespace orch::cortex_m {

/// The sums of `count` channels before anything is added: biases, if there are
/// any, and what a pixel has for all channels.
template <int kPixels>
ORCH_ALWAYS_INLINE void start(const int32_t* bias, int32_t channel,
                              int32_t count, const int32_t* extra,
                              Sums<kPixels>& sums) {
  for (int32_t c = 0; c < count; ++c) {
    const int32_t added = bias == nullptr ? 0 : bias[channel + c];
    unrolled<kPixels>([&](auto p) {
      sums[p][c] = added;
      add_product(sums[p][c], extra[p], 1);
    });
  }
}

}  // namespace orch::cortex_m
