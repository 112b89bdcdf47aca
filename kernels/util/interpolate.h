// Items between those of a tensor: what scaling and sampling of images share.
#pragma once

#include <stdint.h>

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

}  // namespace orch
