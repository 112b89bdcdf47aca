#include "convolve.h"

#include "tile.h"
#include "unroll.h"

namespace orch::cortex_m {
namespace {

/// Pixels of an output row that lie side by side and see the same taps.
struct Block {
  Taps rows;
  Taps columns;
  const int8_t* x;  // the first pixel's first tap
  int8_t* y;
};

class Tiles {
 public:
  explicit Tiles(const Convolution& conv)
      : conv_(conv),
        line_items_(wrapping_product(conv.rows.dilation,
                                     conv.in.width * conv.in.channels)),
        tap_items_(wrapping_product(conv.columns.dilation, conv.in.channels)),
        pixel_step_(wrapping_product(conv.columns.stride, conv.in.channels)),
        filter_items_(conv.rows.kernel * conv.columns.kernel *
                      conv.group_channels),
        joined_(conv.columns.dilation == 1 &&
                conv.group_channels == conv.in.channels) {}

  int32_t pixel_step() const { return pixel_step_; }

  /// All output channels of kPixels pixels.
  template <int kPixels, int kChannels>
  ORCH_ALWAYS_INLINE void compute(const Block& block) const {
    for (int32_t first = 0, group = 0; first < conv_.out.channels;
         first += conv_.group_outputs, ++group) {
      const int8_t* x = block.x + group * conv_.group_channels;
      int32_t extra[kPixels] = {};
      if (conv_.w_offset != 0) sum_inputs<kPixels>(block, x, extra);
      const int32_t end = first + conv_.group_outputs;
      for (int32_t c = first; c < end;) {
        // Of a tile that is not full every channel is the first one.
        const int32_t channels = c + kChannels <= end ? kChannels : 1;
        compute_tile<kPixels, kChannels>(block, x, c, channels, extra);
        c += channels;
      }
    }
  }

 private:
  /// Calls fn(x, index of the weights, items) for what lies in one piece in
  /// inputs as well as in weights.
  template <typename Fn>
  ORCH_ALWAYS_INLINE void for_each_run(const Block& block, const int8_t* x,
                                       Fn&& fn) const {
    const int32_t depth = conv_.group_channels;
    const int32_t taps = joined_ ? 1 : block.columns.count;
    const int32_t items = joined_ ? block.columns.count * depth : depth;
    int32_t w =
        (block.rows.first * conv_.columns.kernel + block.columns.first) * depth;
    for (int32_t i = 0; i < block.rows.count; ++i) {
      for (int32_t j = 0; j < taps; ++j) {
        fn(x + (i * line_items_ + j * tap_items_), w + j * depth, items);
      }
      w += conv_.columns.kernel * depth;
    }
  }

  /// w_offset times the sum of a pixel's inputs.
  template <int kPixels>
  __attribute__((noinline)) void sum_inputs(const Block& block, const int8_t* x,
                                            int32_t* sums) const {
    for_each_run(block, x, [&](const int8_t* from, int32_t, int32_t items) {
      for (int p = 0; p < kPixels; ++p) {
        for (int32_t i = 0; i < items; ++i) {
          add_product(sums[p], from[p * pixel_step_ + i] + conv_.x_offset,
                      conv_.w_offset);
        }
      }
    });
  }

  template <int kPixels, int kChannels>
  ORCH_ALWAYS_INLINE void compute_tile(const Block& block, const int8_t* x,
                                       int32_t c, int32_t channels,
                                       const int32_t* extra) const {
    int32_t sums[kPixels][kChannels];
    unrolled<kChannels>([&](auto i) {
      const bool has_bias = conv_.bias != nullptr && i < channels;
      const int32_t bias = has_bias ? conv_.bias[c + i] : 0;
      unrolled<kPixels>([&](auto p) {
        sums[p][i] = bias;
        add_product(sums[p][i], extra[p], 1);
      });
    });
    const int32_t w_step = channels == kChannels ? filter_items_ : 0;
    const int8_t* w = conv_.w + c * filter_items_;
    for_each_run(block, x, [&](const int8_t* from, int32_t at, int32_t items) {
      accumulate({from, w + at, pixel_step_, w_step, items, conv_.x_offset},
                 sums);
    });
    unrolled<kChannels>([&](auto i) {
      if (i >= channels) return;
      int8_t* y = block.y + c + i;
      unrolled<kPixels>([&](auto p) {
        *y = conv_.to.item(sums[p][i], c + i);
        y += conv_.out.channels;
      });
    });
  }

  const Convolution& conv_;
  int32_t line_items_;
  int32_t tap_items_;
  int32_t pixel_step_;
  int32_t filter_items_;
  bool joined_;
};

}  // namespace

void convolve(const Convolution& conv) {
  const Tiles tiles(conv);
  const int32_t image_items = conv.in.height * conv.in.width * conv.in.channels;
  const int8_t* image = conv.x;
  int8_t* y = conv.y;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t h = 0; h < conv.out.height; ++h) {
      Block block;
      block.rows = taps_at(conv.rows, h);
      const int8_t* row =
          image + block.rows.in * conv.in.width * conv.in.channels;
      for (int32_t v = 0; v < conv.out.width;) {
        block.columns = taps_at(conv.columns, v);
        block.x = row + block.columns.in * conv.in.channels;
        block.y = y;
        const int32_t last = v + kWidePixels - 1;
        const bool wide =
            last < conv.out.width && block.columns.first == 0 &&
            taps_at(conv.columns, last).count == conv.columns.kernel;
        if (wide) {
          tiles.compute<kWidePixels, kWideChannels>(block);
        } else {
          tiles.compute<1, kNarrowChannels>(block);
        }
        const int32_t pixels = wide ? kWidePixels : 1;
        v += pixels;
        y += pixels * conv.out.channels;
      }
    }
    image += image_items;
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
