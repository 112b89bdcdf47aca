// Numbers kept within limits.
#pragma once

#include "util/dtype.h"

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

/// Whether items of `dtype` can be `value`; floats can, rounded.
inline bool holds(ScalarType dtype, int64_t value) {
  if (kFloating.has(dtype)) return true;
  if (dtype == ScalarType::Byte) return value >= 0 && value <= UINT8_MAX;
  const int bits = 8 * static_cast<int>(item_bytes(dtype)) - 1;
  return value >> bits == 0 || value >> bits == -1;
}

}  // namespace orch
