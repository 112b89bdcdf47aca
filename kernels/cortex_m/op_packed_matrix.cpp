#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "orch/kernel.h"
#include "packed_dsp.h"
#include "packed_limits.h"
#include "packed_loops_dsp.h"
#include "tile_dsp.h"

namespace orch::cortex_m {
namespace {

/// Pairs of the inputs of a pixel, and first the sum of products of neighbours.
/// Inputs beyond the last one have no weights: they may be anything.
ORCH_HOT void widen_pixel(const int8_t* x, int32_t items, int32_t depth,
                          int32_t* to) {
  int32_t sum = 0;
  int32_t* pairs = to + 1;
  for (int32_t* const end = pairs + depth / 2; pairs != end; pairs += 2) {
    uint32_t word = 0;
    if (items >= 4) {
      word = load4(x);
    } else {
      for (int32_t i = items; i > 0;) {
        word = word << 8 | static_cast<uint8_t>(x[--i]);
      }
    }
    x += 4;
    items -= 4;
    const Pair first = even(word);
    const Pair second = odd(word);
    sum = __builtin_arm_smlad(first, second, sum);
    pairs[0] = first;
    pairs[1] = second;
  }
  *to = sum;
}

/// The sum of products of neighbours.
ORCH_HOT int32_t sum_of_products(const int8_t* x, int32_t items) {
  int32_t sum = 0;
  for (const int8_t* const end = x + items; x != end; x += 4) {
    const uint32_t word = load4(x);
    sum = __builtin_arm_smlad(even(word), odd(word), sum);
  }
  return sum;
}

}  // namespace

// What the build makes of cortex_m::quantized_linear.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedMatrix; `scratch` holds the pairs of a pixel. The build
// has checked everything.
void packed_matrix(const PreparedCall& prepared) {
  const PackedCall& packed = static_cast<const PackedCall&>(prepared);
  const PackedMatrix& call = *static_cast<const PackedMatrix*>(packed.header);
  const int8_t* x = static_cast<const int8_t*>(packed.input);
  const uint8_t* tiles = static_cast<const uint8_t*>(packed.weights);
  int32_t* const pairs = static_cast<int32_t*>(packed.scratch);
  int8_t* y = static_cast<int8_t*>(packed.out);
  for (int32_t pixel = 0; pixel < call.pixels; ++pixel) {
    widen_pixel(x, call.items, call.depth, pairs);
    orch_packed_tiles(pairs, tiles, y, &call.tile_bytes);
    x += call.items;
    y += call.out_channels;
  }
}

ORCH_PACKED_FORMS(PackedMatrix, packed_matrix, limited_packed_matrix)

// Prepared: what packed_matrix does, where memory is scarce. Inputs are whole
// words, and whole steps of the loop: nothing lies beyond them.
void packed_matrix_few(const PreparedCall& prepared) {
  const PackedCall& packed = static_cast<const PackedCall&>(prepared);
  const PackedMatrix& call = *static_cast<const PackedMatrix*>(packed.header);
  const int8_t* x = static_cast<const int8_t*>(packed.input);
  const uint8_t* tiles = static_cast<const uint8_t*>(packed.weights);
  int8_t* y = static_cast<int8_t*>(packed.out);
  for (int32_t pixel = 0; pixel < call.pixels; ++pixel) {
    orch_packed_tiles_few(x, tiles, y, &call.tile_bytes,
                          sum_of_products(x, call.items));
    x += call.items;
    y += call.out_channels;
  }
}

ORCH_LIMITED_BAND(PackedMatrix, packed_matrix_few, limited_packed_matrix_few)

}  // namespace orch::cortex_m

#endif
