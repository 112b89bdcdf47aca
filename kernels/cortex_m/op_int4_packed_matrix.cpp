#include "int4.h"
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include <string.h>

#include "orch/kernel.h"
#include "tile_dsp.h"
#include "unroll.h"

namespace orch::cortex_m {
namespace {

/// Sums of a group of four channels.
struct Sums {
  int32_t of[4];
};

/// Taps of four channels, from `x` on, which are pairs of inputs. A weight of
/// 16 bits has all channels; without the last one it has the others. Sums wrap
/// around, but not their differences.
ORCH_HOT Sums sum_group(const Pair* x, const uint32_t* weights, int32_t taps,
                        int32_t sum_x) {
  int32_t all = 0;
  int32_t three = 0;
  int32_t two = 0;
  int32_t one = 0;
  const Pair* const end = x + taps / 2;
  ORCH_FEW_ROUNDS
  do {
    unrolled<4>([&](auto) {
      const Pair inputs = *x++;
      const uint32_t numbers = *weights++;
      all = __builtin_arm_smlad(inputs, static_cast<Pair>(numbers), all);
      three = __builtin_arm_smlad(
          inputs, static_cast<Pair>(numbers & ~0xF000F000U), three);
      two = __builtin_arm_smlad(inputs,
                                static_cast<Pair>(numbers & 0x00FF00FFU), two);
      one = __builtin_arm_smlad(inputs,
                                static_cast<Pair>(numbers & 0x000F000FU), one);
    });
  } while (x != end);
  const auto less = [](int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) -
                                static_cast<uint32_t>(b));
  };
  sum_x *= 8;
  return {{one - sum_x, (less(two, one) >> 4) - sum_x,
           (less(three, two) >> 8) - sum_x, less(all, three) >> 12}};
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
  for (int32_t pixel = 0; pixel < matrix.pixels; ++pixel) {
    widen(x, matrix.items, matrix.depth, packed.group, pairs);
    const uint32_t* tile =
        reinterpret_cast<const uint32_t*>(&packed) + sizeof packed / 4;
    for (int32_t c = 0; c < matrix.out_channels; c += 4) {
      Sums sums;
      memcpy(sums.of, tile, sizeof sums.of);
      tile += 4;
      const int32_t* from = pairs;
      for (int32_t left = matrix.depth; left > 0; left -= packed.group) {
        const int32_t taps = left < packed.group ? left : packed.group;
        uint32_t steps = *tile++;
        const Sums some = sum_group(from + 1, tile, taps, *from);
        ORCH_FEW_ROUNDS
        for (int i = 0; i < 4; ++i) {
          sums.of[i] += some.of[i] * static_cast<int32_t>(steps & 0xFF);
          steps >>= 8;
        }
        tile += taps / 2;
        from += 1 + taps / 2;
      }
      ORCH_FEW_ROUNDS
      for (int32_t i = 0; i < 4 && c + i < matrix.out_channels; ++i) {
        *y++ = clamp_item(requantize(sums.of[i], matrix.multiplier,
                                     matrix.shift, matrix.offset),
                          true, {INT8_MIN, INT8_MAX});
      }
    }
    x += matrix.items;
  }
}

Error int4_packed_matrix_out(const Args& args) {
  return run_packed(int4_packed_matrix, args);
}

}  // namespace orch::cortex_m

#endif
