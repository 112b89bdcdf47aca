// Convolutions of lines, images and volumes, in plain C++.
#pragma once

#include "orch/tensor.h"
#include "util/dot.h"
#include "util/planes.h"

namespace orch::portable {

/// Where the weights lie over the input along one dimension, D, H or W.
struct Axis {
  int32_t in;
  int32_t out;
  int32_t kernel;
  int32_t stride;
  int32_t padding;
  int32_t dilation;
  bool transposed;
};

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
__attribute__((noinline)) inline Taps taps_at(const Axis& axis, int32_t o) {
  Taps taps = {};
  for (int32_t k = 0; k < axis.kernel; ++k) {
    int32_t i;
    if (axis.transposed) {
      i = o + axis.padding - k * axis.dilation;
      if (i % axis.stride != 0) continue;
      i /= axis.stride;
    } else {
      i = o * axis.stride - axis.padding + k * axis.dilation;
    }
    if (i < 0 || i >= axis.in) continue;
    if (taps.count == 0) {
      taps.kernel = k;
      taps.in = i;
    } else if (taps.count == 1) {
      taps.kernel_step = k - taps.kernel;
      taps.in_step = i - taps.in;
    }
    ++taps.count;
  }
  return taps;
}

/// Those of the images of a volume; in an image, which is one, there is one.
inline Taps images_at(const Axis& axis, int32_t d) {
  return kVolumes ? taps_at(axis, d) : Taps{1, 0, 0, 0, 0};
}

struct Convolution {
  Axis axes[3];  // D, H, W
  int32_t groups;
  bool transposed;
};

/// How tensors and the loops over weights lie to each other.
struct Filters {
  const Convolution& conv;
  Planes x;
  Planes w;
  Planes y;
  int32_t in_channels;  // of a group
  int32_t out_channels;
  int32_t groups;
  int32_t w_group;  // from one group to the next
  int32_t w_next;   // from one output channel to the next
  // Depthwise: seen as one group, where every output has an input of its own,
  // this far from that of the one before; else 0.
  int32_t x_next = 0;
  // Of the loops: rows and columns of weights.
  int at_h;
  int at_w;
  DotLoops loops;

  __attribute__((noinline))
  Filters(const Convolution& convolution, const Tensor& input,
          const Tensor& weight, const Tensor& out)
      : conv(convolution),
        x(input, 2),
        w(weight, 2),
        y(out, 2),
        in_channels(x.size[1] / conv.groups),
        out_channels(y.size[1] / conv.groups),
        groups(conv.groups) {
    w_next = w.stride[conv.transposed ? 1 : 0];
    w_group = w.stride[0] * (conv.transposed ? in_channels : out_channels);
    if (in_channels == 1 && out_channels == 1) {
      x_next = x.stride[1];
      w_next = w_group;
      out_channels = groups;
      groups = 1;
    }
    // The innermost loop should be long: loops that a kernel of size 1 makes
    // trivial go outside, which leaves the order of the products as it is.
    const bool narrow = w.size[3] == 1;
    at_w = narrow ? 0 : 2;
    at_h = narrow && w.size[2] != 1 ? 2 : 1;
    const int at_c = 3 - at_w - at_h;
    loops.count[at_c] = in_channels;
    loops.x_step[at_c] = x.stride[1];
    loops.w_step[at_c] = w.stride[conv.transposed ? 0 : 1];
  }

  void set_rows(const Taps& rows) {
    loops.count[at_h] = rows.count;
    loops.x_step[at_h] = rows.in_step * x.stride[2];
    loops.w_step[at_h] = rows.kernel_step * w.stride[2];
  }

  void set_columns(const Taps& columns) {
    loops.count[at_w] = columns.count;
    loops.x_step[at_w] = columns.in_step * x.stride[3];
    loops.w_step[at_w] = columns.kernel_step * w.stride[3];
  }

  /// The first of the inputs of image n that meet weights.
  int32_t first_input(int32_t n, const Taps& rows, const Taps& columns) const {
    return n * x.stride[0] + rows.in * x.stride[2] + columns.in * x.stride[3];
  }

