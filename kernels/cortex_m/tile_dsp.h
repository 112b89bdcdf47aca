// Tiles with two products per instruction: SXTAB16, SMLAD.
#pragma once

#include <stdint.h>
#include <string.h>

#include "isa.h"
#include "run.h"
#include "unroll.h"

namespace orch::cortex_m {

inline constexpr int kWidePixels = 2;
inline constexpr int kWideChannels = 2;
inline constexpr int kNarrowChannels = 2;

/// Four items at any address.
ORCH_ALWAYS_INLINE uint32_t load4(const int8_t* from) {
  uint32_t word;
  memcpy(&word, from, sizeof word);
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

/// sums[p][c] += sum over i of (x[p][i] + x_offset) * w[c][i]
template <int kPixels, int kChannels>
ORCH_ALWAYS_INLINE void accumulate(const Run& run,
                                   int32_t (&sums)[kPixels][kChannels]) {
  const int8_t* x = run.x;
  const int8_t* w = run.w;
  const Pair offsets = pair_of(run.x_offset);
  for (const int8_t* const end = w + (run.count & ~3); w != end; w += 4) {
    Pair first[kPixels];
    Pair second[kPixels];
    unrolled<kPixels>([&](auto p) {
      const uint32_t items = load4(x + p * run.x_step);
      first[p] = even(offsets, items);
      second[p] = odd(offsets, items);
    });
    x += 4;
    unrolled<kChannels>([&](auto c) {
      const uint32_t items = load4(w + c * run.w_step);
      const Pair evens = even(items);
      unrolled<kPixels>([&](auto p) {
        sums[p][c] = __builtin_arm_smlad(first[p], evens, sums[p][c]);
      });
      const Pair odds = odd(items);
      unrolled<kPixels>([&](auto p) {
        sums[p][c] = __builtin_arm_smlad(second[p], odds, sums[p][c]);
      });
    });
  }
  for (int32_t left = run.count & 3; left > 0; --left) {
    unrolled<kPixels>([&](auto p) {
      const int32_t input = x[p * run.x_step] + run.x_offset;
      unrolled<kChannels>(
          [&](auto c) { add_product(sums[p][c], input, w[c * run.w_step]); });
    });
    ++x;
    ++w;
  }
}

/// sums[p][c] += sum over taps of (x[p][c] + x_offset) * w[c]; x[p][0] for all
/// channels if they share their input.
template <int kPixels, int kChannels, bool kShared>
ORCH_ALWAYS_INLINE void accumulate_taps(const Grid& grid,
                                        int32_t (&sums)[kPixels][kChannels]) {
  static_assert(kChannels == 4 || kChannels == 1, "a word, or one item");
  const Pair offsets = pair_of(grid.x_offset);
  const int8_t* x_row = grid.x;
  const int8_t* w_row = grid.w;
  for (int32_t i = grid.rows; i > 0; --i) {
    const int8_t* x = x_row;
    const int8_t* w = w_row;
    for (int32_t j = grid.columns; j > 0; --j) {
      if constexpr (kChannels == 1) {
        unrolled<kPixels>([&](auto p) {
          add_product(sums[p][0], x[p * grid.x_step] + grid.x_offset, *w);
        });
      } else {
        const uint32_t weights = load4(w);
        const Pair evens = even(weights);
        const Pair odds = odd(weights);
        unrolled<kPixels>([&](auto p) {
          const int8_t* const from = x + p * grid.x_step;
          int32_t(&sum)[kChannels] = sums[p];
          if constexpr (kShared) {
            const int32_t item = *from + grid.x_offset;
            sum[0] = __builtin_arm_smlabb(evens, item, sum[0]);
            sum[1] = __builtin_arm_smlabb(odds, item, sum[1]);
            sum[2] = __builtin_arm_smlatb(evens, item, sum[2]);
            sum[3] = __builtin_arm_smlatb(odds, item, sum[3]);
          } else {
            const uint32_t items = load4(from);
            const Pair first = even(offsets, items);
            sum[0] = __builtin_arm_smlabb(first, evens, sum[0]);
            sum[2] = __builtin_arm_smlatt(first, evens, sum[2]);
            const Pair second = odd(offsets, items);
            sum[1] = __builtin_arm_smlabb(second, odds, sum[1]);
            sum[3] = __builtin_arm_smlatt(second, odds, sum[3]);
          }
        });
      }
      x += grid.x_column;
      w += grid.w_column;
    }
    x_row += grid.x_row;
    w_row += grid.w_row;
  }
}

}  // namespace orch::cortex_m
