// Tiles in plain C++.
#pragma once

#include <stdint.h>

#include "isa.h"
#include "run.h"
#include "unroll.h"

namespace orch::cortex_m {

/// Products of kPixels pixels and two channels, from w up to `end`.
template <int kPixels>
ORCH_ALWAYS_INLINE void multiply_items(const int8_t* x, int32_t x_step,
                                       const int8_t* w, const int8_t* end,
                                       int32_t w_last, int32_t offset,
                                       int32_t (&sums)[kPixels][2]) {
  do {
    int32_t inputs[kPixels];
    unrolled<kPixels>([&](auto p) { inputs[p] = x[p * x_step] + offset; });
    unrolled<2>([&](auto c) {
      const int32_t weight = w[c * w_last];
      unrolled<kPixels>(
          [&](auto p) { add_product(sums[p][c], inputs[p], weight); });
    });
    ++x;
    ++w;
  } while (w != end);
}

#if defined(__thumb2__)

// Compilers keep more in registers than the loop needs. For two pixels gcc does
// not, where its 12 instructions are these; clang has 20, or 98 for four items.

/// Products of one pixel and two channels.
ORCH_ALWAYS_INLINE void multiply_items(const int8_t* x, int32_t,
                                       const int8_t* w, const int8_t* end,
                                       int32_t w_last, int32_t offset,
                                       int32_t (&sums)[1][2]) {
  int32_t x0;
  int32_t weight;
  asm("1:\n\t"
      "ldrsb %[x0], [%[x]], #1\n\t"
      "ldrsb %[weight], [%[w], %[w_last]]\n\t"
      "add %[x0], %[x0], %[offset]\n\t"
      "mla %[s1], %[x0], %[weight], %[s1]\n\t"
      "ldrsb %[weight], [%[w]], #1\n\t"
      "mla %[s0], %[x0], %[weight], %[s0]\n\t"
      "cmp %[w], %[end]\n\t"
      "bne 1b"
      : [x] "+r"(x), [w] "+r"(w), [s0] "+r"(sums[0][0]), [s1] "+r"(sums[0][1]),
        [x0] "=&r"(x0), [weight] "=&r"(weight)
      : [end] "r"(end), [w_last] "r"(w_last), [offset] "r"(offset)
      : "cc", "memory");
}

#if defined(__clang__)

/// Products of two pixels and two channels, from w up to `end`.
ORCH_ALWAYS_INLINE void multiply_items(const int8_t* x, int32_t x_step,
                                       const int8_t* w, const int8_t* end,
                                       int32_t w_last, int32_t offset,
                                       int32_t (&sums)[2][2]) {
  int32_t x0;
  int32_t x1;
  int32_t weight;
  asm("1:\n\t"
      "ldrsb %[x1], [%[x], %[x_step]]\n\t"
      "ldrsb %[x0], [%[x]], #1\n\t"
      "ldrsb %[weight], [%[w], %[w_last]]\n\t"
      "add %[x1], %[x1], %[offset]\n\t"
      "add %[x0], %[x0], %[offset]\n\t"
      "mla %[s01], %[x0], %[weight], %[s01]\n\t"
      "mla %[s11], %[x1], %[weight], %[s11]\n\t"
      "ldrsb %[weight], [%[w]], #1\n\t"
      "mla %[s00], %[x0], %[weight], %[s00]\n\t"
      "mla %[s10], %[x1], %[weight], %[s10]\n\t"
      "cmp %[w], %[end]\n\t"
      "bne 1b"
      : [x] "+r"(x), [w] "+r"(w), [s00] "+r"(sums[0][0]),
        [s01] "+r"(sums[0][1]), [s10] "+r"(sums[1][0]), [s11] "+r"(sums[1][1]),
        [x0] "=&r"(x0), [x1] "=&r"(x1), [weight] "=&r"(weight)
      : [end] "r"(end), [x_step] "r"(x_step), [w_last] "r"(w_last),
        [offset] "r"(offset)
      : "cc", "memory");
}

#endif
#endif

/// Tiles of kPixels pixels and two channels.
template <int kPixels>
ORCH_HOT void sum_items(const Patch& patch, const int8_t* x, const int8_t* w,
                        int32_t* sums, int32_t tiles) {
  constexpr int32_t kMost = kMostSums / kPixels;
  const int32_t x_step = patch.x_step;
  const int32_t w_last = patch.w_last;
  const int32_t x_offset = patch.x_offset;
  const int32_t items = patch.items;
  if (items == 0) return;
  ORCH_FEW_ROUNDS
  for (; tiles > 0; --tiles) {
    int32_t tile[kPixels][2];
    unrolled<kPixels>([&](auto p) {
      unrolled<2>([&](auto c) { tile[p][c] = sums[p * kMost + c]; });
    });
    for_each_piece(patch, x, w, [&](const int8_t* from, const int8_t* weights) {
      multiply_items(from, x_step, weights, weights + items, w_last, x_offset,
                     tile);
    });
    unrolled<kPixels>([&](auto p) {
      unrolled<2>([&](auto c) { sums[p * kMost + c] = tile[p][c]; });
    });
    sums += 2;
    w += 2 * patch.w_channel;
  }
}

#if ORCH_ISA != ORCH_ISA_DSP  // for which tile_dsp.h has it

template <bool kShared>
ORCH_HOT void sum_channels(const TapList& taps, const int8_t* x,
                           const int8_t* w, int32_t* sums, int32_t tiles) {
  const Tap* const end = taps.at + taps.count;
  const int32_t x_offset = taps.x_offset;
  ORCH_FEW_ROUNDS
  for (; tiles > 0; --tiles) {
    int32_t tile[kDepthChannels];
    unrolled<kDepthChannels>([&](auto c) { tile[c] = sums[c]; });
    ORCH_FEW_ROUNDS
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

#endif

}  // namespace orch::cortex_m
