// Sums of products over images with vectors. Four output channels at a time go
// over all pixels that see the same taps: what belongs to the channels is found
// once.
#pragma once

#include <string.h>

#include "convolve.h"
#include "requantize_mve.h"
#include "run.h"
#include "tile_mve.h"

namespace orch::cortex_m {

/// Pixels of the output that see the same taps.
struct Area {
  const int8_t* x;  // the first tap of the first pixel
  int8_t* y;
  int32_t rows;
  int32_t columns;
  int32_t x_row;  // from one pixel to the next
  int32_t x_column;
  int32_t y_row;
  int32_t y_column;
  int32_t w;  // the first tap's weight
  // What lies in one piece in inputs as well as in weights, in groups.
  Runs runs;
  int32_t groups;
  int32_t x_group;
  int32_t w_group;
};

class Areas {
 public:
  explicit Areas(const Convolution& conv)
      : conv_(conv),
        filter_items_(conv.rows.kernel * conv.columns.kernel *
                      conv.group_channels),
        left_(has_left_shift(conv.to, conv.out.channels)) {}

  /// One image.
  void compute_image(const int8_t* x, int8_t* y) const {
    const int32_t line = conv_.in.width * conv_.in.channels;
    Area area;
    area.x_row = wrapping_product(conv_.rows.stride, line);
    area.x_column = wrapping_product(conv_.columns.stride, conv_.in.channels);
    area.y_row = conv_.out.width * conv_.out.channels;
    area.y_column = conv_.out.channels;
    for (int32_t h = 0; h < conv_.out.height; h += area.rows) {
      Taps rows;
      area.rows = find_same(conv_.rows, h, rows);
      for (int32_t v = 0; v < conv_.out.width; v += area.columns) {
        Taps columns;
        area.columns = find_same(conv_.columns, v, columns);
        area.x = x + (rows.in * line + columns.in * conv_.in.channels);
        area.y = y + (h * area.y_row + v * conv_.out.channels);
        area.w = (rows.first * conv_.columns.kernel + columns.first) *
                 conv_.group_channels;
        set_runs(area, rows.count, columns.count);
        compute(area);
      }
    }
  }

  /// All channels of an area.
  __attribute__((noinline)) void compute(const Area& area) const {
    Line line = line_of(area);
    const int8_t* x = area.x;
    for (int32_t first = 0; first < conv_.out.channels;
         first += conv_.group_outputs) {
      const int32_t end = first + conv_.group_outputs;
      for (int32_t c = first; c < end; c += 4) {
        compute_channels(area, line, x, c, end - c < 4 ? end - c : 4);
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

  void set_runs(Area& area, int32_t rows, int32_t columns) const {
    const int32_t depth = conv_.group_channels;
    const int32_t x_row = wrapping_product(conv_.rows.dilation,
                                           conv_.in.width * conv_.in.channels);
    const int32_t w_row = conv_.columns.kernel * depth;
    if (conv_.columns.dilation == 1 && depth == conv_.in.channels) {
      area.runs = runs_of(columns * depth, rows, x_row, w_row);
      area.groups = 1;
    } else {
      area.runs = runs_of(
          depth, columns,
          wrapping_product(conv_.columns.dilation, conv_.in.channels), depth);
      area.groups = rows;
      area.x_group = x_row;
      area.w_group = w_row;
    }
  }

  /// The sum of all weights that an output channel has in an area.
  ORCH_ALWAYS_INLINE int32_t sum_weights(const Area& area,
                                         const int8_t* w) const {
    int32_t sum = 0;
    for (int32_t i = 0; i < area.groups; ++i) {
      sum +=
          sum_of_items(w, area.runs.items, area.runs.count, area.runs.w_skip);
      w += area.w_group;
    }
    return sum;
  }

  /// w_offset times the sum of a pixel's inputs.
  ORCH_ALWAYS_INLINE int32_t sum_inputs(const Area& area,
                                        const int8_t* x) const {
    int32_t sum = 0;
    for (int32_t i = 0; i < area.groups; ++i) {
      sum +=
          sum_of_items(x, area.runs.items, area.runs.count, area.runs.x_skip);
      x += area.x_group;
    }
    sum += area.groups * area.runs.count * area.runs.items * conv_.x_offset;
    return wrapping_product(sum, conv_.w_offset);
  }

  /// One pixel by itself, of which nothing is assumed. Leaves `line` as it is.
  __attribute__((noinline)) void compute_pixel(const Area& area, Line& line,
                                               const int8_t* x, int8_t* y,
                                               int32_t channel) const {
    const int32_t extra = conv_.w_offset == 0 ? 0 : sum_inputs(area, x);
    int32_t begin[4];
    memcpy(begin, line.begin, sizeof begin);
    for (int32_t& sum : line.begin) sum += extra;
    --line.count;
    for (int32_t i = area.groups; i > 0; --i) {
      orch_compute_line(&line, x, y);
      memcpy(line.begin, line.sums, sizeof line.begin);
      for (const int8_t*& w : line.w) w += area.w_group;
      x += area.x_group;
    }
    finish<1, 4>(conv_.to, line.begin, channel, line.lanes, y, 0);
    ++line.count;
    for (const int8_t*& w : line.w) w -= area.groups * area.w_group;
    memcpy(line.begin, begin, sizeof begin);
  }

  /// What all channels of an area have in common.
  Line line_of(const Area& area) const {
    Line line;
    line.count = 2 * area.runs.count;
    line.items = area.runs.items;
    line.x_skip = area.runs.x_skip;
    line.w_skip = area.runs.w_skip;
    line.x_column =
        area.x_column - ((area.runs.count - 1) * line.x_skip +
                         area.runs.count * passed_items(line.items));
    line.y_column = area.y_column;
    line.offset = conv_.to.offset;
    line.low = conv_.to.range.low;
    line.high = conv_.to.range.high;
    return line;
  }

  ORCH_ALWAYS_INLINE void compute_channels(const Area& area, Line& line,
                                           const int8_t* x, int32_t channel,
                                           int32_t count) const {
    const Output& to = conv_.to;
    line.lanes = count;
    load_four(to.multipliers + channel * to.step, to.step, count,
              line.multipliers);
    load_four(to.shifts + channel * to.step, to.step, count, line.shifts);
    if (conv_.bias == nullptr) {
      memset(line.begin, 0, sizeof line.begin);
    } else {
      load_four(conv_.bias + channel, 1, count, line.begin);
    }
    const int8_t* w = conv_.w + (channel * filter_items_ + area.w);
    for (int32_t i = 0; i < 4; ++i) {
      line.w[i] = w;
      if (conv_.x_offset != 0) {
        add_product(line.begin[i], sum_weights(area, w), conv_.x_offset);
      }
      if (i + 1 < count) w += filter_items_;
    }
    const bool plain = !left_ && conv_.w_offset == 0 && area.groups == 1;
    int8_t* y = area.y + channel;
    for (int32_t i = area.rows; i > 0; --i) {
      if (plain) {
        line.y_end = y + area.columns * area.y_column;
        orch_compute_line(&line, x, y);
      } else {
        for (int32_t j = 0; j < area.columns; ++j) {
          compute_pixel(area, line, x + j * area.x_column,
                        y + j * area.y_column, channel);
        }
      }
      x += area.x_row;
      y += area.y_row;
    }
  }

  const Convolution& conv_;
  int32_t filter_items_;
  bool left_;
};

}  // namespace orch::cortex_m
