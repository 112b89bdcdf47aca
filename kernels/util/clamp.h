// Numbers kept within limits.
#pragma once

#include "util/dtype.h"
#include "util/lanes.h"

namespace orch {

/// The larger one; NaN wins, whichever it is.
template <typename T>
T at_least(T value, T low) {
  const auto x = number_of(value);
  return x >= number_of(low) || is_nan(x) ? value : low;
}

/// The smaller one; NaN wins, whichever it is.
template <typename T>
T at_most(T value, T high) {
  const auto x = number_of(value);
  return x <= number_of(high) || is_nan(x) ? value : high;
}

// "gt" is false of NaN, which stays.
// clang-format off
#define ORCH_RELU(x, y) \
  "vpt.f32 gt, q4, " x "\n" \
  "vmovt " x ", q4\n"
#define ORCH_CLAMP(x, y) \
  ORCH_RELU(x, y) \
  "vpt.f32 gt, " x ", r3\n" \
  "vdupt.32 " x ", r3\n"
// clang-format on
/// Not less than 0.
ORCH_LANES_AFTER(relu_lanes, "vmov.i32 q4, #0\n", ORCH_RELU);

/// Within limits that are numbers.
ORCH_LANES_AFTER(clamp_lanes, "vdup.32 q4, r2\n", ORCH_CLAMP);

/// The form for vectors of a function that keeps items within p0 and p1.
inline LaneFn lanes_within(float low, float high) {
  return low == low && high == high ? clamp_lanes : nullptr;
}

/// A function that keeps items within limits; the upper one wins.
template <typename T>
auto kept_within(Type<T> type, T low, T high) {
  const auto p0 = static_cast<float>(low);
  const auto p1 = static_cast<float>(high);
  return in_lanes(
      type, [=](T value) { return at_most(at_least(value, low), high); },
      lanes_within(p0, p1), p0, p1);
}

/// Whether items of `dtype` can be `value`; floats can, rounded.
inline bool holds(ScalarType dtype, int64_t value) {
  if ((kFloating | kComplex).has(dtype)) return true;
  if (dtype == ScalarType::Byte) return value >= 0 && value <= UINT8_MAX;
  const int bits = 8 * static_cast<int>(item_bytes(dtype)) - 1;
  return value >> bits == 0 || value >> bits == -1;
}

}  // namespace orch
