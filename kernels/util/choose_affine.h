// Scale and zero point for the numbers at hand.
#pragma once

#include <stdint.h>

#include "orch/tensor.h"
#include "util/round.h"
#include "util/types.h"

namespace orch {

/// Whether no item is NaN or infinite.
__attribute__((noinline)) inline bool all_finite(const Tensor& floats) {
  const int32_t count = floats.numel();
  for (int32_t i = 0; i < count; ++i) {
    const float value = floats.data<float>()[i];
    // Those minus themselves are NaN.
    if (is_nan(value - value)) return false;
  }
  return true;
}

/// Smallest and largest of some floats and 0.
struct Range {
  float low = 0;
  float high = 0;

  Range(const float* items, int32_t count, int32_t step) {
    for (; count > 0; --count) {
      if (*items < low) low = *items;
      if (*items > high) high = *items;
      items += step;
    }
  }
};

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
