// Depthwise convolution, pixel by pixel.
#include "convolve.h"
#include "isa.h"

#if ORCH_ISA != ORCH_ISA_MVE  // which has depthwise_mve.cpp

#include "tile.h"
#include "unroll.h"

namespace orch::cortex_m {
namespace {

/// The taps of an output pixel that lie in the input, row by row, seen from the
/// first one. Pixels with the same taps have the same list.
class PixelTaps {
 public:
  explicit PixelTaps(const Convolution& conv)
      : line_(wrapping_product(conv.rows.dilation,
                               conv.in.width * conv.in.channels)),
        column_(wrapping_product(conv.columns.dilation, conv.in.channels)),
        w_line_(conv.columns.kernel * conv.out.channels),
        w_column_(conv.out.channels) {
    list_.x_offset = conv.x_offset;
  }

  /// Begins a pixel.
  const TapList& begin(int32_t rows, int32_t columns) {
    if (first_ != 0 || rows != rows_ || columns != columns_) {
      rows_ = rows;
      columns_ = columns;
      fill(0);
    }
    return list_;
  }

  /// Whether there are more than those of the list.
  bool has_more() const { return first_ + list_.count < rows_ * columns_; }

  /// The next ones.
  const TapList& next() {
    fill(first_ + list_.count);
    return list_;
  }

 private:
  __attribute__((noinline)) void fill(int32_t first) {
    first_ = first;
    Tap* tap = list_.at;
    int32_t skipped = 0;
    for (int32_t i = 0; i < rows_; ++i) {
      ORCH_FEW_ROUNDS
      for (int32_t j = 0; j < columns_; ++j) {
        if (skipped++ < first) continue;
        if (tap == list_.at + kMostTaps) break;
        *tap++ = {i * line_ + j * column_, i * w_line_ + j * w_column_};
      }
    }
    list_.count = static_cast<int32_t>(tap - list_.at);
  }

  int32_t line_;
  int32_t column_;
  int32_t w_line_;
  int32_t w_column_;
  int32_t rows_ = 0;
  int32_t columns_ = 0;
  int32_t first_ = 0;
  TapList list_ = {};
};

/// An output pixel.
struct Pixel {
  Taps rows;
  Taps columns;
  const int8_t* x;  // the first tap's first channel
  const int8_t* w;
  int8_t* y;
};

/// Adds the taps of a list to the sums of `count` channels from `c` on.
__attribute__((noinline)) void add_taps(const Convolution& conv,
                                        const TapList& taps, const Pixel& pixel,
                                        int32_t c, int32_t count,
                                        int32_t* sums) {
  const bool shared = conv.multiplier != 1;
  const int8_t* const x = pixel.x + (shared ? c / conv.multiplier : c);
  const int8_t* const w = pixel.w + c;
  if (count % kDepthChannels != 0) {
    sum_one_by_one(taps, x, shared ? 0 : 1, w, sums, count);
  } else if (shared) {
    sum_channels<true>(taps, x, w, sums, count / kDepthChannels);
  } else {
    sum_channels<false>(taps, x, w, sums, count / kDepthChannels);
  }
}

/// All channels of a pixel.
ORCH_HOT void compute(const Convolution& conv, const Pixel& pixel,
                      PixelTaps& taps) {
  const int32_t outputs = conv.out.channels;
  for (int32_t c = 0; c < outputs;) {
    // Channels that share their input, or all of them.
    const int32_t m = conv.multiplier;
    const int32_t end = m == 1 ? outputs : (c / m + 1) * m;
    // The last ones that are no full tile are computed one by one.
    int32_t count = end - c;
    if (count > kDepthChannels) count -= count % kDepthChannels;
    if (count > kMostSums) count = kMostSums;
    int32_t sums[kMostSums];
    ORCH_FEW_ROUNDS
    for (int32_t i = 0; i < count; ++i) {
      sums[i] = conv.bias == nullptr ? 0 : conv.bias[c + i];
    }
    add_taps(conv, taps.begin(pixel.rows.count, pixel.columns.count), pixel, c,
             count, sums);
    while (taps.has_more()) {
      add_taps(conv, taps.next(), pixel, c, count, sums);
    }
    finish<1, kMostSums>(conv.to, sums, c, count, pixel.y + c, outputs);
    c += count;
  }
}

}  // namespace

void convolve_depthwise(const Convolution& conv) {
  const int32_t line = conv.in.width * conv.in.channels;
  PixelTaps taps(conv);
  Pixel pixel;
  pixel.y = conv.y;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t h = 0; h < conv.out.height; ++h) {
      pixel.rows = taps_at(conv.rows, h);
      for (int32_t v = 0; v < conv.out.width; ++v) {
        pixel.columns = taps_at(conv.columns, v);
        pixel.x = conv.x + ((n * conv.in.height + pixel.rows.in) * line +
                            pixel.columns.in * conv.in.channels);
        pixel.w = conv.w + (pixel.rows.first * conv.columns.kernel +
                            pixel.columns.first) *
                               conv.out.channels;
        compute(conv, pixel, taps);
        pixel.y += conv.out.channels;
      }
    }
  }
}

}  // namespace orch::cortex_m

#endif
