// Whether a value of a program is what an API promises.
#pragma once

#include "orch/model.h"

namespace orch {

/// `mask`: the flags of tensors that count.
inline bool fits(const Value& value, const Port& port, uint8_t mask) {
  if (value.tag() != port.tag) return false;
  if (!value.is_tensor()) return true;
  const Tensor& tensor = value.tensor();
  if (tensor.dtype != port.dtype || tensor.dim != port.dim ||
      (tensor.flags & mask) != port.flags) {
    return false;
  }
  for (int i = 0; i < tensor.dim; ++i) {
    if (tensor.size(i) != port.sizes[i] || tensor.order()[i] != port.order[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace orch
