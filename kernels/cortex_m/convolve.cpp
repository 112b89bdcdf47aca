#include "convolve.h"

#include "isa.h"

#if ORCH_ISA != ORCH_ISA_MVE  // which has convolve_mve.cpp

#include "tile.h"
#include "unroll.h"

namespace orch::cortex_m {
namespace {

/// w_offset times the sum of a pixel's inputs.
ORCH_HOT int32_t sum_inputs(const Convolution& conv, const Patch& patch,
                            const int8_t* x) {
  int32_t sum = 0;
  for_each_piece(patch, x, x, [&](const int8_t* from, const int8_t*) {
    ORCH_FEW_ROUNDS
    for (int32_t i = 0; i < patch.items; ++i) {
      add_product(sum, from[i] + conv.x_offset, conv.w_offset);
    }
  });
  return sum;
}

/// All output channels of some pixels.
void compute(const Convolution& conv, Block& block) {
  const int8_t* const x = block.x;
  for (block.first = 0; block.first < conv.out.channels;) {
    block.end = block.first + conv.group_outputs;
    if (conv.w_offset != 0) {
      for (int p = 0; p < block.pixels; ++p) {
        block.extra[p] =
            sum_inputs(conv, block.patch, block.x + p * block.patch.x_step);
      }
    }
    compute(block);
    block.x += conv.group_channels;
    block.first = block.end;
  }
  block.x = x;
}

}  // namespace

void convolve(const Convolution& conv) {
  const int32_t depth = conv.group_channels;
  const int32_t line = conv.in.width * conv.in.channels;
  // Taps side by side are one piece if nothing lies between them.
  const bool joined = conv.columns.dilation == 1 && depth == conv.in.channels;
  Block block = {};
  Patch& patch = block.patch;
  patch.items = depth;
  patch.x_row = wrapping_product(conv.rows.dilation, line);
  patch.x_column = wrapping_product(conv.columns.dilation, conv.in.channels);
  patch.w_row = conv.columns.kernel * depth;
  patch.w_column = depth;
  patch.x_step = wrapping_product(conv.columns.stride, conv.in.channels);
  patch.w_channel = conv.rows.kernel * patch.w_row;
  patch.x_offset = conv.x_offset;
  block.y = conv.y;
  block.y_step = conv.out.channels;
  block.pairs = prefers_pairs(joined ? patch.w_row : depth, conv.group_outputs);
  block.bias = conv.bias;
  block.to = &conv.to;
  const bool may_be_wide = !block.pairs || kHasWidePairs;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t h = 0; h < conv.out.height; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      patch.rows = rows.count;
      for (int32_t v = 0; v < conv.out.width; v += block.pixels) {
        const Taps columns = taps_at(conv.columns, v);
        patch.columns = joined ? 1 : columns.count;
        if (joined) patch.items = columns.count * depth;
        block.x = conv.x + ((n * conv.in.height + rows.in) * line +
                            columns.in * conv.in.channels);
        block.w = conv.w + (rows.first * patch.w_row + columns.first * depth);
        const int32_t last = v + kWidePixels - 1;
        const bool wide =
            may_be_wide && last < conv.out.width && columns.first == 0 &&
            taps_at(conv.columns, last).count == conv.columns.kernel;
        block.pixels = wide ? kWidePixels : 1;
        compute(conv, block);
        block.y += block.pixels * conv.out.channels;
      }
    }
  }
}

void multiply(Convolution& conv, int32_t rows, int32_t depth, int32_t columns) {
  conv.in = {1, 1, rows, depth};
  conv.out = {1, 1, rows, columns};
  conv.rows = {1, 1, 1, 1, 0, 1};
  conv.columns = {rows, rows, 1, 1, 0, 1};
  conv.group_channels = depth;
  conv.group_outputs = columns;
  convolve(conv);
}

}  // namespace orch::cortex_m

#endif
