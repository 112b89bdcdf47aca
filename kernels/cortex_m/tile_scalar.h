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

template <int kPixels, int kChannels>
ORCH_HOT void sum_patch(const Patch& patch, const int8_t* x, const int8_t* w,
                        Sums<kPixels>& sums, int32_t tiles) {
  const int32_t x_step = patch.x_step;
  const int32_t w_last = patch.w_last;  // a tile has two channels at most
  const int32_t x_offset = patch.x_offset;
  const int32_t items = patch.items;
  for (int32_t first = 0; tiles > 0; --tiles) {
    int32_t tile[kPixels][kChannels];
    unrolled<kPixels>([&](auto p) {
      unrolled<kChannels>([&](auto c) { tile[p][c] = sums[p][first + c]; });
    });
    for_each_piece(patch, x, w, [&](const int8_t* from, const int8_t* weights) {
      for (const int8_t* const end = weights + items; weights != end;) {
        int32_t inputs[kPixels];
        unrolled<kPixels>(
            [&](auto p) { inputs[p] = from[p * x_step] + x_offset; });
        unrolled<kChannels>([&](auto c) {
          const int32_t weight = weights[c == 0 ? 0 : w_last];
          unrolled<kPixels>(
              [&](auto p) { add_product(tile[p][c], inputs[p], weight); });
        });
        ++from;
        ++weights;
      }
    });
    unrolled<kPixels>([&](auto p) {
      unrolled<kChannels>([&](auto c) { sums[p][first + c] = tile[p][c]; });
    });
    first += kChannels;
    w += kChannels * patch.w_channel;
  }
}

template <bool kShared>
ORCH_HOT void sum_channels(const TapList& taps, const int8_t* x,
                           const int8_t* w, int32_t* sums, int32_t tiles) {
  const Tap* const end = taps.at + taps.count;
  const int32_t x_offset = taps.x_offset;
  for (; tiles > 0; --tiles) {
    int32_t tile[kDepthChannels];
    unrolled<kDepthChannels>([&](auto c) { tile[c] = sums[c]; });
    for (const Tap* tap = taps.at; tap != end; ++tap) {
      const int8_t* const from = x + tap->x;
      const int8_t* const weights = w + tap->w;
      unrolled<kDepthChannels>([&](auto c) {
        add_product(tile[c], from[kShared ? 0 : c] + x_offset, weights[c]);
      });
    }
    unrolled<kDepthChannels>([&](auto c) { sums[c] = tile[c]; });
    sums += kDepthChannels;
    w += kDepthChannels;
    if (!kShared) x += kDepthChannels;
  }
}

}  // namespace orch::cortex_m
