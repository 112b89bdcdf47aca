// Convolutions of lines, images and volumes, in plain C++.
#pragma once

#include "orch/tensor.h"
#include "prepared.h"
#include "util/dot.h"
#include "util/planes.h"

namespace orch::portable {

/// The weights that meet an input at one output position: `count` of them, in
/// even steps.
struct Taps {
  int32_t count;
  int32_t kernel;
  int32_t kernel_step;
  int32_t in;
  int32_t in_step;
};

/// Output o and weight k meet input i where, in a convolution,
/// i = o * stride - padding + k * dilation, and in a transposed one
/// o = i * stride - padding + k * dilation.
ORCH_ALWAYS_INLINE Taps find_taps(const Axis& axis, bool transposed,
                                  int32_t o) {
  int32_t count = 0;
  int32_t kernel = 0;
  int32_t in = 0;
  int32_t in_step = 0;
  // A single tap has a step, too: loops over weights side by side take it.
  int32_t kernel_step = 1;
  for (int32_t k = 0; k < axis.kernel; ++k) {
    int32_t i;
    if (transposed) {
      i = o + axis.padding - k * axis.dilation;
      if (i % axis.stride != 0) continue;
      i /= axis.stride;
    } else {
      i = o * axis.stride - axis.padding + k * axis.dilation;
    }
    if (i < 0 || i >= axis.in) continue;
    if (count == 0) {
      kernel = k;
      in = i;
    } else if (count == 1) {
      kernel_step = k - kernel;
      in_step = i - in;
    }
    ++count;
  }
  return {count, kernel, kernel_step, in, in_step};
}

/// What finds the taps of any convolution.
struct AnyTaps {
  bool transposed;

  __attribute__((noinline)) Taps at(const Axis& axis, int32_t o) const {
    return find_taps(axis, transposed, o);
  }
};

/// Those of a convolution that is known to be transposed, or not.
template <bool kTransposed>
struct KnownTaps {
  __attribute__((noinline)) static Taps at(const Axis& axis, int32_t o) {
    return find_taps(axis, kTransposed, o);
  }
};

struct Convolution {
  Axis axes[3];  // D, H, W
  int32_t groups;
  bool transposed;
};

/// Images of volumes: the axis over them, and from one to the next in each
/// tensor. In an image, which is one, there is one.
struct Volumes {
  Axis axis;
  int32_t x;
  int32_t w;
  int32_t y;

  template <typename Tapping>
  Taps images_at(const Tapping& tapping, int32_t d) const {
    return kVolumes ? tapping.at(axis, d) : Taps{1, 0, 0, 0, 0};
  }
  int32_t images() const { return kVolumes ? axis.out : 1; }
};

/// Those of an image.
inline constexpr Volumes kOneImage = {{1, 1, 1, 1, 0, 1}, 0, 0, 0};

/// Filters, and Volumes, of a convolution of tensors.
struct TensorFilters : Filters {
  Volumes volumes;

