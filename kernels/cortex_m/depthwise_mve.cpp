// Depthwise convolution with vectors, over strips: the part of the input that
// an output row needs, column by column, so that the taps of a pixel lie in one
// piece. Padding becomes items that add nothing.
#include "convolve.h"
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include <string.h>

#include "requantize_mve.h"
#include "run.h"
#include "strip_mve.h"
#include "tile_mve.h"

namespace orch::cortex_m {
namespace {

/// Bytes that a strip has room for, and what may be read behind it.
constexpr int32_t kStripBytes = 320;
constexpr int32_t kReadBehind = 64;

/// Most taps of a window whose weights are brought together.
constexpr int32_t kMostSharedTaps = 48;

class Strips {
 public:
  explicit Strips(const Convolution& conv)
      : conv_(conv),
        kernel_rows_(conv.rows.kernel),
        taps_(kernel_rows_ * conv.columns.kernel),
        line_(conv.in.width * conv.in.channels),
        row_span_(wrapping_product(conv.rows.kernel - 1, conv.rows.dilation)),
        padding_(static_cast<uint8_t>(-conv.x_offset) * 0x01010101U) {}

  /// Four channels of all pixels; each has its own input.
  void compute_channels(int32_t channel) {
    Quad quad;
    memset(quad.w, 0, sizeof quad.w);
    int32_t sums[4] = {};
    for (int32_t t = 0; t < taps_; ++t) {
      const int8_t* w = weights_of(t) + channel;
      memcpy(quad.w[t], w, 4);
      for (int32_t i = 0; i < 4; ++i) sums[i] += w[i];
    }
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t c = channel + i;
      quad.begin[i] = begin(c, sums[i]);
      quad.multipliers[i] = conv_.to.multipliers[c];
      quad.shifts[i] = conv_.to.shifts[c];
      quad.low[i] = conv_.to.range.low;
      quad.high[i] = conv_.to.range.high;
    }
    const int32_t x_step = conv_.columns.stride * kernel_rows_ * 4;
    for_each_strip<4>(channel, [&](int8_t* y, int32_t count) {
      compute_quad(quad, strip_, x_step, y + channel, conv_.out.channels, count,
                   conv_.to.offset);
    });
  }

  /// Where the weights of taps are, counted as strips have them.
  void set_offsets() {
    for (int32_t t = 0; t < taps_; ++t) {
      offsets_[t] = static_cast<uint16_t>(weights_of(t) - conv_.w);
    }
  }

  /// All channels that share the input channel `channel`, for all pixels.
  void compute_shared(int32_t channel) {
    Line line = {};
    for (int32_t i = 0; i < 4; ++i) line.w[i] = weights_ + i * kMostSharedTaps;
    line.count = 2;
    line.items = taps_;
    line.x_column = conv_.columns.stride * kernel_rows_ - passed_items(taps_);
    line.y_column = conv_.out.channels;
    line.offset = conv_.to.offset;
    line.low = conv_.to.range.low;
    line.high = conv_.to.range.high;
    for_each_strip<1>(channel, [&](int8_t* y, int32_t count) {
      const int32_t first = channel * conv_.multiplier;
      for (int32_t i = 0; i < conv_.multiplier; i += 4) {
        int8_t* const to = y + first + i;
        line.lanes = limit(conv_.multiplier - i, 4);
        line.y_end = to + count * conv_.out.channels;
        compute_line_of(line, first + i, to);
      }
    });
  }

 private:
  /// `value`, at least 0, at most `most`.
  static int32_t limit(int32_t value, int32_t most) {
    if (value < 0) return 0;
    return value < most ? value : most;
  }

