// Tiles with two products per instruction: SXTAB16, SMLAD.
#pragma once

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

/// Products of two pixels and two channels, from w up to `end`. Compilers do
/// not find that the registers just suffice.
ORCH_ALWAYS_INLINE void multiply_pairs(const Pair* x, const int8_t* w,
                                       const int8_t* end, int32_t,
                                       int32_t w_last, int32_t (&sums)[2][2]) {
  Pair x0;
  Pair x1;
  uint32_t weights;
  asm("1:\n\t"
      "ldrd %[x0], %[x1], [%[x]], #8\n\t"
      "ldr %[weights], [%[w]]\n\t"
      "sxtb16 %[weights], %[weights]\n\t"
      "smlad %[s00], %[x0], %[weights], %[s00]\n\t"
      "smlad %[s10], %[x1], %[weights], %[s10]\n\t"
      "ldr %[weights], [%[w], %[w_step]]\n\t"
      "sxtb16 %[weights], %[weights]\n\t"
      "smlad %[s01], %[x0], %[weights], %[s01]\n\t"
      "smlad %[s11], %[x1], %[weights], %[s11]\n\t"
      "ldrd %[x0], %[x1], [%[x]], #8\n\t"
      "ldr %[weights], [%[w], %[w_step]]\n\t"
      "sxtb16 %[weights], %[weights], ror #8\n\t"
      "smlad %[s01], %[x0], %[weights], %[s01]\n\t"
      "smlad %[s11], %[x1], %[weights], %[s11]\n\t"
      "ldr %[weights], [%[w]], #4\n\t"
      "sxtb16 %[weights], %[weights], ror #8\n\t"
      "smlad %[s00], %[x0], %[weights], %[s00]\n\t"
      "smlad %[s10], %[x1], %[weights], %[s10]\n\t"
      "cmp %[w], %[end]\n\t"
      "bne 1b"
      : [x] "+r"(x), [w] "+r"(w), [s00] "+r"(sums[0][0]),
        [s01] "+r"(sums[0][1]), [s10] "+r"(sums[1][0]), [s11] "+r"(sums[1][1]),
        [x0] "=&r"(x0), [x1] "=&r"(x1), [weights] "=&r"(weights)
      : [end] "r"(end), [w_step] "r"(w_last)
      : "cc", "memory");
}

/// Products of one pixel and four channels.
ORCH_ALWAYS_INLINE void multiply_pairs(const Pair* x, const int8_t* w,
                                       const int8_t* end, int32_t w_step,
                                       int32_t w_last, int32_t (&sums)[1][4]) {
  Pair x0;
  Pair x1;
  uint32_t weights;
  uint32_t evens;
  asm("1:\n\t"
      "ldrd %[x0], %[x1], [%[x]], #8\n\t"
      "ldr %[weights], [%[w], %[w_step]]\n\t"
      "sxtb16 %[evens], %[weights]\n\t"
      "smlad %[s1], %[x0], %[evens], %[s1]\n\t"
      "sxtb16 %[weights], %[weights], ror #8\n\t"
      "smlad %[s1], %[x1], %[weights], %[s1]\n\t"
      "ldr %[weights], [%[w], %[w_step], lsl #1]\n\t"
      "sxtb16 %[evens], %[weights]\n\t"
      "smlad %[s2], %[x0], %[evens], %[s2]\n\t"
      "sxtb16 %[weights], %[weights], ror #8\n\t"
      "smlad %[s2], %[x1], %[weights], %[s2]\n\t"
      "ldr %[weights], [%[w], %[w_last]]\n\t"
      "sxtb16 %[evens], %[weights]\n\t"
      "smlad %[s3], %[x0], %[evens], %[s3]\n\t"
      "sxtb16 %[weights], %[weights], ror #8\n\t"
      "smlad %[s3], %[x1], %[weights], %[s3]\n\t"
      "ldr %[weights], [%[w]], #4\n\t"
      "sxtb16 %[evens], %[weights]\n\t"
      "smlad %[s0], %[x0], %[evens], %[s0]\n\t"
      "sxtb16 %[weights], %[weights], ror #8\n\t"
      "smlad %[s0], %[x1], %[weights], %[s0]\n\t"
      "cmp %[w], %[end]\n\t"
      "bne 1b"
      : [x] "+r"(x), [w] "+r"(w), [s0] "+r"(sums[0][0]), [s1] "+r"(sums[0][1]),
        [s2] "+r"(sums[0][2]), [s3] "+r"(sums[0][3]), [x0] "=&r"(x0),
        [x1] "=&r"(x1), [weights] "=&r"(weights), [evens] "=&r"(evens)
      : [end] "r"(end), [w_step] "r"(w_step), [w_last] "r"(w_last)
      : "cc", "memory");
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
      [&](const int8_t* from, const int8_t* weights)
          __attribute__((always_inline)) {
            for (int32_t left = patch.items; left > 0;) {
              int32_t items = left < kMostItems ? left : kMostItems;
              // Where weights do not lie in words, none is loaded.
              const int32_t words = in_words(weights, w_steps) ? items & ~3 : 0;
              widen<kPixels>(from, patch.x_step, words, offsets, pairs);
              const int8_t* row = weights;
              ORCH_FEW_ROUNDS
              for (int32_t first = 0; first < tiles * kChannels;
                   first += kChannels) {
                int32_t tile[kPixels][kChannels];
                unrolled<kPixels>([&](auto p) {
                  unrolled<kChannels>([&](auto c) {
                    tile[p][c] = sums[p * kMostSums / kPixels + first + c];
                  });
                });
                if (words != 0) {
                  multiply_pairs(pairs, row, row + words, w_step, w_last, tile);
                }
                ORCH_FEW_ROUNDS
                for (int32_t i = words; i < items; ++i) {
                  unrolled<kPixels>([&](auto p) {
                    const int32_t input =
                        from[p * patch.x_step + i] + patch.x_offset;
                    unrolled<kChannels>([&](auto c) {
                      const bool is_last = c == kChannels - 1;
                      const int32_t at = is_last ? w_last : c * w_step;
                      add_product(tile[p][c], input, row[at + i]);
                    });
                  });
                }
                unrolled<kPixels>([&](auto p) {
                  unrolled<kChannels>([&](auto c) {
                    sums[p * kMostSums / kPixels + first + c] = tile[p][c];
                  });
                });
                row += kChannels * patch.w_channel;
              }
              left -= items;
              from += items;
              weights += items;
            }
          });
}