  __attribute__((noinline))
  TensorFilters(const Convolution& conv, const Tensor& input,
                const Tensor& weight, const Tensor& out) {
    const Planes x(input, 2);
    const Planes w(weight, 2);
    const Planes y(out, 2);
    const int w_out = conv.transposed ? 1 : 0;
    batch = y.size[0];
    rows = conv.axes[1];
    columns = conv.axes[2];
    groups = conv.groups;
    channels = x.size[1] / groups;
    outputs = y.size[1] / groups;
    x_group = channels * x.stride[1];
    w_next = w.stride[w_out];
    w_group = w.stride[0] * (conv.transposed ? channels : outputs);
    x_next = 0;
    if (channels == 1 && outputs == 1) {
      x_next = x.stride[1];
      w_next = w_group;
      outputs = groups;
      groups = 1;
    }
    x_image = x.stride[0];
    x_channel = x.stride[1];
    x_row = x.stride[2];
    x_column = x.stride[3];
    w_channel = w.stride[1 - w_out];
    w_row = w.stride[2];
    w_column = w.stride[3];
    y_image = y.stride[0];
    y_channel = y.stride[1];
    y_row = y.stride[2];
    y_column = y.stride[3];
    // The innermost loop should be long: loops that a kernel of size 1 makes
    // trivial go outside, which leaves the order of the products as it is.
    const bool narrow = w.size[3] == 1;
    column_loop = narrow ? 0 : 2;
    row_loop = narrow && w.size[2] != 1 ? 2 : 1;
    volumes.axis = conv.axes[0];
    volumes.x = x.depth_stride;
    volumes.w = w.depth_stride;
    volumes.y = y.depth_stride;
  }
};

/// Loops whose rows and columns are to be set.
inline DotLoops loops_of(const Filters& filters) {
  const int32_t at = 3 - filters.row_loop - filters.column_loop;
  DotLoops loops;
  loops.count[at] = filters.channels;
  loops.x_step[at] = filters.x_channel;
  loops.w_step[at] = filters.w_channel;
  return loops;
}

inline void set_rows(const Filters& filters, const Taps& rows,
                     DotLoops& loops) {
  const int32_t at = filters.row_loop;
  loops.count[at] = rows.count;
  loops.x_step[at] = rows.in_step * filters.x_row;
  loops.w_step[at] = rows.kernel_step * filters.w_row;
}

inline void set_columns(const Filters& filters, const Taps& columns,
                        DotLoops& loops) {
  const int32_t at = filters.column_loop;
  loops.count[at] = columns.count;
  loops.x_step[at] = columns.in_step * filters.x_column;
  loops.w_step[at] = columns.kernel_step * filters.w_column;
}

/// The first of the inputs of image n that meet weights.
ORCH_ALWAYS_INLINE int32_t first_input(const Filters& filters, int32_t n,
                                       const Taps& rows, const Taps& columns) {
  return n * filters.x_image + rows.in * filters.x_row +
         columns.in * filters.x_column;
}

ORCH_ALWAYS_INLINE int32_t first_weight(const Filters& filters,
                                        const Taps& rows, const Taps& columns) {
  return rows.kernel * filters.w_row + columns.kernel * filters.w_column;
}

/// Adds the sums of further images of a volume, whose factors lie this many
/// items after each other.
template <typename T, typename Dots>
__attribute__((noinline)) void add_images(const Dots& dots, Dot<T> dot,
                                          const DotLoops& loops, int32_t count,
                                          int32_t x_image, int32_t w_image,
                                          int32_t block, Compute<T>* sums) {
  dot.start = nullptr;
  while (--count > 0) {
    dot.x += x_image;
    dot.w += w_image;
    Compute<T> next[kDotBlock];
    dots.of(dot, loops, block, next);
    for (int32_t i = 0; i < block; ++i) sums[i] += next[i];
  }
}

/// Outputs are sums.
struct AsSummed {
  template <typename C, typename T>
  void operator()(C sum, T* to) const {
    *to = static_cast<T>(sum);
  }
};

/// The outputs of all channels at one position, as `finish` writes them: `x`
/// and `w` are the first input and weight that meet there in an image.
template <typename T, typename Dots, typename Finish>
void convolve_at(const Filters& filters, const Dots& dots, Finish finish,
                 const Volumes& volumes, const Taps& images,
                 const DotLoops& nested, const T* x, const T* w, const T* bias,
                 T* to) {
  using C = Compute<T>;
  const int32_t x_next = filters.x_next;
  const int32_t x_image = images.in_step * volumes.x;
  const int32_t w_image = images.kernel_step * volumes.w;
  DotLoops relative = nested.relative();
  if (kVolumes) {
    if (images.count == 0) relative.count[0] = 0;
    x += images.in * volumes.x;
    w += images.kernel * volumes.w;
  }
  const T* start = bias;
  for (int32_t g = 0; g < filters.groups; ++g) {
    Dot<T> dot = {x, w + g * filters.w_group, start, x_next, filters.w_next};
    for (int32_t left = filters.outputs, block; left > 0; left -= block) {
      block = left >= kDotBlock ? kDotBlock : 1;
      C sums[kDotBlock];
      dots.of(dot, relative, block, sums);
      if (kVolumes && images.count > 1) {
        add_images(dots, dot, relative, images.count, x_image, w_image, block,
                   sums);
      }
      for (int32_t i = 0; i < block; ++i) {
        finish(sums[i], to);
        to += filters.y_channel;
      }
      dot.x += block * x_next;
      dot.w += block * filters.w_next;
      if (dot.start != nullptr) dot.start += block;
    }
    start = dot.start;
    x += filters.x_group;
  }
}

/// Every output is the bias, if there is one, plus products in order of input
/// channel, kernel row, kernel column; weights over padding are left out. In a
/// volume these are the sums of one image; those of the images that meet
/// weights follow each other. finish(sum, to) makes
/// outputs of whole sums.
template <typename T, typename Tapping, typename Dots,
          typename Finish = AsSummed>
void convolve_plain(const Filters& filters, const Volumes& volumes,
                    const Tapping& tapping, const Dots& dots, const T* input,
                    const T* weight, const T* bias, T* out,
                    Finish finish = {}) {
  DotLoops loops = loops_of(filters);
  for (int32_t n = 0; n < filters.batch; ++n) {
    for (int32_t d = 0; d < volumes.images(); ++d) {
      const Taps images = volumes.images_at(tapping, d);
      for (int32_t h = 0; h < filters.rows.out; ++h) {
        const Taps rows = tapping.at(filters.rows, h);
        set_rows(filters, rows, loops);
        for (int32_t v = 0; v < filters.columns.out; ++v) {
          const Taps columns = tapping.at(filters.columns, v);
          set_columns(filters, columns, loops);
          convolve_at(filters, dots, finish, volumes, images, loops,
                      input + first_input(filters, n, rows, columns),
                      weight + first_weight(filters, rows, columns), bias,
                      out + n * filters.y_image + d * volumes.y +
                          h * filters.y_row + v * filters.y_column);
        }
      }
    }
  }
}

}  // namespace orch::portable