  /// Fills the strip with a part of each output row, one after the other, and
  /// calls fn(y, count): the first channel of the part's first pixel, pixels.
  template <int32_t kBytes, typename Fn>
  ORCH_ALWAYS_INLINE void for_each_strip(int32_t channel, const Fn& fn) {
    const int32_t stride = conv_.columns.stride;
    const int32_t kernel = conv_.columns.kernel;
    const int32_t column_bytes = kernel_rows_ * kBytes;
    const int32_t most = (kStripBytes / column_bytes - kernel) / stride + 1;
    for (int32_t v = 0; v < conv_.out.width; v += most) {
      const int32_t count = limit(conv_.out.width - v, most);
      const int32_t columns = (count - 1) * stride + kernel;
      const int32_t first = v * stride - conv_.columns.padding;
      const int32_t before = limit(-first, columns);
      const int32_t inside = limit(conv_.in.width - first, columns) - before;
      const int8_t* x =
          conv_.x + channel + (first + before) * conv_.in.channels;
      int8_t* y = conv_.y + v * conv_.out.channels;
      // What lies beside the image stays.
      pad(columns * column_bytes);
      for (int32_t n = 0; n < conv_.out.batch; ++n) {
        int32_t row = -conv_.rows.padding;
        for (int32_t h = 0; h < conv_.out.height; ++h) {
          if (row < 0 || row + row_span_ >= conv_.in.height) {
            pad(columns * column_bytes);
          }
          fill<kBytes>(x, row, strip_ + before * column_bytes, inside);
          fn(y, count);
          y += conv_.out.width * conv_.out.channels;
          row += conv_.rows.stride;
        }
        x += conv_.in.height * line_;
      }
    }
  }

  /// Rows from `row` on, as far as they are in the image.
  template <int32_t kBytes>
  ORCH_ALWAYS_INLINE void fill(const int8_t* x, int32_t row, int8_t* to,
                               int32_t columns) const {
    if (kBytes == 4 && row_span_ == 2 && kernel_rows_ == 3 && row >= 0 &&
        row + 2 < conv_.in.height) {
      copy_three(x + row * line_, to, columns);
      return;
    }
    for (int32_t i = 0; i < kernel_rows_; ++i) {
      if (row >= 0 && row < conv_.in.height) {
        copy_row<kBytes>(x + row * line_, to + i * kBytes, columns);
      }
      row += conv_.rows.dilation;
    }
  }

  /// Items that add nothing, at least so many.
  void pad(int32_t bytes) {
    int8_t* to = strip_;
    for (; bytes > 0; bytes -= 4) {
      memcpy(to, &padding_, 4);
      to += 4;
    }
  }

  /// One row, column by column.
  template <int32_t kBytes>
  ORCH_HOT void copy_row(const int8_t* x, int8_t* to, int32_t count) const {
    const int32_t step = conv_.in.channels;
    const int32_t to_step = kernel_rows_ * kBytes;
    for (; count > 0; --count) {
      memcpy(to, x, kBytes);
      x += step;
      to += to_step;
    }
  }

  /// Columns of three rows.
  ORCH_HOT void copy_three(const int8_t* x, int8_t* to, int32_t count) const {
    const int32_t line = line_;
    const int32_t step = conv_.in.channels;
    for (; count > 0; --count) {
      uint32_t items[3];
      memcpy(&items[0], x, 4);
      memcpy(&items[1], x + line, 4);
      memcpy(&items[2], x + 2 * line, 4);
      memcpy(to, &items[0], 4);
      memcpy(to + 4, &items[1], 4);
      memcpy(to + 8, &items[2], 4);
      x += step;
      to += 12;
    }
  }

  /// The weights of a tap, counted as strips have them.
  const int8_t* weights_of(int32_t tap) const {
    const int32_t column = tap / kernel_rows_;
    const int32_t row = tap - column * kernel_rows_;
    return conv_.w + (row * conv_.columns.kernel + column) * conv_.out.channels;
  }

  /// What the sum of a channel begins with.
  int32_t begin(int32_t channel, int32_t weights) const {
    int32_t sum = conv_.bias == nullptr ? 0 : conv_.bias[channel];
    add_product(sum, weights, conv_.x_offset);
    return sum;
  }

  /// Channels from `channel` on of a row of pixels, four of them or what is
  /// left.
  void compute_line_of(Line& line, int32_t channel, int8_t* y) {
    const Output& to = conv_.to;
    load_four(to.multipliers + channel, 1, line.lanes, line.multipliers);
    load_four(to.shifts + channel, 1, line.lanes, line.shifts);
    for (int32_t i = 0; i < line.lanes; ++i) {
      int8_t* w = weights_ + i * kMostSharedTaps;
      for (int32_t t = 0; t < taps_; t += 8) {
        const uint16x8_t offsets = vldrhq_u16(offsets_ + t);
        vstrbq_s16(w + t,
                   vldrbq_gather_offset_s16(conv_.w + channel + i, offsets));
      }
      line.begin[i] = begin(channel + i, sum_of_items(w, taps_, 1, 0));
    }
    compute_line(line, strip_, y);
  }

