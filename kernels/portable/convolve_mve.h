// Convolutions of floats with vectors, to the bits of convolve.h: lanes are
// outputs that see the same weights, wherever they lie.
#pragma once

#include <string.h>

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
template <typename Tapping>
__attribute__((noinline)) void find_run(const Tapping& tapping,
                                        const Axis& axis, int32_t o, Run& run) {
  run.taps = tapping.at(axis, o);
  run.in_step = 0;
  for (run.count = 1; o + run.count < axis.out; ++run.count) {
    const Taps next = tapping.at(axis, o + run.count);
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

/// Adds the sums of further images of a volume, whose factors lie this many
/// items after each other, to rows that `dot` has just computed.
__attribute__((noinline)) inline void add_images(const Area& area,
                                                 const VectorDot& dot,
                                                 int32_t rows, int32_t x_image,
                                                 int32_t w_image) {
  const float zero = 0;
  float sums[kVectorLanes];
  VectorDot image = dot;
  image.set_lanes(dot.lanes, 0, 1);
  memcpy(image.x_lane, dot.x_lane, sizeof image.x_lane);
  for (int32_t row = -rows; row < 0; ++row) {
    float* const y = dot.y + row * dot.y_next;
    for (int32_t i = 1; i < area.images.count; ++i) {
      image.x = dot.x + row * dot.x_next + i * x_image;
      image.w = dot.w + row * dot.w_next + i * w_image;
      image.start = &zero;
      image.y = sums;
      dot_rows(image, 1);
      for (int32_t lane = 0; lane < dot.lanes; ++lane) {
        y[dot.y_lane[lane]] += sums[lane];
      }
    }
  }
}

/// An area whose lanes are pixels and whose rows are channels.
inline void convolve_pixels(const Filters& filters, const Volumes& volumes,
                            const Area& area, const float* bias,
                            VectorDot& dot) {
  const float zero = 0;
  const int32_t x_row = area.rows.in_step * filters.x_row;
  const int32_t x_column = area.columns.in_step * filters.x_column;
  const int32_t x_image = area.images.in_step * volumes.x;
  const int32_t w_image = area.images.kernel_step * volumes.w;
  dot.x_next = filters.x_next;
  dot.w_next = filters.w_next;
  dot.start_next = bias == nullptr ? 0 : 1;
  dot.y_next = filters.y_channel;
  int32_t row = 0;
  int32_t column = 0;
  for (int32_t left = area.rows.count * area.columns.count; left > 0;
       left -= kVectorLanes) {
    dot.lanes = left < kVectorLanes ? left : kVectorLanes;
    for (int32_t lane = 0; lane < kVectorLanes; ++lane) {
      dot.x_lane[lane] = row * x_row + column * x_column;
      dot.y_lane[lane] = row * filters.y_row + column * filters.y_column;
      // Lanes that are not stored are like the last one.
      if (lane + 1 >= left) continue;
      if (++column == area.columns.count) {
        column = 0;
        ++row;
      }
    }
    const float* x = area.x;
    dot.y = area.y;
    dot.start = bias == nullptr ? &zero : bias;
    for (int32_t g = 0; g < filters.groups; ++g) {
      dot.x = x;
      dot.w = area.w + g * filters.w_group;
      dot_rows(dot, filters.outputs);
      if (kVolumes && area.images.count > 1) {
        add_images(area, dot, filters.outputs, x_image, w_image);
      }
      x += filters.x_group;
    }
  }
}

/// convolve_plain() of convolve.h; `limits` are for images, whose sums are
/// whole where they are stored.
template <typename Tapping>
void convolve_vectors(const Filters& filters, const Volumes& volumes,
                      const Tapping& tapping, const float* input,
                      const float* weight, const float* bias, float* out,
                      [[maybe_unused]] const Limits* limits = nullptr) {
  const FlushFlags flags;
  DotLoops loops = loops_of(filters);
  Area area;
  for (int32_t n = 0; n < filters.batch; ++n) {
    for (int32_t d = 0; d < volumes.images(); ++d) {
      area.images = volumes.images_at(tapping, d);
      const float* const x = input + area.images.in * volumes.x;
      const float* const w = weight + area.images.kernel * volumes.w;
      float* const to = out + n * filters.y_image + d * volumes.y;
      for (int32_t h = 0; h < filters.rows.out; h += area.rows.count) {
        find_run(tapping, filters.rows, h, area.rows);
        const Taps& rows = area.rows.taps;
        set_rows(filters, rows, loops);
        for (int32_t v = 0; v < filters.columns.out; v += area.columns.count) {
          find_run(tapping, filters.columns, v, area.columns);
          const Taps& columns = area.columns.taps;
          set_columns(filters, columns, loops);
          area.x = x + first_input(filters, n, rows, columns);
          area.w = w + first_weight(filters, rows, columns);
          area.y = to + h * filters.y_row + v * filters.y_column;
          VectorDot dot;
#if ORCH_SUMS_ADDED
          dot.added = nullptr;
#endif
#if ORCH_SUMS_LIMITED
          dot.limits = limits;
#endif
          dot.loops = loops;
          dot.loops.make_relative();
          if (area.images.count == 0) dot.loops.count[0] = 0;
          convolve_pixels(filters, volumes, area, bias, dot);
        }
      }
    }
  }
}

}  // namespace orch::portable

#endif
