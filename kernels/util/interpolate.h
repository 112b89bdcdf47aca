// Items between those of a tensor: what scaling and sampling of images share.
#pragma once

#include <stdint.h>

#include "util/check.h"
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

}  // namespace orch