  const Convolution& conv_;
  int32_t kernel_rows_;
  int32_t taps_;
  int32_t line_;
  int32_t row_span_;  // from a window's first row to its last
  uint32_t padding_;
  alignas(4) int8_t strip_[kStripBytes + kReadBehind];
  int8_t weights_[4 * kMostSharedTaps];  // by channel
  uint16_t offsets_[kMostSharedTaps] = {};
};

/// Computes a convolution with few taps, which most are; false if it is none of
/// these.
bool convolve_strips(const Convolution& conv) {
  const bool shared = conv.multiplier > 1;
  const int32_t most_taps = shared ? kMostSharedTaps : kMostStripTaps;
  // Where weights are must fit 16 bits.
  if (shared && most_taps * int64_t{conv.out.channels} > UINT16_MAX) {
    return false;
  }
  const bool fits = conv.rows.kernel <= most_taps &&
                    conv.columns.kernel <= most_taps &&
                    conv.rows.kernel * conv.columns.kernel <= most_taps;
  // -x_offset must be an item, since padding gets it.
  if (!fits || conv.columns.dilation != 1 || conv.x_offset == -128 ||
      (!shared && conv.out.channels < 4) ||
      has_left_shift(conv.to, conv.out.channels)) {
    return false;
  }
  Strips strips(conv);
  if (shared) {
    strips.set_offsets();
    for (int32_t c = 0; c < conv.in.channels; ++c) strips.compute_shared(c);
    return true;
  }
  // The last four may overlap those before.
  for (int32_t c = 0; c < conv.out.channels; c += 4) {
    const bool last = c + 4 > conv.out.channels;
    strips.compute_channels(last ? conv.out.channels - 4 : c);
  }
  return true;
}

/// The taps of an output pixel that lie in the input.
struct Window {
  int32_t rows;
  int32_t columns;
  const int8_t* x;  // of the first channel at the first tap
  const int8_t* w;
};

/// `count` channels of a pixel from `channel` on, four or one.
ORCH_HOT void compute_window(const Convolution& conv, const Window& window,
                             int32_t channel, int32_t count, int8_t* y) {
  const int8_t* x = window.x + channel / conv.multiplier;
  const int8_t* w = window.w + channel;
  const int32_t x_row =
      wrapping_product(conv.rows.dilation, conv.in.width * conv.in.channels);
  const int32_t x_column =
      wrapping_product(conv.columns.dilation, conv.in.channels);
  int32_t sums[4] = {};
  if (conv.bias != nullptr) {
    for (int32_t i = 0; i < count; ++i) sums[i] = conv.bias[channel + i];
  }
  int32x4_t total = vldrwq_s32(sums);
  for (int32_t i = window.rows; i > 0; --i) {
    const int8_t* from = x;
    const int8_t* weights = w;
    for (int32_t j = window.columns; j > 0; --j) {
      if (count == 4) {
        const int32x4_t items = vaddq_n_s32(vldrbq_s32(from), conv.x_offset);
        total = vaddq_s32(total, vmulq_s32(items, vldrbq_s32(weights)));
      } else {
        add_product(sums[0], *from + conv.x_offset, *weights);
      }
      from += x_column;
      weights += conv.out.channels;
    }
    x += x_row;
    w += conv.columns.kernel * conv.out.channels;
  }
  if (count == 4) vstrwq_s32(sums, total);
  finish<1, 4>(conv.to, sums, channel, count, y, 0);
}

/// Any convolution, pixel by pixel.
void convolve_pixels(const Convolution& conv) {
  const int32_t channels = conv.out.channels;
  int8_t* y = conv.y;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t h = 0; h < conv.out.height; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      for (int32_t v = 0; v < conv.out.width; ++v) {
        const Taps columns = taps_at(conv.columns, v);
        const int32_t pixel =
            (n * conv.in.height + rows.in) * conv.in.width + columns.in;
        const int32_t tap = rows.first * conv.columns.kernel + columns.first;
        const Window window = {rows.count, columns.count,
                               conv.x + pixel * conv.in.channels,
                               conv.w + tap * channels};
        for (int32_t c = 0; c < channels;) {
          const bool four = conv.multiplier == 1 && c + 4 <= channels;
          const int32_t count = four ? 4 : 1;
          compute_window(conv, window, c, count, y);
          y += count;
          c += count;
        }
      }
    }
  }
}

}  // namespace

void convolve_depthwise(const Convolution& conv) {
  if (!convolve_strips(conv)) convolve_pixels(conv);
}

}  // namespace orch::cortex_m

#endif
