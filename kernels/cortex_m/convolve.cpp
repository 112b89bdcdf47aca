#include "convolve.h"

#include "isa.h"

#if ORCH_ISA != ORCH_ISA_MVE  // which has convolve_mve.cpp

#include "tile.h"
#include "unroll.h"

namespace orch::cortex_m {
namespace {

/// Pixels of an output row that lie side by side and see the same taps.
struct Block {
  Patch patch;
  const int8_t* x;  // the first pixel's first tap
  const int8_t* w;  // the same tap of the first output channel
  int8_t* y;
};

/// w_offset times the sums of the inputs of kPixels pixels.
template <int kPixels>
ORCH_HOT void sum_inputs(const Convolution& conv, const Patch& patch,
                         const int8_t* x, int32_t* sums) {
  for_each_piece(patch, x, x, [&](const int8_t* from, const int8_t*) {
    for (int p = 0; p < kPixels; ++p) {
      for (int32_t i = 0; i < patch.items; ++i) {
        add_product(sums[p], from[p * patch.x_step + i] + conv.x_offset,
                    conv.w_offset);
      }
    }
  });
}

/// Output channels `first` to below `end` of kPixels pixels; they see the same
/// input channels.
template <int kPixels, int kChannels>
ORCH_ALWAYS_INLINE void compute_group(const Convolution& conv, Block& block,
                                      const int8_t* x, int32_t first,
                                      int32_t end) {
  const int32_t filter_items =
      conv.rows.kernel * conv.columns.kernel * conv.group_channels;
  int32_t extra[kPixels] = {};
  if (conv.w_offset != 0) sum_inputs<kPixels>(conv, block.patch, x, extra);
  const int8_t* w = block.w + first * filter_items;
  while (first < end) {
    const int32_t left = end - first;
    // Of a last tile that is not full every channel is the first one.
    const bool full = left >= kChannels;
    int32_t count = full ? left / kChannels * kChannels : 1;
    if (count > kMostChannels) count = kMostChannels;
    block.patch.w_step = full ? filter_items : 0;
    Sums<kPixels> sums;
    start(conv.bias, first, count, extra, sums);
    sum_patch<kPixels, kChannels>(block.patch, x, w, sums,
                                  full ? count / kChannels : 1);
    finish<kPixels, kMostChannels>(conv.to, &sums[0][0], first, count,
                                   block.y + first, conv.out.channels);
    w += count * filter_items;
    first += count;
  }
}

/// All output channels of kPixels pixels.
template <int kPixels, int kChannels>
ORCH_HOT void compute(const Convolution& conv, Block& block) {
  const int8_t* x = block.x;
  for (int32_t c = 0; c < conv.out.channels; c += conv.group_outputs) {
    compute_group<kPixels, kChannels>(conv, block, x, c,
                                      c + conv.group_outputs);
    x += conv.group_channels;
  }
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
  patch.x_offset = conv.x_offset;
  block.y = conv.y;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t h = 0; h < conv.out.height; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      patch.rows = rows.count;
      for (int32_t v = 0; v < conv.out.width;) {
        const Taps columns = taps_at(conv.columns, v);
        patch.columns = joined ? 1 : columns.count;
        if (joined) patch.items = columns.count * depth;
        block.x = conv.x + ((n * conv.in.height + rows.in) * line +
                            columns.in * conv.in.channels);
        block.w = conv.w + (rows.first * patch.w_row + columns.first * depth);
        const int32_t last = v + kWidePixels - 1;
        const bool wide =
            last < conv.out.width && columns.first == 0 &&
            taps_at(conv.columns, last).count == conv.columns.kernel;
        if (wide) {
          compute<kWidePixels, kWideChannels>(conv, block);
        } else {
          compute<1, kNarrowChannels>(conv, block);
        }
        const int32_t pixels = wide ? kWidePixels : 1;
        v += pixels;
        block.y += pixels * conv.out.channels;
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
