// Sums of products for a tile: one or two pixels times two or four output
// channels, so that each item that is loaded serves several products.
//
//   sum_items<P>(patch, x, w, sums, tiles)
//       sums of c of pixel p += sum over the patch of (x of p + x_offset) *
//       w of c, for so many tiles of two channels, one after the other
//   sum_pairs<P, C>(patch, x, w, sums, tiles)
//       the same for C channels with two products per instruction, where the
//       core has that
//   sum_channels<kShared>(taps, x, w, sums, tiles)
//       sums[c] += sum over the taps of (x of c + x_offset) * w of c, for so
//       many tiles of kDepthChannels; channels have inputs of their own, side
//       by side, or share one
#pragma once

#include "image.h"
#include "isa.h"
#include "run.h"
#include "tile_scalar.h"
#include "unroll.h"

#if ORCH_ISA == ORCH_ISA_DSP
#include "tile_dsp.h"
#endif

namespace orch::cortex_m {

/// Pixels of a tile of several.
inline constexpr int kWidePixels = 2;

/// Whether a build may sum up by pairs, and whether it does so for several
/// pixels: one by itself is only a tenth slower, and needs less flash.
inline constexpr bool kHasPairs = ORCH_ISA == ORCH_ISA_DSP;
inline constexpr bool kHasWidePairs = kHasPairs && kFavourSpeed;

/// Whether pairs take fewer instructions, for pieces of so many items and so
/// many output channels. Inputs are widened first, which must serve several
/// channels, and a tile has four of these, except for two pixels: fewer take as
/// long.
inline bool prefers_pairs(int32_t items, int32_t channels) {
  if (!kHasPairs) return false;
  if (items < 8) return items == 4 && channels >= 12;
  if (kFavourSpeed) return channels >= 3;
  if (items < 16) return channels >= 12;
  return channels >= 8 || (items >= 20 && (channels == 3 || channels == 4));
}

/// What `sum_channels` does, for `count` channels whose inputs are `x_step`
/// items apart.
ORCH_HOT inline void sum_one_by_one(const TapList& taps, const int8_t* x,
                                    int32_t x_step, const int8_t* w,
                                    int32_t* sums, int32_t count) {
  const Tap* const end = taps.at + taps.count;
  const int32_t x_offset = taps.x_offset;
  ORCH_FEW_ROUNDS
  for (; count > 0; --count) {
    int32_t sum = *sums;
    ORCH_FEW_ROUNDS
    for (const Tap* tap = taps.at; tap != end; ++tap) {
      add_product(sum, x[tap->x] + x_offset, w[tap->w]);
    }
    *sums++ = sum;
    ++w;
    x += x_step;
  }
}

/// Output channels of one pixel, or of kWidePixels, that see the same taps.
struct Block {
  Patch patch;
  const int8_t* x;  // the first pixel's first tap
  const int8_t* w;  // the same tap of the first of all output channels
  int8_t* y;        // the first of all output channels
  int32_t y_step;   // from a pixel to the next one
  int32_t pixels;
  bool pairs;     // how they are summed up
  int32_t first;  // output channels, up to below `end`
  int32_t end;
  int32_t extra[kWidePixels];  // what all sums of a pixel get
  const int32_t* bias;         // per output channel, or null
  const Output* to;
};

/// The outputs of a block, kPixels pixels and kChannels channels at a time.
template <int kPixels, int kChannels, bool kPairs>
ORCH_HOT void compute_tiles(Block& block) {
  constexpr int32_t kMost = kMostSums / kPixels;
  Patch& patch = block.patch;
  const int8_t* w = block.w + block.first * patch.w_channel;
  for (int32_t first = block.first; first < block.end;) {
    int32_t count = block.end - first;
    if (count > kMost) count = kMost;
    // A last tile that is not full has some channels several times: the first
    // instead of those between it and the last, or the last twice.
    const int32_t tile = count < kChannels ? count : kChannels;
    const int32_t tiles = count < kChannels ? 1 : count / kChannels;
    count = tiles * tile;
    patch.w_step = tile > 2 ? patch.w_channel : 0;
    patch.w_last = (tile - 1) * patch.w_channel;
    int32_t sums[kMostSums];
    ORCH_FEW_ROUNDS
    for (int32_t c = 0; c < count; ++c) {
      const int32_t added = block.bias == nullptr ? 0 : block.bias[first + c];
      unrolled<kPixels>([&](auto p) {
        sums[p * kMost + c] = added;
        add_product(sums[p * kMost + c], block.extra[p], 1);
      });
    }
    if constexpr (kPairs) {
#if ORCH_ISA == ORCH_ISA_DSP
      const bool twice = kChannels > 2 && tile == 2;
      if (twice) sums[kChannels - 1] = sums[1];
      sum_pairs<kPixels, kChannels>(patch, block.x, w, sums, tiles);
      if (twice) sums[1] = sums[kChannels - 1];
#endif
    } else {
      sum_items<kPixels>(patch, block.x, w, sums, tiles);
    }
    finish<kPixels, kMost>(*block.to, sums, first, count, block.y + first,
                           block.y_step);
    w += count * patch.w_channel;
    first += count;
  }
}

/// The outputs of a block.
inline void compute(Block& block) {
  if (kHasPairs && block.pairs) {
    if (kHasWidePairs && block.pixels != 1) {
      compute_tiles<2, 2, kHasPairs>(block);
    } else {
      compute_tiles<1, kHasPairs ? 4 : 2, kHasPairs>(block);
    }
  } else if (block.pixels != 1) {
    compute_tiles<2, 2, false>(block);
  } else {
    compute_tiles<1, 2, false>(block);
  }
}

}  // namespace orch::cortex_m
