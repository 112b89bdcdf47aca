// Tiles with two products per instruction: SXTAB16, SMLAD.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "isa.h"
#include "run.h"
#include "unroll.h"

namespace orch::cortex_m {

/// Whether assembly may load words of items from there on, and from every step
/// further.
ORCH_ALWAYS_INLINE bool in_words(const int8_t* from, int32_t step) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(from);
  return ORCH_UNALIGNED || ((address | static_cast<uintptr_t>(step)) & 3) == 0;
}

/// Four items at any address.
ORCH_ALWAYS_INLINE uint32_t load4(const int8_t* from) {
  uint32_t word;
  if (!ORCH_UNALIGNED && in_words(from, 0)) {
    memcpy(&word, __builtin_assume_aligned(from, 4), sizeof word);
  } else {
    memcpy(&word, from, sizeof word);  // byte by byte, unless ORCH_UNALIGNED
  }
  return word;
}

/// Two numbers of 16 bits.
using Pair = int32_t;

/// The same number twice.
ORCH_ALWAYS_INLINE Pair pair_of(int32_t number) {
  return static_cast<Pair>((static_cast<uint32_t>(number) & 0xFFFFU) *
                           0x10001U);
}

// The instructions that widen rotate first, if asked to: gcc does not know.

/// Items 0 and 2 of four.
ORCH_ALWAYS_INLINE Pair even(uint32_t items) {
  Pair pair;
  asm("sxtb16 %0, %1" : "=r"(pair) : "r"(items));
  return pair;
}

