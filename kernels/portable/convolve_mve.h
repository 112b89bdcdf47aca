// Convolutions of floats with vectors, to the bits of convolve.h: lanes are
// outputs that see the same weights, wherever they lie.
#pragma once

#include "convolve.h"
#include "util/dot_mve.h"

#if ORCH_FLOAT_VECTORS

namespace orch::portable {

/// Outputs along an axis that see the same weights.
struct Run {
  Taps taps;  // of the first
  int32_t count;
  int32_t in_step;  // from the inputs of one to those of the next
};

/// The run that begins with output `o`.
__attribute__((noinline)) inline void find_run(const Axis& axis, int32_t o,
                                               Run& run) {
  run.taps = taps_at(axis, o);
  run.in_step = 0;
  for (run.count = 1; o + run.count < axis.out; ++run.count) {
    const Taps next = taps_at(axis, o + run.count);
    if (run.count == 1) run.in_step = next.in - run.taps.in;
    if (next.count != run.taps.count || next.kernel != run.taps.kernel ||
        next.kernel_step != run.taps.kernel_step ||
        next.in_step != run.taps.in_step ||
        next.in != run.taps.in + run.count * run.in_step) {
      break;
    }
  }
}

/// Outputs of all channels that see the same weights, and where they begin.
struct Area {
  Taps images;
  Run rows;
  Run columns;
  const float* x;
  const float* w;
  float* y;
};

/// Adds the sums of a further image of a volume to outputs; `dot` has those of
/// the first, this many items before it.
__attribute__((noinline)) inline void add_image(const VectorDot& dot,
                                                int32_t rows, int32_t x_items,
                                                int32_t w_items) {
  float sums[kVectorRows][kVectorLanes];
  VectorDot image = dot;
  image.x += x_items;
  for (int32_t row = 0; row < rows; ++row) {
    image.w[row] += w_items;
    image.start[row] = 0;
    image.y[row] = sums[row];
  }
  for (int32_t lane = 0; lane < kVectorLanes; ++lane) image.y_lane[lane] = lane;
  dot_tile(image, rows);
  for (int32_t row = 0; row < rows; ++row) {
    for (int32_t lane = 0; lane < dot.lanes; ++lane) {
      dot.y[row][dot.y_lane[lane]] += sums[row][lane];
    }
  }
}

/// All channels of the outputs that the lanes of `dot` are.
__attribute__((noinline)) inline void convolve_lanes(const Filters& filters,
                                                     const Area& area,
                                                     const float* bias,
                                                     VectorDot& dot) {
  const float* x_group = area.x;
  float* y = area.y;
  const int32_t x_image = area.images.in_step * filters.x.depth_stride;
  const int32_t w_image = area.images.kernel_step * filters.w.depth_stride;
  for (int32_t g = 0; g < filters.groups; ++g) {
    dot.x = x_group;
    const float* w = area.w + g * filters.w_group;
    for (int32_t left = filters.out_channels, rows; left > 0; left -= rows) {
      // Rows share their inputs.
      rows = filters.x_next != 0 || left < kVectorRows ? 1 : kVectorRows;
      for (int32_t row = 0; row < rows; ++row) {
        dot.w[row] = w;
        dot.y[row] = y;
        dot.start[row] = bias == nullptr ? 0 : *bias++;
        w += filters.w_next;
        y += filters.y.stride[1];
      }
      dot_tile(dot, rows);
      for (int32_t i = 1; i < area.images.count; ++i) {
        add_image(dot, rows, i * x_image, i * w_image);
      }
      dot.x += filters.x_next;
    }
    x_group += filters.in_channels * filters.x.stride[1];
  }
}

inline void convolve_area(const Filters& filters, const Area& area,
                          const float* bias) {
  const int32_t x_row = area.rows.in_step * filters.x.stride[2];
  const int32_t x_column = area.columns.in_step * filters.x.stride[3];
  VectorDot dot;
  dot.loops = filters.loops;
  dot.loops.make_relative();
  if (area.images.count == 0) dot.loops.count[0] = 0;
  int32_t row = 0;
  int32_t column = 0;
  for (int32_t left = area.rows.count * area.columns.count; left > 0;
       left -= kVectorLanes) {
    dot.lanes = left < kVectorLanes ? left : kVectorLanes;
    for (int32_t lane = 0; lane < kVectorLanes; ++lane) {
      dot.x_lane[lane] = row * x_row + column * x_column;
      dot.y_lane[lane] =
          row * filters.y.stride[2] + column * filters.y.stride[3];
      // Lanes that are not stored are like the last one.
      if (lane + 1 >= left) continue;
      if (++column == area.columns.count) {
        column = 0;
        ++row;
      }
    }
    convolve_lanes(filters, area, bias, dot);
  }
}

/// convolve_plain() of convolve.h.
inline void convolve_vectors(Filters& filters, const float* input,
                             const float* weight, const float* bias,
                             float* out) {
  const FlushFlags flags;
  const Planes& y = filters.y;
  const Axis* const axes = filters.conv.axes;
  Area area;
  for (int32_t n = 0; n < y.size[0]; ++n) {
    for (int32_t d = 0; d < axes[0].out; ++d) {
      area.images = taps_at(axes[0], d);
      const float* const x = input + area.images.in * filters.x.depth_stride;
      const float* const w =
          weight + area.images.kernel * filters.w.depth_stride;
      float* const to = out + n * y.stride[0] + d * y.depth_stride;
      for (int32_t h = 0; h < y.size[2]; h += area.rows.count) {
        find_run(axes[1], h, area.rows);
        filters.set_rows(area.rows.taps);
        for (int32_t v = 0; v < y.size[3]; v += area.columns.count) {
          find_run(axes[2], v, area.columns);
          filters.set_columns(area.columns.taps);
          area.x =
              x + filters.first_input(n, area.rows.taps, area.columns.taps);
          area.w = w + filters.first_weight(area.rows.taps, area.columns.taps);
          area.y = to + h * y.stride[2] + v * y.stride[3];
          convolve_area(filters, area, bias);
        }
      }
    }
  }
}

}  // namespace orch::portable

#endif
