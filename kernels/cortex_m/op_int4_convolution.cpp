#include "int4.h"
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_SCALAR

#include "orch/kernel.h"
#include "packed_limits.h"

namespace orch::cortex_m {
namespace {

/// Taps that lie side by side, in the image and in a tile of weights.
struct Pieces {
  int32_t count;
  int32_t items;
  int32_t x_step;  // from a piece to the next one
};

/// Sums of two channels, of pieces in one row of the window. A piece of several
/// groups is the only one.
ORCH_HOT void add_row(const Pieces& pieces, const int8_t* x,
                      const int8_t* weights, const uint8_t* steps,
                      int32_t group, int32_t x_offset, int32_t (&sums)[2]) {
  for (int32_t i = 0; i < pieces.count; ++i) {
    const int8_t* from = x;
    const uint8_t* step = steps;
    for (int32_t left = pieces.items; left > 0; left -= group) {
      int32_t first = 0;
      int32_t second = 0;
      const int8_t* const end = from + (left < group ? left : group);
      do {
        const int32_t input = *from++ + x_offset;
        const int32_t two = *weights++;
        first += input * static_cast<int8_t>(two << 4);  // 16 times
        second += input * (two >> 4);
      } while (from != end);
      sums[0] += (first >> 4) * step[0];
      sums[1] += second * step[1];
      step += 2;
    }
    x += pieces.x_step;
  }
}

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedConvolution whose depth is that of the window, `weights`
// an Int4Weights and tiles of two channels. There is no scratch memory. The
// build has checked everything.
void int4_packed_convolution(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const int8_t* image = static_cast<const int8_t*>(call.input);
  int8_t* y = static_cast<int8_t*>(call.out);
  const PackedConvolution& conv =
      *static_cast<const PackedConvolution*>(call.header);
  const Int4Weights& packed = *static_cast<const Int4Weights*>(call.weights);
  const int8_t* const tiles =
      reinterpret_cast<const int8_t*>(&packed) + sizeof packed;
  const int32_t channels = conv.in_channels;
  const int32_t line = conv.columns.in * channels;
  const int32_t width = conv.columns.kernel * channels;
  const int32_t step_bytes =
      conv.depth > packed.group
          ? (conv.depth + packed.group - 1) / packed.group * 2
          : 2;
  const int32_t tile_bytes = (18 + step_bytes + conv.depth + 3) & ~3;
  const bool joined = conv.columns.dilation == 1;
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t h = 0; h < conv.rows.out; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      for (int32_t v = 0; v < conv.columns.out; ++v) {
        const Taps columns = taps_at(conv.columns, v);
        const Pieces pieces = {joined ? 1 : columns.count,
                               joined ? columns.count * channels : channels,
                               conv.columns.dilation * channels};
        const int8_t* tile = tiles;
        for (int32_t c = 0; c < conv.out_channels; c += 2) {
          const int32_t* const words = reinterpret_cast<const int32_t*>(tile);
          const uint8_t* const steps =
              reinterpret_cast<const uint8_t*>(tile + 18);
          const int8_t* weights = tile + 18 + step_bytes + rows.first * width +
                                  columns.first * channels;
          const int8_t* x = image + rows.in * line + columns.in * channels;
          int32_t sums[2] = {words[0], words[1]};
          for (int32_t i = 0; i < rows.count; ++i) {
            add_row(pieces, x, weights, steps, packed.group, -conv.padding,
                    sums);
            x += conv.rows.dilation * line;
            weights += width;
          }
          for (int32_t i = 0; i < 2 && c + i < conv.out_channels; ++i) {
            *y++ = clamp_item(
                requantize(sums[i], words[2 + i], tile[16 + i], conv.offset),
                true, {INT8_MIN, INT8_MAX});
          }
          tile += tile_bytes;
        }
      }
    }
    image += conv.rows.in * line;
  }
}

ORCH_PACKED_FORMS(PackedConvolution, int4_packed_convolution,
                  int4_limited_packed_convolution)

}  // namespace orch::cortex_m

#endif