  int32_t first_weight(const Taps& rows, const Taps& columns) const {
    return rows.kernel * w.stride[2] + columns.kernel * w.stride[3];
  }
};

/// One sum, or kDotBlock of them. The loops are relative.
template <typename T>
void dots(const Dot<T>& dot, const DotLoops& loops, int32_t block,
          Compute<T>* sums) {
  if (block == 1) {
    dot1(dot, &loops, sums);
  } else if (dot.x_next == 0) {
    dot4<T, true>(dot, &loops, sums);
  } else {
    dot4<T, false>(dot, &loops, sums);
  }
}

/// Adds the sums of further images of a volume, whose factors lie this many
/// items after each other.
template <typename T>
__attribute__((noinline)) void add_images(Dot<T> dot, const DotLoops& loops,
                                          int32_t count, int32_t x_image,
                                          int32_t w_image, int32_t block,
                                          Compute<T>* sums) {
  dot.start = nullptr;
  while (--count > 0) {
    dot.x += x_image;
    dot.w += w_image;
    Compute<T> next[kDotBlock];
    dots(dot, loops, block, next);
    for (int32_t i = 0; i < block; ++i) sums[i] += next[i];
  }
}

/// The outputs of all channels at one position: `x` and `w` are the first input
/// and weight that meet there in an image.
template <typename T>
void convolve_at(const Filters& filters, const Taps& images, const T* x,
                 const T* w, const T* bias, T* to) {
  using C = Compute<T>;
  const int32_t x_next = filters.x_next;
  const int32_t x_image = images.in_step * filters.x.depth_stride;
  const int32_t w_image = images.kernel_step * filters.w.depth_stride;
  DotLoops relative = filters.loops.relative();
  if (images.count == 0) relative.count[0] = 0;
  x += images.in * filters.x.depth_stride;
  w += images.kernel * filters.w.depth_stride;
  const T* start = bias;
  for (int32_t g = 0; g < filters.groups; ++g) {
    Dot<T> dot = {x, w + g * filters.w_group, start, x_next, filters.w_next};
    for (int32_t left = filters.out_channels, block; left > 0; left -= block) {
      block = left >= kDotBlock ? kDotBlock : 1;
      C sums[kDotBlock];
      dots(dot, relative, block, sums);
      if (kVolumes && images.count > 1) {
        add_images(dot, relative, images.count, x_image, w_image, block, sums);
      }
      for (int32_t i = 0; i < block; ++i) {
        *to = static_cast<T>(sums[i]);
        to += filters.y.stride[1];
      }
      dot.x += block * x_next;
      dot.w += block * filters.w_next;
      if (dot.start != nullptr) dot.start += block;
    }
    start = dot.start;
    x += filters.in_channels * filters.x.stride[1];
  }
}

/// Every output is the bias, if there is one, plus products in order of input
/// channel, kernel row, kernel column; weights over padding are left out. In a
/// volume these are the sums of one image; those of the images that meet
/// weights follow each other.
template <typename T>
void convolve_plain(Filters& filters, const T* input, const T* weight,
                    const T* bias, T* out) {
  const Planes& y = filters.y;
  const Convolution& conv = filters.conv;
  for (int32_t n = 0; n < y.size[0]; ++n) {
    for (int32_t d = 0; d < conv.axes[0].out; ++d) {
      const Taps images = images_at(conv.axes[0], d);
      for (int32_t h = 0; h < y.size[2]; ++h) {
        const Taps rows = taps_at(conv.axes[1], h);
        filters.set_rows(rows);
        for (int32_t v = 0; v < y.size[3]; ++v) {
          const Taps columns = taps_at(conv.axes[2], v);
          filters.set_columns(columns);
          convolve_at(filters, images,
                      input + filters.first_input(n, rows, columns),
                      weight + filters.first_weight(rows, columns), bias,
                      out + n * y.stride[0] + d * y.depth_stride +
                          h * y.stride[2] + v * y.stride[3]);
        }
      }
    }
  }
}

}  // namespace orch::portable
