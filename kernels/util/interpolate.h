// Items between those of a tensor: what scaling and sampling of images share.
#pragma once

#include <stdint.h>

#include "orch/kernel.h"
#include "util/check.h"
#include "util/strided_loop.h"
#include "util/truncate.h"
#include "util/types.h"

namespace orch {

/// The type that positions, weights and sums are computed in.
template <typename T>
using Real = typename Choose<kIsSame<T, double>, double, float>::type;

/// `x` rounded to the nearest whole number, ties to even; NaN stays.
template <typename C>
C round_real(C x) {
  // Sums of this size have steps of 1: the addition rounds.
  constexpr C kWhole = sizeof(C) == 8 ? C(0x1p52) : C(0x1p23F);
  const C whole = x < 0 ? -kWhole : kWhole;
  return x > -kWhole && x < kWhole ? (x + whole) - whole : x;
}

/// The largest whole number up to `x`; NaN stays.
template <typename C>
C floor_real(C x) {
  const C whole = round_real(x);
  return whole > x ? whole - 1 : whole;
}

/// An interpolated number as an item; integers are rounded to the nearest.
template <typename T, typename C>
T item_from(C value) {
  if constexpr (kIsFloating<T>) {
    return static_cast<T>(value);
  } else {
    return cast_item<T>(round_real(value));
  }
}

/// A dimension of an image that is scaled.
struct ScaledAxis {
  int32_t in;
  int32_t out;
  bool corners;   // the first and last items stay where they are
  double factor;  // 0: out / in
};

/// From an output item to the next, in input items. Source: PyTorch,
/// area_pixel_compute_scale.
template <typename C>
C scale_of(const ScaledAxis& axis) {
  if (axis.corners) {
    return axis.out > 1
               ? static_cast<C>(axis.in - 1) / static_cast<C>(axis.out - 1)
               : C(0);
  }
  if (axis.factor > 0) return static_cast<C>(1 / axis.factor);
  return static_cast<C>(axis.in) / static_cast<C>(axis.out);
}

/// Reads `SymInt[]? output_size` and `float[]? scale_factors`, of which one is
/// given, for the last two dimensions of images, and resizes `out`. Errors:
/// InvalidArgument, ShapeTooLarge.
__attribute__((noinline)) inline Error scale_images(
    const Tensor& input, const Args& args, int output_size, int scale_factors,
    bool corners, ScaledAxis (&axes)[2], Tensor& out) {
  ORCH_CHECK(input.dtype == out.dtype && input.dim == 4,
             Error::InvalidArgument);
  ORCH_CHECK(args.has(output_size) != args.has(scale_factors),
             Error::InvalidArgument);
  int32_t sizes[4] = {input.size(0), input.size(1)};
  for (int i = 0; i < 2; ++i) {
    ScaledAxis& axis = axes[i];
    axis = {input.size(2 + i), 0, corners, 0};
    ORCH_CHECK(axis.in > 0, Error::InvalidArgument);
    if (args.has(output_size)) {
      const IntList given = args.int_list(output_size);
      ORCH_CHECK(given.size() == 2, Error::InvalidArgument);
      ORCH_TRY(read_int(given[i], 1, axis.out));
    } else {
      const Span<const double> factors = args.double_list(scale_factors);
      ORCH_CHECK(factors.size() == 2, Error::InvalidArgument);
      axis.factor = factors[static_cast<size_t>(i)];
      const double size = static_cast<double>(axis.in) * axis.factor;
      // Also false for NaN.
      ORCH_CHECK(size >= 1 && size <= kMaxExtent, Error::InvalidArgument);
      axis.out = static_cast<int32_t>(size);
    }
    sizes[2 + i] = axis.out;
  }
  return resize_output(out, sizes, input);
}

/// A loop over the images of a tensor; tensor 0 is `out`, 1 `from`.
__attribute__((noinline)) inline StridedLoop loop_over_images(
    const Tensor& out, const Strides& to, const Strides& from) {
  StridedLoop loop;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    if (d < 2) loop.add(out.size(d), to[d], from[d]);
  }
  return loop;
}

/// Bits behind the point of weights that are whole numbers, for images of
/// bytes, where `largest` is the largest weight along the axis. Source:
/// PyTorch, compute_index_ranges_int16_weights.
inline int32_t weight_bits(double largest) {
  int32_t bits = 0;
  double next = 2 * largest;
  while (bits < 22 && truncate_narrow(next + 0.5) < 1 << 15) {
    ++bits;
    next *= 2;
  }
  return bits;
}

/// A weight from 0 to 1 with so many bits behind the point.
inline int32_t fixed_weight(double weight, int32_t bits) {
  return truncate_narrow(weight * static_cast<double>(1 << bits) + 0.5);
}

/// A sum of bytes times such weights as a byte.
inline uint8_t byte_from(int32_t sum, int32_t bits) {
  const int32_t value = (sum + (1 << bits >> 1)) >> bits;
  if (value < 0) return 0;
  return static_cast<uint8_t>(value > UINT8_MAX ? UINT8_MAX : value);
}

/// Bytes of an image that become one, along rows first. `x` and `y` have
/// `count` weights, weight(i), with `bits` bits.
template <typename Weights>
uint8_t blend_bytes(const uint8_t* row, int32_t row_step, int32_t column_step,
                    const Weights& x, const Weights& y) {
  int32_t sum = 0;
  for (int32_t i = 0; i < y.count; ++i, row += row_step) {
    int32_t across = 0;
    const uint8_t* item = row;
    for (int32_t k = 0; k < x.count; ++k, item += column_step) {
      across += *item * x.weight(k);
    }
    sum += byte_from(across, x.bits) * y.weight(i);
  }
  return byte_from(sum, y.bits);
}

/// Scales images of bytes. An output item is made of those At(axis, scale, o)
/// along each axis, with weights Weights(at, bits).
template <typename At, typename Weights>
void upsample_bytes(const ScaledAxis* axes, const Tensor& input, Tensor& out) {
  const Strides from(input);
  const Strides to(out);
  StridedLoop planes = loop_over_images(out, to, from);
  if (!planes.valid()) return;
  const double scale_y = scale_of<double>(axes[0]);
  const double scale_x = scale_of<double>(axes[1]);
  const int32_t bits_y = Weights::bits_of(axes[0], scale_y);
  const int32_t bits_x = Weights::bits_of(axes[1], scale_x);
  for (int32_t h = 0; h < axes[0].out; ++h) {
    const At y(axes[0], scale_y, h);
    const Weights rows(y, bits_y);
    for (int32_t w = 0; w < axes[1].out; ++w) {
      const At x(axes[1], scale_x, w);
      const Weights columns(x, bits_x);
      const uint8_t* const first =
          input.data<uint8_t>() + y.first * from[2] + x.first * from[3];
      uint8_t* const target =
          out.mutable_data<uint8_t>() + h * to[2] + w * to[3];
      for (; planes.valid(); planes.next()) {
        for (int32_t n = 0; n < planes.row_size(); ++n) {
          target[planes.offset(0) + n * planes.row_stride(0)] =
              blend_bytes(first + planes.offset(1) + n * planes.row_stride(1),
                          from[2], from[3], columns, rows);
        }
      }
      planes.restart();
    }
  }
}

}  // namespace orch
