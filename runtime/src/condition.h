// Conditions of jumps.
#pragma once

#include "orch/value.h"

namespace orch {

/// Whether a jump is not taken. A condition is a Bool, or a Bool tensor: of one
/// element at load, but a move can have replaced it by one that is empty.
inline bool holds(const Value& condition) {
  if (!condition.is_tensor()) return condition.to_bool();
  const Tensor& tensor = condition.tensor();
  return tensor.numel() != 0 && *tensor.data<uint8_t>() != 0;
}

}  // namespace orch