/// Products of four channels with inputs of their own, tap by tap up to `end`.
#if ORCH_UNALIGNED
ORCH_ALWAYS_INLINE void multiply_taps(const Tap* tap, const Tap* end,
                                      const int8_t* x, const int8_t* w,
                                      Pair offsets, int32_t (&sums)[4]) {
  uint32_t items;
  uint32_t weights;
  Pair inputs;
  Pair factors;
  asm("1:\n\t"
      "ldrd %[items], %[weights], [%[tap]], #8\n\t"
      "ldr %[items], [%[x], %[items]]\n\t"
      "ldr %[weights], [%[w], %[weights]]\n\t"
      "sxtab16 %[inputs], %[offsets], %[items]\n\t"
      "sxtb16 %[factors], %[weights]\n\t"
      "smlabb %[s0], %[inputs], %[factors], %[s0]\n\t"
      "smlatt %[s2], %[inputs], %[factors], %[s2]\n\t"
      "sxtab16 %[inputs], %[offsets], %[items], ror #8\n\t"
      "sxtb16 %[factors], %[weights], ror #8\n\t"
      "smlabb %[s1], %[inputs], %[factors], %[s1]\n\t"
      "smlatt %[s3], %[inputs], %[factors], %[s3]\n\t"
      "cmp %[tap], %[end]\n\t"
      "bne 1b"
      : [tap] "+r"(tap), [s0] "+r"(sums[0]), [s1] "+r"(sums[1]),
        [s2] "+r"(sums[2]), [s3] "+r"(sums[3]), [items] "=&r"(items),
        [weights] "=&r"(weights), [inputs] "=&r"(inputs),
        [factors] "=&r"(factors)
      : [end] "r"(end), [x] "r"(x), [w] "r"(w), [offsets] "r"(offsets)
      : "cc", "memory");
}
#else
ORCH_ALWAYS_INLINE void multiply_taps(const Tap* tap, const Tap* end,
                                      const int8_t* x, const int8_t* w,
                                      Pair offsets, int32_t (&sums)[4]) {
  for (; tap != end; ++tap) {
    const uint32_t items = load4(x + tap->x);
    const uint32_t weights = load4(w + tap->w);
    const Pair evens = even(offsets, items);
    const Pair even_factors = even(weights);
    sums[0] = __builtin_arm_smlabb(evens, even_factors, sums[0]);
    sums[2] = __builtin_arm_smlatt(evens, even_factors, sums[2]);
    const Pair odds = odd(offsets, items);
    const Pair odd_factors = odd(weights);
    sums[1] = __builtin_arm_smlabb(odds, odd_factors, sums[1]);
    sums[3] = __builtin_arm_smlatt(odds, odd_factors, sums[3]);
  }
}
#endif

template <bool kShared>
ORCH_HOT void sum_channels(const TapList& taps, const int8_t* x,
                           const int8_t* w, int32_t* sums, int32_t tiles) {
  const Tap* const end = taps.at + taps.count;
  if (taps.count == 0) return;
  ORCH_FEW_ROUNDS
  for (; tiles > 0; --tiles) {
    int32_t tile[kDepthChannels];
    unrolled<kDepthChannels>([&](auto c) { tile[c] = sums[c]; });
    if constexpr (kShared) {
      ORCH_FEW_ROUNDS
      for (const Tap* tap = taps.at; tap != end; ++tap) {
        const int32_t item = x[tap->x] + taps.x_offset;
        const uint32_t word = load4(w + tap->w);
        const Pair evens = even(word);
        const Pair odds = odd(word);
        tile[0] = __builtin_arm_smlabb(evens, item, tile[0]);
        tile[1] = __builtin_arm_smlabb(odds, item, tile[1]);
        tile[2] = __builtin_arm_smlatb(evens, item, tile[2]);
        tile[3] = __builtin_arm_smlatb(odds, item, tile[3]);
      }
    } else {
      multiply_taps(taps.at, end, x, w, pair_of(taps.x_offset), tile);
      x += kDepthChannels;
    }
    unrolled<kDepthChannels>([&](auto c) { sums[c] = tile[c]; });
    sums += kDepthChannels;
    w += kDepthChannels;
  }
}

}  // namespace orch::cortex_m