/// Items 1 and 3.
ORCH_ALWAYS_INLINE Pair odd(uint32_t items) {
  Pair pair;
  asm("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(items));
  return pair;
}

/// Items 0 and 2, each with an offset.
ORCH_ALWAYS_INLINE Pair even(Pair offsets, uint32_t items) {
  Pair pair;
  asm("sxtab16 %0, %1, %2" : "=r"(pair) : "r"(offsets), "r"(items));
  return pair;
}

/// Items 1 and 3, each with an offset.
ORCH_ALWAYS_INLINE Pair odd(Pair offsets, uint32_t items) {
  Pair pair;
  asm("sxtab16 %0, %1, %2, ror #8" : "=r"(pair) : "r"(offsets), "r"(items));
  return pair;
}

/// Items that are widened for several channels at once.
inline constexpr int32_t kMostItems = 64;

/// Items of kPixels pixels as pairs: items 0 and 2 of every pixel, items 1 and
/// 3 of every pixel, items 4 and 6 ...
template <int kPixels>
ORCH_ALWAYS_INLINE void widen(const int8_t* x, int32_t x_step, int32_t items,
                              Pair offsets, Pair* to) {
  for (const int8_t* const end = x + items; x != end; x += 4) {
    unrolled<kPixels>([&](auto p) {
      const uint32_t word = load4(x + p * x_step);
      to[p] = even(offsets, word);
      to[kPixels + p] = odd(offsets, word);
    });
    to += 2 * kPixels;
  }
}

/// Tiles whose words of weights are multiplied. Known to the assembly.
struct PairTiles {
  int32_t bytes;   // of weights of a channel
  int32_t w_step;  // from a channel to the next, and to the last one
  int32_t w_last;
  int32_t w_tile;  // from the end of a tile's first channel to the next tile
  int32_t tiles;
};

// Adds products of pairs to the sums of tiles: one pixel and four channels, two
// pixels and two channels.
using SumPairsFn = void(const Pair* x, const int8_t* w, const PairTiles* tiles,
                        int32_t* sums);
extern "C" SumPairsFn orch_sum_pairs_1;
extern "C" SumPairsFn orch_sum_pairs_2;

/// What words leave: items from `begin` up to `end`.
template <int kPixels, int kChannels>
ORCH_ALWAYS_INLINE void sum_rest(const Patch& patch, const int8_t* from,
                                 const int8_t* row, int32_t begin, int32_t end,
                                 int32_t* sums, int32_t tiles) {
  ORCH_FEW_ROUNDS
  for (; tiles > 0; --tiles) {
    ORCH_FEW_ROUNDS
    for (int32_t i = begin; i < end; ++i) {
      unrolled<kPixels>([&](auto p) {
        const int32_t input = from[p * patch.x_step + i] + patch.x_offset;
        unrolled<kChannels>([&](auto c) {
          const bool is_last = c == kChannels - 1;
          const int32_t at = is_last ? patch.w_last : c * patch.w_step;
          add_product(sums[p * kMostSums / kPixels + c], input, row[at + i]);
        });
      });
    }
    sums += kChannels;
    row += kChannels * patch.w_channel;
  }
}

template <int kPixels, int kChannels>
ORCH_HOT void sum_pairs(const Patch& patch, const int8_t* x, const int8_t* w,
                        int32_t* sums, int32_t tiles) {
  Pair pairs[kMostItems / 2 * kPixels];
  const Pair offsets = pair_of(patch.x_offset);
  const int32_t w_step = patch.w_step;
  const int32_t w_last = patch.w_last;
  const int32_t w_steps = w_step | w_last;
  for_each_piece(
      patch, x, w,
      [&](const int8_t* from,
          const int8_t* weights) __attribute__((always_inline)) {
        for (int32_t left = patch.items; left > 0;) {
          int32_t items = left < kMostItems ? left : kMostItems;
          // Where weights do not lie in words, none is loaded.
          const int32_t words = in_words(weights, w_steps) ? items & ~3 : 0;
          if (words != 0) {
            widen<kPixels>(from, patch.x_step, words, offsets, pairs);
            const PairTiles some = {words, w_step, w_last,
                                    kChannels * patch.w_channel - words, tiles};
            (kPixels == 1 ? orch_sum_pairs_1 : orch_sum_pairs_2)(pairs, weights,
                                                                 &some, sums);
          }
          if (words != items) {
            sum_rest<kPixels, kChannels>(patch, from, weights, words, items,
                                         sums, tiles);
          }
          left -= items;
          from += items;
          weights += items;
        }
      });
}

// Adds products of channels with inputs of their own, four at a time, to their
// sums. There is at least one tap.
extern "C" void orch_sum_taps(const TapList* taps, const int8_t* x,
                              const int8_t* w, int32_t* sums, int32_t tiles);

template <bool kShared>
ORCH_HOT void sum_channels(const TapList& taps, const int8_t* x,
                           const int8_t* w, int32_t* sums, int32_t tiles) {
  const Tap* const end = taps.at + taps.count;
  if (taps.count == 0) return;
  if constexpr (!kShared && ORCH_UNALIGNED) {
    orch_sum_taps(&taps, x, w, sums, tiles);
    return;
  }
  const Pair offsets = pair_of(taps.x_offset);
  ORCH_FEW_ROUNDS
  for (; tiles > 0; --tiles) {
    int32_t tile[kDepthChannels];
    unrolled<kDepthChannels>([&](auto c) { tile[c] = sums[c]; });
    ORCH_FEW_ROUNDS
    for (const Tap* tap = taps.at; tap != end; ++tap) {
      const uint32_t word = load4(w + tap->w);
      const Pair evens = even(word);
      const Pair odds = odd(word);
      if constexpr (kShared) {
        const int32_t item = x[tap->x] + taps.x_offset;
        tile[0] = __builtin_arm_smlabb(evens, item, tile[0]);
        tile[1] = __builtin_arm_smlabb(odds, item, tile[1]);
        tile[2] = __builtin_arm_smlatb(evens, item, tile[2]);
        tile[3] = __builtin_arm_smlatb(odds, item, tile[3]);
      } else {
        const uint32_t items = load4(x + tap->x);
        const Pair even_items = even(offsets, items);
        const Pair odd_items = odd(offsets, items);
        tile[0] = __builtin_arm_smlabb(even_items, evens, tile[0]);
        tile[1] = __builtin_arm_smlabb(odd_items, odds, tile[1]);
        tile[2] = __builtin_arm_smlatt(even_items, evens, tile[2]);
        tile[3] = __builtin_arm_smlatt(odd_items, odds, tile[3]);
      }
    }
    unrolled<kDepthChannels>([&](auto c) { sums[c] = tile[c]; });
    sums += kDepthChannels;
    w += kDepthChannels;
    if constexpr (!kShared) x += kDepthChannels;
  }
}

}  // namespace orch::cortex_m
