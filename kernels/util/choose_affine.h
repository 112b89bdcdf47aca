// Scale and zero point for the numbers at hand.
#pragma once

#include <stdint.h>

#include "orch/lanes.h"
#include "orch/tensor.h"
#include "util/isa.h"
#include "util/round.h"
#include "util/types.h"

namespace orch {

/// Smallest and largest of some floats and 0.
struct Range {
  float low = 0;
  float high = 0;
  float none = 0;  // NaN if an item is NaN or infinite

  ORCH_HOT Range(const float* items, int32_t count, int32_t step) {
    float lowest = 0;
    float highest = 0;
    float rest = 0;
#if ORCH_HOST_VECTORS
    if (step == 1) {
      Lanes least = 0.0F;
      Lanes most = 0.0F;
      Lanes odd = 0.0F;
      for (; count >= 4; count -= 4) {
        const Lanes x = load_lanes(items);
        least = if_above(least, x, x, least);
        most = if_above(x, most, x, most);
        odd = odd + (x - x);
        items += 4;
      }
      for (int i = 0; i < 4; ++i) {
        lowest = least.v[i] < lowest ? least.v[i] : lowest;
        highest = most.v[i] > highest ? most.v[i] : highest;
      }
      rest = sum_in_order(rest, odd);
    }
#endif
    for (; count > 0; --count) {
      const float item = *items;
      lowest = item < lowest ? item : lowest;
      highest = item > highest ? item : highest;
      // Infinities minus themselves are NaN.
      rest += item - item;
      items += step;
    }
    low = lowest;
    high = highest;
    none = rest;
  }

  bool is_finite() const { return !is_nan(none); }
};

/// Whether no item is NaN or infinite.
ORCH_HOT inline bool all_finite(const Tensor& floats) {
  const float* items = floats.data<float>();
  const float* const end = items + floats.numel();
  float rest = 0;
#if ORCH_HOST_VECTORS
  Lanes odd[2] = {0.0F, 0.0F};
  for (; end - items >= 8; items += 8) {
    const Lanes x = load_lanes(items);
    const Lanes y = load_lanes(items + 4);
    odd[0] = odd[0] + (x - x);
    odd[1] = odd[1] + (y - y);
  }
  rest = sum_in_order(rest, odd[0] + odd[1]);
#endif
  for (; items != end; ++items) rest += *items - *items;
  return !is_nan(rest);
}

/// A scale and a zero point between `low` and `high`, so that a range fits
/// between them and 0 is exact.
///
/// Computed in double and single precision as ExecuTorch does, which asks for
/// other scales than PyTorch where the range is small. Source: ExecuTorch
/// kernels/quantized/cpu/op_choose_qparams.cpp, gemmlowp
/// doc/quantization_example.cc.
__attribute__((noinline)) inline void choose_affine(Range range, int32_t low,
                                                    int32_t high, double& scale,
                                                    int32_t& zero_point) {
  constexpr float kSmallest = 6.1e-5F;
  // Exact: 33 bits.
  const double steps = static_cast<double>(high) - static_cast<double>(low);
  double step =
      (static_cast<double>(range.high) - static_cast<double>(range.low)) /
      steps;
  // A scale of zero, or one whose inverse is infinite as a float.
  if (!(1.0F / static_cast<float>(step) <= 0x1.fffffep127F)) step = 0.1;
  if (step < static_cast<double>(kSmallest)) {
    const float factor = kSmallest / static_cast<float>(step);
    const float width = kSmallest * static_cast<float>(steps);
    step = static_cast<double>(kSmallest);
    if (range.low == 0) {
      range.high = width;
    } else if (range.high == 0) {
      range.low = -width;
    } else {
      range.low *= factor;
      range.high *= factor;
    }
  }
  const double below = -(static_cast<double>(range.low) / step);
  const double above = static_cast<double>(range.high) / step;
  const double from_low = static_cast<double>(low) + below;
  const double from_high = static_cast<double>(high) - above;
  // The end that is computed with smaller numbers errs less.
  const double size_low = low < 0 ? -static_cast<double>(low) : low;
  const double size_high = high < 0 ? -static_cast<double>(high) : high;
  const double found =
      size_low - below < size_high - above ? from_low : from_high;
  zero_point = low;
  if (found > static_cast<double>(high)) {
    zero_point = high;
  } else if (found >= static_cast<double>(low)) {
    const float rounded = round_even(static_cast<float>(found));
    // 2^31 where the limit is one less.
    zero_point = rounded < 0x1p31F ? static_cast<int32_t>(rounded) : high;
  }
  scale = step;
}

}  // namespace orch
