#include "int4.h"
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include <string.h>

#include "orch/kernel.h"
#include "packed_limits.h"
#include "tile_dsp.h"
#include "unroll.h"

namespace orch::cortex_m {
namespace {

/// Adds taps of four channels, up to `end`, to four sums. A weight of 16 bits
/// has all channels; without the last one it has the others. Sums wrap around,
/// but not their differences. Compilers keep masks in registers, and save
/// others.
ORCH_ALWAYS_INLINE void add_taps(const int32_t*& x, const uint32_t*& weights,
                                 const int32_t* end, uint32_t (&sums)[4]) {
  uint32_t x0;
  uint32_t x1;
  uint32_t w0;
  uint32_t w1;
  uint32_t some;
#define ORCH_FOUR_TAPS                   \
  "ldrd %[x0], %[x1], [%[x]], #8\n\t"    \
  "ldrd %[w0], %[w1], [%[w]], #8\n\t"    \
  "smlad %[s3], %[x0], %[w0], %[s3]\n\t" \
  "bic %[t], %[w0], #0xF000F000\n\t"     \
  "smlad %[s2], %[x0], %[t], %[s2]\n\t"  \
  "and %[t], %[w0], #0x00FF00FF\n\t"     \
  "smlad %[s1], %[x0], %[t], %[s1]\n\t"  \
  "and %[t], %[w0], #0x000F000F\n\t"     \
  "smlad %[s0], %[x0], %[t], %[s0]\n\t"  \
  "smlad %[s3], %[x1], %[w1], %[s3]\n\t" \
  "bic %[t], %[w1], #0xF000F000\n\t"     \
  "smlad %[s2], %[x1], %[t], %[s2]\n\t"  \
  "and %[t], %[w1], #0x00FF00FF\n\t"     \
  "smlad %[s1], %[x1], %[t], %[s1]\n\t"  \
  "and %[t], %[w1], #0x000F000F\n\t"     \
  "smlad %[s0], %[x1], %[t], %[s0]\n\t"
  asm("1:\n\t" ORCH_FOUR_TAPS ORCH_FOUR_TAPS
      "cmp %[x], %[end]\n\t"
      "bne 1b"
      : [x] "+r"(x), [w] "+r"(weights), [s0] "+r"(sums[0]), [s1] "+r"(sums[1]),
        [s2] "+r"(sums[2]), [s3] "+r"(sums[3]), [x0] "=&r"(x0), [x1] "=&r"(x1),
        [w0] "=&r"(w0), [w1] "=&r"(w1), [t] "=&r"(some)
      : [end] "r"(end)
      : "cc", "memory");
#undef ORCH_FOUR_TAPS
}

/// Outputs of a pixel, whose inputs are pairs.
ORCH_HOT void compute_pixel(const Int4Matrix& matrix, int32_t group,
                            const int32_t* pairs, const uint32_t* tile,
                            int8_t* y) {
  for (int32_t c = 0; c < matrix.out_channels; c += 4) {
    uint32_t total[4];
    memcpy(total, tile, sizeof total);
    tile += 4;
    const int32_t* x = pairs;
    for (int32_t left = matrix.depth; left > 0; left -= group) {
      const int32_t taps = left < group ? left : group;
      const uint32_t steps = *tile++;
      // Numbers are larger by 8.
      const uint32_t more = static_cast<uint32_t>(*x++) * 8;
      uint32_t sums[4] = {};
      add_taps(x, tile, x + taps / 2, sums);
      const auto nth = [&](int channel, uint32_t less, uint32_t added) {
        // Differences are exact: they have 32 bits, with their factor.
        const int32_t sum = static_cast<int32_t>(sums[channel] - less);
        total[channel] += (static_cast<uint32_t>(sum >> 4 * channel) - added) *
                          (steps >> 8 * channel & 0xFF);
      };
      nth(0, 0, more);
      nth(1, sums[0], more);
      nth(2, sums[1], more);
      nth(3, sums[2], 0);
    }
    const int32_t count = matrix.out_channels - c;
    unrolled<4>([&](auto i) {
      if (i >= count) return;
      int32_t item = multiply_and_divide(
          static_cast<int32_t>(total[i]), matrix.multiplier,
          static_cast<uint32_t>(matrix.right), matrix.offset);
      asm("ssat %0, #8, %0" : "+r"(item));
      y[i] = static_cast<int8_t>(item);
    });
    y += 4;
  }
}

/// Inputs of a pixel as pairs, and before each group their sum. Those beyond
/// the last one are zero.
ORCH_HOT void widen(const int8_t* x, int32_t items, int32_t depth,
                    int32_t group, int32_t* to) {
  const Pair ones = pair_of(1);
  for (int32_t left = depth; left > 0; left -= group) {
    int32_t* const sum_at = to++;
    int32_t sum = 0;
    for (int32_t i = left < group ? left : group; i > 0; i -= 4) {
      uint32_t word = 0;
      if (items >= 4) {
        word = load4(x);
      } else {
        for (int32_t k = items; k > 0;) {
          word = word << 8 | static_cast<uint8_t>(x[--k]);
        }
      }
      x += 4;
      items -= 4;
      to[0] = even(word);
      to[1] = odd(word);
      sum = __builtin_arm_smlad(to[0], ones, sum);
      sum = __builtin_arm_smlad(to[1], ones, sum);
      to += 2;
    }
    *sum_at = sum;
  }
}

}  // namespace

// What the build makes of cortex_m::quantized_linear.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is an Int4Matrix, `weights` an Int4Weights and tiles of four
// channels; `scratch` holds the pairs of a pixel. The build has checked
// everything.
void int4_packed_matrix(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const int8_t* x = static_cast<const int8_t*>(call.input);
  int32_t* const pairs = static_cast<int32_t*>(call.scratch);
  int8_t* y = static_cast<int8_t*>(call.out);
  const Int4Matrix& matrix = *static_cast<const Int4Matrix*>(call.header);
  const Int4Weights& packed = *static_cast<const Int4Weights*>(call.weights);
  const uint32_t* const tiles =
      reinterpret_cast<const uint32_t*>(&packed) + sizeof packed / 4;
  for (int32_t pixel = 0; pixel < matrix.pixels; ++pixel) {
    widen(x, matrix.items, matrix.depth, packed.group, pairs);
    compute_pixel(matrix, packed.group, pairs, tiles, y);
    x += matrix.items;
    y += matrix.out_channels;
  }
}

ORCH_PACKED_FORMS(Int4Matrix, int4_packed_matrix, int4_limited_packed_matrix)

}  // namespace orch::cortex_m

#endif
