// Sums of products for a tile: several pixels times several output channels, so
// that each item that is loaded serves several products.
//
// Every variant offers the same:
//   kWidePixels, kWideChannels   size of the tile that most of an image is
//   kNarrowChannels              size of the tile of a single pixel
//   sum_patch<P, C>(patch, x, w, sums, tiles)
//       sums[p][c] += sum over the patch of (x of pixel p + x_offset) * w of c,
//       for so many tiles of channels, one after the other
//   sum_channels<kShared>(taps, x, w, sums, tiles)
//       sums[c] += sum over the taps of (x of c + x_offset) * w of c, for so
//       many tiles of kDepthChannels; channels have inputs of their own, side
//       by side, or share one
#pragma once

#include "image.h"
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP
#include "tile_dsp.h"
#else
#include "tile_scalar.h"
#endif

namespace orch::cortex_m {

/// What `sum_channels` does, for `count` channels whose inputs are `x_step`
/// items apart.
ORCH_HOT inline void sum_one_by_one(const TapList& taps, const int8_t* x,
                                    int32_t x_step, const int8_t* w,
                                    int32_t* sums, int32_t count) {
  const Tap* const end = taps.at + taps.count;
  for (; count > 0; --count) {
    for (const Tap* tap = taps.at; tap != end; ++tap) {
      add_product(*sums, x[tap->x] + taps.x_offset, w[tap->w]);
    }
    ++sums;
    ++w;
    x += x_step;
  }
}

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

/// Output channels from `first` to below `end`.
struct ChannelRange {
  int32_t first;
  int32_t end;
};

/// Output channels of kPixels pixels that see the same input channels. `w` is
/// of the first one of all; `y` is, too, and pixels are `y_step` items apart.
/// `extra`: what all sums of a pixel get.
template <int kPixels, int kChannels>
ORCH_ALWAYS_INLINE void compute_tiles(Patch& patch, const int8_t* x,
                                      const int8_t* w, const int32_t* bias,
                                      const int32_t* extra, const Output& to,
                                      const ChannelRange& channels, int8_t* y,
                                      int32_t y_step) {
  int32_t first = channels.first;
  w += first * patch.w_channel;
  while (first < channels.end) {
    int32_t count = channels.end - first;
    if (count > kMostChannels) count = kMostChannels;
    // A last tile that is not full has some channels several times: the first
    // instead of those between it and the last, or the last twice.
    const int32_t tile = count < kChannels ? count : kChannels;
    count -= count % tile;
    patch.w_step = tile > 2 ? patch.w_channel : 0;
    patch.w_last = (tile - 1) * patch.w_channel;
    Sums<kPixels> sums;
    start(bias, first, count, extra, sums);
    if (kChannels > 2 && tile == 2) {
      for (int p = 0; p < kPixels; ++p) sums[p][kChannels - 1] = sums[p][1];
    }
    sum_patch<kPixels, kChannels>(patch, x, w, sums, count / tile);
    if (kChannels > 2 && tile == 2) {
      for (int p = 0; p < kPixels; ++p) sums[p][1] = sums[p][kChannels - 1];
    }
    finish<kPixels, kMostChannels>(to, &sums[0][0], first, count, y + first,
                                   y_step);
    w += count * patch.w_channel;
    first += count;
  }
}

}  // namespace orch::cortex_m
