// A header of the library: no need to name it anywhere.
#pragma once

#include "util/types.h"

namespace my_ops {

/// max(x, 0) squared; NaN stays NaN.
template <typename T>
T squared_relu(T x) {
  using C = orch::Compute<T>;
  const C value = static_cast<C>(x);
  return static_cast<T>(value < C(0) ? C(0) : value * value);
}

}  // namespace my_ops
