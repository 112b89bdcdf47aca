// Convolution with vectors. Four output channels at a time go over all pixels
// that see the same taps: what belongs to the channels stays in registers.
#include "convolve.h"
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include "requantize_mve.h"
#include "tile_mve.h"

namespace orch::cortex_m {
namespace {

/// Pixels of the output that see the same taps.
struct Area {
  const int8_t* x;  // the first tap of the first pixel
  int8_t* y;
  int32_t rows;
  int32_t columns;
  int32_t x_row;  // from one pixel to the next
  int32_t x_column;
  int32_t y_row;
  int32_t w;  // the first tap's weight
  int32_t tap_rows;
  int32_t tap_columns;
};

class Areas {
 public:
  explicit Areas(const Convolution& conv)
      : conv_(conv),
        line_(conv.in.width * conv.in.channels),
        tap_row_(wrapping_product(conv.rows.dilation, line_)),
        tap_column_(wrapping_product(conv.columns.dilation, conv.in.channels)),
        filter_items_(conv.rows.kernel * conv.columns.kernel *
                      conv.group_channels),
        joined_(conv.columns.dilation == 1 &&
                conv.group_channels == conv.in.channels),
        left_(has_left_shift(conv.to, conv.out.channels)) {}

  /// One image.
  void compute_image(const int8_t* x, int8_t* y) const {
    Area area = {};
    area.x_row = wrapping_product(conv_.rows.stride, line_);
    area.x_column = wrapping_product(conv_.columns.stride, conv_.in.channels);
    area.y_row = conv_.out.width * conv_.out.channels;
    for (int32_t h = 0; h < conv_.out.height; h += area.rows) {
      Taps rows;
      area.rows = find_same(conv_.rows, h, rows);
      area.tap_rows = rows.count;
      for (int32_t v = 0; v < conv_.out.width; v += area.columns) {
        Taps columns;
        area.columns = find_same(conv_.columns, v, columns);
        area.tap_columns = columns.count;
        area.x = x + (rows.in * line_ + columns.in * conv_.in.channels);
        area.y = y + (h * area.y_row + v * conv_.out.channels);
        area.w = (rows.first * conv_.columns.kernel + columns.first) *
                 conv_.group_channels;
        compute(area);
      }
    }
  }

  /// All channels of an area.
  __attribute__((noinline)) void compute(const Area& area) const {
    const int8_t* x = area.x;
    for (int32_t first = 0; first < conv_.out.channels;
         first += conv_.group_outputs) {
      const int32_t end = first + conv_.group_outputs;
      for (int32_t c = first; c < end;) {
        // Where there are no four channels left, each is taken four times.
        const bool full = c + 4 <= end;
        compute_channels(area, x, c, full);
        c += full ? 4 : 1;
      }
      x += conv_.group_channels;
    }
  }

 private:
  /// Outputs from `o` on with the same taps, at least one; the first one's.
  static int32_t find_same(const Axis& axis, int32_t o, Taps& taps) {
    taps = taps_at(axis, o);
    int32_t count = 1;
    for (; o + count < axis.out; ++count) {
      const Taps next = taps_at(axis, o + count);
      if (next.first != taps.first || next.count != taps.count) break;
    }
    return count;
  }

  /// Calls fn(x, w, items) for what lies in one piece in inputs as well as in
  /// weights.
  template <typename Fn>
  ORCH_ALWAYS_INLINE void for_each_run(const Area& area, const int8_t* x,
                                       const int8_t* w, Fn&& fn) const {
    const int32_t depth = conv_.group_channels;
    if (joined_) {
      const int32_t items = area.tap_columns * depth;
      for (int32_t i = area.tap_rows; i > 0; --i) {
        fn(x, w, items);
        x += tap_row_;
        w += conv_.columns.kernel * depth;
      }
      return;
    }
    for (int32_t i = 0; i < area.tap_rows; ++i) {
      for (int32_t j = 0; j < area.tap_columns; ++j) {
        fn(x + j * tap_column_, w + j * depth, depth);
      }
      x += tap_row_;
      w += conv_.columns.kernel * depth;
    }
  }

  /// What does not depend on the inputs.
  int32x4_t start(const Area& area, const int8_t* w, int32_t w_step, int32_t c,
                  bool full) const {
    int32_t sums[4] = {};
    if (conv_.x_offset != 0) {
      for (int32_t& sum : sums) {
        for_each_run(area, w, w,
                     [&](const int8_t*, const int8_t* from, int32_t items) {
                       add_items(from, items, sum);
                     });
        w += w_step;
      }
    }
    int32x4_t result = vdupq_n_s32(0);
    if (conv_.bias != nullptr) result = load4(conv_.bias + c, !full);
    return vmlaq_n_s32(result, as_vector(sums), conv_.x_offset);
  }

  /// w_offset times the sum of a pixel's inputs.
  __attribute__((noinline)) int32_t sum_inputs(const Area& area,
                                               const int8_t* x) const {
    int32_t sum = 0;
    int32_t count = 0;
    for_each_run(area, x, x,
                 [&](const int8_t* from, const int8_t*, int32_t items) {
                   add_items(from, items, sum);
                   count += items;
                 });
    return wrapping_product(sum + count * conv_.x_offset, conv_.w_offset);
  }

  ORCH_ALWAYS_INLINE void compute_channels(const Area& area, const int8_t* x,
                                           int32_t c, bool full) const {
    const int8_t* w = conv_.w + (c * filter_items_ + area.w);
    const int32_t w_step = full ? filter_items_ : 0;
    const int32x4_t begin = start(area, w, w_step, c, full);
    const Scales scales = scales_at(conv_.to, c, !full);
    int8_t* y_row = area.y + c;
    for (int32_t i = area.rows; i > 0; --i) {
      const int8_t* from = x;
      int8_t* y = y_row;
      for (int32_t j = area.columns; j > 0; --j) {
        int32_t sums[4] = {};
        for_each_run(area, from, w,
                     [&](const int8_t* run, const int8_t* at, int32_t items) {
                       add_products(run, at, w_step, items, sums);
                     });
        int32x4_t vector = vaddq_s32(as_vector(sums), begin);
        if (conv_.w_offset != 0) {
          vector = vaddq_n_s32(vector, sum_inputs(area, from));
        }
        vector = requantize(vector, scales, conv_.to, left_);
        if (full) {
          vstrbq_s32(y, vector);
        } else {
          *y = static_cast<int8_t>(vector[0]);
        }
        from += area.x_column;
        y += conv_.out.channels;
      }
      x += area.x_row;
      y_row += area.y_row;
    }
  }

  const Convolution& conv_;
  int32_t line_;
  int32_t tap_row_;
  int32_t tap_column_;
  int32_t filter_items_;
  bool joined_;
  bool left_;
};

}  // namespace

void convolve(const Convolution& conv) {
  const Areas areas(conv);
  const int32_t x_items = conv.in.height * conv.in.width * conv.in.channels;
  const int32_t y_items = conv.out.height * conv.out.width * conv.out.channels;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    areas.compute_image(conv.x + n * x_items, conv.y + n * y_items);
  }
}

void multiply(Convolution& conv, int32_t rows, int32_t depth, int32_t columns) {
  conv.in = {1, 1, rows, depth};
  conv.out = {1, 1, rows, columns};
  conv.rows = {1, 1, 1, 1, 0, 1};
  conv.columns = {rows, rows, 1, 1, 0, 1};
  conv.group_channels = depth;
  conv.group_outputs = columns;
  Areas(conv).compute({conv.x, conv.y, 1, rows, 0, depth, 0, 0, 1, 1});
}

}  // namespace orch::cortex_m

#endif
